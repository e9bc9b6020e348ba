// Every row of ops.def for every element type it admits: C++ and LLVM give the
// same bits, on vectors with all the host has and on scalars with the least.
#include "jit/scalar/element.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "jit/scalar/element_instructions.h"
#include "jit/scalar/element_rows.h"
#include "tests/unit/jit/element/element_jit.h"

namespace unisono::jit {
namespace {

/// Calls must not be instrumented: UBSan reads before JIT code.
__attribute__((no_sanitize("function"))) void run(CompiledLoop loop, void* out,
                                                  uint8_t* faults,
                                                  const void* const* in,
                                                  int64_t n) {
  loop(out, faults, in, n);
}

using Bytes = std::vector<uint8_t>;

template <DType D>
using Storage = typename StorageOf<D>::type;
template <DType D>
using Compute = typename ComputeOf<D>::type;

/// Edges of the type, small numbers, and for floats what lies around the places
/// where functions change their formulas.
template <class T>
std::vector<T> special_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> values = {T(0), T(1), T(2), T(3), T(7), L::max(), L::min()};
  if constexpr (std::is_floating_point_v<T>) {
    values.insert(
        values.end(),
        {T(-0.0),      L::infinity(), L::quiet_NaN(), L::denorm_min(), L::min(),
         L::epsilon(), T(0.25),       T(0.5),         T(0.92),         T(1.5),
         T(2.5),       T(8),          T(10.06),       T(88.5),         T(104),
         T(710),       T(131073),     T(1e20),        T(3e38),         T(6e-8),
         T(65504),     T(65520),      T(1e-4)});
    for (size_t i = 0, n = values.size(); i < n; ++i)
      values.push_back(-values[i]);
  } else {
    values.insert(values.end(), {T(L::max() - 1), T(L::min() + 1), T(-1), T(-2),
                                 T(sizeof(T) * 8), T(sizeof(T) * 8 - 1)});
  }
  return values;
}
template <>
std::vector<bool> special_values<bool>() {
  return {false, true};
}

template <DType D>
Storage<D> stored(Compute<D> value) {
  return Storage<D>(value);
}

/// `n` elements: pairs of special values for operand `k`, then random ones.
template <DType D>
Bytes operand_bytes(int k, int64_t n, std::mt19937_64& random) {
  const std::vector<Compute<D>> special = special_values<Compute<D>>();
  const int64_t s = static_cast<int64_t>(special.size());
  Bytes bytes(n * sizeof(Storage<D>));
  auto* elements = reinterpret_cast<Storage<D>*>(bytes.data());
  std::uniform_real_distribution<double> moderate(-20, 20);
  for (int64_t i = 0; i < n; ++i) {
    if (i < s * s) {
      elements[i] = stored<D>(special[k == 0 ? i % s : i / s % s]);
    } else if (D == DType::Bool) {
      elements[i] = stored<D>(static_cast<Compute<D>>(random() & 1));
    } else if (i % 2 == 0) {
      const uint64_t bits = random();
      std::memcpy(&elements[i], &bits, sizeof(Storage<D>));
    } else {
      const double v = std::abs(moderate(random)) * (i % 4 == 1 ? 1 : -1);
      if constexpr (std::is_integral_v<Compute<D>>)
        elements[i] = stored<D>(static_cast<Compute<D>>(std::lrint(v)));
      else
        elements[i] = stored<D>(static_cast<Compute<D>>(v));
    }
  }
  return bytes;
}

Bytes operand_bytes(DType dtype, int k, int64_t n, std::mt19937_64& random) {
  return with_dtype(dtype,
                    [&]<DType D>() { return operand_bytes<D>(k, n, random); });
}

template <DType D>
std::string show(const uint8_t* element) {
  Storage<D> value;
  std::memcpy(&value, element, sizeof value);
  char text[64];
  std::snprintf(text, sizeof text, "%.17g",
                static_cast<double>(static_cast<Compute<D>>(value)));
  return text;
}
std::string show(DType dtype, const uint8_t* element) {
  return with_dtype(dtype, [&]<DType D>() { return show<D>(element); });
}

bool is_nan(DType dtype, const uint8_t* element) {
  return with_dtype(dtype, [&]<DType D>() {
    Storage<D> value;
    std::memcpy(&value, element, sizeof value);
    return std::isnan(static_cast<double>(static_cast<Compute<D>>(value)));
  });
}

/// Runs both loops and demands equal elements (any NaN equals any other) and
/// equal faults.
void check_equal(const ElementJit::Loop& row, CompiledLoop compiled,
                 ElementLoop reference, std::mt19937_64& random) {
  constexpr int64_t n = 4096;
  std::vector<Bytes> operands;
  std::vector<const void*> in;
  for (size_t k = 0; k < row.operands.size(); ++k) {
    operands.push_back(
        operand_bytes(row.operands[k], static_cast<int>(k), n, random));
  }
  for (const Bytes& bytes : operands) in.push_back(bytes.data());
  const int64_t size = byte_size(row.result);
  Bytes expected(n * size), actual(n * size), faults(n);
  const int64_t ones[3] = {1, 1, 1};
  reference(expected.data(), in.data(), ones, n, nullptr);
  run(compiled, actual.data(), faults.data(), in.data(), n);
  int mismatches = 0;
  for (int64_t i = 0; i < n && mismatches < 3; ++i) {
    std::vector<const void*> element;
    std::string shown;
    for (size_t k = 0; k < operands.size(); ++k) {
      const uint8_t* place =
          operands[k].data() + i * byte_size(row.operands[k]);
      element.push_back(place);
      shown += show(row.operands[k], place) + " ";
    }
    ElementError error;
    Bytes alone(size);
    reference(alone.data(), element.data(), ones, 1, &error);
    const uint8_t* e = &expected[i * size];
    const uint8_t* a = &actual[i * size];
    const bool same = std::memcmp(e, a, size) == 0 ||
                      (is_floating(row.result) && is_nan(row.result, e) &&
                       is_nan(row.result, a));
    const bool same_fault = (error.fault != Fault::none) == (faults[i] != 0);
    const bool same_alone =
        std::memcmp(e, alone.data(), size) == 0 ||
        (is_floating(row.result) && is_nan(row.result, alone.data()));
    if (same && same_fault && same_alone) continue;
    ++mismatches;
    INFO(row.name, " of ", shown, ": expected ", show(row.result, e), ", got ",
         show(row.result, a));
    CHECK(same);
    CHECK(same_fault);
    CHECK(same_alone);
  }
  CHECK_MESSAGE(mismatches == 0, row.name);
}

constexpr ir::Op map_operations[] = {
#define UNARY(name, ...) ir::Op::name,
#define BINARY(name, ...) ir::Op::name,
#define COMPARE(name, ...) ir::Op::name,
#define PREDICATE(name, ...) ir::Op::name,
#include "jit/ir/ops.def"
    ir::Op::select,
    ir::Op::fma,
};

unsigned full_lanes(DType dtype) {
  return static_cast<unsigned>(64 / byte_size(dtype));
}

struct Case {
  ElementJit::Loop row;
  ElementLoop reference;
};

/// One case per operation that admits `dtype`.
std::vector<Case> row_cases(const ElementLoops& loops, DType dtype,
                            bool vectors) {
  std::vector<Case> cases;
  for (ir::Op op : map_operations) {
    ElementLoop reference = loops.row(op, dtype);
    if (reference == nullptr) continue;
    Case c;
    c.reference = reference;
    int count = 2;
    bool gives_bool = false;
    if (op == ir::Op::select || op == ir::Op::fma) {
      count = 3;
    } else {
      with_row(op, [&]<class Row>() {
        count = Row::operands;
        gives_bool = Row::gives_bool;
      });
    }
    c.row.operands.assign(count, dtype);
    if (op == ir::Op::select) c.row.operands[0] = DType::Bool;
    c.row.result = gives_bool ? DType::Bool : dtype;
    c.row.lanes = vectors ? full_lanes(dtype) : 0;
    c.row.name = "op" + std::to_string(static_cast<int>(op)) + "_" +
                 std::string(name(dtype));
    c.row.emit = [op, dtype](EmitContext& context,
                             llvm::ArrayRef<llvm::Value*> x) {
      return emit_element(context, op, dtype, x);
    };
    cases.push_back(c);
  }
  return cases;
}

std::vector<Case> cast_cases(const ElementLoops& loops, DType from,
                             bool vectors) {
  std::vector<Case> cases;
  for (DType to : all_dtypes) {
    ElementJit::Loop row{
        "cast_" + std::string(name(from)) + "_" + std::string(name(to)),
        {from},
        to,
        vectors ? 16u : 0u,
        [from, to](EmitContext& context, llvm::ArrayRef<llvm::Value*> x) {
          return emit_cast(context, from, to, x[0]);
        }};
    cases.push_back({row, loops.cast(from, to)});
  }
  return cases;
}

void check_cases(ElementJit& jit, const std::vector<Case>& cases,
                 std::mt19937_64& random) {
  std::vector<ElementJit::Loop> loops;
  for (const Case& c : cases) loops.push_back(c.row);
  jit.add(loops);
  for (const Case& c : cases)
    check_equal(c.row, jit[c.row.name], c.reference, random);
}

void check_all(const std::string& cpu, const ElementLoops& loops,
               bool vectors) {
  ElementJit jit(cpu);
  std::mt19937_64 random(20);
  for (DType dtype : all_dtypes) {
    check_cases(jit, row_cases(loops, dtype, vectors), random);
    check_cases(jit, cast_cases(loops, dtype, vectors), random);
  }
}

TEST_CASE("elements: vectors for the host") {
  check_all("", {element_loop, cast_loop, element_step, cast_step}, true);
}
TEST_CASE("elements: scalars for the least machine") {
  check_all("x86-64", baseline_loops, false);
}
TEST_CASE("elements: vectors without AVX-512") {
  if (__builtin_cpu_supports("avx2"))
    check_all("x86-64-v3", {element_loop, cast_loop, element_step, cast_step},
              true);
}

TEST_CASE("elements: rows of a table for vectors of any width") {
  std::mt19937_64 random(22);
  for (const bool has_instruction : {true, false}) {
    ElementJit jit("");
    if (!has_instruction) jit.row_lanes = 0;
    std::vector<Case> cases;
    for (const unsigned lanes : {0u, 2u, 4u, 8u, 16u, 32u}) {
      Case c;
      c.reference = element_loop(ir::Op::erf, DType::F32);
      c.row = {"erf_" + std::to_string(lanes),
               {DType::F32},
               DType::F32,
               lanes,
               [](EmitContext& context, llvm::ArrayRef<llvm::Value*> x) {
                 return emit_element(context, ir::Op::erf, DType::F32, x);
               }};
      cases.push_back(c);
    }
    check_cases(jit, cases, random);
  }
}

}  // namespace
}  // namespace unisono::jit
