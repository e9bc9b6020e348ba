// Radix sort from the least significant digit, which is stable and reads no
// element twice per digit. Elements become unsigned keys of the same order; a
// digit in which all keys agree costs its count alone. Lines are sorted one
// per unit, and all their digits counted at once; few long lines are cut into
// parts that count and move on their own:
//
//   keys    part:  elements to keys, positions beside them (argsort); counts
//   count   part:  how many keys have each value of a digit after the first
//   offsets line:  where each part's keys of each value go
//   move    part:  keys to their places     (count ... move once per digit)
//   finish  part:  the last move: elements, or positions, to the result
//   restore line:  signs of zeros and NaNs, which keys do not tell apart
#include "jit/sort/radix_sort.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "jit/sort/sort_key.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

constexpr int digit_bits = 11, digit_values = 1 << digit_bits;
/// Of lines of so few elements that clearing more counts would take longer than
/// another move.
constexpr int few_bits = 8;
constexpr int64_t parts_a_line = 8;

/// Of keys of so many bytes.
constexpr int digits(size_t bytes, int bits) {
  return (static_cast<int>(bytes) * 8 + bits - 1) / bits;
}

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
      : length(static_cast<const SortedLines*>(buffers[0])->length),
        part(unit % parts),
        low(length * part / parts),
        high(length * (part + 1) / parts),
        input(static_cast<const Element*>(buffers[1]) + unit / parts * length),
        output(static_cast<Output*>(buffers[2]) + unit / parts * length),
        scratch(buffers[3], unit / parts, length, parts > 1),
        count(scratch.counts + part * digit_values) {}

  /// Elements to keys, each of which `seen` is told of: some at a time, as
  /// making keys is work for vectors, and counting them is not.
  template <class Seen>
  void make_keys(Seen&& seen) {
    Key restore = 0;
    for (int64_t first = low; first < high;
         first += tuning().radix_keys_at_once) {
      const int64_t end = std::min(first + tuning().radix_keys_at_once, high);
      Key* keys = scratch.keys[0];
      for (int64_t i = first; i < end; ++i) {
        const Element x = input[i];
        const Key key = to_key<D>(x);
        keys[i] = key;
        if constexpr (!with_index && is_float<D>)
          restore |= Key(bits_of(from_key<D>(key)) ^ bits_of(x));
      }
      if constexpr (with_index)
        std::iota(scratch.positions[0] + first, scratch.positions[0] + end,
                  static_cast<uint32_t>(first));
      for (int64_t i = first; i < end; ++i) seen(keys[i]);
    }
    if (restore) scratch.state->restore.store(1, std::memory_order_relaxed);
  }
  static Key bits_of(Element x) {
    Key bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
  }
  void keys_and_first_digit() {
    std::fill_n(count, digit_values, 0);
    make_keys([&](Key key) { ++count[key & (digit_values - 1)]; });
  }
  void count_digit(int shift) {
    const Key* keys = scratch.keys[scratch.state->current];
    std::fill_n(count, digit_values, 0);
    for (int64_t i = low; i < high; ++i)
      ++count[(keys[i] >> shift) & (digit_values - 1)];
  }
  template <int bits = digit_bits>
  void move(int shift, uint32_t* places) {
    const int from = scratch.state->current, to = 1 - from;
    const Key* keys = scratch.keys[from];
    for (int64_t i = low; i < high; ++i) {
      const uint32_t at = places[(keys[i] >> shift) & ((1 << bits) - 1)]++;
      scratch.keys[to][at] = keys[i];
      if constexpr (with_index)
        scratch.positions[to][at] = scratch.positions[from][i];
    }
  }
  static Output result(Key key, [[maybe_unused]] const uint32_t* position) {
    if constexpr (with_index)
      return static_cast<int32_t>(*position);
    else
      return from_key<D>(key);
  }
  template <int bits = digit_bits>
  void move_to_result(int shift, uint32_t* places) {
    const Key* keys = scratch.keys[scratch.state->current];
    const uint32_t* positions = scratch.positions[scratch.state->current];
    for (int64_t i = low; i < high; ++i)
      output[places[(keys[i] >> shift) & ((1 << bits) - 1)]++] =
          result(keys[i], positions + i);
  }
  void finish() {
    const Key* keys = scratch.keys[scratch.state->current];
    const uint32_t* positions = scratch.positions[scratch.state->current];
    for (int64_t i = low; i < high; ++i)
      output[i] = result(keys[i], positions + i);
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
    if constexpr (!with_index && is_float<D>) {
      if (!scratch.state->restore.load(std::memory_order_relaxed)) return;
      restore_equal<D>(input, output, length);
    }
  }

  int64_t length, part, low, high;
  const Element* input;
  Output* output;
  LineScratch<Key, with_index> scratch;
  uint32_t* count;
};

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

/// A whole line, of which all digits are counted at once; `counts` has room
/// for them.
template <int bits, class P>
void sort_line(P& line, uint32_t* counts) {
  using Key = typename P::Key;
  constexpr int values = 1 << bits, last = digits(sizeof(Key), bits) - 1;
  std::fill_n(counts, (last + 1) * values, 0);
  line.make_keys([&](Key key) {
    for (int d = 0; d <= last; ++d)
      ++counts[d * values + ((key >> (d * bits)) & (values - 1))];
  });
  bool finished = false;
  for (int d = 0; d <= last; ++d) {
    uint32_t* places = counts + d * values;
    uint32_t total = 0, most = 0;
    for (int value = 0; value < values; ++value) {
      most = std::max(most, places[value]);
      total += std::exchange(places[value], total);
    }
    if (most == line.length) continue;
    finished = d == last;
    if (finished) {
      line.template move_to_result<bits>(d * bits, places);
    } else {
      line.template move<bits>(d * bits, places);
      line.scratch.state->current ^= 1;
    }
  }
  if (!finished) line.finish();
}

/// Whole lines, one per unit.
template <DType D, bool with_index>
void sort_lines(void* const* buffers, int64_t begin, int64_t end,
                const KernelContext* context) {
  constexpr size_t bytes = sizeof(KeyOf<D>);
  std::vector<uint32_t> counts(std::max(digits(bytes, digit_bits) << digit_bits,
                                        digits(bytes, few_bits) << few_bits));
  for (int64_t unit = begin; unit < end && !stopped(context); ++unit) {
    Part<D, with_index> line(buffers, unit, 1);
    line.scratch.state->reset();
    if (line.length <= tuning().most_inserted_radix) {
      line.make_keys([](auto) {});
      sort_short(line);
      line.finish();
    } else if (line.length <= tuning().few_radix_keys) {
      sort_line<few_bits>(line, counts.data());
    } else {
      sort_line<digit_bits>(line, counts.data());
    }
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
    parts<[](P& part) { part.keys_and_first_digit(); }>("sort.keys");
    add_digits<0>();
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
    if (part.scratch.state->moves) part.move(shift, part.count);
  }
  template <int shift>
  static void finish(P& part) {
    if (part.scratch.state->moves)
      part.move_to_result(shift, part.count);
    else
      part.finish();
  }
  template <int shift>
  void add_digits() {
    if (shift > 0) parts<count<shift>>("sort.count");
    lines<[](P& line) { line.offsets(parts_a_line); }>("sort.offsets");
    if constexpr (shift + digit_bits < int{sizeof(typename P::Key)} * 8) {
      parts<move<shift>>("sort.move");
      lines<[](P& line) {
        line.scratch.state->current ^= line.scratch.state->moves;
      }>("sort.swap");
      add_digits<shift + digit_bits>();
    } else {
      parts<finish<shift>>("sort.finish");
    }
  }

  int64_t lines_;
  std::vector<SortPlan::Launch>& out_;
};

template <DType D, bool with_index>
void add_launches(int64_t rows, int64_t length, SortPlan& plan) {
  using Scratch = LineScratch<KeyOf<D>, with_index>;
  const bool parted =
      length >= tuning().least_parted_radix && rows < 2 * parts_a_line;
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

void add_radix_sort(DType dtype, int64_t rows, int64_t length, bool argsort,
                    SortPlan& plan) {
  with_dtype(dtype, [&]<DType D>() {
    if (argsort)
      add_launches<D, true>(rows, length, plan);
    else
      add_launches<D, false>(rows, length, plan);
  });
}

}  // namespace unisono::jit
