#!/usr/bin/env python3
"""`unisono doc`: its pages are whole, all links in them lead somewhere, every documented name is there and is found by the search
(with node, where it is installed), and wrong inputs are told with their place, and leave nothing behind.

usage: tests/manual.py UNISONO
"""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

import sanitizers

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNISONO = os.path.abspath(sys.argv[1])
SECONDS = sanitizers.limit()
PROBLEMS = []

LIBRARY = """## Shapes and their areas; see [the guide](guide.md#second-part).

type Box[n] = (low: f32[n], high: f32[n])

## The size of a box. `volume(b)` needs no <script>alert(1)</script>.
##
##     >>> geo.volume((low = [0.0, 0.0], high = [2.0, 3.0]))
##     6.0
def volume(b: Box[n]) -> f32 = prod(b.high - b.low)

## Each box, by `volume`.
@vmap
def volumes(b) = volume(b)

let unit = 1.0
let area = fn(w, h) => w * h
def _own(x) = x
def bare(x: f32[n], *, scale="a < b", k: int = 2) = x
test "t" { assert(volume((low = [0.0], high = [1.0])) == 1.0) }
"""
USER = """## Uses the other.
import "geo.uni" as geo
import nn

## Twice.
def twice(b) = 2 * geo.volume(b) + sum(nn.relu([1.0]))
"""
GUIDE = """# A guide

First. ![picture](no.png) [out](https://example.org/x?y#z) [here](#second-part) <b>raw</b> [js](javascript:alert(1))

## Second part

`geo.volume` and [the module](%67eo.uni).
"""


def run(*words, folder=None):
    return subprocess.run([UNISONO, *words], cwd=folder, capture_output=True, text=True, timeout=SECONDS)


def expect(name, got, wanted):
    if got != wanted:
        PROBLEMS.append(f"{name}: expected {wanted!r}, got {got!r}")


def finds(name, pattern, text):
    if not re.search(pattern, text, re.M | re.S):
        PROBLEMS.append(f"{name}: no {pattern!r} in\n{text[-1500:]}")


class Reader(html.parser.HTMLParser):
    """The ids and links of a page; elements that do not close are a problem."""
    EMPTY = {"meta", "link", "input", "br", "hr", "img", "!doctype"}

    def __init__(self, path):
        super().__init__()
        self.path, self.ids, self.links, self.open, self.text = path, set(), [], [], ""
        self.feed(path.read_text())
        if self.open:
            PROBLEMS.append(f"{path}: {self.open} not closed")

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if attrs.get("id"):
            if attrs["id"] in self.ids:
                PROBLEMS.append(f"{self.path}: two things have the id {attrs['id']}")
            self.ids.add(attrs["id"])
        for key in ("href", "src"):
            if key in attrs:
                self.links.append(attrs[key])
        if tag == "a" and "a" in self.open:
            PROBLEMS.append(f"{self.path}: a link in a link: {attrs}")
        if tag == "script" and "src" not in attrs:
            PROBLEMS.append(f"{self.path}: a script of its own")
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            PROBLEMS.append(f"{self.path}: </{tag}> closes nothing, line {self.getpos()[0]}")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_data(self, data):
        self.text += data


def read(folder):
    return {path: Reader(path) for path in sorted(folder.rglob("*.html"))}


def links_lead_somewhere(pages):
    ids = {str(path.resolve()): page.ids for path, page in pages.items()}
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"https?:", link):
                continue
            place, _, fragment = link.partition("#")
            to = str((path.parent / urllib.parse.unquote(place)).resolve()) if place else str(path.resolve())
            if not os.path.exists(to) or (fragment and urllib.parse.unquote(fragment) not in ids.get(to, ())):
                PROBLEMS.append(f"{path}: the link {link} leads nowhere")


def index_of(folder):
    text = (folder / "search-index.js").read_text()
    return json.loads(re.sub(r",\s*\]$", "]", text[text.index("["):].strip().rstrip(";")))


def searches(folder, wanted):
    """What the search gives first for each query."""
    if not shutil.which("node"):
        return
    script = """const fs = require("fs"), search = require(process.argv[1] + "/search.js");
const index = eval(fs.readFileSync(process.argv[1] + "/search-index.js", "utf8") + "; manual_index");
for (const query of JSON.parse(process.argv[2])) console.log(JSON.stringify(search.search(index, query).slice(0, 8)));"""
    done = subprocess.run(["node", "-e", script, str(folder), json.dumps([q for q, _ in wanted])], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        PROBLEMS.append(f"the search fails: {done.stderr}")
    for (query, place), line in zip(wanted, done.stdout.splitlines()):
        found = [entry[2] for entry in json.loads(line)]
        if not (found and re.search(place, found[0]) if place else not found):
            PROBLEMS.append(f"the search for {query!r} gives {found}, first should be {place}")


def whole(folder):
    """The manual of Unisono itself."""
    out = folder / "whole"
    done = run("doc", "--out", str(out))
    expect("unisono doc", (done.returncode, done.stdout), (0, ""))
    finds("unisono doc", r"^\S+/whole/index.html: \d+ pages, \d+ names$", done.stderr)
    pages = read(out)
    links_lead_somewhere(pages)
    index = index_of(out)
    names = {title: place for kind, title, place, _ in index if kind in ("function", "constant", "type")}
    table = (ROOT / "lang/context/builtins.def").read_text() + (ROOT / "jit/ir/ops.def").read_text()
    builtins = re.findall(r"^(?:BUILTIN|BUILTIN_ALIAS|UNARY|BINARY|COMPARE|PREDICATE|REDUCE|SCAN)\((\w+)", table, re.M)
    wanted = set(builtins)
    for source in sorted((ROOT / "stdlib").glob("*.uni")):
        prefix = f"{source.stem}." if source.stem in ("complex", "fft", "nn", "numeric", "optim", "sparse", "stats") else ""
        wanted |= {prefix + name for name in re.findall(r"^(?:def|let|type) ([a-z]\w*)", source.read_text(), re.M)}
    for name in sorted(wanted):
        if name not in names:
            PROBLEMS.append(f"the manual does not tell of {name}")
    examples = (ROOT / "lang/context/builtins.md").read_text()
    sections = re.findall(r"^## (\w+)$", examples, re.M)
    expect("sections of builtins.md", sorted(set(sections)), sorted(set(re.findall(r"^(?:BUILTIN|UNARY|BINARY|COMPARE|PREDICATE|REDUCE|SCAN)\((\w+)", table, re.M))))
    expect("sections of builtins.md, each once", len(sections), len(set(sections)))
    for entry in ("README.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))):
        place = "index.html" if entry == "README.md" else f"guide/{pathlib.Path(entry).stem}.html"
        if not (out / place).exists():
            PROBLEMS.append(f"{entry} is not in the manual")
    for page in (ROOT / "docs/errors").glob("U*.md"):
        if not (out / f"messages/{page.stem}.html").exists():
            PROBLEMS.append(f"{page.stem} is not in the manual")
    language = (out / "guide/pmap.html").read_text()
    finds("a program in a page", r'<pre class="code"><div class="devices">on 2 devices</div><code><span class="k">def</span> <span class="d">scale</span>', language)
    finds("a link of a program", r'<a class="f" href="\.\./functions/shapes\.html#reshape" title="reshape\(x, shape\): [^"]*">reshape</a>', language)
    finds("what a program gives", r'<pre class="output"><samp>split\(0\) over', language)
    softmax = (out / "library/math.html").read_text()
    finds("an example", r'<span class="p">&gt;&gt;&gt; </span><a class="f" href="#softmax" [^>]*>softmax</a>\(\[<span class="n">0\.0</span>', softmax)
    finds("the source", r'<a class="source" href="\.\./source/library/math\.html#L\d+"', softmax)
    searches(out, [("reshape", r"functions/shapes.html#reshape$"), ("resh", r"#reshape$"), ("relu", r"library/nn.html#relu$"), ("isNaN", r"#is_nan$"),
                   ("soft max", "softmax"), ("softmx", r"#softmax$"), ("U0412", r"^messages/U0412.html$"), ("u0412", r"^messages/U0412.html$"),
                   ("pmap", r"#pmap$"), ("watchdog", "."), ("concatenate", r"#concat$"), ("vmap in_axes", "."), ("numpy", "guide/library"),
                   ("zzzzqqq", ""), ("  ", ""), ("<script>", ""), ("donate arrays", "."), ("axis_index", "#axis_index$")])
    again = run("doc", "--out", str(out))
    expect("once more", again.returncode, 0)


def own(folder):
    """A manual of somebody's files."""
    (folder / "geo.uni").write_text(LIBRARY)
    (folder / "user.uni").write_text(USER)
    (folder / "guide.md").write_text(GUIDE)
    done = run("doc", "geo.uni", "user.uni", "guide.md", "--out", "own", folder=folder)
    expect("doc of files", (done.returncode, done.stdout), (0, ""))
    expect("what it says", done.stderr, "warning: guide.md:3:19: the link `no.png` leads nowhere\n"
           "warning: guide.md:3:97: the link `javascript:alert(1)` leads nowhere\nown/index.html: 6 pages, 7 names\n")
    pages = read(folder / "own")
    links_lead_somewhere(pages)
    page = (folder / "own/modules/geo.html").read_text()
    for name, pattern in (("a type", r'id="Box".*<code><span class="k">type</span> <span class="t">Box</span>\[n\] = '),
                          ("the about", r"<p>Shapes and their areas; see <a href=\"\.\./pages/guide\.html#second-part\">the guide</a>"),
                          ("a signature", r'<span class="d">volume</span>\(b: <a class="t" href="#Box"[^>]*>Box</a>\[n\]\) -&gt; <span class="t"[^>]*>f32</span>'),
                          ("code in text is a link", r'<a href="#volume" [^>]*><code>volume\(b\)</code></a>'),
                          ("a decorator", r'@<span class="f" title="vmap\(f, [^"]*">vmap</span>\n<span class="d">volumes'),
                          ("a function by let", r'id="area".*area</span>\(w, h\)'),
                          ("defaults", r'scale=<span class="s">&quot;a &lt; b&quot;</span>')):
        finds(name, pattern, page)
    for text in ("_own(", "<script>alert", "javascript:", "<b>"):
        if text in page or text in (folder / "own/pages/guide.html").read_text():
            PROBLEMS.append(f"{text} is in a page")
    finds("a name of another file", r'geo\.<a class="f" href="\.\./\.\./modules/geo\.html#volume"', (folder / "own/source/modules/user.html").read_text())
    finds("a name of a module", r'<a href="\.\./modules/geo\.html#volume" [^>]*><code>geo\.volume</code></a>', (folder / "own/pages/guide.html").read_text())
    finds("a link to a file", r'<a href="\.\./modules/geo\.html">the module</a>', (folder / "own/pages/guide.html").read_text())
    searches(folder / "own", [("volume", r"^modules/geo.html#volume$"), ("second", r"^pages/guide.html#second-part$"), ("_own", "")])
    done = run("doc", "nn", "--out", "nn", folder=folder)
    expect("doc of a module", done.returncode, 0)
    links_lead_somewhere(read(folder / "nn"))
    done = run("doc", ".", "--all", "--out", "all", folder=folder)
    finds("doc of a folder, with all", r"^all/index.html: \d{3} pages", done.stderr)
    links_lead_somewhere(read(folder / "all"))


def mistakes(folder):
    """What cannot be: told with its place, and nothing is written."""
    (folder / "wrong.uni").write_text("def f(x = {\n")
    (folder / "binary.uni").write_bytes(b"\xff\xfe\x00")
    (folder / "note.txt").write_text("mine")
    (folder / "empty").mkdir()
    (folder / "mine").mkdir()
    (folder / "mine/index.html").write_text("<p>mine</p>")
    (folder / "dead.uni").write_text("# licence\n\n## See [a](nowhere.md) and [b](geo.uni#none).\n\nlet x = 1\n\n## [c](#top)\ndef f(x) = x\n")
    for name, words, status, err in (
            ("a mistake in a file", ["wrong.uni"], 1, r"^error\[U\d+\].* --> wrong.uni:1:12"),
            ("no UTF-8", ["binary.uni"], 1, r"^error\[U0111\].*binary.uni:1:1"),
            ("no such file", ["nofile.uni"], 1, r"^error: `nofile.uni` is not there, and no module of the standard library: array, complex, fft, groups, linalg, math, nn, numeric, optim, random, sparse, stats$"),
            ("another kind of file", ["note.txt"], 1, r"^error: `note.txt` is no .uni and no .md file$"),
            ("a folder without programs", ["empty"], 1, r"^error: there is no .uni and no .md file in `empty`$"),
            ("an empty folder name", ["geo.uni", "--out", ""], 2, r"^error: --out expects a folder"),
            ("no value", ["geo.uni", "--out"], 2, r"^error: "),
            ("an unknown option", ["--fast"], 2, r"^error: "),
            ("somebody's folder", ["geo.uni", "--out", "mine"], 1, r"^error: cannot write `mine/index.html`: it is there, and no page of a manual"),
            ("a file in place of a folder", ["geo.uni", "--out", "note.txt"], 1, r"^error: cannot write `note.txt"),
            ("a device", ["geo.uni", "--out", "/dev/null"], 1, r"^error: cannot write `/dev/null")):
        done = run("doc", *words, *([] if "--out" in words else ["--out", "not"]), folder=folder)
        if done.returncode != status or done.stdout or not re.search(err, done.stderr, re.M | re.S):
            PROBLEMS.append(f"{name}: status {done.returncode}, {done.stdout} {done.stderr}")
        if (folder / "not").exists():
            PROBLEMS.append(f"{name}: something was written")
    expect("somebody's folder", sorted(p.name for p in (folder / "mine").iterdir()), ["index.html"])
    expect("somebody's file", (folder / "note.txt").read_text(), "mine")
    done = run("doc", "dead.uni", "--out", "dead", folder=folder)
    expect("dead links", (done.returncode, [line for line in done.stderr.splitlines() if "nowhere" in line]),
           (0, ["warning: dead.uni:3:12: the link `nowhere.md` leads nowhere", "warning: dead.uni:7:8: the link `#top` leads nowhere"]))
    links_lead_somewhere(read(folder / "dead"))


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for part in (whole, own, mistakes):
            part(folder)
    print("\n\n".join(PROBLEMS[:40]) or "the manual is whole")
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(main())
