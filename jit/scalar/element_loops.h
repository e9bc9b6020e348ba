// The loops of element.h and the steps of step.h for one instruction set.
// Included once by each of element_baseline.cpp and element_avx2.cpp, which
// name the set by UNISONO_INSTRUCTIONS: everything that is instantiated here,
// scalar.h included, lives in an inline namespace of that name, so that the
// linker cannot take one set's functions for the other's.
#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "jit/scalar/element.h"
#include "jit/scalar/element_rows.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS {
namespace {

using scalar::Scalar;

template <DType D>
using Storage = typename StorageOf<D>::type;
template <DType D>
using Compute = typename ComputeOf<D>::type;

/// One stored element as a value to compute with, and back.
template <DType D>
Compute<D> read(Storage<D> stored) {
  if constexpr (D == DType::Bool)
    return stored != 0;
  else if constexpr (D == DType::F16)
    return scalar::float_of_half(Scalar<uint16_t>(stored.bits)).value();
  else if constexpr (D == DType::BF16)
    return scalar::float_of_bfloat(Scalar<uint16_t>(stored.bits)).value();
  else
    return stored;
}
template <DType D>
Storage<D> write(Compute<D> value) {
  if constexpr (D == DType::F16) {
    Half half;
    half.bits = scalar::half_of_float(Scalar<float>(value)).value();
    return half;
  } else if constexpr (D == DType::BF16) {
    BFloat16 half;
    half.bits = scalar::bfloat_of_float(Scalar<float>(value)).value();
    return half;
  } else {
    return value;
  }
}

/// The element in a register's low bytes.
template <DType D>
Storage<D> load(uint64_t in) {
  Storage<D> stored;
  std::memcpy(&stored, &in, sizeof stored);
  return stored;
}

/// Elements are read, computed and written in blocks of this many, so that
/// strides and 16-bit floats stay out of the loop that computes.
constexpr int64_t block = 128;

template <DType D>
void read_block(Compute<D>* to, const void* from, int64_t stride, int64_t n) {
  const auto* stored = static_cast<const Storage<D>*>(from);
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = read<D>(stored[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = read<D>(stored[i * stride]);
}
template <DType D>
void write_block(void* to, const Compute<D>* from, int64_t n) {
  auto* stored = static_cast<Storage<D>*>(to);
  for (int64_t i = 0; i < n; ++i) stored[i] = write<D>(from[i]);
}

template <class T>
Scalar<T> operand(T value, ElementError* error) {
  if constexpr (scalar::IntegerElement<T>)
    return Scalar<T>(value, error);
  else
    return Scalar<T>(value);
}

/// Not inlined, so that 16-bit floats share the code of float.
template <class Function, class R, class... T>
[[gnu::noinline]] void compute_block(R* result, int64_t n, ElementError* error,
                                     const T*... operands) {
  for (int64_t i = 0; i < n; ++i)
    result[i] = Function::apply(operand(operands[i], error)...).value();
}

/// The ElementLoop of an operation with operands of dtypes D...:
/// `Function::apply` of their values gives the result, stored as `R`.
template <class Function, DType R, DType... D>
void loop(void* out, const void* const* in, const int64_t* stride, int64_t n,
          ElementError* error) {
  std::tuple<std::array<Compute<D>, block>...> operands;
  std::array<Compute<R>, block> result;
  auto* to = static_cast<Storage<R>*>(out);
  [&]<size_t... k>(std::index_sequence<k...>) {
    for (int64_t begin = 0; begin < n; begin += block) {
      const int64_t count = std::min(block, n - begin);
      (read_block<D>(std::get<k>(operands).data(),
                     static_cast<const Storage<D>*>(in[k]) + begin * stride[k],
                     stride[k], count),
       ...);
      compute_block<Function>(result.data(), count, error,
                              std::get<k>(operands).data()...);
      write_block<R>(to + begin, result.data(), count);
    }
  }(std::index_sequence_for<Compute<D>...>());
}

/// The same for one element in registers. What is dear shares the loop's code.
template <class Function, DType R, DType... D>
void step(const Step* step, uint64_t* registers, StepRun* run) {
  Compute<R> result;
  ElementError error;
  [&]<size_t... k>(std::index_sequence<k...>) {
    const std::tuple<Compute<D>...> operands = {
        read<D>(load<D>(registers[step->in[k]]))...};
    if constexpr (Function::cost == ir::Cost::dear)
      compute_block<Function>(&result, 1, &error, &std::get<k>(operands)...);
    else
      result =
          Function::apply(operand(std::get<k>(operands), &error)...).value();
  }(std::index_sequence_for<Compute<D>...>());
  if (error.fault != Fault::none && run->checked) [[unlikely]] {
    run->error = error;
    run->failed = step;
    return;
  }
  const Storage<R> stored = write<R>(result);
  std::memcpy(&registers[step->out], &stored, sizeof stored);
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

/// A function as both: f.template operator()<Function, R, D...>() makes one.
struct MakeLoop {
  using Made = ElementLoop;
  template <class Function, DType R, DType... D>
  ElementLoop operator()() const {
    return loop<Function, R, D...>;
  }
};
struct MakeStep {
  using Made = StepFunction;
  template <class Function, DType R, DType... D>
  StepFunction operator()() const {
    return step<Function, R, D...>;
  }
};

template <class Make, class Row, DType D>
typename Make::Made make_row() {
  constexpr DType R = Row::gives_bool ? DType::Bool : D;
  if constexpr (!ir::admits(Row::type_class, D))
    return nullptr;
  else if constexpr (Row::operands == 1)
    return Make{}.template operator()<Row, R, D>();
  else
    return Make{}.template operator()<Row, R, D, D>();
}

struct Select {
  static constexpr ir::Cost cost = ir::Cost::cheap;
  template <class V>
  static V apply(Scalar<bool> mask, V a, V b) {
    return select(mask, a, b);
  }
};

struct Fma {
  static constexpr ir::Cost cost = ir::Cost::cheap;
  template <class V>
  static V apply(V x, V y, V z) {
    return fma(x, y, z);
  }
};

template <DType To>
struct Cast {
  static constexpr ir::Cost cost = ir::Cost::cheap;
  template <class V>
  static auto apply(V x) {
    constexpr bool sixteen_bits = To == DType::F16 || To == DType::BF16;
    return scalar::cast_to<Compute<To>>(x, sixteen_bits);
  }
};

template <class Make>
typename Make::Made make_element(ir::Op op, DType dtype) {
  return with_dtype(dtype, [op]<DType D>() -> typename Make::Made {
    if (op == ir::Op::select) {
      // What is chosen is not computed with: NaN keep their bits.
      constexpr bool sixteen_bits = D == DType::F16 || D == DType::BF16;
      constexpr DType B = sixteen_bits ? DType::U16 : D;
      return Make{}.template operator()<Select, B, DType::Bool, B, B>();
    }
    if (op == ir::Op::fma) {
      if constexpr (ir::admits(ir::TypeClass::Float, D))
        return Make{}.template operator()<Fma, D, D, D, D>();
    }
    if (!has_row(op)) return nullptr;
    return with_row(op, []<class Row>() { return make_row<Make, Row, D>(); });
  });
}

template <class Make>
typename Make::Made make_cast(DType from, DType to) {
  return with_dtype(from, [to]<DType From>() {
    return with_dtype(to, []<DType To>() -> typename Make::Made {
      return Make{}.template operator()<Cast<To>, To, From>();
    });
  });
}

}  // namespace

static ElementLoop find_element_loop(ir::Op op, DType dtype) {
  return make_element<MakeLoop>(op, dtype);
}

static ElementLoop find_cast_loop(DType from, DType to) {
  return make_cast<MakeLoop>(from, to);
}

static StepFunction find_element_step(ir::Op op, DType dtype) {
  return make_element<MakeStep>(op, dtype);
}

static StepFunction find_cast_step(DType from, DType to) {
  return make_cast<MakeStep>(from, to);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS
