#pragma once
// Programs for the sweeps of faults: each has a part that is run once and one
// that is run again and again, with something failing.

namespace unisono::host::testing {

struct FaultProgram {
  const char* name;
  const char* peers;  // how simulated GPUs reach each other
  const char* definitions;
  const char* body;
};

/// For three devices.
inline constexpr FaultProgram fault_programs[] = {
    {"elementwise", "all", "let f = jit(fn(x) => sqrt(x) * 2.0 + sin(x))\n",
     "let y = f(arange(5000, f32))\nprint(y[0], y[4999])\n"},
    {"reduction", "all",
     "let f = jit(fn(x) => (sum(x), max(x, axis=0), mean(x)))\n",
     "let (a, b, c) = f(reshape(arange(9000), (90, 100)))\n"
     "print(a, b[7], c)\n"},
    {"scan", "all", "let f = jit(fn(x) => cumsum(x))\n",
     "print(f(arange(5000, f32))[4999])\n"},
    {"sort", "all", "let f = jit(fn(x) => (sort(x), argsort(x)))\n",
     "let (a, b) = f(sin(arange(3000, f32)))\nprint(a[7], b[7])\n"},
    {"matmul", "all", "let f = jit(fn(a, b) => a @ b + 1.0)\n",
     "let c = f(ones(f32[70, 90]), ones(f32[90, 60]))\nprint(c[69, 59])\n"},
    {"psum", "none",
     "axis dev = devices()\n"
     "let pair = ((0, 1), (2,))\n"
     "let f = pmap(fn(x) => psum(x * x, dev) + psum(x, dev, groups=pair), "
     "over=dev)\n",
     "print(f(reshape(arange(3000, f32), (3, 1000)))[0, 999])\n"},
    {"ppermute", "ring",
     "axis dev = devices()\n"
     "let f = pmap(fn(x) => ppermute(x, dev, shift=1) - x, over=dev)\n",
     "print(f(reshape(arange(12), (3, 4))))\n"},
    {"nested map", "none",
     "axis rows, cols = mesh(3, 1)\n"
     "def g(x) = (psum(x, (rows, cols)), all_gather(x, rows))\n"
     "let f = pmap(pmap(g, over=cols), over=rows)\n",
     "let (a, b) = f(reshape(arange(6), (3, 2, 1)))\nprint(a, b)\n"},
    {"loop", "all",
     "@jit\n"
     "def f(x: f32[n]) -> (f32[n], i32) {\n"
     "  var y = x\n"
     "  var steps = 0\n"
     "  while sum(y) < 1000.0 {\n"
     "    y = y * 1.5\n"
     "    steps += 1\n"
     "  }\n"
     "  (y, steps)\n"
     "}\n",
     "let (y, steps) = f(ones(f32[100]))\nprint(y[3], steps)\n"},
    // Turns that are captured, as the sweep has its thresholds.
    {"turns", "ring",
     "axis dev = devices()\n"
     "@pmap(over=dev)\n"
     "def f(x) {\n"
     "  var y = x\n"
     "  for _ in range(22) {\n"
     "    y = ppermute(y, dev, shift=1) * 0.5 + psum(y, dev) * 0.125\n"
     "  }\n"
     "  y\n"
     "}\n",
     "print(f(reshape(arange(12, f32), (3, 4)))[1])\n"},
    {"runs under way", "all",
     "let f = jit(fn(x) => sqrt(abs(x)) * 2.0 + sin(x))\n"
     "let g = jit(fn(x) => (sum(x), cumsum(x)))\n",
     "var y = f(arange(5000, f32))\n"
     "for _ in range(4) { y = f(y) }\n"
     "let (a, b) = g(y)\nlet c = f(b)\n"
     "print(a, c[4999])\n"},
    {"factor", "all",
     "import linalg\n"
     "axis dev = devices()\n"
     "let f = pmap(fn(x) => linalg.cholesky(x + 4.0 * eye(3)), over=dev)\n",
     "print(f(ones(f32[3, 3, 3]))[2])\n"},
    {"file", "none",
     "axis dev = devices()\n"
     "let f = pmap(fn(x) => x + 1.0, in_axes=split(0), out_axes=split(0), "
     "over=dev)\n",
     "save(\"array.npy\", f(ones(f32[6, 500])))\n"
     "var x = load(\"array.npy\")\n"
     "for _ in range(3) { x = f(x) }\n"
     "print(sum(x), sharding(x))\n"},
};

}  // namespace unisono::host::testing
