// Radix sort from the least significant digit, which is stable and reads no
// element twice per digit. Elements become unsigned keys of the same order; a
// digit in which all keys agree costs its count alone. Lines are sorted one
// per unit; few long lines are cut into parts that count and move on their own:
//
//   keys    part:  elements to keys, positions beside them (argsort)
//   count   part:  how many keys have each digit
//   offsets line:  where each part's keys of each digit go
//   move    part:  keys to their places        (count ... move once per digit)
//   finish  part:  keys to elements, or positions to the result
//   restore line:  signs of zeros and NaNs, which keys do not tell apart
#include "jit/plan/sort_kernels.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace unisono::jit {
namespace {

constexpr int digit_bits = 11, digit_values = 1 << digit_bits;
constexpr int64_t parts_a_line = 8, long_line = 1 << 16, short_line = 48;

template <DType D>
using KeyOf = std::conditional_t<
    sizeof(typename StorageOf<D>::type) == 1, uint8_t,
    std::conditional_t<
        sizeof(typename StorageOf<D>::type) == 2, uint16_t,
        std::conditional_t<sizeof(typename StorageOf<D>::type) == 4, uint32_t,
                           uint64_t>>>;

/// An unsigned key of the same order; NaNs are the largest key, -0.0 is 0.0.
template <DType D>
KeyOf<D> to_key(typename StorageOf<D>::type x) {
  using Key = KeyOf<D>;
  constexpr Key top = Key(Key{1} << (sizeof(Key) * 8 - 1));
  Key bits;
  std::memcpy(&bits, &x, sizeof bits);
  switch (class_of(D)) {
    case DTypeClass::boolean:
    case DTypeClass::unsigned_: return bits;
    case DTypeClass::signed_: return Key(bits ^ top);
    case DTypeClass::floating: break;
  }
  if constexpr (DType::F16 <= D) {
    const auto value = static_cast<typename ComputeOf<D>::type>(x);
    if (std::isnan(value)) return std::numeric_limits<Key>::max();
    if (value == 0) return top;
  }
  return Key(bits & top ? ~bits : bits | top);
}

template <DType D>
typename StorageOf<D>::type from_key(KeyOf<D> key) {
  using Key = KeyOf<D>;
  constexpr Key top = Key(Key{1} << (sizeof(Key) * 8 - 1));
  switch (class_of(D)) {
    case DTypeClass::boolean:
    case DTypeClass::unsigned_: break;
    case DTypeClass::signed_: key = Key(key ^ top); break;
    case DTypeClass::floating: key = Key(key & top ? key ^ top : ~key); break;
  }
  typename StorageOf<D>::type x;
  std::memcpy(&x, &key, sizeof x);
  return x;
}

struct Parameters {
  int64_t rows, length;
};

/// One line's part of the scratch memory.
template <class Key, bool with_index>
struct LineScratch {
  /// Which of the two buffers holds the keys now; whether the digit moves; and
  /// whether there are elements that keys do not tell apart.
  struct State {
    int32_t current;
    int32_t moves;
    std::atomic<int32_t> restore;
    void reset() {
      current = moves = 0;
      restore.store(0, std::memory_order_relaxed);
    }
  };
  static constexpr int64_t state_bytes = 64;

  LineScratch(void* scratch, int64_t line, int64_t length, bool parted) {
    auto* at = static_cast<uint8_t*>(scratch) + line * bytes(length, parted);
    state = reinterpret_cast<State*>(at);
    at += state_bytes;
    for (Key*& k : keys) {
      k = reinterpret_cast<Key*>(at);
      at += align(length * static_cast<int64_t>(sizeof(Key)));
    }
    for (uint32_t*& p : positions) {
      p = reinterpret_cast<uint32_t*>(at);
      if (with_index) at += align(length * 4);
    }
    counts = reinterpret_cast<uint32_t*>(at);
  }
  static int64_t align(int64_t bytes) { return (bytes + 63) & ~int64_t{63}; }
  static int64_t bytes(int64_t length, bool parted) {
    return state_bytes + 2 * align(length * static_cast<int64_t>(sizeof(Key))) +
           (with_index ? 2 * align(length * 4) : 0) +
           (parted ? parts_a_line * digit_values * 4 : 0);
  }

  State* state;
  Key* keys[2];
  uint32_t* positions[2];
  uint32_t* counts;  // [part][digit]
};

/// Elements low ... high-1 of a line, as one unit sees it.
template <DType D, bool with_index>
struct Part {
  using Element = typename StorageOf<D>::type;
  using Key = KeyOf<D>;
  using Output = std::conditional_t<with_index, int32_t, Element>;

  Part(void* const* buffers, int64_t unit, int64_t parts)
      : length(static_cast<const Parameters*>(buffers[0])->length),
        part(unit % parts),
        low(length * part / parts),
        high(length * (part + 1) / parts),
        input(static_cast<const Element*>(buffers[1]) + unit / parts * length),
        output(static_cast<Output*>(buffers[2]) + unit / parts * length),
        scratch(buffers[3], unit / parts, length, parts > 1),
        count(scratch.counts + part * digit_values) {}

  void make_keys() {
    bool restore = false;
    for (int64_t i = low; i < high; ++i) {
      const Element x = input[i];
      const Key key = to_key<D>(x);
      scratch.keys[0][i] = key;
      if constexpr (with_index) {
        scratch.positions[0][i] = static_cast<uint32_t>(i);
      } else if constexpr (DType::F16 <= D) {
        const Element back = from_key<D>(key);
        restore |= std::memcmp(&back, &x, sizeof x) != 0;
      }
    }
    if (restore) scratch.state->restore.store(1, std::memory_order_relaxed);
  }
  void count_digit(int shift) {
    const Key* keys = scratch.keys[scratch.state->current];
    std::fill_n(count, digit_values, 0);
    for (int64_t i = low; i < high; ++i)
      ++count[(keys[i] >> shift) & (digit_values - 1)];
  }
  void move(int shift) {
    const int from = scratch.state->current, to = 1 - from;
    const Key* keys = scratch.keys[from];
    for (int64_t i = low; i < high; ++i) {
      const uint32_t at = count[(keys[i] >> shift) & (digit_values - 1)]++;
      scratch.keys[to][at] = keys[i];
      if constexpr (with_index)
        scratch.positions[to][at] = scratch.positions[from][i];
    }
  }
  void finish() {
    const int current = scratch.state->current;
    for (int64_t i = low; i < high; ++i)
      if constexpr (with_index)
        output[i] = static_cast<int32_t>(scratch.positions[current][i]);
      else
        output[i] = from_key<D>(scratch.keys[current][i]);
  }
  /// Counts of `parts` parts become places; says whether the digit moves keys.
  void offsets(int64_t parts) {
    uint32_t total = 0;
    scratch.state->moves = 1;
    for (int digit = 0; digit < digit_values; ++digit) {
      const uint32_t before = total;
      for (int64_t p = 0; p < parts; ++p)
        total += std::exchange(scratch.counts[p * digit_values + digit], total);
      if (total - before == length) scratch.state->moves = 0;
    }
  }
  /// Elements that keys do not tell apart, in the order of the input.
  void restore() {
    if constexpr (!with_index && DType::F16 <= D) {
      if (!scratch.state->restore.load(std::memory_order_relaxed)) return;
      const Key* keys = scratch.keys[scratch.state->current];
      const Key zero = to_key<D>(Element{}),
                nan = std::numeric_limits<Key>::max();
      int64_t zeros = std::lower_bound(keys, keys + length, zero) - keys;
      int64_t nans = std::lower_bound(keys, keys + length, nan) - keys;
      for (int64_t i = 0; i < length; ++i) {
        const Key key = to_key<D>(input[i]);
        if (key == zero) output[zeros++] = input[i];
        if (key == nan) output[nans++] = input[i];
      }
    }
  }

  int64_t length, part, low, high;
  const Element* input;
  Output* output;
  LineScratch<Key, with_index> scratch;
  uint32_t* count;
};

bool stopped(const KernelContext* context) {
  return context->stop->load(std::memory_order_relaxed) ||
         context->cancel->load(std::memory_order_relaxed);
}

/// A kernel that does `body` for the parts begin ... end-1.
template <class P, void (*body)(P&)>
void on_parts(void* const* buffers, int64_t begin, int64_t end,
              const KernelContext* context) {
  for (int64_t unit = begin; unit < end && !stopped(context); ++unit) {
    P part(buffers, unit, parts_a_line);
    body(part);
  }
}
/// A kernel that does `body` for whole lines, which other launches cut.
template <class P, void (*body)(P&)>
void on_lines(void* const* buffers, int64_t begin, int64_t end,
              const KernelContext* context) {
  for (int64_t line = begin; line < end && !stopped(context); ++line) {
    P part(buffers, line * parts_a_line, parts_a_line);
    body(part);
  }
}

/// Insertion, for the shortest lines.
template <DType D, bool with_index>
void sort_short(Part<D, with_index>& line) {
  auto* keys = line.scratch.keys[0];
  uint32_t* positions = line.scratch.positions[0];
  for (int64_t i = 1; i < line.length; ++i) {
    const auto key = keys[i];
    [[maybe_unused]] const uint32_t at = with_index ? positions[i] : 0;
    int64_t j = i;
    for (; j > 0 && keys[j - 1] > key; --j) {
      keys[j] = keys[j - 1];
      if constexpr (with_index) positions[j] = positions[j - 1];
    }
    keys[j] = key;
    if constexpr (with_index) positions[j] = at;
  }
}

/// Whole lines, one per unit.
template <DType D, bool with_index>
void sort_lines(void* const* buffers, int64_t begin, int64_t end,
                const KernelContext* context) {
  std::vector<uint32_t> counts(digit_values);
  for (int64_t unit = begin; unit < end && !stopped(context); ++unit) {
    Part<D, with_index> line(buffers, unit, 1);
    line.scratch.counts = line.count = counts.data();
    line.scratch.state->reset();
    line.make_keys();
    if (line.length <= short_line) {
      sort_short(line);
    } else {
      constexpr int bits = sizeof(KeyOf<D>) * 8;
      for (int shift = 0; shift < bits; shift += digit_bits) {
        line.count_digit(shift);
        line.offsets(1);
        if (!line.scratch.state->moves) continue;
        line.move(shift);
        line.scratch.state->current ^= 1;
      }
    }
    line.finish();
    line.restore();
  }
}

template <class P>
class PartedLaunches {
 public:
  PartedLaunches(int64_t lines, std::vector<SortPlan::Launch>& out)
      : lines_(lines), out_(out) {}

  void add_all() {
    lines<[](P& line) { line.scratch.state->reset(); }>("sort.start");
    parts<[](P& part) { part.make_keys(); }>("sort.keys");
    add_digits<0>();
    parts<[](P& part) { part.finish(); }>("sort.finish");
    lines<[](P& line) { line.restore(); }>("sort.restore");
  }

 private:
  template <void (*body)(P&)>
  void parts(const char* name) {
    out_.push_back({on_parts<P, body>, name, lines_ * parts_a_line, 1});
  }
  template <void (*body)(P&)>
  void lines(const char* name) {
    out_.push_back({on_lines<P, body>, name, lines_, 1});
  }
  template <int shift>
  static void count(P& part) {
    part.count_digit(shift);
  }
  template <int shift>
  static void move(P& part) {
    if (part.scratch.state->moves) part.move(shift);
  }
  template <int shift>
  void add_digits() {
    parts<count<shift>>("sort.count");
    lines<[](P& line) { line.offsets(parts_a_line); }>("sort.offsets");
    parts<move<shift>>("sort.move");
    lines<[](P& line) {
      line.scratch.state->current ^= line.scratch.state->moves;
    }>("sort.swap");
    if constexpr (shift + digit_bits < int{sizeof(typename P::Key)} * 8)
      add_digits<shift + digit_bits>();
  }

  int64_t lines_;
  std::vector<SortPlan::Launch>& out_;
};

template <DType D, bool with_index>
void add_launches(int64_t rows, int64_t length, SortPlan& plan) {
  using Scratch = LineScratch<KeyOf<D>, with_index>;
  const bool parted = length >= long_line && rows < 2 * parts_a_line;
  plan.scratch_bytes = rows * Scratch::bytes(length, parted);
  if (parted) {
    PartedLaunches<Part<D, with_index>>(rows, plan.launches).add_all();
  } else {
    const int64_t grain =
        std::max<int64_t>(1, 4096 / std::max<int64_t>(1, length));
    plan.launches.push_back({sort_lines<D, with_index>, "sort", rows, grain});
  }
}

}  // namespace

SortPlan plan_sort(DType dtype, int64_t rows, int64_t length, bool argsort) {
  SortPlan plan;
  const Parameters parameters{rows, length};
  plan.parameters.resize(sizeof parameters);
  std::memcpy(plan.parameters.data(), &parameters, sizeof parameters);
  with_dtype(dtype, [&]<DType D>() {
    if (argsort)
      add_launches<D, true>(rows, length, plan);
    else
      add_launches<D, false>(rows, length, plan);
  });
  return plan;
}

}  // namespace unisono::jit
