#!/usr/bin/env python3
"""The session, on a real pseudo-terminal. Transcripts are tests/repl/*.txt; what no transcript shows is below them: pastes of a
megabyte, Ctrl-C while something runs, terminals that are closed, histories that are corrupt, times.

usage: tests/repl.py UNISONO [--rewrite] [--times] [NAME ...]

A transcript:
  # anything; `# args: --devices cpu:4`, `# size: 40x10`, `# env: TERM=dumb` are obeyed
  > keys, as they are typed: `1 + 2<enter>`; `<lt>` is `<`, `<C-a>`, `<M-f>`, `<up>`, `<paste>...<end>`, `<size 40x10>`
  | what is on the terminal from the row on where the cursor was, which is shown as ‸
A step waits until that is shown. `--rewrite` writes the second part, to be looked at.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

import sanitizers
import terminal

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNISONO = os.path.abspath(sys.argv[1])
REWRITE = "--rewrite" in sys.argv
NAMES = [a for a in sys.argv[2:] if not a.startswith("--")]
SECONDS = sanitizers.limit()
PROBLEMS = []

KEYS = {"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
        "home": "\x1b[H", "end": "\x1b[F", "delete": "\x1b[3~", "page-up": "\x1b[5~", "page-down": "\x1b[6~", "back-tab": "\x1b[Z",
        "C-left": "\x1b[1;5D", "C-right": "\x1b[1;5C", "C-home": "\x1b[1;5H", "C-end": "\x1b[1;5F", "lt": "<", "paste": "\x1b[200~",
        "paste-end": "\x1b[201~", "unknown": "\x1b[99;7x", "nul": "\0", "newline": "\n", "M-enter": "\x1b\r", "M-backspace": "\x1b\x7f",
        "C-_": "\x1f", "space": " "}


def environment(folder, extra=()):
    out = {k: v for k, v in os.environ.items() if k.startswith(("UNISONO_", "ASAN", "UBSAN", "TSAN", "LSAN", "LLVM_PROFILE")) or k in ("PATH", "LD_LIBRARY_PATH")}
    out.update(HOME=str(folder), XDG_STATE_HOME=str(folder / "state"), TERM="xterm-256color", NO_COLOR="1", LANG="C.UTF-8")
    out.pop("UNISONO_HISTORY", None)
    for pair in extra:
        name, _, value = pair.partition("=")
        out[name] = value
    return out


def fixtures(folder):
    (folder / "geo.uni").write_text("## The area of a circle.\n##   >>> area(1.0)\n##   3.14\ndef area(r) = 3.14 * r * r\nlet two = 2\n")
    (folder / "wrong.uni").write_text("def f(x) = x +* 2\n")
    (folder / "late.uni").write_text("let a = 1\nlet b = [1, 2, 3][a + 7]\n")
    (folder / "script.uni").write_text("let loaded = 42\nprint(\"loading\")\n")
    (folder / "folder of data").mkdir()


class Session(terminal.Terminal):
    def __init__(self, folder, *args, columns=80, rows=24, env=(), **more):
        super().__init__([UNISONO, *args], columns, rows, folder=folder, environment=environment(folder, env), **more)

    def expect(self, what, seconds=SECONDS):
        """Until the screen's last row, up to the cursor, ends so."""
        def shown():
            line = "".join(self.screen.lines[self.screen.row][:self.screen.column])
            return (line + " " * (self.screen.column - len(line))).endswith(what)
        if not self.wait_until(shown, seconds):
            raise AssertionError(f"`{what}` did not come:\n{self.screen.text()[-2000:]}")

    def prompt(self, seconds=SECONDS):
        self.expect("]> ", seconds)

    def type(self, text):
        """A line, whose answer it gives: all rows up to the next prompt."""
        self.prompt()
        begin = self.screen.row
        self.send(text + "\r")
        if not self.wait_until(lambda: self.screen.row > begin, SECONDS):
            raise AssertionError(f"no answer to {text[:80]!r}")
        self.prompt()
        return self.screen.text(begin + 1, cursor=None)


# ---- transcripts

def keys_of(text):
    """Pieces of bytes, and functions of a session."""
    def size(columns, rows):
        return lambda session: session.resize(columns, rows)

    def send_signal(name):
        return lambda session: os.kill(session.pid, getattr(signal, "SIG" + name))
    out = []
    for piece in re.split(r"(<[^<>]+>)", text):
        name = piece[1:-1] if piece.startswith("<") and piece.endswith(">") else None
        if name is None:
            out.append(piece)
        elif name in KEYS:
            out.append(KEYS[name])
        elif name.startswith("size "):
            out.append(size(*map(int, name[5:].split("x"))))
        elif name.startswith("signal "):
            out.append(send_signal(name[7:]))
        elif name.startswith("byte "):
            out.append(bytes.fromhex(name[5:]))
        elif re.fullmatch(r"C-[a-z@]", name):
            out.append(chr(ord(name[2].upper()) - 64))
        elif re.fullmatch(r"M-.", name):
            out.append("\x1b" + name[2])
        else:
            raise ValueError(f"no key {piece}")
    return [p for p in out if p]


def normalised(text):
    text = re.sub(r"Unisono \d+\.\d+\.\d+", "Unisono VERSION", text)
    return re.sub(r"\b\d[\d.]*(e-\d+)? (us|ms|s)\b", "TIME", text)


class Transcript:
    def __init__(self, path):
        self.path = path
        self.head, self.steps = [], []
        for line in path.read_text().splitlines():
            if line.startswith("> "):
                self.steps.append([line[2:], []])
            elif line.startswith("|") and self.steps:
                self.steps[-1][1].append(line[2:])
            else:
                self.head.append(line)

    def directive(self, key, default=""):
        found = [line[len(key) + 4:] for line in self.head if line.startswith(f"# {key}: ")]
        return found[-1] if found else default

    def run(self, folder):
        columns, rows = map(int, self.directive("size", "80x24").split("x"))
        session = Session(folder, *self.directive("args").split(), columns=columns, rows=rows,
                          env=self.directive("env").split())
        try:
            for number, (keys, expected) in enumerate(self.steps):
                problem = self.step(session, keys, expected)
                if problem:
                    return f"step {number + 1}, {keys}\n{problem}"
            if session.screen.problems:
                return f"the terminal got {session.screen.problems[:3]}"
        finally:
            session.close()
        return None

    def step(self, session, keys, expected):
        begin = session.screen.row
        if keys == "start":
            session.prompt()
        elif keys != "look":
            for piece in keys_of(keys):
                if callable(piece):
                    session.settle(0.1)
                    piece(session)
                else:
                    session.send(piece)
        shown = lambda: normalised(session.screen.text(min(begin, session.screen.row)))
        if REWRITE:
            session.settle(2.0)
            expected[:] = shown().split("\n")
            return None
        wanted = "\n".join(expected)
        if session.wait_until(lambda: shown() == wanted, SECONDS):
            return None
        return f"expected:\n{wanted}\ngot:\n{shown()}"

    def rewrite(self):
        lines = list(self.head)
        for keys, expected in self.steps:
            lines.append(f"> {keys}")
            lines += [f"| {line}".rstrip() for line in expected]
        self.path.write_text("\n".join(lines) + "\n")


def run_transcript(path):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        fixtures(folder)
        transcript = Transcript(path)
        try:
            problem = transcript.run(folder)
        except AssertionError as error:
            problem = str(error)
        if REWRITE:
            transcript.rewrite()
        return f"{path.relative_to(ROOT)}: {problem}" if problem else None


# ---- what no transcript shows

def check(condition, what):
    if not condition:
        raise AssertionError(what)


def has(text, pattern, what=""):
    check(re.search(pattern, text, re.M | re.S), f"{what}: expected {pattern!r}, got:\n{text[-1500:]}")


def large_paste(folder):
    """One of a megabyte is one input, and is shown in part."""
    session = Session(folder)
    try:
        session.prompt()
        line = "let number_{:06d} = [1, 2, 3] + 4.5 * (2 + 3)\n"
        text = "".join(line.format(i) for i in range((1 << 20) // len(line.format(0)) + 1))
        session.send("\x1b[200~" + text + "\x1b[201~")
        check(session.wait_until(lambda: not session.queue and "number_%06d" % (text.count("\n") - 1) in session.screen.text(), SECONDS), "the paste is not shown")
        session.send("\r")
        session.wait_until(lambda: runs(session), SECONDS)
        check(session.wait_until(lambda: not runs(session), 3 * SECONDS), "the paste does not end")
        session.prompt()
        answer = session.type("number_000017")
        has(answer, r"\[5\.5|23\.5", "after the paste")
        # The same as a program of one expression, and text that never ends.
        session.send("\x1b[200~" + "(" * 1000 + "1" + "\x1b[201~")
        session.settle(0.2)
        session.send("\x03")
        session.prompt()
        has(session.type("1 + 1"), r"= 2\b", "after a paste that is given up")
    finally:
        session.close()


def unmarked_paste(folder):
    """A terminal that does not mark pastes sends them as if they were typed."""
    session = Session(folder)
    try:
        session.prompt()
        session.send("".join(f"let p{i} = {i}\r" for i in range(300)))
        session.wait_until(lambda: "let p299" in session.screen.text(), SECONDS)
        session.prompt()
        has(session.type("p299 + p7"), r"= 306\b")
    finally:
        session.close()


SLOW = {
    "kernel": "let s = sum(lgamma(arange(400_000_000, f32) + 1.5));",
    "loop": "var n = 0\nwhile true { n += 1 }",
    "compiled loop": "jit(fn(x) => { var y = x; while sum(y) > 0.0 { y = y * 0.5 + 1.0 }; y })(ones(f32[9]))",
    "pmap": "pmap(fn(x) => { var y = x; for i in range(100_000_000) { y = psum(y) * 0.25 }; y })(ones(f32[4, 9]))",
    "check": "for j in unrolled(100) { for i in unrolled(3000) { sum(ones(f32[3, 4]) @ ones(f32[4, 2])) } }",
    "compile": "def f(x) { var y = x\n" + "".join(f"y = sin(y * {i}.5 + x) + {i}.25\n" for i in range(1, 1500)) + "y }\nsum(jit(f)(ones(f32[64])))",
    "parse": "".join(f"let x{i} = (1 + {i}) * (2 + 3)\n" for i in range(60_000)),
    "print": "for i in range(100_000_000) { print(i) }",
}


def interrupts(folder):
    """Ctrl-C ends what runs, soon, and nothing else."""
    session = Session(folder, "--devices", "cpu:4")
    try:
        session.type("let kept = 17")
        for name, text in SLOW.items():
            session.prompt()
            session.send("\x1b[200~" + text + "\x1b[201~")
            session.wait_until(lambda: not session.queue, SECONDS)
            session.settle(0.1)
            session.send("\r")
            if not session.wait_until(lambda: runs(session), SECONDS):
                raise AssertionError(f"{name} does not begin to run: {session.screen.text()[-800:]}")
            end = time.monotonic() + 0.15
            while time.monotonic() < end:
                session.pump()
            check(runs(session), f"{name} runs too short: {session.screen.text()[-800:]}")
            size = len(session.raw)
            begin = cpu_seconds(session.pid)
            session.send("\x03")
            # What was printed before waits in the terminal, whose emulator is slow.
            if not session.wait_until(lambda: b"stopped" in session.raw[size:], 3 * SECONDS):
                raise AssertionError(f"{name}: it is not stopped: {session.screen.text()[-800:]}")
            took = cpu_seconds(session.pid) - begin
            session.prompt()
            check(took < 1.0 * sanitizers.slow(), f"{name}: {took:.2f} s until it stopped")
            has(session.type("kept"), r"= 17\b", f"after {name}")
    finally:
        session.close()


def interrupt_on_dumb_terminals(folder):
    session = Session(folder, env=["TERM=dumb"])
    try:
        session.prompt()
        session.send("while true { }\r")
        session.settle(0.3)
        session.send("\x03")
        check(session.wait_until(lambda: b"stopped" in session.raw, SECONDS), "a loop is not stopped")
        has(session.type("1 + 1"), r"= 2\b", "after Ctrl-C")
    finally:
        session.close()


def runs(session):
    """An input is being run: Ctrl-C is a signal, and no key."""
    return termios.tcgetattr(session.master)[3] & termios.ISIG


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def hangup(folder):
    """The terminal is closed: at the prompt, and while something runs."""
    for text in ("", "while true { }\r"):
        session = Session(folder)
        session.prompt()
        session.send("let kept_input = 1\r")
        session.settle(0.1)
        session.prompt()
        session.send(text)
        session.settle(0.2)
        os.close(session.master)
        session.master = os.open("/dev/null", os.O_RDWR)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            pid, status = os.waitpid(session.pid, os.WNOHANG)
            if pid:
                session.status = status
                break
            time.sleep(0.02)
        check(session.status is not None, f"it goes on without a terminal, after {text!r}")
        session.close()
    has((folder / "state/unisono/history").read_text(), "kept_input", "history")


def closed_output(folder):
    """Standard output is a pipe that nobody reads."""
    reader, writer = os.pipe()
    session = Session(folder, descriptors={1: writer})
    os.close(writer)
    os.close(reader)
    session.settle(0.2)
    session.send("print(1)\n\nprint(2)\n")
    check(session.ended(SECONDS) is not None, "it goes on without an output")
    session.close()
    # One that is a file gets values and prompts alone.
    path = folder / "out.txt"
    with open(path, "wb") as file:
        session = Session(folder, descriptors={1: file.fileno()})
        session.settle(0.3)
        session.send("40 + 2\nmissing\n\x04")
        check(session.ended(SECONDS) == 0, "status with a file for the output")
        session.close()
    has(path.read_text(), r"= 42\b.*U0201", "output in a file")


def corrupt_histories(folder):
    path = folder / "state/unisono/history"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"let good = 1\n\xff\xfe\x00broken\n\\q\n" + b"x" * 100_000 + b"\nlet better = 2\\n3\nno end")
    session = Session(folder)
    try:
        session.prompt()
        session.send("\x1b[A")
        session.expect("... 3")
        session.send("\x1b[A\x1b[A\x1b[A")
        session.expect("let good = 1")
        session.send("\x03")
        session.type("let more = 3")
    finally:
        session.close()
    check(path.read_bytes().endswith(b"\nlet more = 3\n"), "the history is not added to")
    for contents in (os.urandom(1 << 16), b"\n" * (1 << 21), b"let x = 1\n" * 300_000, b"\\" * 1000, b"\xe2\x82"):
        path.write_bytes(contents)
        session = Session(folder)
        try:
            has(session.type("1 + 1"), r"= 2\b", "after a corrupt history")
        finally:
            session.close()
        check(path.stat().st_size < (1 << 20) + (1 << 17), "the history is not made smaller")
    path.unlink()
    path.mkdir()
    session = Session(folder)
    try:
        has(session.type("1 + 1"), r"not kept.*= 2\b", "a folder for a history")
    finally:
        session.close()


def many_histories(folder):
    """Sessions at once do not lose each other's inputs."""
    sessions = [Session(folder) for _ in range(4)]
    try:
        for session in sessions:
            session.prompt()
        for i, session in enumerate(sessions):
            session.send("".join(f"let h{i}_{k} = {k}\r" for k in range(25)))
        for i, session in enumerate(sessions):
            session.wait_until(lambda: f"let h{i}_24" in session.screen.text(), SECONDS)
            session.prompt()
    finally:
        for session in sessions:
            session.close()
    lines = (folder / "state/unisono/history").read_text().splitlines()
    check(len(lines) == 100 and len(set(lines)) == 100, f"{len(set(lines))} of 100 inputs are in the history")


def stop_and_go_on(folder):
    """Ctrl-Z at the prompt and while something runs; the terminal is as before in between."""
    session = Session(folder)
    try:
        session.prompt()
        editing = termios.tcgetattr(session.master)[3]
        check(not editing & termios.ICANON, "the terminal is not in the editor's mode")
        for text in ("let half", "for i in range(3000) { sum(ones(f32[30_000])) }; let half\r"):
            session.send(text)
            session.settle(0.2)
            os.kill(session.pid, signal.SIGTSTP)
            pid, status = os.waitpid(session.pid, os.WUNTRACED)
            check(os.WIFSTOPPED(status), "it is not stopped")
            check(termios.tcgetattr(session.master)[3] & termios.ICANON, "the terminal is not as it was")
            os.kill(session.pid, signal.SIGCONT)
            session.settle(0.2)
            if "\r" not in text:
                session.expect("let half")
                session.send("\x03")
                session.prompt()
        session.send("\x03")
        session.prompt()
        has(session.type("1 + 1"), r"= 2\b", "after Ctrl-Z")
    finally:
        session.close()


def colours(folder):
    session = Session(folder, env=["NO_COLOR="])
    try:
        session.prompt()
        session.send("let x = \"text\" + 12 # why")
        session.expect("# why")
        has(session.raw.decode(), r"\x1b\[35mlet", "a keyword")
        has(session.raw.decode(), r"\x1b\[32m\"text\"", "a string")
        has(session.raw.decode(), r"\x1b\[34m12", "a number")
        session.send("\x03")
        session.type("missing")
        has(session.raw.decode(), r"\x1b\[1?;?31m.*error", "an error")
    finally:
        session.close()
    for extra in ("NO_COLOR=1", "TERM=dumb"):
        session = Session(folder, env=["NO_COLOR=", extra])
        try:
            session.prompt()
            session.type("missing")
            check(not session.screen.styles, f"colours with {extra}")
        finally:
            session.close()


def progress(folder):
    """A bar for loops of the top level that last, in sessions and scripts; none with --no-progress, or without a terminal."""
    loop = "for i in range(100000000) { sum(ones(f32[10])) }"
    session = Session(folder)
    try:
        session.prompt()
        session.send(loop + "\r")
        check(session.wait_until(lambda: re.search(r"% \d+/100000000 .*/s .* left", session.screen.text()), SECONDS), "no progress is shown")
        session.send("\x03")
        session.prompt()
        check("left" not in session.screen.text().split("U0505")[-1].split("unisono[")[-1], "the bar stays")
    finally:
        session.close()
    (folder / "long.uni").write_text("for i in range(100000000) {\n  sum(ones(f32[10]))\n}\n")
    for options, shown in (([], True), (["--no-progress"], False)):
        script = Session(folder, "run", "long.uni", *options)
        try:
            found = script.wait_until(lambda: b"/100000000" in script.raw, SECONDS if shown else 3.0)
            check(found == shown, f"progress with {options}: {found}")
            script.send("\x03")
            check(script.ended(SECONDS) == 130, f"status {script.status} after Ctrl-C")
        finally:
            script.close()
    asked_progress(folder)


def asked_progress(folder):
    """`progress` shows rate, time and numbers at once, in functions too, and has the line for itself; nothing in a pipe."""
    (folder / "asked.uni").write_text('''
var loss = 1.0
def wait() {
  let begin = clock()
  while clock() - begin < 0.03 { }
}
for epoch in range(2) {
  for (i, x) in enumerate(progress(batches(arange(15), 1), show=("loss", "nothing"))) {
    wait()
    loss = 1 / f32(2 + i)
  }
}
def inside() { for i in progress(range(5)) { for j in progress("ab") { wait() } } }
inside()
print("done", loss)
''')
    script = Session(folder, "run", "asked.uni")
    try:
        check(script.wait_until(lambda: b"done" in script.raw, SECONDS), "it does not end")
        shown = re.findall(r"\r(\[?[^\r]*?)\x1b\[K", script.raw.decode())
        check(any(re.search(r"% \d+/15 .*(/s|each) .* left  loss 0\.\d+$", line) for line in shown), f"progress shows {shown}")
        check(any("/5 " in line for line in shown), "progress in a function is not shown")
        check(not any("/2 " in line for line in shown), "two loops share a line")
        check("left" not in script.screen.text(), "the bar stays")
        check("nothing" not in "".join(shown), "what is no number is shown")
    finally:
        script.close()
    piped = subprocess.run([UNISONO, "run", "asked.uni"], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    check(piped.stdout == "done 0.0625\n" and piped.stderr == "", f"in a pipe: {piped.stdout}{piped.stderr}")


def without_a_terminal(folder):
    """Standard input is then a program."""
    def run(text, *words):
        return subprocess.run([UNISONO, *words], input=text.encode(), capture_output=True, timeout=SECONDS, env=environment(folder))
    done = run("let x = 3\nprint(x)\nx\n")
    check((done.returncode, done.stdout) == (0, b"3\n"), f"a program on standard input: {done}")
    done = run("let x = = 1\n", "--devices", "cpu:2")
    check(done.returncode == 1 and b"<stdin>" in done.stderr, f"a wrong program on standard input: {done}")
    check(run("").returncode == 0, "nothing on standard input")


def bad_command_lines(folder):
    for words in (["--devices", "cpu:99"], ["--stats"], ["--explain-speed"], ["--trace", "t.json"], ["--watchdog", "x"]):
        session = Session(folder, *words)
        try:
            check(session.ended(SECONDS) == 2, f"status {session.status} of {words}")
            has(session.screen.text(), "error: ", str(words))
        finally:
            session.close()


def saved_files(folder):
    session = Session(folder)
    try:
        session.type("let a = 1")
        session.type("missing")
        session.type("def f(x) = x + a")
        session.type(":save out.uni")
        session.type(":trace trace.json sum(ones(f32[300_000]))")
        has(session.type(":save /nowhere/out.uni"), "cannot write")
    finally:
        session.close()
    check((folder / "out.uni").read_text() == "let a = 1\ndef f(x) = x + a\n", "what :save writes")
    has((folder / "trace.json").read_text(), "traceEvents")


def reloading(folder):
    session = Session(folder)
    try:
        session.type("import \"geo.uni\" as geo")
        has(session.type("geo.two"), r"= 2\b")
        (folder / "geo.uni").write_text("let two = 22\n")
        session.type(":reload")
        has(session.type("geo.two"), r"= 22\b")
        (folder / "geo.uni").write_text("let two = = 3\n")
        has(session.type(":reload"), "U0213|U01")
        has(session.type("geo.two"), r"= 22\b", "after a module that is wrong")
        (folder / "geo.uni").write_text("let two = 222\n")
        session.type(":reload")
        has(session.type("geo.two"), r"= 222\b", "after it was corrected")
    finally:
        session.close()


CODED = [large_paste, interrupts, unmarked_paste, interrupt_on_dumb_terminals, hangup, closed_output, corrupt_histories, many_histories, stop_and_go_on, colours, progress,
         without_a_terminal, bad_command_lines, saved_files, reloading]


def run_coded(function):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        fixtures(folder)
        try:
            function(folder)
        except AssertionError as error:
            return f"{function.__name__}: {error}"
    return None


def timed(function, argument):
    started = time.monotonic()
    return function(argument), time.monotonic() - started


def main():
    wanted = lambda name: not NAMES or any(n in name for n in NAMES)
    transcripts = [p for p in sorted((ROOT / "tests/repl").glob("*.txt")) if wanted(p.stem)]
    coded = [] if REWRITE else [f for f in CODED if wanted(f.__name__)]
    started = time.monotonic()
    # They wait for most of their time. fork() of a process with threads is not safe: each test is a process of its own.
    with concurrent.futures.ProcessPoolExecutor(max_workers=2 * (os.cpu_count() or 2)) as pool:
        jobs = [pool.submit(timed, run_coded, f) for f in coded] + [pool.submit(timed, run_transcript, p) for p in transcripts]
        results = [job.result() for job in jobs]
    problems = [problem for problem, _ in results if problem]
    if "--times" in sys.argv:
        names = [f.__name__ for f in coded] + [p.stem for p in transcripts]
        for (_, seconds), name in sorted(zip(results, names), reverse=True, key=lambda pair: pair[0][1])[:15]:
            print(f"{seconds:6.1f} s {name}")
    print("\n\n".join(problems), end="\n" if problems else "")
    print(f"{len(jobs) - len(problems)} of {len(jobs)} passed in {time.monotonic() - started:.1f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
