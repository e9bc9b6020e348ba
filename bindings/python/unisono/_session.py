"""Engines and sessions."""
import ctypes
import itertools
import math
import re
import sys
from contextlib import contextmanager
from ctypes import byref

from . import _library
from ._elements import DTYPES
from ._error import CheckError, HostError, messages
from ._interrupt import interruptible
from ._library import alive, c, for_ever, made
from ._value import (Array, array, borrowed, from_pointer, pointers, texts,
                     to_value, Value)

_kept = {}  # number -> what callbacks of a session or a function need
_numbers = itertools.count(1)


def _keep(thing):
    number = next(_numbers)
    _kept[number] = thing
    return number


@for_ever
@_library.Release
def _forget(number, kept=_kept):
    kept.pop(number, None)


@contextmanager
def _replying(reply, failures):
    """What is raised inside becomes the failure of a callback."""
    try:
        yield
    except BaseException as error:  # no exception passes through C
        failures.append(error)
        text = f"{type(error).__name__}: {error}".encode()
        c.reply_fail(reply, text, len(text))


@for_ever
@_library.Print
def _print(number, text, length, reply):
    host = _kept[number]
    with _replying(reply, host.failures):
        text = ctypes.string_at(text, length).decode(errors="replace")
        (host.print or sys.stdout.write)(text)


@for_ever
@_library.Import
def _import(number, path, reply):
    host = _kept[number]
    with _replying(reply, host.failures):
        text = host.imports(path.decode()).encode()
        c.reply_text(reply, text, len(text))


@for_ever
@_library.HostFunction
def _host_function(number, arguments, results, reply):
    function, declared, failures = _kept[number]
    with _replying(reply, failures):
        given = [_view(arguments[i]) for i in range(declared[0])]
        found = function(*given)
        wanted = declared[1]
        if wanted == 1:
            found = (found,)
        if len(found) != wanted:
            raise TypeError(f"{wanted} results were declared, and "
                            f"{len(found)} came")
        for i, result in enumerate(found):
            _store(results[i], result)


def _leaves(types):
    """How many arrays a list of parameters, or a type, has."""
    depth, parts = 0, [""]
    for letter in types:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        elif letter not in "()":
            parts[-1] += letter
    return sum(part.strip() not in ("", "*") for part in parts)


def _counts(declaration):
    """How many arrays go into a function of the host, and come out."""
    start = max(m.start() for m in re.finditer(r"\bdef\b|^", declaration))
    head, _, result = declaration[start:].partition("->")
    return _leaves(head[head.find("("):]), _leaves(result)


def _view(tensor):
    """Memory of Unisono's as a NumPy array; without NumPy as a memoryview, or
    a number."""
    dtype = DTYPES[tensor.dtype]
    shape = tuple(tensor.shape[:tensor.rank])
    if dtype.name == "bf16":
        raise TypeError("Python has no bf16")
    size = math.prod(shape) * dtype.bytes
    memory = (ctypes.c_char * size).from_address(tensor.data or 0)
    try:
        import numpy
    except ImportError:
        view = memoryview(memory).cast("B")
        if not shape:
            return view.cast(dtype.format)[0]
        # A memoryview cannot have an axis of size 0.
        return view.cast(dtype.format, shape) if size else view
    return numpy.frombuffer(memory, dtype.typestr).reshape(shape) if size \
        else numpy.empty(shape, dtype.typestr)


def _store(tensor, result):
    """A result of the host where it is wanted."""
    dtype = DTYPES[tensor.dtype]
    shape = tuple(tensor.shape[:tensor.rank])
    if isinstance(result, (bool, int, float, list, tuple)):
        result = array(result, dtype.name)
    else:
        result = result if isinstance(result, Array) else borrowed(result)
    if result is None or (result.dtype, result.shape) != (dtype.name, shape):
        found = result.type if result is not None else "no array"
        sizes = ", ".join(map(str, shape))
        raise TypeError(f"{dtype.name}[{sizes}] was declared, and {found} came")
    ctypes.memmove(tensor.data, result._tensor().data or 0,
                   math.prod(shape) * dtype.bytes)


class Engine:
    """Devices and compiled code; sessions may share one. Any thread may use it.

    `devices` as on the command line: "cpu:4", "cuda", "sim:8"; one CPU device
    if it is None. `workers` are the threads that compute (0: one for each
    processor). With `reference` nothing is compiled. `cache_folder` keeps
    compiled kernels for later processes. `device_bytes` is what all CPU devices of a
    session may have together (0: 80 % of the machine's memory)."""

    def __init__(self, devices=None, *, workers=0, reference=False,
                 cache_folder=None, device_bytes=0):
        options = _library.EngineOptions(
            devices=devices.encode() if devices else None, workers=workers,
            reference_only=reference, device_bytes=device_bytes,
            cache_folder=str(cache_folder).encode() if cache_folder else None)
        self._pointer = made(c.engine_create, byref(options))

    def __del__(self, release=c.engine_release, alive=alive):
        if alive:
            release(getattr(self, "_pointer", None))

    def __reduce__(self):
        raise TypeError("an Engine is neither copied nor pickled: its devices "
                        "and threads are this process's. Sessions share it "
                        "(`Session(engine=engine)`); another process makes one "
                        "of its own")

    @property
    def device_count(self):
        return c.engine_device_count(self._pointer)


class _Host:
    """What the callbacks of a session need; not the session, which would then
    live for ever."""

    def __init__(self, print_, imports):
        self.print = print_
        self.imports = imports
        self.failures = []  # exceptions that callbacks raised in this call


class Session:
    """The names of one program, on the devices of an engine.

    Values are Python's None, bool, int, float, str, tuple (a tuple) and dict (a
    record) in both directions, and Array, Function and Value for the rest. To a
    program may also be given: a list (as `[...]` there), a NumPy array or
    whatever else has the buffer protocol or DLPack. Its elements are not
    copied, and must not change while the program or a result refers to them.

    One thread uses it at a time (BusyError otherwise); functions wait for each
    other. Limits: `depth` of calls (0: 1000), `device_bytes` of arrays on CPU
    devices, `host_bytes` of text and numbers made in a call; for time and steps
    see `limits`. A program may read and write files if `files` is true. `print`
    is called with whole lines (sys.stdout.write if it is None), `imports` with
    the path of an import, and gives its text."""

    array_class = Array  # of the arrays that programs give

    def __init__(self, devices=None, *, engine=None, files=False, print=None,
                 imports=None, arguments=(), depth=0, device_bytes=0,
                 host_bytes=0, watchdog=0):
        if engine is not None and devices is not None:
            raise ValueError("the devices are those of the engine")
        self._pointer = None
        self.engine = engine or Engine(devices)
        self._host = _Host(print, imports)
        number = _keep(self._host)
        words = [str(word).encode() for word in arguments]
        options = _library.SessionOptions(
            grants=_library.GRANT_FILES if files else 0, depth=depth,
            device_bytes=device_bytes, host_bytes=host_bytes, print=_print,
            user=number, release=_forget, argument_count=len(words),
            arguments=(ctypes.c_char_p * len(words))(*words),
            watchdog=watchdog)
        if imports is not None:
            options.import_ = _import
        try:
            self._pointer = made(c.session_create, self.engine._pointer,
                                 byref(options))
        except BaseException:
            del _kept[number]
            raise
        self._limits = {}
        self._running = []  # stops of the calls under way
        self._stops = []  # others
        self._numbers = {}

    def close(self):
        """Ends the session. Its values stay."""
        pointer, self._pointer = self._pointer, None
        c.session_release(pointer)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self, release=c.session_release, forget=c.stop_release,
                alive=alive):
        if not alive:
            return
        release(getattr(self, "_pointer", None))
        for stop in getattr(self, "_stops", ()):
            forget(stop)

    def __reduce__(self):
        raise TypeError("a Session is neither copied nor pickled: its names "
                        "are this process's. Make another one, and run the "
                        "same program in it")

    def run(self, source, name=None):
        """Checks a program and runs it. The value of its last statement, if
        that is an expression, else None. `name` is what messages call the text.
        A program that fails has changed no name."""
        data = source.encode()
        return self._start(c.eval, self._pointer, data, len(data),
                           name.encode() if name else None)

    def check(self, source, name=None):
        """Checks a program, and runs nothing."""
        data = source.encode()
        c.check(self._pointer, data, len(data),
                name.encode() if name else None)

    def __getitem__(self, name):
        """What a name of the program, or of the standard library, holds."""
        try:
            return self._value(made(c.session_get, self._pointer,
                                    name.encode()))
        except CheckError as error:
            raise KeyError(name) from error

    def __setitem__(self, name, value):
        """As `name = value` in a program."""
        given = to_value(value, self)  # it must be there during the call
        c.session_set(self._pointer, name.encode(), given._pointer)

    def names(self):
        """The names that were defined, in alphabetical order."""
        return self._value(made(c.session_names, self._pointer))

    def format(self, value):
        """A value as `print` shows it."""
        given = to_value(value, self)
        return self._value(made(c.session_format, self._pointer,
                                given._pointer))

    @property
    def warnings(self):
        """The warnings and notes of the last call that succeeded: Messages."""
        said = c.session_warnings(self._pointer)
        try:
            return messages(said) if said else ()
        finally:
            c.error_release(said)

    def function(self, declaration, *, effects=False):
        """Defines a function that Python computes; a decorator:

            @session.function("def clip(x: f32[n], most: f32) -> f32[n]")
            def clip(x, most):
                return numpy.minimum(x, most)

        It gets NumPy arrays (memoryviews and numbers where NumPy is not installed) of
        memory that is there until it returns, and gives an array of the
        declared type, or a tuple of them. With `effects` each call in the
        program is one call of it, in order. It has no derivative but one that
        the declaration gives, by `@custom_jvp(rule)` before its `def`."""
        def define(function):
            kept = (function, _counts(declaration), self._host.failures)
            number = _keep(kept)
            try:
                c.define_function(
                    self._pointer, declaration.encode(),
                    _library.FUNCTION_HAS_EFFECTS if effects else 0,
                    _host_function, number, _forget)
            except BaseException:
                del _kept[number]
                raise
            return function
        return define

    @contextmanager
    def limits(self, *, seconds=None, steps=None):
        """Calls inside end with a LimitError after so many seconds, or
        expressions that the interpreter has walked."""
        before = self._limits
        self._limits = dict(before)
        if seconds is not None:
            self._limits["wall_nanoseconds"] = max(1, int(seconds * 1e9))
        if steps is not None:
            self._limits["steps"] = steps
        try:
            yield self
        finally:
            self._limits = before

    def cancel(self):
        """Ends the calls of this session that run now, on other threads, with
        Cancelled. From any thread, at any time."""
        for stop in tuple(self._running):
            c.stop_request(stop)

    def _value(self, pointer):
        return from_pointer(pointer, self)

    def _weak(self, number):
        """A number without an element type that is not finite: one of a
        program."""
        text = "nan" if number != number else "inf" if number > 0 else "-inf"
        if text not in self._numbers:
            pointer = made(c.eval, self._pointer, text.encode(), len(text),
                           None, None)
            self._numbers[text] = Value(pointer, self)
        return self._numbers[text]

    def _call(self, function, arguments, named):
        values = [to_value(item, self) for item in arguments]
        by_name = [to_value(item, self) for item in named.values()]
        return self._start(c.call, function._pointer, pointers(values),
                           len(values), texts(named), pointers(by_name),
                           len(by_name))

    def _start(self, function, *arguments):
        """A call that may take long: with limits, and stopped by `cancel` and
        Ctrl-C."""
        stop = self._stops.pop() if self._stops else made(c.stop_create)
        options = _library.CallOptions(stop=stop, **self._limits)
        self._running.append(stop)
        try:
            with interruptible(stop):
                pointer = made(function, *arguments, byref(options))
        except HostError as error:
            raise error from next(iter(self._host.failures), None)
        finally:
            self._running.remove(stop)
            self._host.failures.clear()
            c.stop_reset(stop)
            self._stops.append(stop)
        return self._value(pointer)
