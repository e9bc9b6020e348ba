#!/usr/bin/env python3
"""Runs a command that may not read or write other processes' memory, as in a container without CAP_SYS_PTRACE.

usage: tests/tools/without_readv.py COMMAND [ARGUMENT ...]
"""
import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD_NUMBER, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
CALLS = (310, 311)  # process_vm_readv, process_vm_writev of x86-64


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def forbid():
    steps = [(LOAD_NUMBER, 0, 0, 0), *((JUMP_EQUAL, len(CALLS) - i, 0, call) for i, call in enumerate(CALLS)),
             (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERRNO | errno.EPERM)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = Filter(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        sys.exit(f"no seccomp: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
