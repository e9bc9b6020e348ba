// Integer elements against 128-bit arithmetic: exhaustively for pairs of 8-bit
// integers, on edges and random operands for the others.
#include <doctest/doctest.h>

#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "jit/scalar/element.h"

namespace unisono::jit {
namespace {

using Wide = __int128;

template <DType D>
using Integer = typename StorageOf<D>::type;

template <class T>
struct Outcome {
  T value;
  Fault fault = Fault::none;
};

template <class T>
T wrap(Wide value) {
  return static_cast<T>(static_cast<unsigned __int128>(value));
}

Wide floor_quotient(Wide x, Wide y) {
  const Wide q = x / y;
  return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

/// From the most significant bit of the exponent down.
template <class T>
T power(T x, T y) {
  unsigned __int128 result = 1;
  for (int bit = static_cast<int>(sizeof(T) * 8) - 1; bit >= 0; --bit) {
    result *= result;
    if (static_cast<std::make_unsigned_t<T>>(y) >> bit & 1)
      result *= static_cast<unsigned __int128>(static_cast<Wide>(x));
  }
  return static_cast<T>(result);
}

/// What a row gives for operands a and b, whose values are x and y.
template <class T>
struct Row {
  ir::Op op;
  Outcome<T> (*expected)(T a, T b, Wide x, Wide y);
};

template <class T>
std::vector<Row<T>> rows() {
  constexpr Fault by_zero = Fault::integer_division_by_zero;
  constexpr Wide width = sizeof(T) * 8;
#define ROW(name, ...)                                                    \
  Row<T> {                                                                \
    ir::Op::name,                                                         \
        []([[maybe_unused]] T a, [[maybe_unused]] T b,                    \
           [[maybe_unused]] Wide x,                                       \
           [[maybe_unused]] Wide y) -> Outcome<T> { return __VA_ARGS__; } \
  }
  return {
      ROW(add, {wrap<T>(x + y)}),
      ROW(sub, {wrap<T>(x - y)}),
      ROW(mul, {static_cast<T>(static_cast<unsigned __int128>(x) *
                               static_cast<unsigned __int128>(y))}),
      ROW(floor_div, y == 0 ? Outcome<T>{0, by_zero}
                            : Outcome<T>{wrap<T>(floor_quotient(x, y))}),
      ROW(mod, y == 0 ? Outcome<T>{0, by_zero}
                      : Outcome<T>{wrap<T>(x - floor_quotient(x, y) * y)}),
      ROW(pow, y < 0 ? Outcome<T>{0, Fault::negative_exponent}
                     : Outcome<T>{power(a, b)}),
      ROW(maximum, {x > y ? a : b}),
      ROW(minimum, {x < y ? a : b}),
      ROW(bit_and, {wrap<T>(x & y)}),
      ROW(bit_or, {wrap<T>(x | y)}),
      ROW(bit_xor, {wrap<T>(x ^ y)}),
      ROW(shift_left,
          {y >= 0 && y < width
               ? static_cast<T>(static_cast<unsigned __int128>(x) << y)
               : T(0)}),
      ROW(shift_right, {wrap<T>(y >= 0 && y < width ? x >> y
                                : x < 0             ? -1
                                                    : 0)}),
      ROW(neg, {wrap<T>(-x)}),
      ROW(abs, {wrap<T>(x < 0 ? -x : x)}),
      ROW(sign, {wrap<T>(x > 0   ? 1
                         : x < 0 ? -1
                                 : 0)}),
      ROW(bit_not, {wrap<T>(~x)}),
      ROW(eq, {T(x == y)}),
      ROW(ne, {T(x != y)}),
      ROW(lt, {T(x < y)}),
      ROW(le, {T(x <= y)}),
      ROW(gt, {T(x > y)}),
      ROW(ge, {T(x >= y)}),
  };
#undef ROW
}

constexpr bool gives_bool(ir::Op op) {
  return op >= ir::Op::eq && op <= ir::Op::ge;
}

template <DType D>
std::vector<Integer<D>> operands() {
  using T = Integer<D>;
  using L = std::numeric_limits<T>;
  std::vector<T> values;
  if constexpr (sizeof(T) == 1) {
    for (int i = 0; i < 256; ++i) values.push_back(static_cast<T>(i));
  } else {
    std::mt19937_64 random(5);
    for (int i = -9; i <= 70; ++i) values.push_back(static_cast<T>(i));
    for (int i = 0; i < 4; ++i) {
      values.push_back(static_cast<T>(L::max() - i));
      values.push_back(static_cast<T>(L::min() + i));
    }
    for (int i = 0; i < 40; ++i) values.push_back(static_cast<T>(random()));
  }
  return values;
}

/// One result; as many bytes as the operand, even for a bool.
template <DType D>
Outcome<Integer<D>> actual(ir::Op op, Integer<D> x, Integer<D> y) {
  const void* in[] = {&x, &y};
  const int64_t stride[] = {1, 1};
  ElementError error;
  if (gives_bool(op)) {
    uint8_t flag;
    element_loop(op, D)(&flag, in, stride, 1, &error);
    return {static_cast<Integer<D>>(flag), error.fault};
  }
  Integer<D> value;
  element_loop(op, D)(&value, in, stride, 1, &error);
  if (error.fault != Fault::none) CHECK(error.value == static_cast<int64_t>(y));
  return {value, error.fault};
}

template <DType D>
void check_type() {
  const std::vector<Integer<D>> values = operands<D>();
  for (const auto& [op, expected] : rows<Integer<D>>()) {
    int wrong = 0;
    for (Integer<D> x : values) {
      for (Integer<D> y : values) {
        const auto e = expected(x, y, x, y), a = actual<D>(op, x, y);
        if (a.value == e.value && a.fault == e.fault) continue;
        if (++wrong > 3) continue;
        INFO(static_cast<int>(op), ": ", +x, ", ", +y);
        CHECK(+a.value == +e.value);
        CHECK(static_cast<int>(a.fault) == static_cast<int>(e.fault));
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("integers: every row against 128 bits") {
  check_type<DType::I8>();
  check_type<DType::U8>();
  check_type<DType::I16>();
  check_type<DType::U16>();
  check_type<DType::I32>();
  check_type<DType::U32>();
  check_type<DType::I64>();
  check_type<DType::U64>();
}

TEST_CASE("integers: the first fault is kept, its results are 0") {
  const int32_t x[] = {7, -7, 9, 1}, y[] = {2, 0, -4, 0};
  int32_t out[4];
  const void* in[] = {x, y};
  const int64_t stride[] = {1, 1};
  ElementError error;
  element_loop(ir::Op::floor_div, DType::I32)(out, in, stride, 4, &error);
  CHECK(out[0] == 3);
  CHECK(out[1] == 0);
  CHECK(out[2] == -3);
  CHECK(out[3] == 0);
  CHECK(error.fault == Fault::integer_division_by_zero);
}

TEST_CASE("elements: a stride of 0 repeats an operand, others step") {
  std::vector<float> x(300), out(300);
  for (int i = 0; i < 300; ++i) x[i] = static_cast<float>(i);
  const float two = 2;
  const void* in[] = {x.data(), &two};
  const int64_t stride[] = {1, 0};
  element_loop(ir::Op::mul, DType::F32)(out.data(), in, stride, 300, nullptr);
  for (int i = 0; i < 300; ++i) CHECK(out[i] == 2 * x[i]);
  const int64_t backwards[] = {-1, 0};
  const void* from_end[] = {x.data() + 299, &two};
  element_loop(ir::Op::mul, DType::F32)(out.data(), from_end, backwards, 300,
                                        nullptr);
  for (int i = 0; i < 300; ++i) CHECK(out[i] == 2 * x[299 - i]);
}

}  // namespace
}  // namespace unisono::jit
