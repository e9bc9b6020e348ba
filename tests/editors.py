#!/usr/bin/env python3
"""The grammars for editors know the language: every keyword and element type, and each program of ours is coloured as the lexer
reads it. The TextMate grammar is followed by a small engine of its own, Vim's by Vim, if it is installed.

usage: tests/editors.py UNISONO
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYWORDS = re.findall(r'^(?:KEYWORD\(\w+,\s*|DECLARATION\()"(\w+)"', (ROOT / "lang/syntax/token.def").read_text(), re.M)
DTYPES = re.findall(r'^DTYPE\(\w+, "(\w+)"', (ROOT / "runtime/dtype.def").read_text(), re.M)


class TextMate:
    """The part of TextMate's rules that our grammar uses: match, begin and end, includes, captures."""

    def __init__(self, grammar):
        self.grammar = grammar

    def rules(self, patterns):
        for pattern in patterns:
            if "include" not in pattern:
                yield from [pattern] if "match" in pattern or "begin" in pattern else self.rules(pattern["patterns"])
            elif pattern["include"] == "$self":
                yield from self.rules(self.grammar["patterns"])
            else:
                yield from self.rules([self.grammar["repository"][pattern["include"][1:]]])

    def line(self, text):
        """(begin, end, scope) of one line; later ones lie inside earlier ones."""
        scopes, stack, at = [], [], 0
        while at <= len(text):
            rules = list(self.rules(stack[-1][0]["patterns"] if stack else self.grammar["patterns"]))
            found = [(m.start(), i, m, rule) for i, rule in enumerate(rules)
                     if (m := re.compile(rule.get("match") or rule["begin"]).search(text, at)) and m.group()]
            end = re.compile(stack[-1][0]["end"]).search(text, at) if stack else None
            if end and not any(f[0] < end.start() for f in found):
                rule, begin = stack.pop()
                scopes.append((begin, end.end(), rule.get("name", "")))
                if end.end() == at and not end.group():
                    break
                at = end.end()
                continue
            if not found:
                break
            _, _, m, rule = min(found, key=lambda f: f[:2])
            if "begin" in rule:
                stack.append((rule, m.start()))
            else:
                scopes.append((m.start(), m.end(), rule.get("name", "")))
                scopes += [(m.start(int(i)), m.end(int(i)), c["name"]) for i, c in rule.get("captures", {}).items() if m.group(int(i))]
            at = m.end()
        return scopes


def textmate():
    grammar = TextMate(json.loads((ROOT / "editors/vscode/syntaxes/unisono.tmLanguage.json").read_text()))

    def scope(text, word):
        at = text.index(word)
        inside = [s for s in grammar.line(text) if s[0] <= at and at + len(word) <= s[1] and s[2]]
        return min(inside, key=lambda s: s[1] - s[0])[2] if inside else ""

    wanted = {"def": "def f(x) = x", "axis": "axis rows", "type": "type P = f32", "test": 'test "a" {', "bench": 'bench "a" {', "import": "import nn", "in": "for i in x {"}
    problems = [f"keyword `{k}` has no colour" for k in KEYWORDS
                if not scope(wanted.get(k, f"a {k} b"), k).startswith(("keyword", "storage", "constant"))]
    problems += [f"type `{t}` has none" for t in DTYPES if not scope(f"x: {t}[3]", t).startswith("support.type")]
    for text, word, is_ in [
            ('let s = "a # b" # c', "# b", "string"), ('let s = "a # b" # c', "# c", "comment"), ('"{x + 1:.2f} y"', "1", "constant.numeric"),
            ('"{x} y"', " y", "string"), ("x.in + 1", "in", "variable.other.member"), ("sum(x, axis=0)", "axis", "variable.parameter"),
            ("let axis = 1", "axis", ""), ("1_000 + 0x1fu8", "0x1fu8", "constant.numeric"), ("1.5e-3f64", "1.5e-3f64", "constant.numeric"),
            ("range(0..3)", "0", "constant.numeric"), ("t.0.1", "t", ""), ("## text", "text", "comment"), ("a |> f", "|>", "keyword.operator"),
            ("@pmap(in_axes=0)", "pmap", "entity.name.function.decorator"), ("x = a == b", "==", "keyword.operator"), ('"\\{" + x', "x", "")]:
        got = scope(text, word)
        if not (got.startswith(is_) if is_ else not got or got.startswith(("variable.parameter", "variable.other"))):
            problems.append(f"{text!r}: {word!r} is {got or 'nothing'}, not {is_ or 'a name'}")
    return problems


def lexed(unisono):
    """Strings and comments of our programs are those that the lexer finds."""
    grammar = TextMate(json.loads((ROOT / "editors/vscode/syntaxes/unisono.tmLanguage.json").read_text()))
    problems = []
    for path in sorted((ROOT / "examples").glob("*.uni")) + sorted((ROOT / "stdlib").glob("*.uni")):
        tokens = subprocess.run([unisono, "inspect", "--emit=tokens", str(path)], capture_output=True, text=True, check=True).stdout
        words = {}
        for line, column, kind in re.findall(r"^\S*?:?(\d+):(\d+)\s+(\w+)", tokens, re.M):
            words.setdefault(int(line), []).append((int(column) - 1, kind))
        for number, text in enumerate(path.read_text().splitlines(), 1):
            quiet = [s for s in grammar.line(text) if s[2].startswith("comment")]
            for column, kind in words.get(number, []):
                if kind not in ("Newline", "EndOfFile") and any(b <= column < e for b, e, _ in quiet):
                    problems.append(f"{path}:{number}:{column + 1}: a {kind} is coloured as a comment")
    return problems


def vim():
    command = shutil.which("vim") or shutil.which("nvim")
    if not command:
        return []
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"a {k} b" for k in KEYWORDS[:-4]] + ["axis rows", "type P = f32", 'test "a" {', 'bench "a" {'] + [f"x: {t}[3]" for t in DTYPES]
        columns = [3] * (len(KEYWORDS) - 4) + [1] * 4 + [4] * len(DTYPES)
        words = KEYWORDS + DTYPES
        program = pathlib.Path(folder) / "a.uni"
        program.write_text("\n".join(lines) + "\n")
        script = pathlib.Path(folder) / "run.vim"
        script.write_text("".join(
            [f"set runtimepath^={ROOT}/editors/vim\nfiletype plugin indent on\nsyntax on\nedit {program}\nlet out = []\n"]
            + [f"call add(out, synIDattr(synID({i}, {c}, 1), 'name'))\n" for i, c in enumerate(columns, 1)]
            + [f"call writefile(out, '{folder}/out')\nqall!\n"]))
        subprocess.run([command, "-es", "-u", "NONE", "-N", "-S", str(script)], timeout=300, check=False, stdin=subprocess.DEVNULL)
        got = (pathlib.Path(folder) / "out").read_text().split("\n")
        problems += [f"vim: `{w}` has no colour" for w, g in zip(words, got) if not g]
    return problems


def main():
    problems = textmate() + lexed(sys.argv[1]) + vim()
    json.loads((ROOT / "editors/vscode/package.json").read_text())
    json.loads((ROOT / "editors/vscode/language-configuration.json").read_text())
    print("\n".join(problems) or f"{len(KEYWORDS)} keywords, {len(DTYPES)} element types")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
