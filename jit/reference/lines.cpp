// Kinds that work along some axes of their operand: for each position along
// the other axes, the elements along these (a line) are loaded in row-major
// order into a buffer of the computing type, worked on, and stored.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "jit/ir/kinds.h"
#include "jit/ir/reduce_order.h"
#include "jit/ir/type_class.h"
#include "jit/reference/kernels.h"
#include "jit/reference/walk.h"
#include "jit/scalar/element_rows.h"
#include "runtime/check.h"

namespace unisono::jit::reference {
namespace {

/// Elements of lines that stand side by side.
template <class T>
struct Neighbours {
  static constexpr int count = 16;
  T values[count];
};

/// A row's scalar expression as a function of two elements.
template <class Row>
struct Combine {
  template <class T>
  T operator()(T a, T b) const {
    using S = scalar::Scalar<T>;
    return Row::apply(S(a), S(b)).value();
  }
  template <class T>
  Neighbours<T> operator()(const Neighbours<T>& a,
                           const Neighbours<T>& b) const {
    Neighbours<T> out;
    for (int i = 0; i < Neighbours<T>::count; ++i)
      out.values[i] = (*this)(a.values[i], b.values[i]);
    return out;
  }
};

/// Calls f.operator()<Row, D>() with the row that a reduction or scan combines
/// with, and the static element type.
template <class F>
void with_combination(ir::Op op, DType dtype, F&& f) {
  with_dtype(dtype, [&]<DType D>() {
    switch (op) {
#define REDUCE(name, types, combine, ...)                     \
  case ir::Op::name:                                          \
    if constexpr (ir::admits(ir::TypeClass::types, D))        \
      return f.template operator()<rows::combine##_row, D>(); \
    break;
#define SCAN REDUCE
#define UNARY(name, ...) \
  case ir::Op::name: break;
#define BINARY UNARY
#define COMPARE UNARY
#define PREDICATE UNARY
#define OTHER UNARY
#include "jit/ir/ops.def"
#include "runtime/tuning/tuning.h"
    }
    check_failed("a reduction that admits the type", __FILE__, __LINE__);
  });
}

/// How an operand splits into lines.
struct Lines {
  Axes across;  // one position per line
  Axes along;   // the elements of a line

  Lines(const ir::Type& type, const std::vector<int>& axes) {
    const std::vector<int64_t> sizes = type.sizes();
    const std::vector<int64_t> strides = dense_strides(sizes);
    for (int i = 0; i < type.rank(); ++i) {
      const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
      (reduced ? along : across).add(sizes[i], strides[i]);
    }
  }
};

template <DType D>
using Stored = typename StorageOf<D>::type;
template <DType D>
using Computed = typename ComputeOf<D>::type;

/// A buffer of T; std::vector<bool> would pack.
template <class T>
struct Buffer {
  std::unique_ptr<T[]> data;
  explicit Buffer(int64_t n) : data(new T[static_cast<size_t>(n)]) {}
};

template <DType D>
void load_line(const Stored<D>* x, const Axes& along, int64_t start,
               Computed<D>* line) {
  for_each_run(along, start, [&](int64_t offset, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; ++i)
      *line++ = static_cast<Computed<D>>(x[offset + i * stride]);
  });
}

template <DType D>
void store_line(Stored<D>* out, const Axes& along, int64_t start,
                const Computed<D>* line) {
  for_each_run(along, start, [&](int64_t offset, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; ++i)
      out[offset + i * stride] = static_cast<Stored<D>>(*line++);
  });
}

/// Calls work(line's number, line's start, elements) for every line. It is
/// loaded, but where it lies in memory as it is computed with.
template <DType D, class Work>
void for_each_line(View x, const Lines& lines, Work&& work) {
  const auto* elements = reinterpret_cast<const Stored<D>*>(x.data);
  int64_t number = 0;
  if constexpr (std::is_same_v<Stored<D>, Computed<D>>) {
    const Axes along = merged(lines.along);
    if (along.sizes.size() == 1 && along.strides[0] == 1)
      return for_each_offset(lines.across, 0, [&](int64_t start) {
        work(number++, start, elements + start);
      });
  }
  const Buffer<Computed<D>> line(lines.along.count());
  for_each_offset(lines.across, 0, [&](int64_t start) {
    load_line<D>(elements, lines.along, start, line.data.get());
    work(number++, start, static_cast<const Computed<D>*>(line.data.get()));
  });
}

/// Reduces a line. Not inlined: 16-bit floats share the code of float, and
/// reductions in two places have it once.
template <class Row, class T>
[[gnu::noinline]] T reduce_line(ir::ReduceOrder order, bool contiguous,
                                int64_t n, const T* line) {
  const auto get = [line](int64_t i) { return line[i]; };
  const Combine<Row> combine;
  return order == ir::ReduceOrder::members ? reduce_members(n, get, combine)
         : contiguous                      ? reduce_contiguous(n, get, combine)
                                           : reduce_strided(n, get, combine);
}

/// Reduces lines side by side, each in its order. False where they are few, or
/// do not lie so.
template <class Row, DType D>
bool reduce_neighbours(View x, const Lines& lines, Stored<D>* results) {
  using Several = Neighbours<Computed<D>>;
  const Axes along = merged(lines.along);
  Axes outer = lines.across;
  if (along.sizes.size() != 1 || outer.sizes.empty() ||
      outer.strides.back() != 1 || outer.sizes.back() < Several::count)
    return false;
  const int64_t columns = outer.sizes.back();
  outer.sizes.pop_back();
  outer.strides.pop_back();
  const auto* elements = reinterpret_cast<const Stored<D>*>(x.data);
  for_each_offset(outer, 0, [&](int64_t start) {
    for (int64_t j = 0; j < columns; j += Several::count) {
      // The last ones may have been done once.
      const int64_t first = std::min(j, columns - Several::count);
      const auto get = [&](int64_t i) {
        Several out;
        const auto* from = elements + start + first + i * along.strides[0];
        for (int k = 0; k < Several::count; ++k)
          out.values[k] = static_cast<Computed<D>>(from[k]);
        return out;
      };
      const Several totals =
          reduce_strided(along.sizes[0], get, Combine<Row>());
      for (int k = 0; k < Several::count; ++k)
        results[first + k] = static_cast<Stored<D>>(totals.values[k]);
    }
    results += columns;
  });
  return true;
}

/// Likewise.
template <class Row, class T>
[[gnu::noinline]] void scan_line(bool contiguous, bool reverse, int64_t n,
                                 T* line) {
  // Flip, scan, flip.
  const auto place = [&](int64_t i) { return reverse ? n - 1 - i : i; };
  const auto get = [&](int64_t i) { return line[place(i)]; };
  const auto put = [&](int64_t i, T value) { line[place(i)] = value; };
  if (contiguous)
    scan_contiguous(n, get, put, Combine<Row>());
  else
    scan_strided(n, get, put, Combine<Row>());
}

bool is_contiguous(const ir::ReduceAttrs& a, const ir::Type& type) {
  return !a.axes.empty() && a.axes.back() == type.rank() - 1;
}

}  // namespace

void reduce(const ir::Node& node, View x, uint8_t* out) {
  const auto& a = ir::attrs<ir::ReduceAttrs>(node);
  const Lines lines(x.type, a.axes);
  const int64_t n = lines.along.count();
  if (n == 0) {
    const auto identity = ir::identity_element(node.op, x.type.dtype);
    in_pieces(lines.across.count(), tuning().moved_between_looks,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i, out += identity.size())
                  std::memcpy(out, identity.data(), identity.size());
              });
    return;
  }
  const bool contiguous = is_contiguous(a, x.type);
  with_combination(node.op, x.type.dtype, [&]<class Row, DType D>() {
    auto* results = reinterpret_cast<Stored<D>*>(out);
    if (!contiguous && a.order == ir::ReduceOrder::elements &&
        reduce_neighbours<Row, D>(x, lines, results))
      return;
    for_each_line<D>(
        x, lines, [&](int64_t i, int64_t, const Computed<D>* line) {
          results[i] = static_cast<Stored<D>>(
              reduce_line<Row, Computed<D>>(a.order, contiguous, n, line));
        });
  });
}

void combine_members(ir::ReduceOp op, const ir::Type& type,
                     std::span<const uint8_t* const> members, uint8_t* out) {
  const ir::Op reduction = op == ir::ReduceOp::sum   ? ir::Op::sum
                           : op == ir::ReduceOp::max ? ir::Op::max
                                                     : ir::Op::min;
  const auto count = static_cast<int64_t>(members.size());
  const int64_t elements = type.elements();
  with_combination(reduction, type.dtype, [&]<class Row, DType D>() {
    auto* results = reinterpret_cast<Stored<D>*>(out);
    const Buffer<Computed<D>> line(count);
    StopPoll poll(tuning().moved_between_looks);
    for (int64_t i = 0; i < elements; ++i) {
      poll.did(count);
      for (int64_t m = 0; m < count; ++m)
        line.data[m] = static_cast<Computed<D>>(
            reinterpret_cast<const Stored<D>*>(members[m])[i]);
      results[i] = static_cast<Stored<D>>(reduce_line<Row, Computed<D>>(
          ir::ReduceOrder::members, false, count, line.data.get()));
    }
  });
}

namespace {

/// The position of the largest or smallest element: the lowest of equal ones,
/// or the first NaN. Not inlined, as reduce_line.
template <bool largest, class T>
[[gnu::noinline]] int64_t best_of(int64_t n, const T* line) {
  const auto is_better = [](T a, T b) {
    return (largest ? a > b : a < b) || a != a;
  };
  int64_t best = 0;
  // Few pieces have a better one; whether one has is asked of vectors.
  in_pieces(n, 256, [&](int64_t begin, int64_t end) {
    const T top = line[best];
    if (top != top) return;
    bool any = false;
    for (int64_t i = begin; i < end; ++i) any |= is_better(line[i], top);
    for (int64_t i = begin; any && i < end; ++i) {
      if (!is_better(line[i], line[best])) continue;
      best = i;
      if (line[i] != line[i]) return;
    }
  });
  return best;
}

}  // namespace

void argreduce(const ir::Node& node, View x, uint8_t* out) {
  const Lines lines(x.type, ir::attrs<ir::ReduceAttrs>(node).axes);
  const int64_t n = lines.along.count();
  const bool largest = node.op == ir::Op::argmax;
  auto* positions = reinterpret_cast<int32_t*>(out);
  with_dtype(x.type.dtype, [&]<DType D>() {
    for_each_line<D>(
        x, lines, [&](int64_t i, int64_t, const Computed<D>* line) {
          positions[i] = static_cast<int32_t>(
              largest ? best_of<true>(n, line) : best_of<false>(n, line));
        });
  });
}

void scan(const ir::Node& node, View x, uint8_t* out) {
  const auto& a = ir::attrs<ir::ScanAttrs>(node);
  const Lines lines(x.type, {a.axis});
  const int64_t n = lines.along.count();
  const bool contiguous = a.axis == x.type.rank() - 1;
  with_combination(node.op, x.type.dtype, [&]<class Row, DType D>() {
    const auto* elements = reinterpret_cast<const Stored<D>*>(x.data);
    auto* results = reinterpret_cast<Stored<D>*>(out);
    const Buffer<Computed<D>> buffer(n);
    Computed<D>* line = buffer.data.get();
    for_each_offset(lines.across, 0, [&](int64_t start) {
      load_line<D>(elements, lines.along, start, line);
      scan_line<Row, Computed<D>>(contiguous, a.reverse, n, line);
      store_line<D>(results, lines.along, start, line);
    });
  });
}

namespace {

/// Ascending, NaN last (all NaN are equal), -0.0 equal to 0.0.
template <class T>
bool sorts_before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a < b || (b != b && a == a);
  else
    return a < b;
}

/// The positions of a line's elements in their order. Stable: equal elements by
/// position. Not inlined, as reduce_line.
template <class T>
[[gnu::noinline]] void sort_line(int64_t n, const T* line, int32_t* order) {
  in_pieces(n, tuning().moved_between_looks, [&](int64_t begin, int64_t end) {
    std::iota(order + begin, order + end, static_cast<int32_t>(begin));
  });
  StopPoll poll(tuning().moved_between_looks);
  std::sort(order, order + n, [&](int32_t i, int32_t j) {
    poll.did(1);
    if (sorts_before(line[i], line[j])) return true;
    return i < j && !sorts_before(line[j], line[i]);
  });
}

}  // namespace

void sort(const ir::Node& node, View x, uint8_t* out) {
  const Lines lines(x.type, {x.type.rank() - 1});
  const int64_t n = lines.along.count();
  const Buffer<int32_t> buffer(n);
  int32_t* order = buffer.data.get();
  with_dtype(x.type.dtype, [&]<DType D>() {
    const auto* elements = reinterpret_cast<const Stored<D>*>(x.data);
    for_each_line<D>(
        x, lines, [&](int64_t, int64_t start, const Computed<D>* line) {
          sort_line(n, line, order);
          // Elements as stored: a NaN keeps its bits.
          auto* results = reinterpret_cast<Stored<D>*>(out);
          auto* positions = reinterpret_cast<int32_t*>(out);
          in_pieces(n, tuning().moved_between_looks,
                    [&](int64_t begin, int64_t end) {
                      if (node.op == ir::Op::argsort) {
                        std::copy(order + begin, order + end,
                                  positions + start + begin);
                        return;
                      }
                      for (int64_t i = begin; i < end; ++i)
                        results[start + i] = elements[start + order[i]];
                    });
        });
  });
}

}  // namespace unisono::jit::reference
