// Two operands of a reduction over members become one: a step of the members
// tree (runtime/member_tree.h) where its parts come from several processes.
// 16-bit floats are combined in f32; operands and result may be the one or the
// other.
#include "runtime/kernel_library/grid.h"

namespace unisono::grid {
namespace {

/// Constants of the launch.
struct CombineCall {
  int64_t elements;
  int32_t op;     // 0: sum, 1: maximum, 2: minimum
  int32_t small;  // 1: a is of 16 bits, 2: b, 4: the result
};

struct F16 {
  GRID_INLINE static float load(uint16_t bits) {
    return static_cast<float>(__builtin_bit_cast(_Float16, bits));
  }
  GRID_INLINE static uint16_t store(float value) {
    return __builtin_bit_cast(uint16_t, static_cast<_Float16>(value));
  }
};

struct BF16 {
  GRID_INLINE static float load(uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
  GRID_INLINE static uint16_t store(float value) {
    const auto bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint32_t nan = bits >> 16 | 0x40;
    return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan
                                                                  : rounded);
  }
};

template <class T>
GRID_INLINE T extremum(T a, T b, bool largest) {
  const bool first = largest ? a > b : a < b;
  return first ? a : b;
}

/// NaN is the extremum; of zeros the largest is +0 and the smallest -0.
template <class T, class Bits>
GRID_INLINE T float_extremum(T a, T b, bool largest, Bits nan) {
  const Bits x = __builtin_bit_cast(Bits, a), y = __builtin_bit_cast(Bits, b);
  const T equal = __builtin_bit_cast(T, largest ? x & y : x | y);
  const T result = a == b ? equal : extremum(a, b, largest);
  return a != a || b != b ? __builtin_bit_cast(T, nan) : result;
}

template <class T>
GRID_INLINE T combine(T a, T b, int op) {
  if (op == 0) return static_cast<T>(a + b);
  return extremum(a, b, op == 1);
}
template <>
GRID_INLINE float combine(float a, float b, int op) {
  if (op == 0) return a + b;
  return float_extremum<float, uint32_t>(a, b, op == 1, 0x7fffffff);
}
template <>
GRID_INLINE double combine(double a, double b, int op) {
  if (op == 0) return a + b;
  return float_extremum<double, uint64_t>(a, b, op == 1, 0x7ff8000000000000);
}

/// step(i) for each element of the launch, once in all.
template <class Step>
GRID_INLINE void for_each(int64_t elements, const Step& step) {
  const int64_t threads = static_cast<int64_t>(blocks()) * block_threads;
  int64_t i = static_cast<int64_t>(block()) * block_threads + thread();
  for (; i < elements; i += threads) step(i);
}

template <class T>
GRID_INLINE void combine_all(T* to, const T* a, const T* b,
                             const CombineCall& call) {
  Global<T>* const out = global(to);
  const Global<const T>*x = global(a), *y = global(b);
  for_each(call.elements,
           [&](int64_t i) { out[i] = combine<T>(x[i], y[i], call.op); });
}

template <class Small>
GRID_INLINE void combine_small(void* to, const void* a, const void* b,
                               const CombineCall& call) {
  const auto load = [](const void* from, bool small, int64_t i) {
    if (small)
      return Small::load(global(static_cast<const uint16_t*>(from))[i]);
    return static_cast<float>(global(static_cast<const float*>(from))[i]);
  };
  for_each(call.elements, [&](int64_t i) {
    const float value = combine<float>(load(a, call.small & 1, i),
                                       load(b, call.small & 2, i), call.op);
    if (call.small & 4)
      global(static_cast<uint16_t*>(to))[i] = Small::store(value);
    else
      global(static_cast<float*>(to))[i] = value;
  });
}

}  // namespace

#define COMBINE(name, T)                                    \
  GRID_KERNEL combine_##name(T* to, const T* a, const T* b, \
                             CombineCall call) {            \
    combine_all<T>(to, a, b, call);                         \
  }
COMBINE(bool, uint8_t)
COMBINE(i8, int8_t)
COMBINE(i16, int16_t)
COMBINE(i32, int32_t)
COMBINE(i64, int64_t)
COMBINE(u8, uint8_t)
COMBINE(u16, uint16_t)
COMBINE(u32, uint32_t)
COMBINE(u64, uint64_t)
COMBINE(f32, float)
COMBINE(f64, double)

GRID_KERNEL combine_f16(void* to, const void* a, const void* b,
                        CombineCall call) {
  combine_small<F16>(to, a, b, call);
}
GRID_KERNEL combine_bf16(void* to, const void* a, const void* b,
                         CombineCall call) {
  combine_small<BF16>(to, a, b, call);
}

}  // namespace unisono::grid
