#!/usr/bin/env python3
"""Runs a command whose standard output is a terminal, and passes on what it prints, as Open MPI does.

usage: tests/tools/on_terminal.py COMMAND [ARGUMENT ...]
"""
import os
import pty
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdout=theirs, close_fds=False)  # MPI has some of its own
os.close(theirs)
try:
    while data := os.read(ours, 65536):
        sys.stdout.buffer.write(data.replace(b"\r\n", b"\n"))
except OSError:  # the end of a terminal
    pass
sys.stdout.flush()
sys.exit(process.wait())
