"""Ctrl-C while Unisono computes.

Python's handler of SIGINT runs on the main thread between two of its
instructions, so not while that thread is in a call of the library. What does
happen at once is that the number of the signal is written to a "wakeup fd":
here that is a pipe, while a call of the main thread runs, and a thread that
reads it stops the call; Python's handler then raises KeyboardInterrupt.
"""
import os
import signal
import threading
from contextlib import contextmanager

from ._library import c


class _Watch:
    """The pipe, its thread, and the call that a signal stops."""

    def __init__(self):
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.write_end, False)
        self.process = os.getpid()
        self.stop = None  # of the call that runs
        self.before = -1  # the wakeup fd of the program around, told as well
        self.lock = threading.Lock()
        threading.Thread(target=self.run, daemon=True,
                         name="unisono-interrupt").start()

    def run(self):
        while True:
            signals = os.read(self.read_end, 4096)
            with self.lock:
                if signal.SIGINT in signals and self.stop is not None:
                    c.stop_request(self.stop)
                if self.before >= 0:
                    try:
                        os.write(self.before, signals)
                    except OSError:
                        pass


_watch = None


def _the_watch():
    global _watch
    if _watch is None or _watch.process != os.getpid():
        _watch = _Watch()
    return _watch


@contextmanager
def interruptible(stop):
    """While it is entered, Ctrl-C requests a stop, if Ctrl-C raises
    KeyboardInterrupt in this program, and this thread is the one in which."""
    if threading.current_thread() is not threading.main_thread() or \
            signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    watch = _the_watch()
    before = signal.set_wakeup_fd(watch.write_end, warn_on_full_buffer=False)
    if before == watch.write_end:  # a call within a call
        yield
        return
    with watch.lock:
        watch.stop, watch.before = stop, before
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        with watch.lock:
            watch.stop, watch.before = None, -1
