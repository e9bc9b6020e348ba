// What a map compiles, and when: the second call with the same types compiles
// nothing.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/lang/counting_host.h"

namespace unisono::lang {
namespace {

/// It compiles nothing but maps.
struct Host : CountingHost {
  explicit Host(int devices) : CountingHost(devices, INT64_MAX) {}
};

}  // namespace

TEST_CASE("a map is compiled once for the same types") {
  Host host(3);
  CHECK(host.compiled(R"(
    let g = pmap(fn(x, k) => x * k + 1.0, in_axes=(0, none))
    var x = ones(f32[6, 2])
    for i in range(20) { x = g(x, sum(x)) }
  )") == 1);
}

TEST_CASE("another shape, element type or int is compiled again") {
  Host host(3);
  CHECK(host.compiled(R"(
    def f(x, *, n: int = 1) = x * n
    let g = pmap(f)
    let a = (g(ones(f32[3])), g(ones(f32[6])), g(ones(f64[3])))
    let b = (g(ones(f32[3])), g(ones(f32[6])), g(ones(f64[3])))
    let c = (g(ones(f32[3]), n=1), g(ones(f32[3]), n=2), g(ones(f32[3]), n=2))
  )") == 4);  // n=1 is what is compiled for the default
}

TEST_CASE("a captured array is a hidden argument") {
  Host host(2);
  CHECK(host.compiled(R"(
    var w = arange(4, f32)
    let g = pmap(fn(x) => x + sum(w))
    var y = zeros(f32[2])
    for i in range(10) {
      y = g(y)
      w = w * 0.5
    }
    print(y)
  )") == 1);
  CHECK(host.printed.find("11.98828") != std::string::npos);
}

TEST_CASE("a captured host value is part of the code") {
  Host host(2);
  CHECK(host.compiled(R"(
    var h = fn(x) => x + 1.0
    let g = pmap(fn(x) => h(x))
    let x = ones(f32[2])
    let a = (g(x), g(x))
    h = fn(x) => x + 2.0
    let b = (g(x), g(x))
  )") == 2);
}

TEST_CASE("a map made again from the same function finds its code") {
  Host host(2);
  CHECK(host.compiled(R"(
    def f(x) = 2.0 * x
    axis dev = devices()
    var x = ones(f32[4])
    for i in range(5) { x = pmap(f, over=dev)(x) }
    for i in range(5) { x = pmap(f)(x) }
  )") == 1);
}

TEST_CASE("jit compiles once, for one device") {
  Host host(4);
  CHECK(host.compiled(R"(
    let g = jit(fn(x, y) => exp(x) * y)
    let x = ones(f32[8])
    let a = (g(x, x), g(pmap(fn(v) => v)(x), x), g(x, x))
  )") == 2);
}

TEST_CASE("code that is no longer needed goes: many kinds of arguments") {
  Host host(2);
  CHECK(host.compiled(R"(
    def f(x, *, n: int) = x + n
    let g = pmap(f)
    let x = ones(i32[2])
    for n in unrolled(50) { g(x, n=n) }
    for n in unrolled(50) { g(x, n=n) }
  )") >= 50);
}

}  // namespace unisono::lang
