#!/usr/bin/env python3
"""Packs the wheel of `./dev wheel` from a build folder.

usage: wheel.py BUILD

A wheel is an archive with a list of its files; no tool is needed to make one.
What it holds runs with every libc that has the symbols that it needs: its tag
says which (https://peps.python.org/pep-0600).
"""
import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Part of every libc that the tag names.
ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so\.\d+")
# Packed beside the library, where it looks for them first ($ORIGIN).
PACKED = ("libpng16.so.16", "libz.so.1")
TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(unisono VERSION ([0-9.]+)", text)[1]


def read_elf(path, option):
    done = subprocess.run(["readelf", "-W", option, str(path)], check=True,
                          capture_output=True, text=True)
    return done.stdout


def libc_needed(path):
    """The version of libc that a program or library needs: (2, 36)."""
    for library in re.findall(r"NEEDED.*\[(.*)\]", read_elf(path, "-d")):
        if not ALLOWED.fullmatch(library) and library not in PACKED:
            sys.exit(f"wheel.py: {path} needs {library}, which is not part of "
                     "every system")
    found = re.findall(r"\bGLIBC_(\d+)\.(\d+)", read_elf(path, "--version-info"))
    return max((int(major), int(minor)) for major, minor in found)


def system_library(name):
    """Where the loader finds a library of the system."""
    done = subprocess.run(["/sbin/ldconfig", "-p"], check=True,
                          capture_output=True, text=True)
    found = re.search(rf"{re.escape(name)} \(.*x86-64.*\) => (.*)",
                      done.stdout)
    if not found:
        sys.exit(f"wheel.py: there is no {name} on this system")
    return pathlib.Path(found[1])


def notices(build):
    """Of what is not ours, in the programs or beside them."""
    done = subprocess.run(
        [ROOT / "bundle/notices.py", build / "libunisono_wheel.so",
         build / "libsimcuda.so", build / "unisono_portable", "--",
         *map(system_library, PACKED)], stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(1)
    return done.stdout


def cubins(build):
    """(name, bytes) of machine code for GPUs, if there is a ptxas."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ROOT / "bundle/cubins.py", build, f"{folder}/cubins"], check=True)
        return [(path.name, path.read_bytes()) for path in sorted(pathlib.Path(folder, "cubins").glob("*.cubin"))]


def metadata():
    return f"""Metadata-Version: 2.1
Name: unisono
Version: {version()}
Summary: A small, statically typed array language with pmap, vmap and jit
License: MIT
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{(HERE / "README.md").read_text()}"""


def contents(build, tag):
    """(name in the wheel, bytes, whether it is a program) of all files."""
    name = f"unisono-{version()}"
    for path in sorted((HERE / "unisono").rglob("*")):
        if path.suffix in (".py", ".uni", ".typed"):
            yield str(path.relative_to(HERE)), path.read_bytes(), False
    simulator = (build / "libsimcuda.so").read_bytes()
    yield ("unisono/libunisono.so", (build / "libunisono_wheel.so").read_bytes(),
           True)
    yield "unisono/libsimcuda.so", simulator, True
    for library in PACKED:
        yield f"unisono/{library}", system_library(library).read_bytes(), True
    # Where the executable, which pip puts into bin, looks for it.
    yield f"{name}.data/data/lib/unisono/libsimcuda.so", simulator, True
    for cubin, code in cubins(build):
        yield f"unisono/cubins/{cubin}", code, False
        yield f"{name}.data/data/lib/unisono/cubins/{cubin}", code, False
    yield (f"{name}.data/scripts/unisono",
           (build / "unisono_portable").read_bytes(), True)
    info = f"{name}.dist-info"
    yield f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes(), False
    yield f"{info}/THIRD_PARTY_NOTICES", notices(build), False
    yield f"{info}/METADATA", metadata().encode(), False
    yield f"{info}/WHEEL", ("Wheel-Version: 1.0\nGenerator: unisono\n"
                            "Root-Is-Purelib: false\n"
                            f"Tag: {tag}\n").encode(), False


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    binaries = [build / file for file in (
        "libunisono_wheel.so", "libsimcuda.so", "unisono_portable")]
    major, minor = max(map(libc_needed,
                           binaries + list(map(system_library, PACKED))))
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    out = build / "wheel" / f"unisono-{version()}-{tag}.whl"
    out.parent.mkdir(exist_ok=True)
    for old in out.parent.glob("unisono-*.whl"):
        old.unlink()
    record = f"unisono-{version()}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        def add(name, data, is_program):
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
        for name, data, is_program in contents(build, tag):
            add(name, data, is_program)
            digest = base64.urlsafe_b64encode(
                hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}\n")
        add(record, "".join(lines) + f"{record},,\n", False)
    print(f"{out}: {out.stat().st_size // 2 ** 20} MB")


if __name__ == "__main__":
    main()
