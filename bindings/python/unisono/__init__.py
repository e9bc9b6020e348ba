"""Unisono inside Python: programs, functions and arrays over the C interface.

    import numpy, unisono

    with unisono.Session("cpu:4") as session:
        session.run("def scale(x, k) = x * k")
        y = session["scale"](numpy.arange(12.0), 10.0)
        print(numpy.asarray(y))

docs/python.md shows more. `unisono.array_api` is the Python array API standard.
"""
from ._error import (BusyError, Cancelled, CheckError, DeviceError, Error,
                     FileError, HostError, InternalError, LimitError,
                     MemoryError, Message, MisuseError, ParseError, Place,
                     RunError)
from ._library import c as _c
from ._session import Engine, Session
from ._value import Array, Function, Value, array

__version__ = _c.version().decode()
__all__ = ["Array", "BusyError", "Cancelled", "CheckError", "DeviceError",
           "Engine", "Error", "FileError", "Function", "HostError",
           "InternalError", "LimitError", "MemoryError", "Message",
           "MisuseError", "ParseError", "Place", "RunError", "Session",
           "Value", "array"]
