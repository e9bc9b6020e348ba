#!/usr/bin/env python3
"""`unisono lsp` over the protocol: exact answers, what a broken client sends, and a real editor (Neovim, where it is installed).
Latencies are printed.

usage: tests/lsp.py UNISONO
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import queue

import sanitizers

UNISONO = pathlib.Path(sys.argv[1]).resolve()
SLOW = sanitizers.slow()
PATIENCE = sanitizers.limit()  # seconds for any answer
PROBLEMS = []
CHECKS = 0


def expect(what, got, wanted):
    global CHECKS
    CHECKS += 1
    if got != wanted:
        PROBLEMS.append(f"{what}:\n  expected {json.dumps(wanted, ensure_ascii=False)}\n  got      {json.dumps(got, ensure_ascii=False)}")


class Client:
    """A server and what it says."""

    def __init__(self, folder=None, encodings=None, capabilities=None, initialize=True, options=()):
        self.process = subprocess.Popen([UNISONO, "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
        self.messages = queue.Queue()
        self.diagnostics = {}
        self.asked = []
        self.count = 0
        threading.Thread(target=self.read, daemon=True).start()
        if initialize:
            said = {"general": {"positionEncodings": encodings or ["utf-16"]},
                    "textDocument": {"hover": {"contentFormat": ["markdown"]},
                                     "publishDiagnostics": {"relatedInformation": True}}}
            said.update(capabilities or {})
            root = pathlib.Path(folder).as_uri() if folder else None
            self.capabilities = self.ask("initialize", {"processId": None, "rootUri": root, "capabilities": said})["capabilities"]
            self.tell("initialized", {})

    def read(self):
        out = self.process.stdout
        while True:
            length = None
            while (line := out.readline()) not in (b"\r\n", b""):
                name, _, value = line.decode().partition(":")
                assert name == "Content-Length", line
                length = int(value)
            if length is None:
                break
            message = json.loads(out.read(length))
            assert message["jsonrpc"] == "2.0"
            self.messages.put(message)
        self.messages.put(None)

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        body = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def tell(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method, params):
        self.count += 1
        self.send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        return self.count

    def next(self):
        message = self.messages.get(timeout=PATIENCE)
        assert message is not None, "the server has ended"
        if message.get("method") == "textDocument/publishDiagnostics":
            params = message["params"]
            self.diagnostics[params["uri"]] = params
        elif "method" in message:
            self.asked.append(message)
            if "id" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
        return message

    def answer(self, number):
        while True:
            message = self.next()
            if message.get("id") == number and "method" not in message:
                return message

    def ask(self, method, params):
        message = self.answer(self.begin(method, params))
        return message["result"] if "result" in message else {"error": message["error"]}

    def open(self, uri, text, version=1):
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "unisono", "version": version, "text": text}})

    def change(self, uri, version, *changes):
        self.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)})

    def checked(self, uri, version):
        """The diagnostics of that version."""
        while self.diagnostics.get(uri, {}).get("version") != version:
            self.next()
        return self.diagnostics[uri]["diagnostics"]

    def end(self):
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.process.wait(PATIENCE)


def at(line, character):
    return {"line": line, "character": character}


def span(line, begin, end, last=None):
    return {"start": at(line, begin), "end": at(line if last is None else last, end)}


class Text:
    """A document in a client; places are marked in its text by words."""

    def __init__(self, client, name, text, folder="/nowhere"):
        self.client, self.text = client, text
        self.uri = pathlib.Path(folder, name).as_uri()
        client.open(self.uri, text)
        self.version = 1

    def set(self, text):
        self.text = text
        self.version += 1
        self.client.change(self.uri, self.version, {"text": text})

    def place(self, mark, after=0, nth=0):
        """The position of the nth `mark`, and some characters on (the texts of these tests are ASCII)."""
        offset = -1
        for _ in range(nth + 1):
            offset = self.text.index(mark, offset + 1)
        before = self.text[:offset + after]
        return at(before.count("\n"), len(before) - before.rfind("\n") - 1)

    def ask(self, method, mark=None, after=0, nth=0, **more):
        params = {"textDocument": {"uri": self.uri}, **more}
        if mark is not None:
            params["position"] = self.place(mark, after, nth)
        return self.client.ask("textDocument/" + method, params)

    def hover(self, *mark, **more):
        got = self.ask("hover", *mark, **more)
        return got and got["contents"]["value"]

    def lines(self, locations):
        """(line, first character) of locations in this file."""
        return locations and [(l["range"]["start"]["line"], l["range"]["start"]["character"]) for l in locations]

    def definition(self, *mark, **more):
        return self.lines(self.ask("definition", *mark, **more))

    def references(self, *mark, **more):
        return self.lines(self.ask("references", *mark, context={"includeDeclaration": True}, **more))

    def labels(self, *mark, **more):
        return [item["label"] for item in self.ask("completion", *mark, **more)["items"]]

    def rename(self, name, *mark, **more):
        """The text afterwards, or why not."""
        got = self.ask("rename", *mark, newName=name, **more)
        if "error" in got:
            return got["error"]["message"]
        return apply(self.text, got["changes"].get(self.uri, []))


def apply(text, edits):
    """Edits whose ends are ASCII places."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    offset = lambda p: starts[p["line"]] + p["character"]
    for edit in sorted(edits, key=lambda e: -offset(e["range"]["start"])):
        text = text[:offset(edit["range"]["start"])] + edit["newText"] + text[offset(edit["range"]["end"]):]
    return text


PROGRAM = """\
import nn
import stats as st
type Params[d] = (w: f32[d], b: f32)
axis batch = devices()

## The line through x.
##
##     >>> predict((w = ones(2), b = 1.0), ones((3, 2)))
##     [3. 3. 3.]
def predict(p: Params[d], x: f32[n, d], *, bias: f32 = 0.0) -> f32[n] {
  let y = x @ p.w
  y + p.b + bias
}
let p = (w = ones(4), b = 1.0)
let x = ones((3, 4))
var total = sum(predict(p, x, bias=2.0))
for i in range(3) {
  let x = total * i
  total = total + x
}
let (a, b) = (1, arange(10))
let squares = [i * i for i in range(4)]
let twice = fn(t) => 2 * t
print("{total:.2f} {twice(a)}", nn.relu(b), squares, x.sum(axis=0))
"""


def answers():
    client = Client()
    doc = Text(client, "main.uni", PROGRAM)
    expect("no messages", client.checked(doc.uri, 1), [])

    # ---- hover
    expect("hover of let", doc.hover("y = x"), "```unisono\nlet y: f32[n]\n```\n\nin calls also `f32[3]`")
    expect("hover of a use", doc.hover("y + p.b"), "```unisono\nlet y: f32[n]\n```\n\nin calls also `f32[3]`")
    expect("hover of a function", doc.hover("predict(p, x"),
           "```unisono\ndef predict(p: Params[d], x: f32[n, d], *, bias: f32 = 0.0) -> f32[n]\n```\n\nThe line through x.\n\n"
           "```unisono\n>>> predict((w = ones(2), b = 1.0), ones((3, 2)))\n[3. 3. 3.]\n```")
    expect("hover of a builtin", doc.hover("sum(predict"),
           "```unisono\ndef sum(x, axis=none, *, keepdims=false)\n```\n\n" + doc.hover("sum(predict").split("\n\n", 1)[1])
    expect("hover of a module's function", doc.hover("relu").split("\n")[:2], ["```unisono", "def relu(x)"])
    expect("hover of a field", doc.hover("p.w", after=2), "```unisono\nw: f32[d]\n```\n\na field of `(w: f32[d], b: f32)`")
    expect("hover of a type", doc.hover("Params[d], x"), "```unisono\ntype Params[d] = (w: f32[d], b: f32)\n```")
    expect("hover of a size", doc.hover("n] {"), "```unisono\nn: int\n```\n\na size")
    expect("hover of a loop's name", doc.hover("i\n  total"), "```unisono\ni: i32\n```\n\nbound in each turn")
    expect("hover of an axis", doc.hover("batch"), "```unisono\naxis batch = devices()\n```")
    expect("hover in a string", doc.hover("total:"), "```unisono\nvar total: f32\n```")
    expect("hover of nothing", doc.hover("+ bias"), None)
    expect("hover of an argument's name", doc.hover("bias=2"), "```unisono\nbias: f32\n```\n\na parameter")
    expect("hover's range", doc.ask("hover", "squares,")["range"], span(23, 44, 51))

    # ---- definition, references, highlight
    expect("definition of a variable", doc.definition("y + p"), [(10, 6)])
    expect("definition of a parameter", doc.definition("x @"), [(9, 26)])
    expect("definition of a size", doc.definition("n] {"), [(9, 33)])
    expect("definition of the size of a type", doc.definition("d], b: f32)"), [(2, 12)])
    expect("definition of what is hidden", doc.definition("x\n}"), [(17, 6)])
    expect("definition of what hides", doc.definition("x.sum"), [(14, 4)])
    expect("definition of an argument", doc.definition("bias=2"), [(9, 43)])
    expect("definition in a comprehension", doc.definition("i * i"), [(21, 25)])
    expect("definition of the library", doc.definition("sum(predict"), None)
    expect("references of a var", doc.references("total = sum"), [(15, 4), (17, 10), (18, 2), (18, 10), (23, 8)])
    expect("references of a parameter", doc.references("bias: f32"), [(9, 43), (11, 12), (15, 30)])
    expect("references of a builtin", doc.references("range(3)"), [(16, 9), (21, 30)])
    expect("highlight", doc.ask("documentHighlight", "total + x"),
           [{"range": span(l, b, b + 5), "kind": k} for l, b, k in
            ((15, 4, 3), (17, 10, 2), (18, 2, 3), (18, 10, 2), (23, 8, 2))])

    # ---- rename
    expect("rename", doc.rename("q", "y = x"), PROGRAM.replace("let y", "let q").replace("  y +", "  q +"))
    expect("rename of a parameter", doc.rename("offset", "bias: f32"), PROGRAM.replace("bias", "offset"))
    expect("rename of a size", doc.rename("rows", "n, d]"), PROGRAM.replace("f32[n", "f32[rows"))
    expect("rename of an import", doc.rename("net", "nn."), PROGRAM.replace("import nn", "import nn as net").replace("nn.relu", "net.relu"))
    expect("rename of an alias", doc.rename("s", "st\n"), PROGRAM.replace("as st\n", "as s\n"))
    expect("rename of what is hidden", doc.rename("z", "x = ones"),
           PROGRAM.replace("let x = ones", "let z = ones").replace("(p, x, bias", "(p, z, bias").replace("x.sum", "z.sum"))
    expect("prepare", doc.ask("prepareRename", "y + p"), {"range": span(11, 2, 3), "placeholder": "y"})
    expect("a field is not renamed", doc.ask("prepareRename", "p.w", after=2)["error"],
           {"code": -32803, "message": "fields are not renamed"})
    expect("nor the library", doc.rename("s", "sum(predict"), "the name belongs to the library")
    expect("nor nothing", doc.rename("s", "}\nlet p"), "there is no name here")
    expect("rename to a keyword", doc.rename("let", "y = x"), "`let` is no name")
    expect("rename to two words", doc.rename("a b", "y = x"), "`a b` is no name")
    expect("rename to what is bound", doc.rename("i", "total = sum"),
           "`i` is bound already: line 18 of /nowhere/main.uni would mean something else")
    expect("rename to a name of the library that is used", doc.rename("sum", "total = sum"),
           "`sum` is bound already: line 24 of /nowhere/main.uni would mean something else")

    # ---- completion
    names = doc.labels("y + p.b")
    for word, there in (("y", True), ("p", True), ("predict", True), ("bias", True), ("n", True), ("total", True), ("relu", False),
                        ("softmax", True), ("arange", True), ("pi", True), ("f32", True), ("while", True), ("axis", True),
                        ("t", False), ("i", False)):
        expect(f"completion has {word}", word in names, there)
    expect("completion of fields", doc.labels("p.w", after=2)[:2], ["w", "b"])
    expect("completion of members", "leaky_relu" in doc.labels("relu(b)"), True)
    expect("completion of arguments", doc.labels("x, bias", after=3)[0], "bias=")
    expect("completion of modules", doc.labels("nn\n"), ["array", "complex", "fft", "groups", "linalg", "math", "nn", "numeric", "optim", "random", "sparse", "stats"])
    expect("none where a name is bound", doc.labels("y = x", after=1), [])
    expect("none in a comment", doc.labels("line through"), [])
    expect("none in a string", doc.labels("} {twice", after=1), [])
    expect("completion in an interpolation", "total" in doc.labels("total:", after=2), True)

    # ---- signature help
    got = doc.ask("signatureHelp", "x, bias")
    expect("signature", (got["signatures"][0]["label"], got["activeParameter"]),
           ("predict(p: Params[d], x: f32[n, d], *, bias: f32 = 0.0) -> f32[n]", 1))
    expect("its parameters", [p["label"] for p in got["signatures"][0]["parameters"]], ["p: Params[d]", "x: f32[n, d]", "bias: f32 = 0.0"])
    expect("signature by name", doc.ask("signatureHelp", "2.0)")["activeParameter"], 2)
    expect("signature of a method", doc.ask("signatureHelp", "axis=0")["activeParameter"], 1)
    expect("no signature", doc.ask("signatureHelp", "y + p"), None)

    # ---- inlay hints
    hints = doc.ask("inlayHint", range=span(0, 0, 0, last=99))
    expect("inlay hints", [(h["position"]["line"], h["position"]["character"], h["label"]) for h in hints],
           [(10, 7, ": f32[n]"), (13, 5, ": (w: f32[4], b: f32)"), (14, 5, ": f32[3, 4]"), (15, 9, ": f32"), (17, 7, ": f32"),
            (20, 6, ": int"), (20, 9, ": i32[10]"), (21, 11, ": i32[4]")])
    expect("in a range", [h["label"] for h in doc.ask("inlayHint", range=span(14, 0, 0, last=15))], [": f32[3, 4]"])

    # ---- symbols, folds, tokens, format
    symbols = doc.ask("documentSymbol")
    expect("symbols", [(s["name"], s["kind"], [c["name"] for c in s.get("children", [])]) for s in symbols],
           [("nn", 2, []), ("st", 2, []), ("Params", 23, []), ("batch", 14, []), ("predict", 12, ["y"]), ("p", 14, []), ("x", 14, []),
            ("total", 13, []), ("a", 14, []), ("b", 14, []), ("squares", 14, []), ("twice", 14, [])])
    expect("folds", doc.ask("foldingRange"), [{"startLine": 9, "endLine": 11}, {"startLine": 16, "endLine": 18},
                                              {"startLine": 5, "endLine": 8, "kind": "comment"}])
    expect("tokens", tokens(client, doc, 23),
           ["print function", '"{ string', "total variable", ":.2f} { string", "twice function", "a variable", '}" string',
            "nn namespace", "relu function", "b variable", "squares variable", "x variable", "sum method", "axis parameter",
            "= operator", "0 number"])
    expect("tokens of a declaration", tokens(client, doc, 2),
           ["type keyword", "Params type", "d typeParameter", "= operator", "w property", "f32 type", "d typeParameter", "b property",
            "f32 type"])
    expect("formatted already", doc.ask("formatting", options={}), [])

    # ---- what changes
    doc.set(PROGRAM.replace("y + p.b", "y  +  p.b"))
    expect("format", doc.ask("formatting", options={}), [{"range": span(11, 0, 0, last=12), "newText": "  y + p.b + bias\n"}])
    doc.set(PROGRAM + "let z = x @ ones(5)\n")
    got = client.checked(doc.uri, doc.version)
    expect("a message", [(m["range"], m["severity"], m["code"], m["source"]) for m in got], [(span(24, 8, 19), 1, "U0360", "unisono")])
    doc.set(PROGRAM + "let z = predict(p).\n")
    got = client.checked(doc.uri, doc.version)
    expect("a message of the parser", [(m["range"]["start"]["line"], m["severity"]) for m in got], [(24, 1)])
    expect("types stay while it does not parse", doc.hover("y + p.b"), "```unisono\nlet y: f32[n]\n```\n\nin calls also `f32[3]`")
    doc.set(PROGRAM + "def g(q) {\n  let inner = p.\n")
    expect("fields where it does not parse", doc.labels("p.\n", after=2)[:2], ["w", "b"])
    expect("no format", doc.ask("formatting", options={}), None)
    expect("no rename", doc.rename("k", "y = x"), "/nowhere/main.uni has errors that hide some of its names")
    doc.set(PROGRAM)
    expect("the messages go", client.checked(doc.uri, doc.version), [])
    client.tell("textDocument/didClose", {"textDocument": {"uri": doc.uri}})
    while client.diagnostics[doc.uri].get("version"):
        client.next()
    expect("the messages go with the document", client.diagnostics[doc.uri]["diagnostics"], [])
    expect("it ends", client.end(), 0)


def tokens(client, doc, line):
    """The words of a line, each with its type."""
    data = doc.ask("semanticTokens/full")["data"]
    types = client.capabilities["semanticTokensProvider"]["legend"]["tokenTypes"]
    out, now, column = [], 0, 0
    for i in range(0, len(data), 5):
        down, right, length, kind, _ = data[i:i + 5]
        now, column = now + down, right if down else column + right
        if now == line:
            out.append(f"{doc.text.splitlines()[now][column:column + length]} {types[kind]}")
    return out


SCOPES = """\
let n = 3
def rows(a: f32[n, m]) -> f32[n] = sum(a, axis=1) + n
def later() = k + helper(1)
let k = 1
def helper(v) {
  let v = v + 1
  let inner = fn(v) => v * k
  if v > 0 { let v = 2; print(v) }
  inner(v)
}
let k = 2
def generic[T: float](t: T[k2], u: T) -> T[k2] = t * cast(u, T)
let (left, right) = (w = 1, left = 2, right = 3) with (w = 2) |> pair
def pair(r) = (1, 2)
let r = (left = 1, right = 2)
let (left, right) = r
test "x" { let k = 3; assert(k == 3) }
print(left, n, rows(ones((2, 2))))
def step(x, *, rate=1.0) = x * rate
let compiled = jit(step)
print(compiled(1.0, rate=2.0), jit(step)(1.0, rate=2.0))
"""


def scopes():
    client = Client()
    doc = Text(client, "scopes.uni", SCOPES)
    expect("a size hides", doc.definition("n] ="), [(1, 16)])
    expect("in the body, too", doc.definition("n\ndef later"), [(1, 16)])
    expect("and not elsewhere", doc.references("n = 3"), [(0, 4), (17, 12)])
    expect("what a function finds when it is called", doc.definition("k + helper"), [(3, 4), (10, 4)])
    expect("both are one name", doc.references("k = 1"), [(2, 14), (3, 4), (6, 27), (10, 4)])
    expect("a function below", doc.definition("helper(1)"), [(4, 4)])
    expect("a parameter", doc.definition("v + 1"), [(4, 11)])
    expect("what hides it", doc.definition("v > 0"), [(5, 6)])
    expect("a parameter of fn", doc.definition("v * k"), [(6, 17)])
    expect("a block's own", doc.definition("v) }"), [(7, 17)])
    expect("behind the block", doc.definition("v)\n}"), [(5, 6)])
    expect("a type parameter", doc.references("T: float"), [(11, 12), (11, 25), (11, 35), (11, 41), (11, 61)])
    expect("sizes of a signature", doc.references("k2]"), [(11, 27), (11, 43)])
    expect("a test's own", doc.references("k = 3"), [(16, 15), (16, 29)])
    expect("arguments of a compiled function", doc.references("rate=1"), [(18, 15), (18, 31), (20, 20), (20, 46)])
    expect("its signature", doc.ask("signatureHelp", "rate=2")["signatures"][0]["label"], "compiled(x, *, rate=1.0)")
    doc.set(SCOPES.replace("let (left, right) = (w = 1, left = 2, right = 3) with (w = 2) |> pair\n", ""))
    text = doc.text
    expect("the pattern of a record is not renamed", doc.rename("first", "left, right) = r").split(":")[0],
           "the program would have an error on line 15")
    expect("both of one name", doc.rename("kk", "k = 2"),
           text.replace("k + h", "kk + h").replace("let k = 1", "let kk = 1").replace("v * k", "v * kk").replace("let k = 2", "let kk = 2"))
    expect("what would be caught", doc.rename("v", "k = 2"),
           "`v` is bound already: line 7 of /nowhere/scopes.uni would mean something else")
    expect("it ends", client.end(), 0)


def positions():
    """UTF-16 and UTF-8, with what needs two units, marks that combine, and line ends of all kinds."""
    text = "let s = \"😀e\u0301\"; let x = 1\r\nprint(s, x)  # ü\rprint(x)\n"
    for encodings, chosen, first, x in ((["utf-8", "utf-16"], "utf-8", 23, 23), (["utf-16"], "utf-16", 20, 20)):
        client = Client(encodings=encodings)
        expect("encoding", client.capabilities["positionEncoding"], chosen)
        uri = "file:///nowhere/%C3%BC%20b.uni"
        client.open(uri, text)
        doc = {"textDocument": {"uri": uri}}
        got = client.ask("textDocument/definition", {**doc, "position": at(1, 9)})
        expect(f"definition in {chosen}", got, [{"uri": uri, "range": span(0, x, x + 1)}])
        client.change(uri, 2, {"range": span(0, first, first + 1), "text": "😀y"}, {"range": span(0, first, first + 2), "text": "yy"})
        got = client.ask("textDocument/documentSymbol", doc)
        # utf-8: the 😀 has four bytes, of which two are replaced: all of it is.
        expect(f"edited in {chosen}", [s["name"] for s in got][-1], "yyy" if chosen == "utf-16" else got[-1]["name"])
        client.change(uri, 3, {"text": text}, {"range": {"start": at(0, 99), "end": at(0, first)}, "text": "; let z = 2"})
        got = client.ask("textDocument/documentSymbol", doc)
        expect("a range that is reversed", [s["name"] for s in got], ["s", "z"])
        expect("an edit behind the end", client.change(uri, 4, {"text": text}, {"range": span(99, 5, 9), "text": "let q = 1\n"}), None)
        got = client.ask("textDocument/documentSymbol", doc)
        expect("is one at the end", got[-1]["selectionRange"], span(3, 4, 5))
        client.end()


def imports():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        (folder / "sub").mkdir()
        (folder / "sub" / "layers.uni").write_text("import \"deep.uni\" as deep\ndef dense(x, *, gain=1.0) = deep.scale(x) * gain\ntype Vec = f32[3]\n")
        (folder / "sub" / "deep.uni").write_text("def scale(x) = x * 2\n")
        client = Client(folder)
        main = Text(client, "main.uni", "import \"sub/layers.uni\" as layers\nlet y: layers.Vec = layers.dense(ones(3), gain=2.0)\nprint(y)\n", folder)
        layers_uri, deep_uri = (folder / "sub" / "layers.uni").as_uri(), (folder / "sub" / "deep.uni").as_uri()
        expect("a program of files", client.checked(main.uri, 1), [])
        expect("definition in a file", main.ask("definition", "dense"), [{"uri": layers_uri, "range": span(1, 4, 9)}])
        expect("of its argument", main.ask("definition", "gain"), [{"uri": layers_uri, "range": span(1, 16, 20)}])
        expect("of its type", main.ask("definition", "Vec"), [{"uri": layers_uri, "range": span(2, 5, 8)}])
        expect("of the file", main.ask("definition", "sub/"), {"uri": layers_uri, "range": span(0, 0, 0)})
        expect("members of a file", main.labels("dense"), ["Vec", "deep", "dense"])
        expect("signature of a file's function", main.ask("signatureHelp", "ones(3)")["signatures"][0]["label"], "dense(x, *, gain=1.0)")
        expect("rename in two files", main.ask("rename", "dense", newName="linear")["changes"],
               {main.uri: [{"range": span(1, 27, 32), "newText": "linear"}], layers_uri: [{"range": span(1, 4, 9), "newText": "linear"}]})
        # What is open counts, not what lies on the disk.
        layers = Text(client, "layers.uni", "def dense(x, *, gain=1.0) = x * gain + nope\ntype Vec = f32[3]\n", folder / "sub")
        while not client.diagnostics[main.uri]["diagnostics"]:
            client.next()
        got = client.diagnostics[main.uri]["diagnostics"]
        expect("an error of the imported file", sorted({m["range"]["start"]["line"] for m in got}), [1])
        expect("is told where it is", any(r["location"]["uri"] == layers.uri for m in got for r in m.get("relatedInformation", [])), True)
        expect("and in the file itself", [m["range"] for m in client.checked(layers.uri, 1)], [span(0, 39, 43)])
        layers.set("def dense(x, *, gain=1.0) = x * gain\ntype Vec = f32[3]\n")
        while client.diagnostics[main.uri]["diagnostics"]:
            client.next()
        deep = Text(client, "deep.uni", "def scale(x) = x * nope\n", folder / "sub")
        layers.set("import \"deep.uni\" as deep\ndef dense(x, *, gain=1.0) = deep.scale(x) * gain\ntype Vec = f32[3]\n")
        while not client.diagnostics[main.uri]["diagnostics"]:
            client.next()
        expect("references in two files", sorted(l["uri"] for l in layers.ask("references", "dense", context={"includeDeclaration": True})),
               sorted([main.uri, layers.uri]))
        deep.set("def scale(x) = x\n")
        while client.diagnostics[main.uri]["diagnostics"]:
            client.next()
        expect("it ends", client.end(), 0)


# What is written, and what each quick fix makes of it: (title, text).
FIXES = [
    ("let total = 3\nprint(totl)\n", [("Change to `total`", "let total = 3\nprint(total)\n")]),
    ("let total = 3\nprint(\"{totl:d}\")\n", [("Change to `total`", "let total = 3\nprint(\"{total:d}\")\n")]),
    ("total = 3\nprint(1)\n", [("Bind it with `let`", "let total = 3\nprint(1)\n"), ("Bind it with `var`", "var total = 3\nprint(1)\n")]),
    ("def f(x) {\n  y = x\n  x\n}\nprint(f(1))\n", [("Bind it with `let`", "def f(x) {\n  let y = x\n  x\n}\nprint(f(1))\n"),
                                               ("Bind it with `var`", "def f(x) {\n  var y = x\n  x\n}\nprint(f(1))\n")]),
    ("y[0] = 3\n", []),
    ("x <- 3\n", [("Bind it with `let`", "let x = 3\n"), ("Bind it with `var`", "var x = 3\n")]),
    ("x := 3\n", [("Bind it with `let`", "let x = 3\n")]),
    ("const x = 3\n", [("Bind it with `let`", "let x = 3\n")]),
    ("local x = 3\n", [("Bind it with `let`", "let x = 3\n"), ("Bind it with `var`", "var x = 3\n")]),
    ("let n = 1\nn = 2\n", [("Bind `n` with `var`", "var n = 1\nn = 2\n")]),
    ("let (a, n) = (1, 2)\nn = 3\n", [("Bind `n` with `var`", "var (a, n) = (1, 2)\nn = 3\n")]),
    ("print(nn.relu([1.0]))\n", [("Add `import nn`", "import nn\nprint(nn.relu([1.0]))\n")]),
    ("# What this is.\n\nimport stats\nprint(relu([1.0]))\n",
     [("Add `import nn`, and change to `nn.relu`", "# What this is.\n\nimport stats\nimport nn\nprint(nn.relu([1.0]))\n")]),
    ("# What this is.\n\nprint(nn.relu([1.0]))\n", [("Add `import nn`", "# What this is.\n\nimport nn\nprint(nn.relu([1.0]))\n")]),
    ("# About f.\ndef f(x) = nn.relu(x)\nprint(f([1.0]))\n", [("Add `import nn`", "import nn\n# About f.\ndef f(x) = nn.relu(x)\nprint(f([1.0]))\n")]),
    ("import nn as net\nprint(relu([1.0]))\n", [("Change to `net.relu`", "import nn as net\nprint(net.relu([1.0]))\n")]),
    ("print(jax.nn.relu([1.0]))\n", [("Add `import nn`, and change to `nn.relu`", "import nn\nprint(nn.relu([1.0]))\n")]),
    ("print(np.exp([1.0]))\n", [("Change to `exp`", "print(exp([1.0]))\n")]),
    ("print(np.linalg.norm([1.0]))\n", [("Change to `norm`", "print(norm([1.0]))\n")]),
    ("print(torch.arrange(3))\n", [("Change to `arange`", "print(arange(3))\n")]),
    ("print(jnp.float32(2.0), np.median([1.0]))\n", [("Change to `f32`", "print(f32(2.0), np.median([1.0]))\n")]),
    ("import math\nprint(math.sqrt(2.0))\n", [("Change to `sqrt`", "import math\nprint(sqrt(2.0))\n")]),
    ("print(np.cov([1.0]))\n", []),
    ("print(sum([1, 2], keepdim=true))\n", [("Change to `keepdims`", "print(sum([1, 2], keepdims=true))\n")]),
    ("print(sum([1, 2], axes = 0))\n", [("Change to `axis`", "print(sum([1, 2], axis = 0))\n")]),
    ("print(grad(fn(x) => x, argnums=0)(1.0))\n", [("Change to `wrt`", "print(grad(fn(x) => x, wrt=0)(1.0))\n")]),
    ("print(psum(1.0, i))\n", [("Add `axis i = devices()`", "axis i = devices()\nprint(psum(1.0, i))\n")]),
    ("let a = true\nlet b = a && a\n", [("Change to `and`", "let a = true\nlet b = a and a\n")]),
    ("let a = true\nlet b = a||a\n", [("Change to `or`", "let a = true\nlet b = a or a\n")]),
    ("let a = true\nlet b = !a\n", [("Change to `not`", "let a = true\nlet b = not a\n")]),
    ("let a = 1\nprint(a === 1)\n", [("Change to `==`", "let a = 1\nprint(a == 1)\n")]),
    ("let a = 1\nprint(a <> 1)\n", [("Change to `!=`", "let a = 1\nprint(a != 1)\n")]),
    ("let a = 1\nprint(a ~= 1)\n", [("Change to `!=`", "let a = 1\nprint(a != 1)\n")]),
    ("let a = 1\nif a = 1 { print(a) }\n", [("Change to `==`", "let a = 1\nif a == 1 { print(a) }\n")]),
    ("let a = 1\nprint(a is 1)\n", [("Change to `==`", "let a = 1\nprint(a == 1)\n")]),
    ("var i = 1\ni++\n", [("Change to `i += 1`", "var i = 1\ni += 1\n")]),
    ("var i = 1\ni--\n", [("Change to `i -= 1`", "var i = 1\ni -= 1\n")]),
    ("print(3 \u2212 2)\n", [("Change to `-`", "print(3 - 2)\n")]),
    ("print(7 mod 2)\n", [("Change to `%`", "print(7 % 2)\n")]),
    ("print(True)\n", [("Change to `true`", "print(true)\n")]),
    ("if 1 > 2 { 1 } elif 2 > 1 { 2 } else { 3 }\n", [("Change to `else if`", "if 1 > 2 { 1 } else if 2 > 1 { 2 } else { 3 }\n")]),
    ("print(3L)\n", [("Change to `3i64`", "print(3i64)\n")]),
    ("print(1.0f)\n", [("Change to `1.0f32`", "print(1.0f32)\n")]),
    ("print([5_000_000_000])\n", [("Change to `5000000000i64`", "print([5000000000i64])\n")]),
    ("print(.5)\n", [("Change to `0.5`", "print(0.5)\n")]),
    ("print(+1)\n", [("Leave out the `+`", "print(1)\n")]),
    ("print(zeros(3, 4))\n", [("Change to `zeros((3, 4))`", "print(zeros((3, 4)))\n")]),
    ("print(f\"{1}\")\n", [("Leave out the `f`", "print(\"{1}\")\n")]),
    ("print('hello')\n", [("Change to `\"hello\"`", "print(\"hello\")\n")]),
    ("print('{x}')\n", []),
    ("let x = 3 // rows\n", [("Change to `#`", "let x = 3 # rows\n")]),
    ("-- rows\nlet x = 3\n", [("Change to `#`", "# rows\nlet x = 3\n")]),
    ("print([1, 2] + [1, 2, 3])\n", []),
]


def fixes():
    """Quick fixes: what they make of a text, and when there are none."""
    said = {"textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}}}}
    client = Client(capabilities=said)
    expect("the kinds of actions", client.capabilities["codeActionProvider"], {"codeActionKinds": ["quickfix"]})
    whole = span(0, 0, 0, last=99)
    actions = lambda doc, where=whole, **context: doc.ask("codeAction", range=where, context={"diagnostics": [], **context})
    for number, (text, wanted) in enumerate(FIXES):
        doc = Text(client, f"fix{number}.uni", text)
        client.checked(doc.uri, 1)
        got = actions(doc)
        first = got[0]["diagnostics"] if got else None  # of several messages, those of the first
        expect(f"fixes of {text!r}", [[a["title"], apply(text, a["edit"]["changes"][doc.uri])] for a in got if a["diagnostics"] == first],
               [list(pair) for pair in wanted])
    doc = Text(client, "where.uni", "let total = 3\nprint(totl)\nprint(totla)\n")
    messages = client.checked(doc.uri, 1)
    got = actions(doc, span(1, 8, 8))
    expect("at a place", [(a["title"], a["kind"], a["isPreferred"], a["diagnostics"]) for a in got],
           [("Change to `total`", "quickfix", True, messages[:1])])
    expect("of both", len(actions(doc, span(1, 8, 8, last=2))), 2)
    expect("elsewhere", actions(doc, span(0, 4, 9)), [])
    expect("of another kind", actions(doc, only=["refactor"]), [])
    expect("of this kind", len(actions(doc, only=["quickfix"])), 2)
    doc.set("let total = 3\nprint(totla)\n")
    expect("of a text that is being checked", [apply(doc.text, a["edit"]["changes"][doc.uri]) for a in actions(doc)],
           ["let total = 3\nprint(total)\n"])
    doc.set("let total = 3\nprint(total)\n")
    expect("what is right needs none", actions(doc), [])
    expect("it ends", client.end(), 0)
    client = Client()
    doc = Text(client, "a.uni", "print(totl, sume(1))\n")
    client.checked(doc.uri, 1)
    expect("a client that takes no edits", actions(doc), [])
    expect("it ends", client.end(), 0)


SPREAD = """\
import nn

let  a=1; let b  = 2
# about f
def   f( x ) {
    let y=x*2   # twice
    # inside
    y+ 1
}


let t = (a,
  b,
)
print( f(a),t )
"""


def ranges():
    """Formatting of a part: those lines, as formatting of all would leave them, and nothing else."""
    client = Client()
    doc = Text(client, "spread.uni", SPREAD)
    whole = apply(SPREAD, doc.ask("formatting", options={}))
    part = lambda where: apply(doc.text, doc.ask("rangeFormatting", range=where, options={}))
    expect("all of it", part(span(0, 0, 0, last=99)), whole)
    expect("nothing of it", part(span(0, 0, 0)), SPREAD)
    expect("a line", part(span(2, 3, 5)), SPREAD.replace("let  a=1; let b  = 2", "let a = 1\nlet b = 2"))
    expect("a line of a block", part(span(7, 0, 3)), SPREAD.replace("    y+ 1", "  y + 1"))
    expect("up to the next", part(span(5, 0, 0, last=6)), SPREAD.replace("    let y=x*2   # twice", "  let y = x * 2  # twice"))
    expect("a bracket over lines", part(span(12, 0, 1)), SPREAD.replace("(a,\n  b,\n)", whole[whole.index("let t = ") + 8:whole.index("print")].rstrip("\n")))
    text = SPREAD
    for line in reversed(range(SPREAD.count("\n"))):
        doc.set(text)
        text = part(span(line, 0, 1))
    expect("line by line it is the same", text, whole)
    doc.set("def f(x) {\n")
    expect("with errors", doc.ask("rangeFormatting", range=span(0, 0, 1), options={}), None)
    expect("without a range", doc.ask("rangeFormatting", options={})["error"]["code"], -32602)
    # Programs that lost their layout, and get it back a part at a time.
    for path in sorted((pathlib.Path(__file__).resolve().parent.parent / "examples").glob("*.uni")):
        text = path.read_text()
        loose = "".join("   " + line if line.strip() and "\"" not in line else line for line in text.splitlines(keepends=True))
        doc.set(loose)
        lines = loose.count("\n")
        for begin in range(0, lines, 7):
            doc.set(loose)
            piece = part(span(begin, 0, 0, last=begin + 7))
            doc.set(piece)
            expect(f"{path.name} from line {begin}", apply(piece, doc.ask("formatting", options={}) or []), text)
    expect("it ends", client.end(), 0)


def workspace():
    """Names of all files below the folder."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "sub" / ".hidden").mkdir(parents=True)
        (folder / "main.uni").write_text("import nn\nlet width = 3\ndef train_step(x) {\n  let inner = x\n  inner\n}\n")
        (folder / "sub" / "model.uni").write_text("type Model = (w: f32)\naxis batch = devices()\nvar step = 1\ndef step_twice(x) = x\n")
        (folder / "sub" / ".hidden" / "no.uni").write_text("let step_hidden = 1\n")
        (folder / "sub" / "text.txt").write_text("let step_text = 1\n")
        client = Client(folder)
        names = lambda query: [(s["name"], s["kind"], s["containerName"]) for s in client.ask("workspace/symbol", {"query": query})]
        expect("the nearest first", names("step"), [("step", 13, "model.uni"), ("step_twice", 12, "model.uni"), ("train_step", 12, "main.uni")])
        expect("letters in their order, of any case", names("MDL"), [("Model", 23, "model.uni")])
        expect("all", [n for n, _, _ in names("")], ["Model", "batch", "step", "step_twice", "train_step", "width"])
        expect("none", names("nosuch"), [])
        expect("where it is", client.ask("workspace/symbol", {"query": "batch"})[0]["location"],
               {"uri": (folder / "sub" / "model.uni").as_uri(), "range": span(1, 5, 10)})
        open_one = Text(client, "model.uni", "let batches = 3\n", folder / "sub")
        expect("as it is in the editor", names("batch"), [("batches", 14, "model.uni")])
        expect("no query", client.ask("workspace/symbol", {})["error"]["code"], -32602)
        client.tell("textDocument/didClose", {"textDocument": {"uri": open_one.uri}})
        expect("and on the disk", names("batch"), [("batch", 14, "model.uni")])
        expect("it ends", client.end(), 0)
    client = Client()
    Text(client, "a.uni", "let here = 1\n")
    expect("without a folder", [s["name"] for s in client.ask("workspace/symbol", {"query": "here"})], ["here"])
    expect("it ends", client.end(), 0)


def broken_clients():
    # Before and after.
    client = Client(initialize=False)
    expect("before initialize", client.ask("textDocument/hover", {})["error"]["code"], -32002)
    client.tell("textDocument/didOpen", {"textDocument": {"uri": "file:///a.uni", "text": "x"}})
    client.tell("exit", None)
    expect("exit without shutdown", client.process.wait(PATIENCE), 1)
    client = Client()
    expect("initialize twice", client.ask("initialize", {})["error"]["code"], -32600)
    expect("unknown method", client.ask("textDocument/nothing", {})["error"]["code"], -32601)
    client.ask("shutdown", None)
    expect("after shutdown", client.ask("textDocument/hover", {})["error"]["code"], -32600)
    client.tell("exit", None)
    expect("exit after shutdown", client.process.wait(PATIENCE), 0)
    client = Client()
    client.process.stdin.close()
    expect("a client that is gone", client.process.wait(PATIENCE), 1)
    reads, writes = os.pipe()
    process = subprocess.Popen([UNISONO, "lsp"], stdin=subprocess.PIPE, stdout=writes)
    os.close(reads)
    os.close(writes)
    process.stdin.write(b'Content-Length: 2\r\n\r\n[]')
    process.stdin.flush()
    expect("nobody reads", process.wait(PATIENCE), 1)

    # Messages.
    client = Client()
    doc = Text(client, "a.uni", "let x = 1\nprint(x)\n")
    framed = lambda body: b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    for what, data in (("no JSON", framed(b"{nonsense")), ("no UTF-8", framed(b'{"id": "\xff\xfe"}')), ("no length", b"Content-Type: x\r\nLength 3\r\n\r\n"),
                       ("a length that is none", b"Content-Length: many\r\n\r\n"), ("a negative one", b"Content-Length: -5\r\n\r\n"),
                       ("one that is too large", b"Content-Length: 999999999999999\r\n\r\n"), ("deep JSON", framed(b"[" * 100000 + b"]" * 100000))):
        client.raw(data)
        while (message := client.next()).get("method"):
            pass
        expect(what, (message["id"], message["error"]["code"]), (None, -32700))
    for what, data in (("a list", b"[]"), ("a number", b"5"), ("null", b"null"), ("no method", b'{"jsonrpc": "2.0", "id": 99999}'),
                       ("a method that is none", b'{"jsonrpc": "2.0", "id": 99999, "method": 5}'), ("an id that is none", b'{"id": {"a": 1}, "method": "shutdown"}')):
        client.raw(framed(data))
        while (message := client.next()).get("method"):
            pass
        expect(what, (message["id"], message["error"]["code"]), (None, -32600))
    client.raw(b"rubbish that is no header\r\n" + framed(b'{"jsonrpc": "2.0", "method": "$/nothing"}'))
    client.raw(b'left over}Content-Length: 10\r\n\r\n')  # and a message that is announced too long, or too short
    expect("it goes on", doc.definition("x)"), [(0, 4)])

    # Parameters.
    uri = {"textDocument": {"uri": doc.uri}}
    for what, method, params in (("none", "hover", None), ("a list", "hover", []), ("no position", "hover", uri),
                                 ("another document", "hover", {"textDocument": {"uri": "file:///b.uni"}, "position": at(0, 0)}),
                                 ("a position that is none", "hover", {**uri, "position": {"line": "a", "character": 0}}),
                                 ("a document that is none", "hover", {"textDocument": {"uri": 5}, "position": at(0, 0)}),
                                 ("no range", "inlayHint", uri), ("no name", "rename", {**uri, "position": at(0, 4)})):
        expect(f"parameters: {what}", client.ask("textDocument/" + method, params)["error"]["code"], -32602)
    for position in (at(0, 10 ** 18), at(10 ** 12, 0), at(-3, -3), at(1e300, 1.5)):
        expect(f"a position outside: {position}", "error" in (client.ask("textDocument/completion", {**uri, "position": position})), False)
    for method, params in (("didChange", {**uri, "contentChanges": 5}), ("didChange", {**uri, "contentChanges": [{"range": 3, "text": "x"}]}),
                           ("didChange", {"textDocument": {"uri": "file:///never"}, "contentChanges": [{"text": ""}]}), ("didOpen", {}),
                           ("didClose", {"textDocument": {"uri": "file:///never"}}), ("didOpen", {"textDocument": {"uri": "file:///n", "text": 5}})):
        client.tell("textDocument/" + method, params)
    expect("and goes on", doc.definition("x)"), [(0, 4)])
    expect("what was wrong is told", sum(m.get("method") == "window/logMessage" for m in client.asked), 6)

    # What is cancelled.
    long = Text(client, "long.uni", "def f(x) {\n" + "".join(f"  let y{i} = x * {i}\n" for i in range(3000)) + "  x\n}\nprint(f(1.0))\n")
    ids = [client.begin("textDocument/hover", {"textDocument": {"uri": long.uri}, "position": at(1, 6)}) for _ in range(3)]
    client.tell("$/cancelRequest", {"id": ids[1]})
    client.tell("$/cancelRequest", {"id": "never"})
    client.tell("$/cancelRequest", 7)
    got = {}
    while len(got) < 3:
        message = client.next()
        if message.get("id") in ids:
            got[message["id"]] = message.get("error", {}).get("code")
    expect("cancelled", [got[i] for i in ids], [None, -32800, None])
    expect("it ends", client.end(), 0)


def much(report):
    """Large texts, and many changes."""
    client = Client()
    doc = Text(client, "edit.uni", PROGRAM)
    client.checked(doc.uri, 1)
    memory = lambda: int(next(l for l in open(f"/proc/{client.process.pid}/status") if l.startswith("VmRSS")).split()[1]) // 1024
    start = time.time()
    for i in range(2000):
        client.change(doc.uri, i + 2, {"range": span(13, 0, 0), "text": f"let v{i} = {i}\n"} if i % 2 == 0 else {"range": span(13, 0, 0, last=14), "text": ""})
    client.checked(doc.uri, 2001)
    report("2000 changes, and their messages", time.time() - start)
    expect("after many changes", client.diagnostics[doc.uri]["diagnostics"], [])
    before, checks = memory(), 30
    start = time.time()
    for i in range(checks):
        client.change(doc.uri, 3000 + i, {"text": PROGRAM + f"let v = {i}\n"})
        client.checked(doc.uri, 3000 + i)
    report("a change to its messages", (time.time() - start) / checks)
    expect("memory does not grow", memory() - before < 60 * SLOW, True)
    doc.text = PROGRAM
    for method, mark in (("hover", "y + p"), ("completion", "y + p"), ("definition", "y + p"), ("signatureHelp", "x, bias"),
                         ("semanticTokens/full", None), ("documentSymbol", None)):
        start = time.time()
        for _ in range(20):
            doc.ask(method, mark)
        report(method, (time.time() - start) / 20)
    part = "def f{0}(x) {{\n  let y = x * {0} + 2\n  y + x\n}}\n"
    text, i = "", 0
    while len(text) < (4 << 20) - 60:
        text += "".join(part.format(i + k) for k in range(1000))[:(4 << 20) - 60 - len(text)]
        i += 1000
    text = text[:text.rindex("}\n") + 2]
    start = time.time()
    large = Text(client, "large.uni", text)
    expect("a definition in 4 MiB", large.definition("x\n}"), [(0, 7)])
    report("open 4 MiB, and a definition", time.time() - start)
    start = time.time()
    client.change(large.uri, 2, {"range": span(1, 2, 5), "text": "var"})
    expect("after a change of it", client.ask("textDocument/foldingRange", {"textDocument": {"uri": large.uri}})[0], {"startLine": 0, "endLine": 2})
    report("a change of 4 MiB, and all its folds", time.time() - start)
    client.change(large.uri, 3, {"text": "(" * 1000000})
    client.change(large.uri, 4, {"text": "let a = 1;" + "a;" * 200000})
    start = time.time()
    got = client.ask("textDocument/references", {"textDocument": {"uri": large.uri}, "position": at(0, 4), "context": {"includeDeclaration": True}})
    expect("one long line", len(got), 200001)
    report("200,001 references in one line", time.time() - start)
    client.change(large.uri, 5, {"text": "x" * (5 << 20)})
    client.change(large.uri, 6, {"text": ""})
    expect("and nothing", client.checked(large.uri, 6), [])
    expect("it ends", client.end(), 0)


NEOVIM = r"""
local out = {}
local function wait(what, f)
  if not vim.wait(PATIENCE, f, 10) then out[#out + 1] = "never: " .. what end
end
vim.cmd("edit main.uni")
local buffer = vim.api.nvim_get_current_buf()
local config = {name = "unisono", cmd = {UNISONO, "lsp"}, root_dir = vim.fn.getcwd()}
if vim.lsp.start then
  vim.lsp.start(config)
else
  vim.lsp.buf_attach_client(buffer, vim.lsp.start_client(config))
end
local function client() return (vim.lsp.get_clients or vim.lsp.get_active_clients)()[1] end
wait("a client", function() return client() and client().initialized ~= false and vim.lsp.buf_is_attached(buffer, client().id) end)
wait("messages", function() return #vim.diagnostic.get(buffer) > 0 end)
for _, d in ipairs(vim.diagnostic.get(buffer)) do out[#out + 1] = ("diagnostic %d:%d %s"):format(d.lnum, d.col, d.source) end
vim.api.nvim_buf_set_lines(buffer, 4, 5, false, {})
wait("no messages", function() return #vim.diagnostic.get(buffer) == 0 end)
local function ask(method, row, column, more)
  vim.api.nvim_win_set_cursor(0, {row, column})
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(0, client().offset_encoding), more or {})
  local answers = vim.lsp.buf_request_sync(buffer, method, params, PATIENCE) or {}
  for _, answer in pairs(answers) do return answer.result end
end
out[#out + 1] = "hover " .. ask("textDocument/hover", 4, 6).contents.value:gsub("```%w*", ""):gsub("\n", "")
vim.api.nvim_win_set_cursor(0, {4, 11})
vim.lsp.buf.definition()
wait("a definition", function() return vim.api.nvim_win_get_cursor(0)[1] == 2 end)
out[#out + 1] = ("definition %d:%d"):format(unpack(vim.api.nvim_win_get_cursor(0)))
vim.api.nvim_win_set_cursor(0, {2, 4})
vim.lsp.buf.rename("width")
wait("a rename", function() return vim.api.nvim_buf_get_lines(buffer, 1, 2, false)[1]:find("width") ~= nil end)
if vim.lsp.buf.format then vim.lsp.buf.format({timeout_ms = PATIENCE}) else vim.lsp.buf.formatting_sync(nil, PATIENCE) end
for _, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do out[#out + 1] = line end
local file = io.open("out.txt", "w")
file:write(table.concat(out, "\n") .. "\n")
file:close()
vim.cmd("qall!")
"""


def neovim():
    nvim = shutil.which("nvim")
    if not nvim:
        print("no nvim here: the part with a real editor is left out")
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "main.uni").write_text("# \U0001F600 e\u0301\nlet w  = 3\nlet s = \"\U0001F600\"; let a = ones(w)\nlet bb = a*w\nprint(a, nope)\nprint(bb)\n")
        script = NEOVIM.replace("UNISONO", json.dumps(str(UNISONO))).replace("PATIENCE", str(int(PATIENCE * 1000)))
        (folder / "test.lua").write_text(script)
        environment = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        done = subprocess.run([nvim, "--headless", "-u", "NONE", "-n", "-c", "luafile test.lua", "-c", "cquit"], cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4 * PATIENCE)
        out = folder / "out.txt"
        expect("Neovim", out.read_text().splitlines() if out.exists() else done.stderr,
               ["diagnostic 4:9 unisono", "hover let bb: f32[3]", "definition 2:4", "# \U0001F600 e\u0301", "let width = 3",
                "let s = \"\U0001F600\"", "let a = ones(width)", "let bb = a * width", "print(bb)"])


def main():
    latencies = []
    report = lambda what, seconds: latencies.append(f"{seconds * 1000:9.1f} ms  {what}")
    for part in (answers, scopes, positions, imports, fixes, ranges, workspace, broken_clients, lambda: much(report), neovim):
        try:
            part()
        except Exception as error:  # a server that ended, or never answers
            PROBLEMS.append(f"{getattr(part, '__name__', 'part')}: {error!r} on line {error.__traceback__.tb_next.tb_lineno}")
    print("\n".join(latencies))
    print("\n".join(PROBLEMS) or f"{CHECKS} checks")
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(main())
