#!/usr/bin/env python3
"""Programs that are played many to a process (tests/player.py) give what they give alone, also after one that fails, hangs or dies.

usage: tests/playing.py UNISONO
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

import player
import sanitizers

LOOP = "var n = 0\nwhile true {\n  n = n + 1\n  if n == 100000 { save(\"_began.npy\", arange(3)) }\n}\n"
PROGRAMS = {
    "sum.uni": "print(sum(arange(10)), args())\n",
    "wrong.uni": "print(1)\nlet x = [1, 2, 3]\nprint(x[5])\n",
    "large.uni": "let x = arange(100000) * 0.5\nprint(sum(x * x))\n",
    "loop.uni": LOOP,
}


def main():
    unisono = pathlib.Path(sys.argv[1]).resolve()
    players, problems = player.Players(unisono.parent), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program, text in PROGRAMS.items():
            (folder / program).write_text(text)

        def play(*words, environment=None, timeout=sanitizers.limit()):
            return players.play([str(unisono), *words], folder, environment or {}, timeout)

        def compare(*words, environment=None, shows=b""):
            alone = subprocess.run([str(unisono), *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                                   env={**os.environ, **(environment or {})})
            alone = alone.returncode, alone.stdout, alone.stderr
            played = play(*words, environment=environment)
            if alone != played or shows not in alone[2]:
                problems.append(f"{words} {environment}: alone\n{alone}\nplayed\n{played}")

        def each():
            compare("run", "sum.uni", "a", "--", "-b")
            compare("run", "wrong.uni", "--devices", "cpu:2", shows=b"wrong.uni:3:9")
            compare("run", "large.uni", "--stats", "--devices", "nothing", shows=b"--devices expects")
            compare("run", "large.uni", "--reference")
            compare("run", "not_there.uni", shows=b"not_there.uni")
            # What the simulated driver found is told after the program that it is about.
            compare("run", "large.uni", "--devices", "sim:2", environment={"SIMCUDA": "fuel=1"}, shows=b"simcuda: device 0")
            compare("run", "large.uni", "--devices", "sim:2", environment={"SIMCUDA": "seed=3"})
            compare("run", "large.uni", "--devices", "sim:2")

        each()
        began = folder / "_began.npy"
        try:
            play("run", "loop.uni", timeout=1)
            problems.append("a program without end ended")
        except subprocess.TimeoutExpired:
            pass
        each()
        began.unlink(missing_ok=True)

        def kill():
            process = next(iter(players.of.values())).process
            if sanitizers.comes(began.exists, process):
                process.send_signal(signal.SIGSEGV)

        thread = threading.Thread(target=kill)
        thread.start()
        if (status := play("run", "loop.uni")[0]) != -signal.SIGSEGV:
            problems.append(f"a program that died has the status {status}")
        thread.join()
        each()
        # Variables that are read once are those of a process of their own.
        play("run", "sum.uni", environment={"UNISONO_COMPILE_FROM": "0"})
        if len(players.of) != 2:
            problems.append(f"{len(players.of)} processes for two environments")
    print("\n".join(problems) or "played programs give what they give alone")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
