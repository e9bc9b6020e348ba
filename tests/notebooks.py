#!/usr/bin/env python3
"""Notebooks, by Jupyter's own client: `examples/notebooks/*.ipynb` are executed and give the outputs that are stored in them;
below that, what no notebook shows: messages while typing, output that streams, interrupts, shutdown, restart.

usage: tests/notebooks.py UNISONO [--rewrite] [NAME ...]

`--rewrite` stores the outputs that the notebooks give now; NAME is part of a notebook's name, or of a check's.
"""
import base64
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import time

import sanitizers

try:
    import jupyter_client
    import nbclient
    import nbformat
except ImportError:  # Debian's packages are Debian's Python's
    if sys.executable == "/usr/bin/python3":
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNISONO = pathlib.Path(sys.argv[1]).resolve()
REWRITE = "--rewrite" in sys.argv
NAMES = [a for a in sys.argv[2:] if not a.startswith("--")]
SECONDS = int(sanitizers.limit())
PROBLEMS = []


def expect(what, condition, seen=""):
    if not condition:
        PROBLEMS.append(f"{what}: {seen}")


# ---- the kernel's place --------------------------------------------------------------------------------------------

def install(folder, *options, status=0):
    done = subprocess.run([UNISONO, "jupyter", "install", *options], capture_output=True, text=True, timeout=SECONDS,
                          env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": "", "JUPYTER_DATA_DIR": ""})
    expect(f"install {' '.join(options)}", done.returncode == status, done.stdout + done.stderr)
    return done.stdout + done.stderr


def check_install(folder):
    install(folder, "--prefix", f"{folder}/prefix")
    spec = json.loads((folder / "prefix/share/jupyter/kernels/unisono/kernel.json").read_text())
    expect("kernel.json", spec == {
        "argv": [str(UNISONO.parent / "unisono-jupyter"), "-f", "{connection_file}"], "display_name": "Unisono", "language": "unisono",
        "interrupt_mode": "signal", "metadata": {"debugger": False}}, spec)
    said = install(folder, "--user", "--devices", "cpu:4", "--name", "unisono-4")
    place = folder / ".local/share/jupyter/kernels/unisono-4"
    expect("where it is", str(place) in said, said)
    spec = json.loads((place / "kernel.json").read_text())
    expect("devices", spec["argv"][3:] == ["--devices", "cpu:4"] and spec["display_name"] == "Unisono (cpu:4)", spec)
    for wrong, words in [(["--user", "--prefix", "x"], "choose one"), (["--name", "A b"], "--name expects"), (["--devices", "tpu"], "tpu"),
                         (["--prefix", ""], "--prefix expects")]:
        said = install(folder, *wrong, status=2)
        expect("install " + " ".join(wrong), words in said, said)
    (folder / "file").write_text("")
    said = install(folder, "--prefix", f"{folder}/file", status=1)
    expect("a file where a folder should be", "cannot make" in said, said)
    # Without the kernel beside it.
    alone = folder / "alone" / "unisono"
    alone.parent.mkdir()
    os.symlink(UNISONO, alone)  # a link leads to where the program is
    done = subprocess.run([alone, "jupyter", "install", "--prefix", f"{folder}/linked"], capture_output=True, text=True, timeout=SECONDS)
    expect("by a link", done.returncode == 0, done.stderr)
    alone.unlink()
    try:
        os.link(UNISONO, alone)
    except OSError:  # another file system
        return
    done = subprocess.run([alone, "jupyter", "install", "--prefix", f"{folder}/none"], capture_output=True, text=True, timeout=SECONDS)
    expect("without the kernel", done.returncode == 1 and "unisono-jupyter" in done.stderr and "xeus-dev" in done.stderr, done.stderr)
    expect("nothing is left", not (folder / "none").exists())


# ---- notebooks -----------------------------------------------------------------------------------------------------

def join_streams(cell):
    """What is printed comes in pieces, by the time that it takes."""
    joined = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and joined and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    if cell.cell_type == "code":
        cell.outputs = joined


def check_notebook(path):
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    run = nbformat.read(path, as_version=4)
    for cell in run.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbclient.NotebookClient(run, timeout=SECONDS, kernel_name="unisono", record_timing=False,
                            resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in run.cells:
        join_streams(cell)
    if REWRITE:
        run.metadata.pop("language_info", None)  # it has our version
        nbformat.write(run, path)
        return
    for number, (old, new) in enumerate(zip(stored.cells, run.cells)):
        if old.get("outputs") != new.get("outputs"):
            PROBLEMS.append(f"{path.relative_to(ROOT)}, cell {number}:\n{new.source}\nstored {json.dumps(old.outputs, indent=1)}\n"
                            f"gives  {json.dumps(new.outputs, indent=1)}")


# ---- messages ------------------------------------------------------------------------------------------------------

class Kernel:
    """One that runs, and a client of it."""

    def __init__(self):
        self.manager = jupyter_client.KernelManager(kernel_name="unisono")
        # It leaves by exit(), while threads of its libraries are alive: what these hold is no leak.
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.manager.start_kernel(env={**os.environ, "ASAN_OPTIONS": options}, stderr=subprocess.DEVNULL)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=True)

    def reply(self, request):
        end = time.time() + SECONDS
        while time.time() < end:
            message = self.client.get_shell_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") == request:
                return message["content"]
        raise TimeoutError(request)

    def messages(self, request):
        """What is published of a request, until the kernel is idle again."""
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return
            yield message["msg_type"], message["content"]

    def run(self, code, **options):
        """The reply to a cell, what it printed, and its other messages."""
        request = self.client.execute(code, **options)
        printed, others = "", []
        for kind, content in self.messages(request):
            if kind == "stream" and content["name"] == "stdout":
                printed += content["text"]
            elif kind not in ("status", "execute_input"):
                others.append((kind, content))
        return self.reply(request), printed, others

    def value(self, code):
        """The text of a cell's value; None without one."""
        _, _, others = self.run(code)
        return next((c["data"]["text/plain"] for k, c in others if k == "execute_result"), None)


def check_cells(kernel):
    reply, printed, others = kernel.run('print("hello")\n6 * 7')
    expect("a cell", (reply["status"], printed, [k for k, _ in others]) == ("ok", "hello\n", ["execute_result"]), (reply, printed, others))
    expect("its number", reply["execution_count"] == others[0][1]["execution_count"], reply)
    expect("its value", others[0][1]["data"] == {"text/plain": "int = 42"}, others)
    number = reply["execution_count"]
    expect("ans", kernel.value("ans + 1") == "int = 43", "")
    expect("by its number", kernel.value(f"_{number}") == "int = 42", number)
    expect("hidden", kernel.run("let a = arange(3); a;")[2] == [])
    expect("hidden, and kept", kernel.value("ans") == "i32[3] on cpu:0\n[0 1 2]", kernel.value("ans"))
    expect("a function", kernel.value("fn(x) => x + 1") == "fn (x)", kernel.value("fn(x) => x + 1"))
    expect("no value", kernel.run("let q = 3")[2] == [])
    expect("nothing", kernel.run("")[0]["status"] == "ok")
    expect("text", kernel.value('"Grüße, 日本"') == 'str = "Grüße, 日本"', kernel.value('"Grüße, 日本"'))
    large = kernel.value("zeros(f32[1000, 1000])")
    expect("the corners of a large array", "..." in large and len(large) < 1000, large)
    reply, printed, others = kernel.run("print(1)\n3", silent=True)
    expect("silent", (reply["status"], printed, others) == ("ok", "", []), (reply, printed, others))
    reply, _, _ = kernel.run("let u = 20", user_expressions={"double": "u * 2", "wrong": "nosuch"})
    double, wrong = reply["user_expressions"]["double"], reply["user_expressions"]["wrong"]
    expect("user expressions", (double["status"], double["data"]) == ("ok", {"text/plain": "int = 40"}), double)
    expect("a wrong one", wrong["status"] == "error" and wrong["ename"] == "U0201", wrong)


def check_errors(kernel):
    reply, printed, others = kernel.run('print("not printed")\nlet e = [1, 2] + [1, 2, 3]')
    kinds = [k for k, _ in others]
    expect("an error", reply["status"] == "error" and kinds == ["error"] and printed == "", (reply, others))
    error = others[0][1]
    expect("its name", error["ename"].startswith("U0") and error["evalue"] and error["evalue"] == reply["evalue"], error)
    text = "\n".join(error["traceback"])
    expect("its text", "\x1b[" in text and "<input" in text and error["ename"] in text, text)
    expect("nothing is changed", kernel.run("e")[0]["ename"] == "U0201")
    reply, printed, _ = kernel.run('print("first")\nlet i = argmax([0, 1]) + 7\n[1, 2, 3][i]')
    expect("one while it runs", reply["status"] == "error" and printed == "first\n", (reply, printed))
    expect("names are what they were", kernel.run("i")[0]["status"] == "error")
    reply, _, others = kernel.run(":load nosuch.uni")
    expect("a command's", reply["status"] == "error" and "nosuch.uni" in reply["evalue"] and others[0][0] == "error", (reply, others))
    for magic, words in [("%timeit 1 + 1", "`:bench`"), ("%%time\n1 + 1", "`:time`"), ("%matplotlib inline", "`:help`"), ("!ls", "system")]:
        reply = kernel.run(magic)[0]
        expect(magic, reply["status"] == "error" and words in reply["evalue"], reply)
    expect("no command", "there is no command" in kernel.run(":frobnicate")[0]["evalue"])
    expect("its page", "# U0201" in kernel.run(":explain U0201")[1], kernel.run(":explain U0201")[1])
    # Cells that wait behind one that fails are aborted, and the client hears that nothing is busy with them.
    failing = kernel.client.execute("let r = 0\nfor j in range(400_000) { r }\nnosuch", stop_on_error=True)
    waiting = [kernel.client.execute(f"{i}") for i in range(2)]
    replies = [kernel.reply(request)["status"] for request in (failing, *waiting)]
    expect("aborted", replies[0] == "error" and set(replies[1:]) <= {"aborted", "ok"}, replies)
    busy = {failing, *waiting}
    while busy:
        message = kernel.client.get_iopub_msg(timeout=SECONDS)
        if message["content"].get("execution_state") == "idle":
            busy.discard(message["parent_header"].get("msg_id"))


def check_commands(kernel):
    kernel.run("def scale(x, k) = x * k")
    expect(":type", kernel.run(":type scale(2.0f32, 3)")[1] == "f32\n", kernel.run(":type scale(2.0f32, 3)"))
    expect("?name", "scale(x, k)" in kernel.run("?scale")[1], kernel.run("?scale"))
    expect("??name", "def" in kernel.run("??scale")[1], kernel.run("??scale"))
    expect(":help", ":devices" in kernel.run(":help")[1] and "Shift-Tab" in kernel.run(":help")[1], kernel.run(":help"))
    reply, printed, others = kernel.run(":devices cpu:3\n:vars\nlet d = pmap(fn(x) => x * 2)(arange(6))\nd")
    expect("commands, then a program", "scale" in printed and "over cpu:0, cpu:1, cpu:2" in others[-1][1]["data"]["text/plain"], (printed, others))
    expect(":time", "int = 3" in str(kernel.run(":time 1 +\n2")[2]), kernel.run(":time 1 +\n2"))
    kernel.run(":devices cpu:1")
    reply, printed, _ = kernel.run(":quit")
    expect(":quit", reply["payload"] == [{"source": "ask_exit", "keepkernel": False}] and "menu" in printed, (reply, printed))


def check_typing(kernel):
    kernel.run("def scale(x, factor) = x * factor\nlet größe = (width = 3, wide = 4)\nlet data = arange(3)")

    def complete(text, cursor=None):
        content = kernel.reply(kernel.client.complete(text, cursor))
        return content["matches"], content["cursor_start"], content["cursor_end"]

    expect("names", complete("let y = sca") == (["scale", "scan", "scatter_add", "scatter_max", "scatter_min", "scatter_mul"], 8, 11), complete("let y = sca"))
    expect("fields, behind letters of two bytes", complete("größe.wi") == (["wide", "width"], 6, 8), complete("größe.wi"))
    expect("inside a text", complete("größe.wi + 1", 8)[0] == ["wide", "width"], complete("größe.wi + 1", 8))
    expect("arguments", "factor=" in complete("scale(data, fa")[0], complete("scale(data, fa"))
    expect("commands", complete(":dev") == ([":devices"], 0, 4), complete(":dev"))
    expect("nothing", complete("nosuchname")[0] == [] and complete("")[0] == [], complete("nosuchname"))

    def inspect(text, cursor=None, detail=0):
        content = kernel.reply(kernel.client.inspect(text, cursor, detail))
        return content["data"].get("text/plain", "") if content["found"] else None

    expect("a function", "scale(x, factor)" in inspect("scale"), inspect("scale"))
    expect("the call around", "scale(x, factor)" in inspect("scale(data, 2", 12), inspect("scale(data, 2", 12))
    expect("its source", "x * factor" in (inspect("scale", detail=1) or "").replace("\x1b[0m", ""), inspect("scale", detail=1))
    expect("a builtin", "cumsum(" in inspect("cumsum(data)", 3), inspect("cumsum(data)", 3))
    expect("a value", "i32[3]" in inspect("data"), inspect("data"))
    expect("a field", "int" in inspect("größe.wide"), inspect("größe.wide"))
    expect("unknown", inspect("nosuchname") is None and inspect("") is None, inspect("nosuchname"))

    def complete_input(text):
        content = kernel.reply(kernel.client.is_complete(text))
        return content["status"], content.get("indent")

    expect("complete", complete_input("1 + 2") == ("complete", None), complete_input("1 + 2"))
    expect("incomplete", complete_input("def f(x) {") == ("incomplete", "  "), complete_input("def f(x) {"))
    expect("incomplete, two lines", complete_input("def f(x) {\n  let y = (") == ("incomplete", "    "), complete_input("def f(x) {\n  let y = ("))
    expect("invalid", complete_input("let = 3")[0] == "invalid", complete_input("let = 3"))
    expect("a command", complete_input(":help")[0] == "complete" and complete_input("?sum")[0] == "complete")

    def history(**options):
        content = kernel.reply(kernel.client.history(raw=True, output=False, **options))
        return [entry[2] for entry in content["history"]]

    first = kernel.run("111")[0]["execution_count"]
    kernel.run("222")
    kernel.run("111")
    kernel.run("333", store_history=False)
    expect("the last inputs", history(hist_access_type="tail", n=2) == ["222", "111"], history(hist_access_type="tail", n=2))
    expect("a range", history(hist_access_type="range", session=0, start=first, stop=first + 2) == ["111", "222"],
           history(hist_access_type="range", session=0, start=first, stop=first + 2))
    expect("those like a pattern", history(hist_access_type="search", pattern="*1*", n=9, unique=True)[-1:] == ["111"],
           history(hist_access_type="search", pattern="*1*", n=9, unique=True))


def check_pictures(kernel):
    _, printed, others = kernel.run("visualize(reshape(arange(6), (2, 3)))")
    expect("a picture", [k for k, _ in others] == ["display_data"] and printed == "", (printed, others))
    data = others[0][1]["data"]
    expect("SVG", data["image/svg+xml"].startswith("<svg") and "text/plain" in data, data)
    _, _, others = kernel.run("plot([1.0, 4.0, 9.0])")
    expect("a plot", others[0][0] == "display_data" and others[0][1]["data"]["image/svg+xml"].startswith("<svg"), others)
    _, _, others = kernel.run("print(1)\nimage([[0.0, 1.0], [1.0, 0.0]])\nprint(2)")
    expect("between what is printed", [k for k, _ in others] == ["display_data"], others)
    bytes_of = base64.b64decode(others[0][1]["data"]["image/png"])
    expect("PNG", bytes_of.startswith(b"\x89PNG\r\n\x1a\n") and bytes_of.endswith(b"IEND\xaeB`\x82"), bytes_of)


def check_progress(kernel):
    """A display below the cell that changes while the loop runs, and says at its end how long that took."""
    loop = "for i in progress(range({})) {{\n  let begin = clock()\n  while clock() - begin < 0.02 {{ }}\n}}\nprint(\"ran\")"
    _, printed, others = kernel.run(loop.format(30))
    kinds, texts = [k for k, _ in others], [c["data"]["text/plain"] for _, c in others]
    expect("a display that changes", kinds[:1] == ["display_data"] and kinds[1:] and set(kinds[1:]) == {"update_display_data"}, kinds)
    expect("it is one", len({c["transient"]["display_id"] for _, c in others}) == 1, others)
    expect("how far it is", "left" in texts[0] and "/30" in texts[0], texts)
    expect("at the end", "100% 30/30" in texts[-1] and "left" not in texts[-1], texts)
    expect("beside what is printed", printed == "ran\n", printed)
    before = others[0][1]["transient"]["display_id"]
    _, _, others = kernel.run(loop.format(30))
    expect("another cell, another display", others and others[0][0] == "display_data" and others[0][1]["transient"]["display_id"] != before, others)
    expect("a short loop has none", kernel.run(loop.format(1))[2] == [])
    kernel.run(":set progress off")
    expect("none is wanted", kernel.run(loop.format(30))[2] == [])
    kernel.run(":set progress on")


ENDLESS = 'print("begun")\nvar n = 0\nwhile true { n += 1 }'


def check_running(kernel):
    # What is printed comes while the cell runs, and an interrupt ends that and nothing else.
    kernel.run("let kept = 5")
    request = kernel.client.execute(ENDLESS)
    seen = ""
    for kind, content in kernel.messages(request):
        if kind == "stream":
            seen += content["text"]
            kernel.manager.interrupt_kernel()
        if kind == "error":
            expect("stopped", content["ename"] == "U0505", content)
    expect("printed at once", seen == "begun\n", seen)
    expect("the reply", kernel.reply(request)["status"] == "error")
    expect("the kernel goes on", kernel.value("kept") == "int = 5")
    kernel.manager.interrupt_kernel()  # of an idle one
    expect("an idle one", kernel.value("kept + 1") == "int = 6")
    # Few messages, and nothing is lost.
    request = kernel.client.execute("for k in range(20_000) { print(k) }")
    texts = [content["text"] for kind, content in kernel.messages(request) if kind == "stream"]
    kernel.reply(request)
    expect("all lines", "".join(texts) == "".join(f"{k}\n" for k in range(20000)), len(texts))
    expect("few messages", len(texts) < 2000, len(texts))


def check_ends(kernel):
    kernel.run("let before = 1")
    kernel.manager.restart_kernel(now=False)
    kernel.client.wait_for_ready(timeout=SECONDS)
    expect("a new one", kernel.run("before")[0]["status"] == "error" and kernel.value("1") == "int = 1")
    # A cell that runs does not keep it.
    kernel.client.execute(ENDLESS)
    for message in iter(lambda: kernel.client.get_iopub_msg(timeout=SECONDS), None):
        if message["msg_type"] == "stream":
            break
    process = kernel.manager.provisioner.process
    kernel.client.shutdown()
    try:
        status = process.wait(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        status = "still there"
    expect("shutdown while a cell runs", status == 0, status)


def check_command_line(folder):
    kernel = UNISONO.parent / "unisono-jupyter"
    for options, status, words in [([], 1, "-f"), (["-f", "nosuch"], 1, "nosuch"), (["--devices", "tpu", "-f", "x"], 2, "tpu"), (["--help"], 0, "jupyter install"),
                                   (["--version"], 0, "unisono-jupyter")]:
        done = subprocess.run([kernel, *options], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
        said = done.stdout + done.stderr
        expect(f"unisono-jupyter {' '.join(options)}", (done.returncode != 0) == (status != 0) and words in said, (done.returncode, said))


def main():
    if not (UNISONO.parent / "unisono-jupyter").exists():
        found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "xeus-dev"], capture_output=True, text=True).stdout
        print(f"unisono-jupyter was not built: it needs xeus 2.4, here is {found or 'none'}")
        return 0 if found and not found.startswith("2.") else 1  # later distributions have another xeus
    chosen = lambda name: not NAMES or any(n in name for n in NAMES)
    count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([UNISONO, "jupyter", "install", "--prefix", name], check=True, capture_output=True)
        os.environ.update(JUPYTER_PATH=f"{name}/share/jupyter", JUPYTER_DATA_DIR=f"{name}/data", JUPYTER_RUNTIME_DIR=f"{name}/run",
                          JUPYTER_CONFIG_DIR=f"{name}/config", IPYTHONDIR=f"{name}/ipython")
        for check in (check_install, check_command_line):
            if chosen(check.__name__) and not REWRITE:
                count += 1
                check(folder)
        for path in sorted((ROOT / "examples/notebooks").glob("*.ipynb")):
            if chosen(path.stem):
                count += 1
                check_notebook(path)
        checks = [c for c in (check_cells, check_errors, check_commands, check_typing, check_pictures, check_progress, check_running, check_ends)
                  if chosen(c.__name__) and not REWRITE]
        if checks:
            with Kernel() as kernel:
                for check in checks:
                    count += 1
                    try:
                        check(kernel)
                    except (queue.Empty, TimeoutError) as problem:
                        PROBLEMS.append(f"{check.__name__}: no answer: {problem!r}")
                        break
    print("\n".join(PROBLEMS), end="\n" if PROBLEMS else "")
    print(f"{count} checks, {len(PROBLEMS)} problems")
    return 1 if PROBLEMS else 0


if __name__ == "__main__":
    sys.exit(main())
