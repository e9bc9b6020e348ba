#!/usr/bin/env python3
"""Processes of one program that are killed, stand still or lag: the others end with one error that names them, or the program
ends as if nobody had been disturbed. Most of the time they wait, so this is a test beside processes.py, whose command line it has.

usage: tests/killed_processes.py UNISONO [--full] [--seed N] [--slice I/N] [starts] [kills] [lags] [torn] [resumed] [gpu_kills]
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import sanitizers
from processes import BEGUN, GPUS_MEANWHILE, LIMIT, MEANWHILE, OPTIONS, RANDOM, ROOT, STEPS, UNISONO, check, gpu_environment, has_mpi, launcher, run, run_parts, several, sliced


def told(err, which):
    """Of what an error says: whether it is the only one, and names this process once; and whether it only says that one is late."""
    named = re.findall(r"process (\d+) (is gone|did not come|has not come)", err)
    one = len(named) == 1 and len(re.findall(r"(?m)^error", err)) == 1
    return one and int(named[0][0]) == which, one and named[0][1] != "is gone"


def patiently(seconds, attempt):
    """Calls attempt(seconds), which gives (good, lateness, seen), and once more with five times the patience if what is wrong may be that
    the machine is busy, and others than the one that stands still were late, too. Gives (good, seen)."""
    for patience in (seconds, 5 * seconds):
        good, lateness, seen = attempt(round(patience * sanitizers.slow()))
        if good or not lateness:
            break
    return good, seen


def starts(folder):
    """A process, or the launcher, that is killed while all start: the others end at once, without a watchdog, and nothing is left in the
    folder for temporary files."""
    program, temporary = folder / "endless.uni", folder / "temporary"
    program.write_text(STEPS.replace("range(200)", "range(100000000)"))
    temporary.mkdir()

    def children_of(pid):
        try:
            return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            return []

    def strike(turn, processes, which, moment):
        command = [*launcher(processes, False), "--devices", "cpu:1", "--watchdog", "0", program]
        launched = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(temporary)}, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        sanitizers.comes(lambda: len(children_of(launched.pid)) == processes, launched)
        children = children_of(launched.pid)
        time.sleep(moment * sanitizers.slow())
        os.kill(launched.pid if which < 0 else children[which], signal.SIGKILL)
        try:
            out, err = launched.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            launched.kill()  # its processes go with it
            out, err = "it did not end", launched.communicate()[1]
        if which < 0:
            end = time.monotonic() + LIMIT
            while any(os.path.exists(f"/proc/{child}/exe") for child in children) and time.monotonic() < end:
                time.sleep(0.01)
            good = out == "" and time.monotonic() < end
        else:
            good = launched.returncode == 1 and out == "" and told(err, which)[0] and "is gone" in err
        check(f"killed as all start: {which} of {processes} after {moment:.3f} s", good, launched.returncode, out, err)

    turns = []
    for turn in range(100 if OPTIONS.full else 10):
        processes = RANDOM.choice((2, 3, 5))
        which = -1 if turn % 5 == 0 else RANDOM.randrange(processes)
        turns.append((turn, processes, which, RANDOM.choice((0, 0.25 * RANDOM.random()))))
    several(strike, sliced(turns))
    check("nothing is left", not os.listdir(temporary), os.listdir(temporary))


def kills(folder):
    """A process that dies, or stands still, at any message: of a program whose collectives are done where they stand, and of one
    that computes while they are under way."""
    programs = [folder / "steps.uni", folder / "meanwhile.uni"]
    for program, text in zip(programs, (STEPS, MEANWHILE)):
        program.write_text(text)
    wholes = [run([UNISONO, "run", "--devices", "cpu:4", program]) for program in programs]

    def kill(turn, processes, which, message, how):
        def attempt(patience):
            command = launcher(processes, False) + ["--devices", f"cpu:{4 // processes}", "--watchdog", str(patience), programs[turn % 2]]
            begin = time.time()
            status, out, err = run(command, {"UNISONO_FAULTS": f"{how} {which} {message}; reorder {turn}" + "; eager" * (turn % 2)})
            seconds = time.time() - begin
            named, late = told(err, which)
            soon = seconds < 10 * patience
            good = (status, out, err) == wholes[turn % 2] or (status == 1 and out == "" and named and soon)
            return good, late or not soon, (status, out, err, seconds)

        good, seen = patiently(4, attempt)  # less is what a busy machine takes to compile, too
        check(f"{how} {which} of {processes} at {message}, {programs[turn % 2].name}", good, *seen)

    turns = []
    for turn in range(200 if OPTIONS.full else 12):
        processes = RANDOM.choice((2, 4))
        turns.append((turn, processes, RANDOM.randrange(processes), RANDOM.randrange(1, 500), RANDOM.choice(("die", "die", "die", "hang"))))
    several(kill, sliced(turns))


LASTS = """
@pmap(over=dev)
def last(x) {
  print("member", axis_index(dev))
  psum(x, dev)
}
print(sum(last(w)))
"""


def lags(folder):
    """A process that is stopped for seconds and goes on, also when the others are at the end: nobody sees anything of it."""
    program = folder / "lasts.uni"
    program.write_text(STEPS + LASTS)
    begin = time.time()
    whole = run([UNISONO, "run", "--devices", "cpu:3", program])
    takes = 1 + time.time() - begin

    def lag(turn, mpi, moment, seconds, which):
        process = subprocess.Popen([*launcher(3, mpi), "--devices", "cpu:1", program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(moment * takes)
        try:
            known = [process.pid]  # and the children of each, as mpirun has one between
            for pid in known:
                known += [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
            os.kill(known[-1 - which], signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(known[-1 - which], signal.SIGCONT)
        except (IndexError, OSError):
            pass  # it has ended
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        check(f"lag {turn} of {which}, {seconds} s, mpi={mpi}", (process.returncode, out, err) == whole, whole, process.returncode, out, err)

    turns = [(turn, turn % 3 == 2 and has_mpi(), RANDOM.random(), RANDOM.choice((1.5, 2.5)), RANDOM.randrange(3))
             for turn in range(60 if OPTIONS.full else 6)]
    several(lag, sliced(turns))


LARGE = """
axis dev = devices()
@pmap(over=dev)
def turns(x) {
  var y = x
  for i in range(6) { y = psum(y * 0.4, dev) }
  y
}
print(sum(turns(ones(f32[device_count(), 1000003]))))
"""


def torn(folder):
    """A process that dies in the midst of a message, whose body another one reads, by MPI where it lies: one error, with its place."""
    program = folder / "large.uni"
    program.write_text(LARGE)
    whole = run([UNISONO, "run", "--devices", "cpu:2", program])
    # Else mpirun kills all others at once; it may do so even then.
    mpi = ["mpirun", "-disable-auto-cleanup", "-n", "2", UNISONO, "run"]
    located_by_mpi = []

    def tear(message, which, command):
        def attempt(patience):
            status, out, err = run([*command, "--devices", "cpu:1", "--watchdog", str(patience), program],
                                   {"UNISONO_FAULTS": f"tear {which} {message}"})
            named, late = told(err, which)
            located = (status == 1 and out == "" or status and command is mpi) and named and f"{program}:" in err
            if located and command is mpi:
                located_by_mpi.append(message)
            # Killed by it, or told by the other process after it had stopped to pass on what that says.
            # 255 and SIGPIPE are mpirun's own, when it lost touch with those that it had begun, and says so.
            by_launcher = command is mpi and status in (1, 9, 255, -signal.SIGPIPE) and not re.search("(?m)^error", err)
            return (status, out, err) == whole or located or by_launcher, late, (status, out, err)

        good, seen = patiently(4, attempt)
        check(f"torn: {which} at {message}, {command[0]}", good, *seen)

    messages = range(2, 16) if OPTIONS.full else (4, 5, 6)
    several(tear, [(message, which, launcher(2, False)) for which in (0, 1) for message in messages])
    # mpirun may kill the other one each time; seldom does it three times.
    for _ in range(3 if has_mpi() else 0):
        if not located_by_mpi:
            several(tear, [(message, which, mpi) for which in (0, 1) for message in messages])
    check("torn while it is read", located_by_mpi or not has_mpi())


def gpu_kills(folder):
    """GPU processes that die or stand still, at a message or at any moment."""
    steps = folder / "gpu_steps.uni"
    steps.write_text(STEPS.replace("range(200)", "range(20)"))
    meanwhile = folder / "gpu_meanwhile.uni"
    meanwhile.write_text(GPUS_MEANWHILE.replace("70000", "20000"))
    wholes = {program: run([UNISONO, "run", "--devices", "sim:4", program]) for program in (steps, meanwhile)}

    def kill(turn, processes, which, message, how):
        environment = gpu_environment(turn % 2 == 1, 2, turn)
        program = meanwhile if turn % 4 < 2 else steps

        def attempt(patience):
            begin = time.time()
            command = launcher(processes, False) + ["--devices", f"sim:{4 // processes}", "--watchdog", str(patience), program]
            status, out, err = run(command, {**environment, "UNISONO_FAULTS": f"{how} {which} {message}; reorder {turn}; eager"})
            seconds = time.time() - begin
            named, late = told(err, which)
            soon = seconds < 10 * patience
            good = (status, out, err) == wholes[program] or (status == 1 and out == "" and named and soon)
            return good, late or not soon, (status, out, err, seconds)

        good, seen = patiently(5, attempt)
        check(f"gpus: {how} {which} of {processes} at {message} {environment}", good, *seen)

    turns = []
    for turn in range(60 if OPTIONS.full else 8):
        processes = RANDOM.choice((2, 4))
        turns.append((turn, processes, RANDOM.randrange(processes), RANDOM.randrange(1, 60), RANDOM.choice(("die", "die", "hang"))))
    several(kill, sliced(turns))
    # At any moment, also in the midst of what NCCL does.

    def strike(turn, seconds, which, how):
        environment = gpu_environment(turn % 2 == 1, 2, turn)
        endless, begun = folder / f"gpu_endless{turn}.uni", folder / f"begun{turn}.npy"
        endless.write_text(BEGUN.format(begun) + STEPS.replace("range(200)", "range(100000000)"))

        def attempt(patience):
            begun.unlink(missing_ok=True)
            command = launcher(2, False) + ["--devices", "sim:2", "--watchdog", str(patience), endless]
            process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       start_new_session=True, text=True)
            sanitizers.comes(begun.exists, process)
            time.sleep(seconds * sanitizers.slow())
            if turn and process.poll() is None:
                children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                os.kill(int(children[which]), how)
            elif process.poll() is None:
                os.killpg(process.pid, how)
            try:
                out, err = process.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            named, late = told(err, which)
            stopped = process.returncode == 130 and err.count("U0505") == 1 and len(re.findall(r"(?m)^error", err)) == 1
            return process.returncode == 1 and named if turn else stopped, late, (process.returncode, out, err)

        good, seen = patiently(5, attempt)
        check(f"gpus: {how.name} {environment}", good, *seen)

    several(strike, sliced([(turn, RANDOM.random(), RANDOM.randrange(2),
                             RANDOM.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP)) if turn else signal.SIGINT)
                            for turn in range(24 if OPTIONS.full else 4)]))


def resumed(folder):
    """A training one of whose processes is killed at any moment, and that is resumed by others, ends with the same bits."""
    training = str(ROOT / "examples/train_resume.uni")
    whole = run([UNISONO, "run", "--devices", "cpu:4", training])
    path, kills = folder / "state.npz", 0
    for _ in range(60):  # one that is over before the fourth kill begins anew
        processes, devices = RANDOM.choice([(2, 1), (2, 2), (4, 1)])
        launched = subprocess.Popen([UNISONO, "launch", "-n", str(processes), "--devices", f"cpu:{devices}", training, path.name], cwd=folder,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        times, last, end = RANDOM.randint(1, 6), None, time.monotonic() + LIMIT
        while kills < 4 and times and launched.poll() is None and time.monotonic() < end:
            now = path.stat().st_ino if path.exists() else None
            times -= now != last
            last = now
            time.sleep(0.001)
        children = pathlib.Path(f"/proc/{launched.pid}/task/{launched.pid}/children")
        running = children.read_text().split() if launched.poll() is None and children.exists() else []
        if kills < 4 and running:
            which = RANDOM.choice(running)
            os.kill(int(which), signal.SIGKILL)
        out, err = launched.communicate(timeout=LIMIT)
        if launched.returncode:
            kills += 1
            check(f"kill {kills}", launched.returncode == 1 and out == "" and len(re.findall(r"process \d is gone", err)) == 1
                  and len(re.findall(r"(?m)^error", err)) == 1, launched.returncode, out, err)
            continue
        check(f"resumed after {kills}", (out, err) == whole[1:], out, err, whole)
        if kills == 4:
            break
        path.unlink()
        kills = 0
    check("kills", kills == 4, kills)
    check("unfinished files", not list(folder.glob("*.unisono-part")))


if __name__ == "__main__":
    sys.exit(run_parts({"starts": starts, "kills": kills, "lags": lags, "torn": torn, "resumed": resumed, "gpu_kills": gpu_kills}))
