// Where a boolean array is true: for `x[mask]` and `nonzero`; and the elements
// of another array there.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "lang/context/processes.h"
#include "lang/ops/elements.h"
#include "lang/ops/index_plan.h"
#include "lang/sizes/known_sizes.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/pool.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

/// The elements of a mask, where they lie if that is the host's memory. The
/// mask outlives it.
class MaskElements {
 public:
  MaskElements(Walk& walk, const ArrayValue& mask, Span where) {
    if (!mask->constant) {
      walk.force(mask, where);
      wait_for_runs(walk, where);
      if (const uint8_t* there = readable_elements(*mask)) {
        elements_ = {there, static_cast<size_t>(mask->type.bytes())};
        return;
      }
    }
    copy_ = walk.host_bytes(mask, where);
    elements_ = copy_;
  }
  std::span<const uint8_t> elements() const { return elements_; }

 private:
  std::vector<uint8_t> copy_;
  std::span<const uint8_t> elements_;
};

/// Eight elements as eight bits, the first one lowest: 1 where not 0.
uint32_t bits_of(const uint8_t* elements) {
  constexpr uint64_t low = 0x7f7f7f7f7f7f7f7f, lanes = 0x0102040810204080;
  uint64_t v;
  std::memcpy(&v, elements, sizeof v);
  const uint64_t is_true = ((((v & low) + low) | v) & ~low) >> 7;
  return static_cast<uint32_t>((is_true * lanes) >> 56);
}

/// For eight bits, the numbers of those that are 1, in order.
constexpr auto ones_of = [] {
  std::array<std::array<uint8_t, 8>, 256> table{};
  for (size_t bits = 0; bits < 256; ++bits)
    for (uint8_t i = 0, n = 0; i < 8; ++i)
      if (bits >> i & 1) table[bits][n++] = i;
  return table;
}();

/// Finds positions in pieces, by all workers: how many there are in each, and
/// with that where each piece stores its own.
class TruePositions {
 public:
  TruePositions(Pool& pool, std::span<const uint8_t> mask,
                const std::vector<int64_t>& sizes)
      : pool_(pool), mask_(mask), sizes_(sizes) {
    const auto pieces = static_cast<size_t>(
        (elements() + tuning().positions_piece - 1) / tuning().positions_piece);
    first_.resize(pieces + 1);
    for_pieces([&](int64_t p) {
      const auto [begin, end] = part(p);
      first_[static_cast<size_t>(p) + 1] =
          end - begin - std::count(&mask_[begin], mask_.data() + end, 0);
    });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
  }

  int64_t count() const { return first_.back(); }

  /// Stores the elements of an array of the mask's shape at these positions.
  template <class T>
  void store_elements(const T* from, T* out) {
    for_pieces([&](int64_t p) {
      const auto [begin, end] = part(p);
      const int64_t to = first_[static_cast<size_t>(p)];
      const int64_t stop = first_[static_cast<size_t>(p) + 1];
      store_true(&mask_[begin], end - begin, to, stop,
                 [&](int64_t at, int64_t i) { out[at] = from[begin + i]; });
    });
  }

  /// Stores the positions along each axis.
  template <class T>
  void store(const std::vector<T*>& out) {
    for_pieces([&](int64_t p) { store_piece(p, out); });
  }

 private:
  int64_t elements() const { return static_cast<int64_t>(mask_.size()); }
  std::pair<int64_t, int64_t> part(int64_t p) const {
    return {p * tuning().positions_piece,
            std::min(elements(), (p + 1) * tuning().positions_piece)};
  }

  template <class F>
  void for_pieces(F&& f) {
    const std::atomic<bool>* flag = stop_flag();
    const auto stopped = [flag] {
      return flag && flag->load(std::memory_order_relaxed);
    };
    pool_.parallel_pieces(static_cast<int64_t>(first_.size()) - 1, 1, this,
                          stopped, [&](int64_t begin, int64_t end) {
                            for (int64_t p = begin; p < end; ++p) f(p);
                          });
    poll_stop();
  }

  template <class T>
  void store_piece(int64_t p, const std::vector<T*>& out) const {
    const auto [begin, end] = part(p);
    const int64_t row = sizes_.back();
    std::vector<int64_t> at(sizes_.size() - 1);  // along the outer axes
    int64_t outer = begin / row;
    for (size_t axis = at.size(); axis-- > 0; outer /= sizes_[axis])
      at[axis] = outer % sizes_[axis];
    int64_t to = first_[static_cast<size_t>(p)];
    const int64_t stop = first_[static_cast<size_t>(p) + 1];
    for (int64_t i = begin; i < end && to < stop;) {
      const int64_t in_row = i % row;
      const int64_t n = std::min(end - i, row - in_row);
      const int64_t before = to;
      to = store_row(&mask_[i], n, in_row, out.back(), to, stop);
      for (size_t axis = 0; axis < at.size(); ++axis)
        std::fill(out[axis] + before, out[axis] + to, static_cast<T>(at[axis]));
      for (size_t axis = at.size(); axis-- > 0;) {
        if (++at[axis] < sizes_[axis]) break;
        at[axis] = 0;
      }
      i += n;
    }
  }

  /// The positions in a part of a row, the first of which is `number`.
  template <class T>
  static int64_t store_row(const uint8_t* mask, int64_t n, int64_t number,
                           T* out, int64_t to, int64_t stop) {
    return store_true(mask, n, to, stop, [&](int64_t at, int64_t i) {
      out[at] = static_cast<T>(number + i);
    });
  }

  /// `put(to, i)`, `put(to + 1, i)`, ... for each i that is true, and below
  /// `stop`; eight at a time where what is put beyond the last is overwritten
  /// by the next. The first place behind them.
  template <class Put>
  static int64_t store_true(const uint8_t* mask, int64_t n, int64_t to,
                            int64_t stop, Put&& put) {
    int64_t i = 0;
    for (; i + 8 <= n && to + 8 <= stop; i += 8) {
      const uint32_t bits = bits_of(mask + i);
      const std::array<uint8_t, 8>& ones = ones_of[bits];
      for (size_t k = 0; k < 8; ++k)
        put(to + static_cast<int64_t>(k), i + ones[k]);
      to += std::popcount(bits);
    }
    for (; i < n && to < stop; ++i) {
      put(to, i);
      to += mask[i] ? 1 : 0;
    }
    return to;
  }

  Pool& pool_;
  std::span<const uint8_t> mask_;
  const std::vector<int64_t>& sizes_;
  std::vector<int64_t> first_;  // positions before each piece
};

/// The positions as arrays: constants if the mask is one, else on a device; of
/// a CPU they are stored where they stay.
template <class T>
std::vector<ArrayValue> true_positions(Walk& walk,
                                       std::span<const uint8_t> mask,
                                       const std::vector<int64_t>& sizes,
                                       DType dtype, bool constant, Span where) {
  Device& home = home_device(walk.machine().runtime->devices());
  const bool in_place = !constant && home.kind() == DeviceKind::cpu;
  TruePositions positions(walk.machine().runtime->pool(), mask, sizes);
  const int64_t count = positions.count();
  const auto bytes = static_cast<size_t>(count) * sizeof(T);
  std::vector<std::vector<uint8_t>> hosts(sizes.size());
  std::vector<std::shared_ptr<Buffer>> blocks;
  std::vector<T*> to;
  for (std::vector<uint8_t>& host : hosts) {
    if (in_place) {
      auto block = home.allocate(static_cast<int64_t>(bytes));
      if (!block) walk.fail(block.error(), where);
      blocks.push_back(std::make_shared<Buffer>(std::move(*block)));
      to.push_back(static_cast<T*>(blocks.back()->data()));
    } else {
      host.resize(bytes);
      to.push_back(reinterpret_cast<T*>(host.data()));
    }
  }
  positions.store(to);
  std::vector<ArrayValue> out;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (constant) {
      out.push_back(
          walk.constant_array({dtype, {count}}, std::move(hosts[axis]), where));
    } else if (in_place) {
      out.push_back(walk.from_array(unisono::Array(
          dtype, {count}, Sharding{-1, {&home}}, {blocks[axis]})));
    } else {
      auto array = array_from_host(home, dtype, {count}, hosts[axis].data());
      if (!array) walk.fail(array.error(), where);
      out.push_back(walk.from_array(std::move(*array)));
    }
  }
  return out;
}

}  // namespace

std::vector<ArrayValue> positions_of_true(Walk& walk, const ArrayValue& mask,
                                          Span where) {
  const ir::Shape& shape = mask->type.shape;
  const bool constant = mask->constant && mask->type.is_concrete();
  if (!constant && walk.in_compiled_code())
    walk.fail(diagnostic(Code::size_known_at_run_time, where)
                  .set_help("inside compiled code write "
                            "`where(condition, x, 0)`"));
  bool wide = false;
  for (const ir::Dim& d : shape)
    wide |= d.is_constant() && d.value() > INT32_MAX;
  const DType dtype = wide ? DType::I64 : DType::I32;
  if (!constant && walk.mode() == Mode::check) {
    const ir::Dim count =
        open_size(walk, SizeKey("true").add(number_of(walk, *mask)));
    std::vector<ArrayValue> out;
    for (size_t i = 0; i < shape.size(); ++i) {
      out.push_back(walk.unknown_array({dtype, {count}}));
      out.back()->varies = mask->varies;
      out.back()->varies_from = mask->varies_from;
    }
    return out;
  }
  const MaskElements elements(walk, mask, where);
  const std::span<const uint8_t> bytes = elements.elements();
  const std::vector<int64_t> sizes = mask->type.sizes();
  if (wide)
    return true_positions<int64_t>(walk, bytes, sizes, dtype, constant, where);
  return true_positions<int32_t>(walk, bytes, sizes, dtype, constant, where);
}

ArrayValue elements_of_true(Walk& walk, const ArrayValue& base,
                            const ArrayValue& mask, Span where) {
  Device& home = home_device(walk.machine().runtime->devices());
  if (!is_computed_here(walk) || mask->constant || cluster_of(walk) ||
      mask->type.rank() == 0 || mask->type.shape != base->type.shape)
    return nullptr;
  const MaskElements elements(walk, mask, where);
  const uint8_t* from = base->array ? readable_elements(*base) : nullptr;
  if (!from || base->array->sharding().devices != std::vector<Device*>{&home})
    return nullptr;
  TruePositions positions(walk.machine().runtime->pool(), elements.elements(),
                          mask->type.sizes());
  const UnsetArray out =
      unset_array(walk, base->type.dtype, {ir::Dim(positions.count())});
  if (!out.array) return nullptr;
  const auto store = [&]<class T>(T) {
    positions.store_elements(reinterpret_cast<const T*>(from),
                             reinterpret_cast<T*>(out.elements));
  };
  switch (byte_size(base->type.dtype)) {
    case 1: store(uint8_t{}); break;
    case 2: store(uint16_t{}); break;
    case 4: store(uint32_t{}); break;
    default: store(uint64_t{});
  }
  return out.array;
}

}  // namespace unisono::lang
