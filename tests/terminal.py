"""A terminal for tests: a program on a pseudo-terminal, and what its screen shows. It knows what an editor of lines writes, and
fails on anything else."""
import fcntl
import os
import re
import select
import signal
import struct
import termios
import time
import unicodedata

CONTROL = re.compile(r"\x1b\[(\??)([\d;]*)([@-~])")


def width(c):
    if unicodedata.combining(c) or c in "\u200b\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


class Screen:
    """Rows from the first one ever written; the last `rows` of them are on the screen."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines = [[]]
        self.top = 0  # the row of `lines` that is the first on the screen
        self.row = self.column = 0  # of the cursor; the row counts in `lines`
        self.rest = ""
        self.modes = set()
        self.styles = set()  # that were ever used
        self.problems = []

    def resize(self, columns, rows):
        """Rows that have become too long are several, as most terminals have it."""
        lines, row = [], self.row
        for number, line in enumerate(self.lines):
            if number == row:
                self.row, self.column = len(lines) + self.column // columns, self.column % columns
            lines += [line[i:i + columns] for i in range(0, max(len(line), 1), columns)]
        while len(lines) <= self.row:
            lines.append([])
        self.lines, self.columns, self.rows = lines, columns, rows
        self.top = max(0, self.row - rows + 1)

    def write(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            c = text[at]
            if c == "\x1b":
                match = CONTROL.match(text, at)
                if not match:
                    if len(text) - at < 16:
                        self.rest = text[at:]
                        return
                    self.problems.append(f"unknown escape {text[at:at + 12]!r}")
                    at += 1
                    continue
                self.control(*match.groups())
                at = match.end()
                continue
            at += 1
            if c == "\r":
                self.column = 0
            elif c == "\n":
                self.down()
            elif c == "\a":
                pass
            elif c < " " or c == "\x7f":
                self.problems.append(f"control character {c!r}")
            else:
                self.put(c)

    def down(self):
        self.row += 1
        while len(self.lines) <= self.row:
            self.lines.append([])
        self.top = max(self.top, self.row - self.rows + 1)

    def put(self, c):
        line = self.lines[self.row]
        if width(c) == 0:
            if self.column > 0:
                line[self.column - 1] += c
            return
        if self.column + width(c) > self.columns:
            self.column = 0
            self.down()
            line = self.lines[self.row]
        line.extend(" " * (self.column + width(c) - len(line)))
        line[self.column] = c
        if width(c) == 2:
            line[self.column + 1] = ""
        self.column += width(c)

    def control(self, private, numbers, final):
        values = [int(n) if n else 0 for n in numbers.split(";")]
        count = max(values[0], 1)
        if private:
            (self.modes.add if final == "h" else self.modes.discard)(values[0])
        elif final == "A":
            self.row = max(self.top, self.row - count)
        elif final == "B":
            self.row = min(self.top + self.rows - 1, self.row + count)
            while len(self.lines) <= self.row:
                self.lines.append([])
        elif final == "C":
            self.column = min(self.columns - 1, self.column + count)
        elif final == "D":
            self.column = max(0, self.column - count)
        elif final == "H":
            self.row, self.column = self.top, 0
        elif final == "K":
            del self.lines[self.row][self.column:]
        elif final == "J" and values[0] == 2:
            self.top, offset = len(self.lines), self.row - self.top
            self.lines += [[] for _ in range(self.rows)]
            self.row = self.top + offset
        elif final == "J":
            del self.lines[self.row][self.column:]
            del self.lines[self.row + 1:]
        elif final == "m":
            self.styles.update(values)
        else:
            self.problems.append(f"unknown control {numbers}{final}")

    def text(self, begin=0, cursor="‸"):
        """Rows from `begin` on, with a mark at the cursor, without what is empty at the end."""
        out = []
        for number in range(begin, len(self.lines)):
            line = list(self.lines[number])
            if number == self.row and cursor:
                line.extend(" " * (self.column - len(line)))
                line.insert(self.column, cursor)
            out.append("".join(line).rstrip())
        while out and not out[-1]:
            out.pop()
        return "\n".join(out)


class Terminal:
    """Runs `words` on a pseudo-terminal."""

    def __init__(self, words, columns=80, rows=24, **more):
        self.screen = Screen(columns, rows)
        self.master, slave = os.openpty()
        self.set_size(columns, rows)
        self.raw = b""
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                outputs = {0: slave, 1: slave, 2: slave, **more.get("descriptors", {})}
                for number, descriptor in outputs.items():
                    os.dup2(descriptor, number)
                os.closerange(3, 256)
                if "folder" in more:
                    os.chdir(more["folder"])
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a test under nohup has it ignored
                os.execve(words[0], words, more.get("environment", os.environ))
            finally:
                os._exit(127)
        self.pid = pid
        os.close(slave)
        os.set_blocking(self.master, False)
        self.status = None
        self.decoder_rest = b""
        self.queue = b""

    def set_size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.screen.resize(columns, rows)
        self.set_size(columns, rows)

    def send(self, data):
        self.queue += data.encode() if isinstance(data, str) else data

    def pump(self, seconds=0.02):
        """Writes what is queued and reads what there is; false at the end."""
        wants = [self.master] if self.queue else []
        readable, writable, _ = select.select([self.master], wants, [], seconds)
        if writable:
            try:
                self.queue = self.queue[os.write(self.master, self.queue[:4096]):]
            except BlockingIOError:
                pass
            except OSError:
                self.queue = b""
        if readable:
            try:
                data = os.read(self.master, 1 << 16)
            except BlockingIOError:
                return True
            except OSError:  # EIO: the program has closed it
                data = b""
            if not data:
                return False
            self.raw += data
            data = self.decoder_rest + data
            end = len(data)
            while end > 0 and end > len(data) - 4:  # a character that is cut in two
                try:
                    data[:end].decode()
                    break
                except UnicodeDecodeError as error:
                    if error.start < len(data) - 4:
                        break
                    end = error.start
            self.decoder_rest = data[end:]
            self.screen.write(data[:end].decode(errors="replace"))
        return True

    def wait_until(self, condition, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return True
            if not self.pump():
                return condition()
        return condition()

    def settle(self, quiet):
        """Until nothing has come for so long."""
        last, size = time.monotonic(), len(self.raw)
        while time.monotonic() - last < quiet or self.queue:
            if not self.pump(0.01):
                return
            if len(self.raw) != size:
                last, size = time.monotonic(), len(self.raw)

    def ended(self, seconds):
        """The exit status, negative for a signal; None if it goes on."""
        deadline = time.monotonic() + seconds
        alive = True
        while self.status is None and time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                while self.pump(0):
                    pass
                break
            if alive:
                alive = self.pump()
            else:
                time.sleep(0.01)
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.master is not None:
            os.close(self.master)
