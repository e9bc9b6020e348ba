"""Many programs in one process (tests/tools/player.cpp), one after the other: each is given what `unisono` is given, and writes what
it would write."""
import json
import os
import pathlib
import select
import subprocess
import tempfile

# What a process looks up again for each program; others are read once.
OF_ONE_PROGRAM = ("SIMCUDA", "UNISONO_CACHE")


class Player:
    """The process with one environment; started when a program comes, and again after one that ended it."""

    seconds = 0.0  # of processors, by processes that have not ended

    def __init__(self, build, environment):
        self.command = [str(build / "player"), str(build / "libsimcuda.so")]
        self.environment = environment
        self.process = None
        self.used = 0.0
        self.files = tempfile.TemporaryDirectory()

    def play(self, words, folder, variables, timeout):
        """As subprocess.run: (status, output, errors), in bytes."""
        if not self.process:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment)
        out, err = (pathlib.Path(self.files.name, name) for name in ("out", "err"))
        program = {"words": words, "folder": str(folder), "environment": variables, "out": str(out), "err": str(err)}
        self.process.stdin.write(json.dumps(program).encode() + b"\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            self.process.kill()
            self.ended()
            raise subprocess.TimeoutExpired(words, timeout)
        answer = self.process.stdout.readline()
        if answer:
            status, seconds = answer.split()
            status, seconds = int(status), float(seconds)
            self.used += seconds
            Player.seconds += seconds
        else:  # the program has ended the process
            status = self.ended()
        return status, out.read_bytes(), err.read_bytes()

    def end(self):
        if self.process:
            self.process.kill()
            self.ended()

    def ended(self):
        """Its exit status."""
        status = self.process.wait()
        self.process = None
        Player.seconds -= self.used  # which the system now tells of
        self.used = 0.0
        return status


class Players:
    """Those of this process, by their environments."""

    def __init__(self, build):
        self.build = build
        self.of = {}

    def play(self, words, folder, environment, timeout):
        """`environment` is what differs from our own."""
        variables = {name: value for name, value in environment.items() if name in OF_ONE_PROGRAM}
        lasting = {name: value for name, value in environment.items() if name not in OF_ONE_PROGRAM}
        key = str(sorted(lasting.items()))
        if key not in self.of:
            self.of[key] = Player(self.build, {**os.environ, **lasting})
        return self.of[key].play(words, folder, variables, timeout)
