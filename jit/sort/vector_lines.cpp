// Elements become unsigned keys of the same order, which lie where the result
// will (positions: in scratch memory), and keys become elements again. Lines
// are sorted one per unit; long ones are cut at values first, so that many
// threads have work, and a stop is seen soon:
//
//   keys     part: elements to keys
//   sample   line: values that cut it into pieces of about the same size
//   cut      piece: keys up to the middle one of its values to the front
//                  (once for each doubling of the number of pieces)
//   pieces   piece: sorted, and keys to the result
//   restore  line: signs of zeros and NaNs, which keys do not tell apart
#include "jit/sort/vector_lines.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <type_traits>

#include "jit/sort/sort_key.h"
#include "jit/sort/vector_sort.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

constexpr int64_t parts_a_line = 8;
constexpr int64_t samples_a_piece = 32, most_pieces = 1 << 12;

template <DType D>
constexpr KeyOrder order_of = is_float<D>            ? KeyOrder::floating
                              : is_signed_integer<D> ? KeyOrder::with_sign
                                                     : KeyOrder::natural;

/// Elements begin ... end-1 of a line, whose keys are `at`, to keys; whether
/// some are not told apart.
template <DType D, bool with_index>
struct Lines {
  using Element = KeyOf<D>;  // its bits
  using Key = std::conditional_t<with_index, uint64_t, Element>;
  static constexpr int64_t key_bytes = sizeof(Key);

  static int64_t pieces(int64_t length) {
    const auto wanted =
        static_cast<uint64_t>(length * key_bytes / tuning().sort_piece_bytes);
    return std::clamp(static_cast<int64_t>(std::bit_ceil(wanted)), parts_a_line,
                      most_pieces);
  }

  Lines(void* const* buffers, int64_t line, bool parted)
      : length(static_cast<const SortedLines*>(buffers[0])->length),
        sort(*vector_sort<Key>()),
        input(static_cast<const Element*>(buffers[1]) + line * length) {
    auto* at = static_cast<uint8_t*>(buffers[3]) +
               line * scratch_bytes(length, parted);
    if constexpr (with_index) {
      positions = static_cast<int32_t*>(buffers[2]) + line * length;
      keys = reinterpret_cast<Key*>(at);
      at += aligned(length * key_bytes);
    } else {
      keys = static_cast<Key*>(buffers[2]) + line * length;
    }
    if (!parted) return;
    cuts = reinterpret_cast<Key*>(at);
    at += aligned(pieces(length) * samples_a_piece * key_bytes);
    bounds = reinterpret_cast<int64_t*>(at);
    at += aligned((pieces(length) + 1) * 8);
    alike = reinterpret_cast<std::atomic<int32_t>*>(at);
  }
  static int64_t aligned(int64_t bytes) { return (bytes + 63) & ~int64_t{63}; }
  static int64_t scratch_bytes(int64_t length, bool parted) {
    return (with_index ? aligned(length * key_bytes) : 0) +
           (parted ? aligned(pieces(length) * samples_a_piece * key_bytes) +
                         aligned((pieces(length) + 1) * 8) + 64
                   : 0);
  }

  /// Of elements begin ... end-1; whether there are some that keys do not tell
  /// apart.
  bool make_keys(int64_t begin, int64_t end) {
    const auto count = static_cast<size_t>(end - begin);
    if constexpr (with_index) {
      sort.numbered(input + begin, keys + begin, static_cast<uint32_t>(begin),
                    count, order_of<D>);
      return false;
    } else {
      return sort.keys(input + begin, keys + begin, count, order_of<D>);
    }
  }
  void sort_keys(int64_t begin, int64_t end) {
    if (end - begin > tuning().few_inserted_keys)
      return sort.sort(keys + begin, static_cast<size_t>(end - begin));
    for (int64_t i = begin + 1; i < end; ++i) {
      const Key key = keys[i];
      int64_t j = i;
      for (; j > begin && keys[j - 1] > key; --j) keys[j] = keys[j - 1];
      keys[j] = key;
    }
  }
  void make_results(int64_t begin, int64_t end) {
    if constexpr (with_index) {
      for (int64_t i = begin; i < end; ++i)
        positions[i] = static_cast<int32_t>(keys[i]);
    } else {
      sort.elements(keys + begin, static_cast<size_t>(end - begin),
                    order_of<D>);
    }
  }
  void restore() {
    if constexpr (!with_index && is_float<D>)
      restore_equal<D>(
          reinterpret_cast<const typename StorageOf<D>::type*>(input),
          reinterpret_cast<typename StorageOf<D>::type*>(keys), length);
  }

  // ---- of long lines
  void sample() {
    // The same positions each time, without a pattern.
    const int64_t count = pieces(length), samples = count * samples_a_piece;
    uint64_t state = 0;
    for (int64_t i = 0; i < samples; ++i) {
      state += 0x9E3779B97F4A7C15;
      uint64_t mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
      mixed ^= mixed >> 27;
      cuts[i] = keys[mixed % static_cast<uint64_t>(length)];
    }
    sort.sort(cuts, static_cast<size_t>(samples));
    for (int64_t i = 1; i < count; ++i) cuts[i] = cuts[i * samples_a_piece];
    bounds[0] = 0;
    bounds[count] = length;
  }
  /// Piece `number` of those that are `width` last ones wide: cuts it in two.
  void cut(int64_t number, int64_t width) {
    const int64_t begin = bounds[number * width],
                  end = bounds[(number + 1) * width];
    const int64_t middle = number * width + width / 2;
    const auto count = static_cast<size_t>(end - begin);
    Key* first = keys + begin;
    bounds[middle] =
        begin + static_cast<int64_t>(
                    count >= tuning().least_parted_keys
                        ? sort.part(first, count, cuts[middle])
                        : std::partition(first, first + count, [&](Key key) {
                            return key <= cuts[middle];
                          }) - first);
  }

  int64_t length;
  const VectorSort<Key>& sort;
  const Element* input;
  int32_t* positions = nullptr;
  Key* keys = nullptr;
  Key* cuts =
      nullptr;  // keys up to cuts[i] are in pieces before i; room for samples
  int64_t* bounds = nullptr;  // where pieces begin
  std::atomic<int32_t>* alike = nullptr;
};

template <DType D, bool with_index>
struct Kernels {
  using Line = Lines<D, with_index>;

  /// Whole lines. Of short ones the keys of several are made at once.
  static void whole(void* const* buffers, int64_t begin, int64_t end,
                    const KernelContext* context) {
    while (begin < end && !stopped(context)) {
      Line first(buffers, begin, false);
      const int64_t length = first.length;
      const int64_t lines =
          with_index ? 1
                     : std::clamp<int64_t>(tuning().sort_keys_at_once / length,
                                           1, end - begin);
      const bool alike = first.make_keys(0, lines * length);
      for (int64_t i = 0; i < lines; ++i)
        first.sort_keys(i * length, (i + 1) * length);
      first.make_results(0, lines * length);
      for (int64_t i = 0; alike && i < lines; ++i)
        Line(buffers, begin + i, false).restore();
      begin += lines;
    }
  }

  /// A kernel that calls body(line, part) for `count` parts of each line.
  template <class Count, class Body>
  static void parted(void* const* buffers, int64_t begin, int64_t end,
                     const KernelContext* context, const Count& count,
                     const Body& body) {
    const int64_t parts =
        count(static_cast<const SortedLines*>(buffers[0])->length);
    for (int64_t unit = begin; unit < end && !stopped(context); ++unit) {
      Line line(buffers, unit / parts, true);
      body(line, unit % parts);
    }
  }
  static void start(void* const* buffers, int64_t begin, int64_t end,
                    const KernelContext* context) {
    parted(
        buffers, begin, end, context, [](int64_t) { return 1; },
        [](Line& line, int64_t) {
          line.alike->store(0, std::memory_order_relaxed);
        });
  }
  static void keys(void* const* buffers, int64_t begin, int64_t end,
                   const KernelContext* context) {
    parted(buffers, begin, end, context, Line::pieces,
           [](Line& line, int64_t part) {
             const int64_t parts = Line::pieces(line.length);
             if (line.make_keys(line.length * part / parts,
                                line.length * (part + 1) / parts))
               line.alike->store(1, std::memory_order_relaxed);
           });
  }
  static void sample(void* const* buffers, int64_t begin, int64_t end,
                     const KernelContext* context) {
    parted(
        buffers, begin, end, context, [](int64_t) { return 1; },
        [](Line& line, int64_t) { line.sample(); });
  }
  template <int level>
  static void cut(void* const* buffers, int64_t begin, int64_t end,
                  const KernelContext* context) {
    constexpr int64_t count = int64_t{1} << level;
    parted(
        buffers, begin, end, context, [](int64_t) { return count; },
        [](Line& line, int64_t part) {
          line.cut(part, Line::pieces(line.length) / count);
        });
  }
  static void pieces(void* const* buffers, int64_t begin, int64_t end,
                     const KernelContext* context) {
    parted(buffers, begin, end, context, Line::pieces,
           [](Line& line, int64_t piece) {
             line.sort_keys(line.bounds[piece], line.bounds[piece + 1]);
             line.make_results(line.bounds[piece], line.bounds[piece + 1]);
           });
  }
  static void restore(void* const* buffers, int64_t begin, int64_t end,
                      const KernelContext* context) {
    parted(
        buffers, begin, end, context, [](int64_t) { return 1; },
        [](Line& line, int64_t) {
          if (line.alike->load(std::memory_order_relaxed)) line.restore();
        });
  }

  template <int level>
  static void add_cuts(int64_t rows, int64_t pieces, SortPlan& plan) {
    if constexpr ((int64_t{1} << level) < most_pieces) {
      if (int64_t{1} << level >= pieces) return;
      plan.launches.push_back({cut<level>, "sort.cut", rows << level, 1});
      add_cuts<level + 1>(rows, pieces, plan);
    }
  }

  static void add(int64_t rows, int64_t length, SortPlan& plan) {
    const bool is_parted = length >= tuning().least_parted_line &&
                           (rows < tuning().many_sorted_rows ||
                            length >= tuning().least_long_line);
    if (length == 0) return;
    plan.scratch_bytes = rows * Line::scratch_bytes(length, is_parted);
    if (!is_parted) {
      const int64_t grain =
          std::max<int64_t>(1, 4096 / std::max<int64_t>(1, length));
      plan.launches.push_back({whole, "sort", rows, grain});
      return;
    }
    const int64_t pieces_each = Line::pieces(length);
    plan.launches.push_back({start, "sort.start", rows, 1});
    plan.launches.push_back({keys, "sort.keys", rows * pieces_each, 1});
    plan.launches.push_back({sample, "sort.sample", rows, 1});
    add_cuts<0>(rows, pieces_each, plan);
    plan.launches.push_back({pieces, "sort.pieces", rows * pieces_each, 1});
    if (!with_index && is_float<D>)
      plan.launches.push_back({restore, "sort.restore", rows, 1});
  }
};

}  // namespace

bool add_vector_sort(DType dtype, int64_t rows, int64_t length, bool argsort,
                     SortPlan& plan) {
  bool added = false;
  with_dtype(dtype, [&]<DType D>() {
    constexpr size_t bytes = sizeof(KeyOf<D>);
    if constexpr (bytes == 4) {
      // Beside a position a key has 64 bits, of which AVX2 makes no vectors.
      if (argsort ? !vector_sort<uint64_t>() : !vector_sort<uint32_t>()) return;
      if (argsort)
        Kernels<D, true>::add(rows, length, plan);
      else
        Kernels<D, false>::add(rows, length, plan);
      added = true;
    } else if constexpr (bytes == 8) {
      if (argsort || !vector_sort<uint64_t>()) return;
      Kernels<D, false>::add(rows, length, plan);
      added = true;
    }
  });
  return added;
}

}  // namespace unisono::jit
