#!/usr/bin/env python3
"""The pages of docs/stdlib/ are what stdlib/*.uni says: one for each module, with the `##` comments of its functions, and
README.md, a list of them all.

usage: tests/stdlib_pages.py [--rewrite]

--rewrite writes the pages; without it, pages that differ from the sources are an error.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/stdlib"
IN_SCOPE = {"array", "groups", "linalg", "math", "random"}  # without import
NOTE = "<!-- Written by tests/stdlib_pages.py --rewrite; the source is {}. -->\n"


def markdown(comment):
    """The text of a `##` comment; what is indented is code, and examples begin with `>>>`."""
    out, code = [], False
    for line in comment.splitlines():
        line = re.sub(r"^## ?", "", line)
        indented = line.startswith("    ")
        if indented != code and (indented or line):
            out.append("```")
            code = indented
        out.append(line[4:] if indented else line)
    if code:
        out.append("```")
    text = "\n".join(out)
    # An empty line before a block and after it, none at its ends.
    return re.sub(r"\n*^(```\n.*?)\n+(```)$\n*", r"\n\n\1\n\2\n\n", text, flags=re.M | re.S).strip() + "\n"


class Module:
    def __init__(self, path):
        self.name = path.stem
        self.text = path.read_text()
        about, rest = re.match(r"((?:##[^\n]*\n)*)\n(.*)", self.text, re.S).groups()
        self.about = about
        # Headings, names and what is said of them, in the order of the source.
        self.parts = re.findall(r"^# -+ (?P<heading>[^\n]*?) -*$|^(?P<comment>(?:##[^\n]*\n)+)(?:@[^\n]*\n)*def (?P<name>[a-z]\w*)(?P<parameters>\(.*?\))(?= =| \{| ->)",
                                rest, re.M | re.S)

    def link(self, name):
        return f"[`{name}`]({self.name}.md#{name})"

    def names(self):
        return [name for _, _, name, _ in self.parts if name]

    def page(self):
        scope = "In scope without import." if self.name in IN_SCOPE else f"`import {self.name}`"
        out = [NOTE.format(f"stdlib/{self.name}.uni"), f"# {self.name}\n", f"{scope}\n", markdown(self.about)]
        constants = re.findall(r"^let ([a-z]\w*) = (.*)$", self.text, re.M)
        if constants:
            out.append("Constants: " + ", ".join(f"`{name}`" for name, _ in constants) + ".\n")
        for heading, comment, name, parameters in self.parts:
            if heading and heading != "helpers":
                out.append(f"## {heading[0].upper()}{heading[1:]}\n")
            elif name:
                out.append(f"### {name}\n\n```\n{name}{' '.join(parameters.split())}\n```\n\n{markdown(comment)}")
        return "\n".join(out)


def pages():
    modules = [Module(path) for path in sorted((ROOT / "stdlib").glob("*.uni"))]
    index = [NOTE.format("stdlib/"), "# The library in Unisono\n",
             "Functions that are written in the language itself. Those of C++, and a table of NumPy's and JAX's names, are in [library.md](../library.md).\n"]
    for module in modules:
        index.append(f"* [{module.name}]({module.name}.md): {', '.join(map(module.link, module.names()))}")
    return {"README.md": "\n".join(index) + "\n", **{f"{m.name}.md": m.page() for m in modules}}


def main():
    wanted = pages()
    if "--rewrite" in sys.argv[1:]:
        PAGES.mkdir(exist_ok=True)
        for path in PAGES.glob("*.md"):
            if path.name not in wanted:
                path.unlink()
        for name, text in wanted.items():
            (PAGES / name).write_text(text)
        return 0
    there = {path.name: path.read_text() for path in PAGES.glob("*.md")}
    stale = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
    for name in stale:
        print(f"docs/stdlib/{name} is not what the sources say: tests/stdlib_pages.py --rewrite writes it")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
