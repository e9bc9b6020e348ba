#!/usr/bin/env python3
"""What the documentation shows is run.

Each `docs/errors/CODE.md`: the program under "Wrong" gives that message; the one under "Right" does not, and
runs, if it is whole (it may use names that it does not define, and files that are not there).
Each ```uni block in docs/*.md is run (```uni 4 with four devices) and gives what the ```output block after it
shows, or nothing if there is none. What it gives is standard output, then standard error. It sees the files that stand before
it on the page, and begins one with a line `# NAME.uni`. A ```sh block is run by bash, in a folder with these files; ", in 0.1 s" is left out of what it gives.
Each example in the table of messages in docs/pmap.md gives that message.
Each name of ours in the tables of NumPy's and JAX's names in docs/library.md is there; each builtin and each function
that is in scope without import stands in docs/library.md with its parameters, or in docs/pmap.md or docs/autodiff.md.

usage: tests/documentation.py UNISONO [--rewrite]

--rewrite writes what the programs give now into the ```output blocks.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import sanitizers

SECONDS = sanitizers.limit()
ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(unisono, text, folder, devices=1):
    """Runs a program. A line `# NAME.uni` begins a file, and the first one is the program."""
    name = "-"
    if text.startswith("# ") and text.splitlines()[0].endswith(".uni"):
        files = re.findall(r"^# (\S+\.uni)\n(.*?)(?=^# \S+\.uni$|\Z)", text, re.M | re.S)
        name = files[0][0]
        for path, content in files:
            (pathlib.Path(folder) / path).write_text(content)
    try:
        done = subprocess.run([unisono, "run", name, "--devices", f"cpu:{devices}"], input=text.encode(), cwd=folder,
                              capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return -9, "", f"error[none]: no end after {SECONDS} s\n"
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def page(unisono, path):
    """The programs of one page of a message, each with some number of devices."""
    text, code = path.read_text(), path.stem
    for kind, program in re.findall(r"^(Wrong|Right):\n\n```\n(.*?)^```", text, re.M | re.S):
        if program.startswith(("(", "unisono[")) or "... " in program:  # told, or typed in a session
            continue
        for devices in (4, 8, 3, 2, 1):
            with tempfile.TemporaryDirectory() as folder:
                _, _, err = run(unisono, program, folder, devices)
            codes = set(re.findall(r"^(?:error|warning|performance)\[(U\d+|none)\]", err, re.M))
            if code in codes if kind == "Wrong" else codes <= {"U0201", "U0650", "U0652"}:
                break
        else:
            wanted = f"does not give {code}" if kind == "Wrong" else "fails"
            return f"{path}: the {kind.lower()} program {wanted}\n{program}{err}"
    return None


def shell(unisono, text, folder):
    """What commands give, `unisono` among them."""
    search = f"{os.path.dirname(unisono)}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", text], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
                          env={**os.environ, "PATH": search})
    return re.sub(r", in [\d.]+ s$", "", done.stdout.decode(errors="replace"), flags=re.M)


def manual(unisono, path, rewrite=False):
    """The programs and commands of one page of the manual."""
    problems = []

    def check(match):
        block, language, devices, program, shown = match[1], match[2], match[3] or 1, match[4], match[5] or ""
        if language == "sh":
            given = shell(unisono, program, files)
        else:
            for name, content in re.findall(r"\A# (\S+\.uni)\n(.*)", program, re.S):
                (pathlib.Path(files) / name).write_text(content)
            named = program if re.match(r"# \S+\.uni\n", program) else "# program.uni\n" + program
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(files, folder, dirs_exist_ok=True)
                _, out, err = run(unisono, named, folder, devices)
            given = out + err
        given = "".join(line.rstrip() + "\n" for line in given.splitlines())
        if given != shown:
            problems.append(f"{path}: with {devices} devices\n{program}gives\n{given}not\n{shown}")
        return block + (f"\n```output\n{given}```\n" if given else "")

    with tempfile.TemporaryDirectory() as files:
        text = re.sub(r"^(```(uni|sh) ?(\d*)\n(.*?)^```\n)(?:\n```output\n(.*?)^```\n)?", check, path.read_text(), flags=re.M | re.S)
    if rewrite:
        path.write_text(text)
        return None
    return "\n".join(problems) or None


def messages(unisono, path):
    """The table of messages in docs/pmap.md: each example gives its code, on four devices; no code of maps is left out."""
    text = path.read_text()
    before = re.search(r"^## Messages.*?^```\n(.*?)^```", text, re.M | re.S)[1]
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for code, example in re.findall(r"^\| \[(U\d+)\].*\| `(.*)` \|$", text, re.M):
            *_, err = run(unisono, before + example + "\n", folder, 4)
            if set(re.findall(r"^\w+\[(U\d+|none)\]", err, re.M)) != {code}:
                problems.append(f"{path}: {example} does not give {code}\n{err}")
    table = (ROOT / "lang/source/diagnostics.def").read_text()
    for code in re.findall(r"^DIAGNOSTIC(?:_OF_SIZES)?\((U04\d\d)", table, re.M):
        if f"[{code}]" not in text and code != "U0401":  # "not there yet" is not about maps
            problems.append(f"{path}: {code} is not in the table of messages")
    return "\n".join(problems) or None


KEYWORDS = {"if", "while", "for", "fn"}


def names(unisono, path):
    """The tables of other libraries' names: what they say is here is here."""
    text = path.read_text()
    table = re.search(r"^## NumPy's names.*?(?=^## (?!#)|\Z)", text, re.M | re.S)[0]
    ours = set()
    for row in re.findall(r"^\| `.*", table, re.M):
        for code in re.findall(r"`([^`]+)`", re.split(r"(?<!\\) \| ", row)[1]):
            whole = re.fullmatch(r"[\w.]+", code)
            # A name alone, or one that is called; a name of one letter stands for something.
            found = {code} if whole else set(re.findall(r"(?<![\w.])([a-z][\w.]+)\(", code))
            ours |= {name for name in found if len(name) > 1 and not name[0].isdigit()}
    script = "import complex\nimport fft\nimport nn\nimport numeric\nimport optim\nimport sparse\nimport stats\n" + "".join(f"print(typeof({name}))\n" for name in sorted(ours - KEYWORDS))
    *_, err = run(unisono, script, ROOT)
    return f"{path}: a name in the tables is not there\n{err}" if err else None


def signatures(unisono, path):
    """Builtins and functions of the library, each with its parameters in the manual; those of maps and derivatives have their own."""
    manual = path.read_text()
    maps = (ROOT / "docs/pmap.md").read_text() + (ROOT / "docs/autodiff.md").read_text()
    builtins = re.findall(r'^BUILTIN\((\w+), \w+, "((?:[^"\\]|\\.)*)"', (ROOT / "lang/context/builtins.def").read_text(), re.M)
    wanted = [f"{name}({parameters})" for name, parameters in builtins]
    for source in (ROOT / "stdlib" / f"{name}.uni" for name in ("array", "groups", "linalg", "math", "random")):  # others: tests/stdlib_pages.py
        wanted += re.findall(r"^def ([a-z]\w*\(.*?\)) (?:=|\{|->)", source.read_text(), re.M)
    missing = [w for w in wanted if w.replace('\\"', '"') not in manual and "`" + w.split("(")[0] not in maps]
    return "".join(f"{path}: {w} is not there\n" for w in missing) or None


def main():
    unisono = os.path.abspath(sys.argv[1])
    jobs = [(page, p) for p in sorted((ROOT / "docs/errors").glob("U*.md"))]
    if "--rewrite" in sys.argv:
        for path in (ROOT / "docs").glob("*.md"):
            manual(unisono, path, rewrite=True)
        return 0
    jobs += [(manual, p) for p in sorted((ROOT / "docs").glob("*.md"))]
    jobs += [(messages, ROOT / "docs/pmap.md")]
    jobs += [(names, ROOT / "docs/library.md"), (signatures, ROOT / "docs/library.md")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [p for p in pool.map(lambda job: job[0](unisono, job[1]), jobs) if p]
    print("\n\n".join(problems) or f"{len(jobs)} pages")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
