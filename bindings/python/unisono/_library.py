"""The C interface, unisono.h: its functions, structures and numbers.

`c.NAME` is the function unisono_NAME. Those that may fail raise what
`_error.take` makes of their error; pointers are ints, and null is None.
"""
import atexit
import ctypes
import os
import pathlib
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int,
                    c_int32, c_int64, c_size_t, c_uint32, c_void_p)
from types import SimpleNamespace

ABI_VERSION = 1  # what this file was written for


class _Sized(Structure):
    """A structure that may grow: it begins with its size."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class Place(Structure):
    _fields_ = [("file", c_char_p), ("line", c_int32), ("column", c_int32),
                ("end_line", c_int32), ("end_column", c_int32),
                ("begin", c_uint32), ("end", c_uint32)]


class Message(_Sized):
    _fields_ = [("struct_size", c_size_t), ("code", c_char_p),
                ("severity", c_int32), ("text", c_char_p), ("where", Place),
                ("label", c_char_p), ("note_count", c_size_t),
                ("fact_count", c_size_t), ("help", c_char_p)]


class EngineOptions(_Sized):
    _fields_ = [("struct_size", c_size_t), ("devices", c_char_p),
                ("workers", c_int32), ("reference_only", c_int32),
                ("cache_folder", c_char_p), ("device_bytes", c_int64)]


# Callbacks get the bytes of a text by address: it may hold zero bytes.
Print = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p)
Import = CFUNCTYPE(None, c_void_p, c_char_p, c_void_p)
Release = CFUNCTYPE(None, c_void_p)


class SessionOptions(_Sized):
    _fields_ = [("struct_size", c_size_t), ("grants", c_uint32),
                ("depth", c_uint32), ("device_bytes", c_int64),
                ("host_bytes", c_int64), ("print", Print),
                ("import_", Import), ("user", c_void_p), ("release", Release),
                ("arguments", POINTER(c_char_p)), ("argument_count", c_size_t),
                ("watchdog", c_int64)]


class CallOptions(_Sized):
    _fields_ = [("struct_size", c_size_t), ("stop", c_void_p),
                ("wall_nanoseconds", c_int64), ("steps", c_int64)]


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("rank", c_int32),
                ("dtype", c_int32)]


HostFunction = CFUNCTYPE(None, c_void_p, POINTER(Tensor), POINTER(Tensor),
                         c_void_p)

GRANT_FILES = 1
FUNCTION_HAS_EFFECTS = 1
(NONE, BOOL, INT, NUMBER, TEXT, ARRAY, TUPLE, RECORD, FUNCTION,
 OTHER) = range(10)  # UnisonoValueKind

_P, _N, _S = c_void_p, c_size_t, c_char_p
_OUT = POINTER(c_void_p)
_TEXT_OUT = POINTER(c_char_p)

_MAY_FAIL = {
    "engine_create": (POINTER(EngineOptions), _OUT),
    "session_create": (_P, POINTER(SessionOptions), _OUT),
    "eval": (_P, _S, _N, _S, POINTER(CallOptions), _OUT),
    "check": (_P, _S, _N, _S),
    "session_get": (_P, _S, _OUT),
    "session_set": (_P, _S, _P),
    "session_names": (_P, _OUT),
    "session_format": (_P, _P, _OUT),
    "value_type": (_P, _TEXT_OUT),
    "value_none": (_OUT,),
    "value_bool": (c_int, _OUT),
    "value_int": (c_int64, _OUT),
    "value_number": (c_double, _OUT),
    "value_text": (_S, _N, _OUT),
    "value_copy": (POINTER(Tensor), _OUT),
    "value_borrow": (POINTER(Tensor), Release, _P, _OUT),
    "value_tuple": (_P, _N, _OUT),
    "value_record": (_P, _P, _N, _OUT),
    "value_get_bool": (_P, POINTER(c_int)),
    "value_get_int": (_P, POINTER(c_int64)),
    "value_get_number": (_P, POINTER(c_double)),
    "value_get_text": (_P, _OUT, POINTER(c_size_t)),
    "value_get_tensor": (_P, POINTER(Tensor)),
    "value_get_array_type": (_P, POINTER(Tensor)),
    "value_item": (_P, _N, _OUT),
    "value_from_dlpack": (_P, _OUT),
    "value_from_dlpack_unversioned": (_P, _OUT),
    "value_to_dlpack": (_P, c_int, _OUT),
    "value_to_dlpack_unversioned": (_P, _OUT),
    "call": (_P, _P, _N, _P, _P, _N, POINTER(CallOptions), _OUT),
    "function_signature": (_P, _TEXT_OUT),
    "stop_create": (_OUT,),
    "define_function": (_P, _S, c_uint32, HostFunction, _P, Release),
}
_OTHERS = {
    "abi_version": (c_uint32,),
    "version": (_S,),
    "error_kind": (c_int32, _P),
    "error_summary": (_S, _P),
    "error_text": (_S, _P, c_int),
    "error_message_count": (_N, _P),
    "error_message": (c_int, _P, _N, POINTER(Message)),
    "error_note": (c_int, _P, _N, _N, POINTER(Place), _TEXT_OUT),
    "error_fact": (_S, _P, _N, _N),
    "error_release": (None, _P),
    "engine_release": (None, _P),
    "engine_device_count": (_N, _P),
    "reply_text": (None, _P, _S, _N),
    "reply_fail": (None, _P, _S, _N),
    "session_release": (None, _P),
    "session_warnings": (_P, _P),
    "completeness": (c_int32, _S, _N),
    "value_retain": (_P, _P),
    "value_release": (None, _P),
    "value_kind": (c_int32, _P),
    "value_size": (_N, _P),
    "value_field_name": (_S, _P, _N),
    "stop_release": (None, _P),
    "stop_request": (None, _P),
    "stop_reset": (None, _P),
}


def _load():
    """The library of $UNISONO_LIBRARY, else the one beside this file, which a
    wheel brings, else the system's."""
    beside = pathlib.Path(__file__).with_name("libunisono.so")
    path = os.environ.get("UNISONO_LIBRARY")
    if not path:
        path = str(beside) if beside.exists() else "libunisono.so.0"
    library = ctypes.CDLL(path)
    found = library.unisono_abi_version()
    if found < ABI_VERSION:
        raise ImportError(f"{path} has version {found} of the C interface, "
                          f"and this package needs {ABI_VERSION}")
    return library


def _raise_error(error, function, arguments):
    if error:
        from ._error import take
        raise take(error)


def _declare(library):
    functions = {}
    for name, types in _MAY_FAIL.items():
        function = functions[name] = getattr(library, "unisono_" + name)
        function.restype, function.argtypes = c_void_p, types
        function.errcheck = _raise_error
    for name, (result, *types) in _OTHERS.items():
        function = functions[name] = getattr(library, "unisono_" + name)
        function.restype, function.argtypes = result, types
    return SimpleNamespace(**functions)


c = _declare(_load())

# Empty when Python ends. From then on nothing is given back: modules are taken
# apart in any order, and the process's memory goes anyway.
alive = [True]
atexit.register(alive.clear)


def for_ever(callback):
    """A callback that stays when its module is taken apart: the library may
    still call it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return callback


def made(function, *arguments):
    """What a function gives through its last parameter."""
    out = c_void_p()
    function(*arguments, ctypes.byref(out))
    return out.value
