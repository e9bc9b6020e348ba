#!/usr/bin/env python3
"""`unisono test`: what it finds, runs, says, writes, and leaves alone.

usage: tests/testing.py UNISONO
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import sanitizers

UNISONO = os.path.abspath(sys.argv[1])
SECONDS = sanitizers.limit()
PROBLEMS = []

LIBRARY = """\
print("the file runs, and nobody sees it")
var counter = 1

## x times k.
##
##     >>> scale([1.0, 2.0], 3)
##     [3. 6.]
##     >>> let y = scale(
##     ...   [1.0], 2)
##     >>> y
##     [2.]
##     >>> lib.scale([1.0], 4)
##     [4.]
##     >>> scale("a", 2)
##     error[U0309]: argument `x` is str, but f32[n] is expected
def scale(x: f32[n], k) -> f32[n] = x * k

## A comment without examples.
def other() = 1

##     >>> reshape(arange(8), (2, 2, 2))
##     [[[0 1]
##       [2 3]]
##      [[4 5]
##       [6 7]]]
@jit
def decorated(x) = x

test "zero" { assert(sum(scale(ones(f32[8]), 0)) == 0, "not zero") }
test "assigns" { counter = 5
  assert(counter == 5, "not 5") }
test "sees the first" { assert(counter == 1, "it is {counter}") }
"""

PAGE = """\
# A page

```uni
print(1 + 2)
```

```output
3
```

```uni 4
print(device_count())
```

```output
4
```

```uni
let quiet = 1
```

```
>>> let a = 2
>>> a * 3
6
```

```
>>> a + 1
3
```

```text
not a program
```
"""


class Ran:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __str__(self):
        return f"status {self.status}\nout: {self.out}\nerr: {self.err}"


def test(folder, *words):
    return Ran(subprocess.run([UNISONO, "test", *words], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False))


def expect(name, ran, status, *texts, out=""):
    missing = [t for t in texts if not re.search(t, ran.err)]
    if ran.status != status or missing or ran.out != out:
        PROBLEMS.append(f"{name}: wanted status {status}, {missing or 'what it says'}\n{ran}")


def files(folder, **texts):
    for name, text in texts.items():
        path = pathlib.Path(folder) / name.replace("__", "/").replace("_md", ".md").replace("_uni", ".uni")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def whole():
    with tempfile.TemporaryDirectory() as folder:
        files(folder, lib_uni=LIBRARY, docs__page_md=PAGE, script_uni='save("ran.npy", [1])\n', _hidden_uni="")
        (pathlib.Path(folder) / ".git").mkdir()
        (pathlib.Path(folder) / ".git" / "x.uni").write_text("nonsense(\n")
        expect("all of a folder", test(folder), 0, r"^10 passed, 0 failed, in [\d.]+ s$")
        if (pathlib.Path(folder) / "ran.npy").exists():
            PROBLEMS.append("a file without tests was run")
        expect("one file", test(folder, "lib.uni"), 0, "^5 passed, 0 failed")
        expect("devices", test(folder, "lib.uni", "--devices", "cpu:3"), 0, "^5 passed, 0 failed")
        expect("reference", test(folder, "lib.uni", "--reference"), 0, "^5 passed, 0 failed")
        expect("some", test(folder, "--filter", "lib.uni: s"), 0, "^2 passed, 0 failed")
        expect("none of this name", test(folder, "--filter", "qqq"), 1, "^no test has `qqq` in its name$")
        expect("no tests", test(folder, "script.uni"), 1, "^no tests: they are `test")
        expect("no file", test(folder, "absent.uni"), 2, "^error: `absent.uni` is not there")
        expect("no program", test(folder, "."), 0)
        (pathlib.Path(folder) / "a.txt").write_text("")
        expect("another file", test(folder, "a.txt"), 2, "^error: `a.txt` is no .uni and no .md file")
        expect("wrong devices", test(folder, "--devices", "cpu:0"), 2, "^error: ")
        expect("dashes", test(folder, "--", "x"), 2, "^error: ")


def failures():
    with tempfile.TemporaryDirectory() as folder:
        files(folder, a_uni="""\
## One.
##     >>> 1 + 1
##     3
##     >>> [1, 2] + [1, 2, 3]
##     nothing of this
def f() = 1
test "fails <&>" { print("seen only here")
  assert(1 == 2, "one is not two") }
test "passes" { }
""", b_uni="let x = = 1\ntest \"x\" { }\n", c_uni='test "y" { }\nassert(sum(arange(3)) == 4, "no")\n', d_md="```uni\nprint(1)\n```\n")
        ran = test(folder, "--junit", "out.xml")
        expect("failures", ran, 1, r"^FAILED a.uni:2: f\n  this\n    1 \+ 1\n  gives\n    2\n  not\n    3\n", r"error\[U03\d\d\]",
               r"FAILED a.uni:7: fails <&>\n    seen only here\nerror\[U0550\]: assertion failed: one is not two\n --> a.uni:8:3", r"FAILED b.uni:1: check\nerror\[U01",
               r"FAILED c.uni:1: top level\nerror\[U0", r"FAILED d.md:2: line 2\n  this\n    print\(1\)\n  gives\n    1\n  not\n    nothing", r"\n1 passed, 5 failed")
        if not re.search(r" --> a.uni:4:19$", ran.err, re.M):
            PROBLEMS.append(f"an example's error is not where it stands\n{ran}")
        root = xml.etree.ElementTree.parse(pathlib.Path(folder) / "out.xml").getroot()
        cases = root.findall("./testsuite/testcase")
        failed = [c.get("name") for c in cases if c.find("failure") is not None]
        if len(cases) != 6 or failed != ["f", "fails <&>", "check", "top level", "line 2"]:
            PROBLEMS.append(f"junit: {len(cases)} cases, failed: {failed}")
        expect("junit cannot be written", test(folder, "--junit", "absent/out.xml"), 1, "error: cannot write `absent/out.xml`")


def update():
    with tempfile.TemporaryDirectory() as folder:
        program, page = LIBRARY.replace("[3. 6.]", "[9.]").replace("##     [2.]\n", ""), PAGE.replace("```output\n3\n```", "```output\n7\n8\n```")
        page = page.replace("let quiet = 1\n```\n", "print(5)\n```\n")
        files(folder, lib_uni=program, docs__page_md=page)
        os.chmod(pathlib.Path(folder) / "lib.uni", 0o640)
        expect("before", test(folder), 1, "^6 passed, 4 failed|passed, [34] failed")
        expect("update", test(folder, "--update"), 0, "^updated 2 in ./docs/page.md|updated 2 in docs/page.md", "updated 2 in (./)?lib.uni", "10 passed, 0 failed")
        if (pathlib.Path(folder) / "lib.uni").read_text() != LIBRARY:
            PROBLEMS.append("lib.uni after --update:\n" + (pathlib.Path(folder) / "lib.uni").read_text())
        wanted = PAGE.replace("let quiet = 1\n```\n", "print(5)\n```\n\n```output\n5\n```\n")
        if (pathlib.Path(folder) / "docs/page.md").read_text() != wanted:
            PROBLEMS.append("page.md after --update:\n" + (pathlib.Path(folder) / "docs/page.md").read_text())
        if (pathlib.Path(folder) / "lib.uni").stat().st_mode & 0o777 != 0o640:
            PROBLEMS.append("--update changed the mode of the file")
        expect("after", test(folder), 0, "^10 passed, 0 failed")


def odd():
    """Texts that are no tests, or hardly."""
    with tempfile.TemporaryDirectory() as folder:
        texts = {"empty.uni": "", "only.md": "```", "open.md": "```uni\nprint(1)", "ends.uni": "## a\n##     >>> 1", "crlf.uni": "##  >>> 1\r\n##  1\r\ndef f() = 1\r\n",
                 "bytes.md": "```uni\n\x00\n```\n", "many.uni": "##     >>> 1\n##     1\n" * 300 + "def f() = 1\n"}
        for name, text in texts.items():
            (pathlib.Path(folder) / name).write_bytes(text.encode())
        (pathlib.Path(folder) / "latin.uni").write_bytes(b"## \xe9\ntest \"\xe9\" { }\n")
        for name in [*texts, "latin.uni"]:
            ran = test(folder, name)
            if ran.status not in (0, 1) or "mistake in unisono" in ran.err:
                PROBLEMS.append(f"{name}\n{ran}")
        expect("an end without output", test(folder, "ends.uni"), 1, "gives\n    1\n  not\n    nothing")
        expect("CRLF", test(folder, "crlf.uni"), 0, "^1 passed")
        expect("many", test(folder, "many.uni"), 0, "^1 passed")


def main():
    whole()
    failures()
    update()
    odd()
    print("\n\n".join(PROBLEMS) or "all as it should be")
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(main())
