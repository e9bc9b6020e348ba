#!/usr/bin/env python3
"""The Python package, over the library of a build folder: values, errors, limits, callbacks, the array API, the examples,
and what docs/python.md shows.

usage: tests/python.py BUILD [Values.test_names ...]
"""
import array
import contextlib
import copy
import gc
import io
import math
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "bindings/python"
DEBIAN = "/usr/bin/python3"  # which has NumPy from the distribution


def has_numpy(python):
    return subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    os.environ.setdefault("UNISONO_LIBRARY", str(pathlib.Path(sys.argv[1]).resolve() / "libunisono.so"))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["PYTHONPATH"] = str(PACKAGE)
    if not has_numpy(sys.executable) and os.path.exists(DEBIAN) and has_numpy(DEBIAN) and sys.executable != DEBIAN:
        os.execv(DEBIAN, [DEBIAN, __file__, *sys.argv[1:]])
sys.path.insert(0, str(PACKAGE))
sys.dont_write_bytecode = True

import unisono  # noqa: E402
import unisono.array_api as xp  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None
    print("NumPy is not installed: tests with it are left out")
with_numpy = unittest.skipUnless(numpy, "NumPy is not installed")
FOREVER = "var i = 0\nwhile true { i += 1 }"


def python(text, **environment):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})


class Tunings(unittest.TestCase):
    def test_wrong_words_are_errors_of_sessions(self):
        done = python("import unisono\ntry:\n  unisono.Session()\nexcept Exception as error:\n  print(error)", UNISONO_TUNING="few=1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "error[U0704]: UNISONO_TUNING has no row `few`\n", ""))


class Values(unittest.TestCase):
    def setUp(self):
        self.session = unisono.Session()
        self.same = self.session.run("fn(x) => x")

    def test_of_the_host(self):
        for value in (None, True, 7, -2**63, 2.5, "", "größer\0", (), (1, (2, "a")), {"x": 1.5, "y": (None,)}):
            self.assertEqual(self.same(value), value)
        self.assertEqual(self.session.run("let k = 3"), None)
        self.assertTrue(math.isnan(self.same(math.nan)))
        self.assertEqual(self.same(-math.inf), -math.inf)

    def test_weak_numbers(self):
        """Numbers take the element type that they meet, as in programs."""
        add = self.session.run("fn(x, y) => x + y")
        for dtype in ("i8", "f16", "bf16", "f64"):
            self.assertEqual(add(unisono.array([1], dtype), 2).type, f"{dtype}[1]")
        self.assertEqual(add(unisono.array([1], "f64"), math.inf).type, "f64[1]")

    def test_arrays(self):
        for numbers, text in (([1, 2], "i32[2]"), ([[1.5], [2]], "f32[2, 1]"), ([True], "bool[1]"), ([], "f32[0]"),
                              ([[], []], "f32[2, 0]")):
            result = self.same(numbers)
            self.assertEqual((result.type, result.tolist()), (text, numbers))
        for dtype in unisono._elements.BY_NAME:
            result = self.same(unisono.array([0, 1], dtype))
            self.assertEqual((result.dtype, result.tolist()), (dtype, [0, 1]))
        self.assertEqual(unisono.array(3.14, "bf16").item(), 3.140625)
        self.assertEqual((len(unisono.array([1, 2])), int(unisono.array(7)), float(unisono.array(7))), (2, 7, 7.0))

    def test_no_values(self):
        for bad, error in ((object(), TypeError), ([1, "a"], TypeError), ([[1], [1, 2]], ValueError),
                           (2**70, OverflowError), ([2**40], OverflowError), (1j, TypeError), ({1: 2}, TypeError),
                           ({"a b": 2}, unisono.MisuseError), ({}, unisono.MisuseError)):
            with self.assertRaises(error):
                self.same(bad)
        with self.assertRaises(TypeError):
            bool(unisono.array([True]))

    def test_buffers(self):
        numbers = array.array("d", [1, 2, 3])
        result = self.same(numbers)
        self.assertEqual((result.type, result.tolist()), ("f64[3]", [1, 2, 3]))
        with self.assertRaises(BufferError):
            numbers.append(4)  # it is borrowed
        del result
        gc.collect()
        self.session.run("0")  # what the last call kept goes
        numbers.append(4)
        self.assertEqual(self.same(memoryview(b"abcdef")[::2]).tolist(), list(b"ace"))

    def test_names(self):
        self.session["width"] = [1.0, 2.0]
        self.session.run("def area(h) = width * h")
        self.assertEqual(self.session["area"](2).tolist(), [2, 4])
        self.assertEqual(self.session.names(), ("area", "width"))
        self.assertEqual(self.session["area"].signature, "area(h)")
        self.assertEqual(self.session.format((1, "a")), "(1, \"a\")")
        with self.assertRaises(KeyError):
            self.session["nowhere"]

    def test_functions_of_the_language(self):
        """They belong to no session, and are called in the one that gave them."""
        self.assertEqual(self.session["sin"](0.0), 0)
        self.assertEqual(self.session["sum"]([1.0, 2.0]).item(), 3)
        self.assertEqual(self.session["linspace"](0, 1, 3).tolist(), [0, 0.5, 1])
        sine, rest = self.session.run("(sin, (f = cos))")
        self.assertEqual((sine(unisono.array(0.0, "f64")).type, rest["f"](0.0)), ("f64", 1))
        y = unisono.Session().run("f64([0.5])")
        self.assertEqual(sine(y).tolist(), [math.sin(0.5)])
        self.assertEqual(unisono.Session().run("fn(f, x) => f(x)")(sine, 0.0), 0)

    def test_values_outlive_sessions(self):
        with unisono.Session("cpu:2") as session:
            f = session.run("fn(x) => 2 * x")
            y = f([1, 2])
        self.assertEqual((y.tolist(), f([3]).tolist()), ([2, 4], [6]))
        with self.assertRaises(unisono.MisuseError):
            session.run("1")


IN_A_POOL = """
import multiprocessing, os, sys
import unisono, unisono.array_api as xp

def work(x):
    return x, x.tolist(), os.getpid()

def compute(x):
    return unisono.Session().run("fn(x) => x + x")(x)

def fail():
    unisono.Session().run("save(\\"x.npy\\", [1])")

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        for x in (unisono.array([1.5, -2.0], "bf16"), unisono.array([[1, 2]], "i64"), xp.asarray([3.0])):
            same, numbers, process = pool.apply_async(work, (x,)).get(120)
            print(type(same) is type(x), same.type, same.tolist() == numbers == x.tolist(), process != os.getpid())
        if sys.argv[1] == "spawn":  # after a fork only the parent has sessions
            print(pool.apply_async(compute, (x,)).get(120).tolist())
            try:
                pool.apply_async(fail).get(120)
            except unisono.FileError as error:
                print(error.messages[0].code)
"""


class Copies(unittest.TestCase):
    """What is copied, and what is sent to another process."""
    def setUp(self):
        self.session = unisono.Session()

    def arrays(self):
        special = [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan]
        for name, dtype in unisono._elements.BY_NAME.items():
            numbers = special if dtype.kind is float else [0, 1] if dtype.kind is bool else [0, 1, 127]
            for nested in (numbers, [numbers, numbers], numbers[1], [], [[], []]):
                yield unisono.array(nested, name)
        yield unisono.array([2**63, 2**64 - 1], "u64")
        yield self.session.run("transpose(reshape(arange(6), (2, 3)))[::-1]")
        yield unisono.Session("cpu:2").run("axis d = devices()\npmap(fn(x) => 2 * x, over=d)(arange(4))")

    def test_arrays_are_pickled(self):
        for x in self.arrays():
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                y = pickle.loads(pickle.dumps(x, protocol))
                self.assertEqual((type(y), y.type, y.shape, y.dtype), (type(x), x.type, x.shape, x.dtype))
                self.assertEqual(y._bytes(), x._bytes())
        f = self.session.run("fn(x) => x + 1")
        self.assertEqual(f(pickle.loads(pickle.dumps(unisono.array([1, 2])))).tolist(), [2, 3])
        tree = {"w": unisono.array([1.0]), "more": (1, [unisono.array(2)])}
        self.assertEqual(repr(pickle.loads(pickle.dumps(tree))), repr(tree))

    def test_what_never_changes_is_its_own_copy(self):
        values = [unisono.array([1, 2]), *(self.session.run(text) for text in ("fn(x) => x", "sin", "f32", "devices()[0]"))]
        for value in values:
            for same in (copy.copy(value), copy.deepcopy(value), copy.deepcopy([value])[0]):
                self.assertIs(same, value)
        gc.collect()
        self.assertEqual(values[1](3), 3)

    def test_what_belongs_to_a_process_is_refused(self):
        engine = unisono.Engine()
        for thing, wrong in ((self.session, "Make another one"), (engine, "Session(engine=engine)"),
                             (self.session.run("fn(x) => x"), "Let the other one make a Session"),
                             (self.session.run("f32"), "Let the other one make a Session")):
            refused = [pickle.dumps, lambda x: pickle.dumps({"x": [x]})]
            if not isinstance(thing, unisono.Value):
                refused += [copy.copy, copy.deepcopy]
            for refuse in refused:
                with self.assertRaises(TypeError) as caught:
                    refuse(thing)
                self.assertIn(wrong, str(caught.exception))
        self.assertEqual(self.session.run("1 + 1"), 2)

    def test_array_api(self):
        x = xp.asarray([1.0, 2.0])
        for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            y[0] = 5.0
            self.assertEqual((y.tolist(), x.tolist(), (y + x).tolist()), ([5, 2], [1, 2], [6, 4]))
        for dtype in (xp.float32, xp.bool):
            for same in (copy.copy(dtype), copy.deepcopy(dtype), pickle.loads(pickle.dumps(dtype))):
                self.assertIs(same, dtype)

    def test_errors_are_pickled(self):
        for text, error in (("1 +", unisono.ParseError), ("save(\"x.npy\", [1])", unisono.FileError)):
            with self.assertRaises(error) as caught:
                self.session.run(text)
            same = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual((type(same), str(same), same.messages, same.summary),
                             (error, str(caught.exception), caught.exception.messages, caught.exception.summary))

    def test_pools(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "in_a_pool.py")
            path.write_text(IN_A_POOL)
            for way in ("spawn", "fork"):
                done = subprocess.run([sys.executable, str(path), way], capture_output=True, text=True, timeout=300)
                self.assertEqual(done.stderr, "")
                sent = "".join(f"True {what} True True\n" for what in ("bf16[2]", "i64[1, 2]", "f32[1]"))
                self.assertEqual(done.stdout, sent + ("[6.0]\nU0655\n" if way == "spawn" else ""))


@with_numpy
class Numpy(unittest.TestCase):
    def setUp(self):
        self.session = unisono.Session()
        self.same = self.session.run("fn(x) => x")

    def test_no_copy(self):
        a = numpy.arange(6.0).reshape(2, 3)
        result = numpy.asarray(self.same(a))
        self.assertEqual(result.ctypes.data, a.ctypes.data)
        self.assertFalse(result.flags.writeable)
        double = self.session.run("fn(x) => x * 2")(a)
        self.assertEqual(numpy.asarray(double).ctypes.data, numpy.asarray(double).ctypes.data)

    def test_memory_is_kept_and_given_back(self):
        class Owner(numpy.ndarray):
            pass
        a = numpy.arange(1000.0).view(Owner)
        gone = weakref.ref(a)
        result = numpy.asarray(self.same(a))
        del a
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertEqual(result[999], 999)
        del result
        self.session.run("0")
        gc.collect()
        self.assertIsNone(gone())

    def test_layouts(self):
        a = numpy.arange(24).reshape(2, 3, 4)
        packed = numpy.zeros(3, dtype=[("a", "i1"), ("b", "f8")])["b"]
        for view in (a.T, a[:, ::-1], a[::2, 1:, ::3], numpy.broadcast_to(a[0], (5, 3, 4)), a[:0], numpy.array(3.5),
                     packed, a.astype("f2"), a > 3):
            result = self.same(view)
            self.assertEqual(result.shape, view.shape)
            self.assertTrue((numpy.asarray(result) == view).all())
        for bad in (a.astype(">i4"), a.astype("c8"), numpy.array(["a"]), numpy.array([None])):
            with self.assertRaises(TypeError):
                self.same(bad)

    def test_read_only(self):
        a = numpy.arange(3.0)
        a.flags.writeable = False
        self.assertEqual(numpy.asarray(self.same(a)).ctypes.data, a.ctypes.data)

    def test_array_protocol(self):
        y = self.same([1, 2])
        self.assertEqual(numpy.asarray(y, dtype="f8").dtype, numpy.float64)
        self.assertTrue(numpy.array(y).flags.writeable)
        self.assertEqual(numpy.add(y, 1).tolist(), [2, 3])

    def test_dlpack(self):
        y = self.same(numpy.arange(3.0))
        z = numpy.from_dlpack(y)
        self.assertEqual(z.tolist(), [0, 1, 2])
        for version in ((1, 0), None):
            capsule = y.__dlpack__(max_version=version)
            del capsule  # nobody took it
        # Without the buffer protocol: what PyTorch is like.
        class Tensor:
            def __init__(self, a, old):
                self.a, self.old = a, old

            def __dlpack__(self, **wishes):
                if self.old and wishes:
                    raise TypeError("this is the older form")
                return self.a.__dlpack__(**wishes)

            def __dlpack_device__(self):
                return self.a.__dlpack_device__()
        a = numpy.arange(4, dtype="i2")
        wishes = {"max_version": (1, 0)}
        try:
            a.__dlpack__(**wishes)
            forms = (False, True)
        except TypeError:
            forms = (True,)
        for old in forms:
            result = self.same(Tensor(a, old))
            self.assertEqual((result.type, numpy.asarray(result).ctypes.data), ("i16[4]", a.ctypes.data))


class Errors(unittest.TestCase):
    def setUp(self):
        self.session = unisono.Session()

    def test_kinds(self):
        for text, error, code in (("1 +", unisono.ParseError, "U0102"), ("foo", unisono.CheckError, "U0201"),
                                  ("assert(1 == 2)", unisono.RunError, "U0550"),
                                  ("save(\"x.npy\", [1])", unisono.FileError, "U0655")):
            with self.assertRaises(error) as caught:
                self.session.run(text, "mine.uni")
            self.assertIsInstance(caught.exception, unisono.Error)
            self.assertEqual(caught.exception.messages[0].code, code)
        self.assertTrue(issubclass(unisono.FileError, OSError))

    def test_messages(self):
        with self.assertRaises(unisono.CheckError) as caught:
            self.session.run("let a = 1\nlet b = zeros(f32[2]) + ones(f32[3])", "mine.uni")
        error = caught.exception
        message = error.messages[0]
        self.assertEqual((message.severity, message.place.file, message.place.line), ("error", "mine.uni", 2))
        self.assertEqual(message.text, error.summary)
        self.assertIn("--> mine.uni:2:", str(error))
        self.assertEqual(self.session.names(), ())

    def test_check_and_warnings(self):
        self.session.check("let x = 1")
        with self.assertRaises(unisono.CheckError):
            self.session.check("x")
        self.session.run("1")
        self.assertEqual(self.session.warnings, ())

    def test_devices(self):
        self.assertEqual(unisono.Engine("cpu:3").device_count, 3)
        with self.assertRaises(unisono.MisuseError):
            unisono.Session("nothing")
        with self.assertRaises(ValueError):
            unisono.Session("cpu", engine=unisono.Engine())


class Limits(unittest.TestCase):
    def setUp(self):
        self.session = unisono.Session()

    def test_limits(self):
        for limit in ({"seconds": 0.05}, {"steps": 1000}):
            with self.assertRaises(unisono.LimitError), self.session.limits(**limit):
                self.session.run(FOREVER)
        self.assertEqual(self.session.run("1 + 1"), 2)
        small = unisono.Session(depth=10, device_bytes=1 << 20)
        with self.assertRaises(unisono.LimitError):
            small.run("def f(n: int) -> int = if n == 0 { 0 } else { f(n - 1) }\nf(20)")

    def test_cancel(self):
        def cancel():
            while not done.is_set():
                self.session.cancel()
                time.sleep(0.02)
        done = threading.Event()
        thread = threading.Thread(target=cancel)
        thread.start()
        try:
            with self.assertRaises(unisono.Cancelled):
                self.session.run(FOREVER)
        finally:
            done.set()
            thread.join()
        self.session.cancel()  # nothing runs, and nothing later is stopped
        self.assertEqual(self.session.run("1 + 1"), 2)

    def test_keyboard_interrupt(self):
        text = f"""
import os, signal, threading, unisono
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell begin without
def interrupt(*ignored):
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
s = unisono.Session(print=interrupt)
for i in range(2):
    try:
        s.run({chr(10).join(["print(0)", FOREVER])!r})
    except KeyboardInterrupt:
        print("interrupted", s.run("1 + 1"))
signal.signal(signal.SIGINT, lambda *ignored: s.cancel())  # a handler of the program's own
print(signal.set_wakeup_fd(-1))
"""
        self.assertEqual(python(text).stdout, "interrupted 2\n" * 2 + "-1\n")

    def test_threads(self):
        f = self.session.run("fn(x) => sum(x * x)")
        results = []

        def work(k):
            for i in range(5):
                results.append(f([float(k), float(i)]).item() == k * k + i * i)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [True] * 40)


class Callbacks(unittest.TestCase):
    def test_print(self):
        lines = []
        unisono.Session(print=lines.append).run("print(\"a\", 1)\nprint(2)")
        self.assertEqual("".join(lines), "a 1\n2\n")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            unisono.Session().run("print(3)")
        self.assertEqual(out.getvalue(), "3\n")

    def test_imports(self):
        session = unisono.Session(imports={"a.uni": "let k = 5"}.__getitem__)
        self.assertEqual(session.run("import \"a.uni\" as a\na.k"), 5)
        with self.assertRaises(unisono.FileError):
            session.run("import \"b.uni\" as b")

    def test_failure(self):
        session = unisono.Session(print=lambda text: 1 / 0)
        with self.assertRaises(unisono.HostError) as caught:
            session.run("print(1)")
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)

    def test_host_functions(self):
        session = unisono.Session()

        @session.function("def double(x: f64[n]) -> f64[n]")
        def double(x):
            return [2 * value for value in x.tolist()]

        @session.function("def split_sum(x: f64[n], k: i64) -> (f64, f64[n])")
        def split_sum(x, k):
            return float(sum(x.tolist())), [value * k for value in x.tolist()]
        self.assertEqual(double(memoryview(array.array("d", [1]))), [2])  # it stays a function of Python's
        self.assertEqual(session.run("double(f64([1, 2]))").tolist(), [2, 4])
        self.assertEqual(session.run("jit(fn(x) => double(x) + 1)(f64([1, 2]))").tolist(), [3, 5])
        self.assertEqual(session.run("vmap(double)(f64([[1, 2], [3, 4]]))").tolist(), [[2, 4], [6, 8]])
        total, parts = session.run("split_sum(f64([1, 2]), 3i64)")
        self.assertEqual((total.item(), parts.tolist()), (3, [3, 6]))

    def test_derivatives_of_host_functions(self):
        session = unisono.Session()
        session.function("def sq(x: f64) -> f64")(lambda x: x * x)
        with self.assertRaises(unisono.CheckError) as caught:
            session.run("grad(fn(x) => sq(x))(3f64)")
        message = caught.exception.messages[0]
        self.assertEqual((message.code, message.text, message.place.column), ("U0609", "`sq` has no derivative", 15))
        self.assertIn("`@custom_jvp(rule) def sq(", message.help)
        session.function("def slope(x: f64) -> f64")(lambda x: 2 * x)
        session.function("@custom_jvp(fn(x, t) => (sq(x), slope(x) * t))\ndef sq(x: f64) -> f64")(lambda x: x * x)
        self.assertEqual(session.run("grad(fn(x) => 5.0 * sq(x))(3f64)").item(), 30)
        self.assertEqual(session.run("vmap(grad(sq))(f64([1, 2]))").tolist(), [2, 4])
        session.function("def pull(x: f64[n], g: f64) -> f64[n]")(lambda x, g: [g * value for value in x.tolist()])
        session.function("@custom_vjp(fn(x, g) => (half(x), pull(x, g)))\ndef half(x: f64[n]) -> f64")(
            lambda x: sum(value * value for value in x.tolist()) / 2)
        self.assertEqual(session.run("grad(half)(f64([1, 2]))").tolist(), [1, 2])

    def test_host_functions_that_fail(self):
        session = unisono.Session()
        session.function("def wrong(x: f64[n]) -> f64[n]")(lambda x: [1.0])
        session.function("def fails(x: f64) -> f64")(lambda x: {}["missing"])
        with self.assertRaises(unisono.HostError) as caught:
            session.run("wrong(f64([1, 2]))")
        self.assertIn("f64[2] was declared, and f64[1] came", caught.exception.summary)
        with self.assertRaises(unisono.HostError) as caught:
            session.run("fails(1f64)")
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        with self.assertRaises(unisono.Error):
            session.function("def (")(len)
        self.assertEqual(session.run("1 + 1"), 2)

    def test_sessions_go(self):
        session = unisono.Session(print=lambda text: None)
        gone = weakref.ref(session._host)
        session.run("print(1)")
        del session
        gc.collect()
        self.assertIsNone(gone())


class ArrayApi(unittest.TestCase):
    def test_operators(self):
        x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
        for result, numbers in ((x + 1, [[2, 3], [4, 5]]), (1 - x, [[0, -1], [-2, -3]]), (x @ x, [[7, 10], [15, 22]]),
                                (-x, [[-1, -2], [-3, -4]]), (x.T, [[1, 3], [2, 4]]),
                                (x > 2, [[False, False], [True, True]]), (2 ** x, [[2, 4], [8, 16]])):
            self.assertEqual(result.tolist(), numbers)
        self.assertEqual((x + 1).dtype, xp.float32)
        for bad in (lambda: x + True, lambda: xp.asarray([1]) + 1.5, lambda: xp.sin(xp.asarray([1])),
                    lambda: xp.asarray([1], dtype=xp.uint64) + xp.asarray([1]), lambda: x + "a"):
            with self.assertRaises(TypeError):
                bad()

    def test_indexing(self):
        x = xp.reshape(xp.arange(6), (2, 3))
        for key, numbers in ((0, [0, 1, 2]), ((-1, -1), 5), (slice(None, None, -1), [[3, 4, 5], [0, 1, 2]]),
                             ((..., 1), [1, 4]), ((None, 1), [[3, 4, 5]]), (x > 2, [3, 4, 5]),
                             ((slice(0, 9), slice(1, 1)), [[], []]), (xp.asarray([1, 0, 1]), None)):
            if numbers is not None:
                self.assertEqual(x[key].tolist(), numbers)
        self.assertEqual((x[True].shape, x[xp.asarray(False)].shape), ((1, 2, 3), (0, 2, 3)))
        self.assertEqual(((x > 2) & (x < 4)).tolist(), [[False] * 3, [True, False, False]])
        for bad in (2, (0, 0, 0), (..., ...)):
            with self.assertRaises(IndexError):
                x[bad]
        y = xp.asarray(x, copy=True)
        y[0, 1] = 9
        y[1, ::2] = xp.asarray([7, 8])
        y[y == 4] = 0
        y += 1
        self.assertEqual((y.tolist(), x.tolist()), ([[1, 10, 3], [8, 1, 9]], [[0, 1, 2], [3, 4, 5]]))
        with self.assertRaises(TypeError):
            y[0] = 1.5

    def test_some_functions(self):
        x = xp.asarray([3.0, 1.0, 2.0])
        self.assertEqual(xp.sort(x).tolist(), [1, 2, 3])
        self.assertAlmostEqual(float(xp.std(x)), math.sqrt(2 / 3), places=6)
        self.assertEqual(xp.unique_counts(xp.asarray([2, 1, 2])).counts.tolist(), [1, 2])
        self.assertEqual(xp.nextafter(xp.asarray(1.0, dtype=xp.float64), xp.asarray(2.0, dtype=xp.float64)).item(),
                         math.nextafter(1.0, 2.0))
        self.assertEqual(xp.concat((x, xp.zeros((2,)))).shape, (5,))
        a = xp.asarray([[4.0, 1.0], [1.0, 3.0]])
        self.assertTrue(xp.all(xp.abs(xp.linalg.inv(a) @ a - xp.eye(2)) < 1e-6))
        with self.assertRaises(ValueError):
            xp.linalg.inv(xp.zeros((2, 2)))
        with self.assertRaises(ValueError):
            xp.linalg.cholesky(-a)

    def test_matrices(self):
        """Batches, none of them, and sides that are not equal; NumPy's shapes."""
        near = lambda x, y: self.assertTrue(xp.all(xp.abs(x - y) < 1e-5), (x, y))
        a = xp.reshape(xp.asarray([2.0, 1.0, 1.0, 3.0, 1.0, 0.0, 4.0, 2.0]), (2, 2, 2))
        near(a @ xp.linalg.solve(a, xp.ones((2, 2, 3))), xp.ones((2, 2, 3)))
        near(a @ xp.linalg.inv(a), xp.broadcast_to(xp.eye(2), (2, 2, 2)))
        near(xp.linalg.solve(a, xp.asarray([3.0, 5.0])), xp.asarray([[0.8, 1.4], [3.0, -3.5]]))
        near(xp.linalg.det(a), xp.asarray([5.0, 2.0]))
        with self.assertRaises(ValueError):  # one of them is singular
            xp.linalg.inv(xp.stack([xp.eye(2), xp.ones((2, 2))]))
        wide = xp.reshape(xp.arange(6.0), (2, 3))
        for x in (wide, wide.T, xp.zeros((0, 3, 2)), xp.zeros((3, 0))):
            m, n = x.shape[-2:]
            full, few = xp.linalg.svd(x), xp.linalg.svd(x, full_matrices=False)
            self.assertEqual([y.shape[-2:] for y in (full.U, full.Vh)], [(m, m), (n, n)])
            near(few.U * few.S[..., None, :] @ few.Vh, x)
            for mode, k in (("reduced", min(m, n)), ("complete", m)):
                q, r = xp.linalg.qr(x, mode=mode)
                self.assertEqual([y.shape[-2:] for y in (q, r)], [(m, k), (k, n)])
                near(q @ r, x)
            near(xp.linalg.pinv(x), xp.matrix_transpose(xp.linalg.pinv(xp.matrix_transpose(x))))
        self.assertEqual(xp.linalg.matrix_rank(wide, rtol=0.5).item(), 1)
        self.assertEqual(xp.linalg.matrix_norm(wide, ord="nuc", keepdims=True).shape, (1, 1))
        self.assertEqual(xp.repeat(xp.zeros((0,)), xp.zeros((0,), dtype=xp.int8)).shape, (0,))


class Package(unittest.TestCase):
    def test_without_numpy(self):
        done = python("import sys; sys.modules['numpy'] = None\nimport unisono\ns = unisono.Session()\n"
                      "s.function('def f(x: f64[2]) -> f64[2]')(lambda x: [2 * v for v in x])\n"
                      "print(s.run('f(f64([1, 2]))').tolist(), 'numpy' in [m for m in sys.modules if sys.modules[m]])")
        self.assertEqual((done.stdout, done.stderr), ("[2.0, 4.0] False\n", ""))

    def test_simulated_devices(self):
        """At the end of Python nothing is given back, of which a simulated GPU says nothing unless it is asked."""
        text = ("import unisono\nfirst = unisono.Session('sim:2')\nkept = first.run('sum(arange(10))')\nprint(kept)\n"
                "try:\n    unisono.Session('sim:3')\nexcept unisono.DeviceError as error:\n    print(error)\n"
                "del first, kept\nprint(unisono.Engine('sim:3').device_count)\nlast = unisono.Session('sim:1')\nlast.run('let x = ones(8)')\n")
        done = python(text, SIMCUDA="")
        self.assertEqual(done.stderr, "")
        self.assertRegex(done.stdout, r"^unisono.Array\(45, i32\)\nerror\[U0506\]: this process uses other simulated GPUs, "
                         r"which have to be closed before there are those of `devices = 3`\n3\n$")
        self.assertIn("simcuda: leak: ", python(text, SIMCUDA="leaks=report").stderr)

    def test_examples(self):
        for path in sorted((ROOT / "examples/python").glob("*.py")):
            if numpy or "numpy" not in path.read_text():
                done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300, cwd=ROOT)
                expected = path.with_suffix(".expected").read_text()
                self.assertEqual((done.stderr, done.stdout), ("", expected), path.name)

    @with_numpy
    def test_documentation(self):
        """The blocks of a page are one program; what a block prints is shown in the next ```output block."""
        for page in (ROOT / "docs/python.md", ROOT / "bindings/python/README.md"):
            blocks = re.findall(r"^```(python|output)\n(.*?)^```", page.read_text(), re.M | re.S)
            names, printed = {"__name__": "page"}, None
            for kind, text in blocks:
                if kind == "output":
                    self.assertEqual(printed.rstrip(), text.rstrip(), page.name)
                    printed = ""
                    continue
                self.assertFalse(printed, f"{page.name}: this is printed and not shown")
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(text, page.name, "exec"), names)
                printed = out.getvalue()
            self.assertFalse(printed, page.name)


if __name__ == "__main__":
    del sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
