#include "runtime/execute/collective.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/member_tree.h"

namespace unisono {
namespace {

using Kind = CollectiveStep::Kind;

CollectiveStep step(Kind kind, DType dtype, int64_t elements,
                    ReduceOp op = ReduceOp::sum) {
  return {.kind = kind, .dtype = dtype, .elements = elements, .op = op};
}

constexpr int device_counts[] = {1, 2, 3, 4, 5, 7, 8, 16, 33, 64};

std::string tree_of(int count) {
  return member_tree(
      0, count, [](int64_t i) { return std::to_string(i); },
      [](const std::string& a, const std::string& b) {
        return "(" + a + "+" + b + ")";
      });
}

TEST_CASE("the members tree: neighbours first, in aligned blocks") {
  CHECK(tree_of(1) == "0");
  CHECK(tree_of(2) == "(0+1)");
  CHECK(tree_of(3) == "((0+1)+2)");
  CHECK(tree_of(4) == "((0+1)+(2+3))");
  CHECK(tree_of(5) == "(((0+1)+(2+3))+4)");
  CHECK(tree_of(7) == "(((0+1)+(2+3))+((4+5)+6))");
  CHECK(tree_of(8) == "(((0+1)+(2+3))+((4+5)+(6+7)))");
}

/// The tree again, bottom up: what is left of pairs passes up unchanged.
template <class T, class Combine>
T plain_tree(std::vector<T> values, Combine&& combine) {
  while (values.size() > 1) {
    std::vector<T> next;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      next.push_back(combine(values[i], values[i + 1]));
    if (values.size() % 2) next.push_back(values.back());
    values = std::move(next);
  }
  return values[0];
}

template <class C>
C plain_combine(ReduceOp op, C a, C b) {
  if (op == ReduceOp::sum) {
    if constexpr (std::is_integral_v<C>)
      return static_cast<C>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
    else
      return a + b;
  }
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) {  // of two zeros, +0 is the larger
      bool negative = op == ReduceOp::max ? std::signbit(a) && std::signbit(b)
                                          : std::signbit(a) || std::signbit(b);
      return negative ? -std::abs(a) : std::abs(a);
    }
  }
  return (op == ReduceOp::max ? a > b : a < b) ? a : b;
}

/// Buffers of `bytes` bytes for each device, with gaps between them that must
/// stay as they are.
struct Memory {
  Memory(int devices, int64_t bytes) : bytes(bytes), stride(bytes + 64) {
    data.assign(static_cast<size_t>(devices * stride), 0xa5);
  }
  uint8_t* of(int device) { return data.data() + device * stride; }
  std::vector<void*> pointers() {
    std::vector<void*> list;
    for (int64_t at = 0; at < static_cast<int64_t>(data.size()); at += stride)
      list.push_back(data.data() + at);
    return list;
  }
  bool gaps_untouched() const {
    for (size_t i = 0; i < data.size(); ++i)
      if (static_cast<int64_t>(i) % stride >= bytes && data[i] != 0xa5)
        return false;
    return true;
  }
  int64_t bytes, stride;
  std::vector<uint8_t> data;
};

uint64_t random_bits(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/// Values of all kinds: whole numbers, fractions, huge ones, zeros of both
/// signs, infinities, and a NaN now and then.
template <DType D>
typename StorageOf<D>::type random_value(uint64_t& state) {
  using S = typename StorageOf<D>::type;
  uint64_t bits = random_bits(state);
  if constexpr (D == DType::Bool) {
    return static_cast<S>(bits >> 20 & 1);
  } else if constexpr (std::is_integral_v<S>) {
    return static_cast<S>(bits);
  } else {
    switch (bits % 16) {
      case 0: return S(0.0f);
      case 1: return S(-0.0f);
      case 2:
        return S(bits % 512 > 2 ? 1e4f
                                : std::numeric_limits<float>::infinity());
      case 3:
        return S(bits % 1024 == 3 ? std::numeric_limits<float>::quiet_NaN()
                                  : 3.5f);
      default:
        return S(static_cast<float>(static_cast<int32_t>(bits >> 32)) * 1e-9f);
    }
  }
}

template <DType D>
void check_all_reduce(Pool& pool, int devices, int64_t elements, ReduceOp op,
                      bool in_place) {
  using S = typename StorageOf<D>::type;
  using C =
      std::conditional_t<D == DType::Bool, S, typename ComputeOf<D>::type>;
  int64_t bytes = elements * static_cast<int64_t>(sizeof(S));
  Memory from(devices, bytes), to(devices, bytes);
  uint64_t state = 88172645463325252u + static_cast<uint64_t>(devices);
  for (int d = 0; d < devices; ++d)
    for (int64_t i = 0; i < elements; ++i) {
      S value = random_value<D>(state);
      std::memcpy(from.of(d) + i * sizeof(S), &value, sizeof(S));
    }
  Memory operands = from;
  Memory& result = in_place ? from : to;
  auto sources = from.pointers(), results = result.pointers();
  std::vector<const void*> constant(sources.begin(), sources.end());
  meet({pool, nullptr}, step(Kind::all_reduce, D, elements, op),
       {constant, results});

  REQUIRE(result.gaps_untouched());
  for (int64_t i = 0; i < elements; ++i) {
    std::vector<C> values;
    for (int d = 0; d < devices; ++d) {
      S value;
      std::memcpy(&value, operands.of(d) + i * sizeof(S), sizeof(S));
      values.push_back(static_cast<C>(value));
    }
    S expected = static_cast<S>(plain_tree(
        values, [&](C a, C b) { return plain_combine<C>(op, a, b); }));
    for (int d = 0; d < devices; ++d) {
      S value;
      std::memcpy(&value, result.of(d) + i * sizeof(S), sizeof(S));
      bool same = std::memcmp(&value, &expected, sizeof(S)) == 0;
      if constexpr (!std::is_integral_v<S>) {
        // A NaN's bits are not promised.
        auto x = static_cast<C>(value), y = static_cast<C>(expected);
        same |= std::isnan(x) && std::isnan(y);
      }
      REQUIRE_MESSAGE(same, name(D) << " element " << i << " of " << elements
                                    << " on " << d << " of " << devices);
    }
  }
}

TEST_CASE("all_reduce is the members tree, for every type and device count") {
  for (int workers : {1, 3}) {
    Pool pool(workers);
    for (int devices : device_counts)
      for (DType dtype : all_dtypes)
        for (ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
          if (is_bool(dtype) && op == ReduceOp::sum) continue;
          with_dtype(dtype, [&]<DType D>() {
            check_all_reduce<D>(pool, devices, 37, op, false);
            check_all_reduce<D>(pool, devices, 1, op, true);
          });
        }
  }
}

TEST_CASE("all_reduce of many elements is shared out among workers") {
  Pool pool(4);
  for (int devices : {2, 3, 8, 64})
    for (bool in_place : {false, true}) {
      check_all_reduce<DType::F32>(pool, devices, 30'011, ReduceOp::sum,
                                   in_place);
      check_all_reduce<DType::BF16>(pool, devices, 5'003, ReduceOp::max,
                                    in_place);
    }
  check_all_reduce<DType::F64>(pool, 4, 0, ReduceOp::sum, true);
}

TEST_CASE("f16 and bf16 are rounded once, at the end") {
  Pool pool(1);
  // 2048 + 1 + 1 + ...: in f16 each 1 alone would be lost.
  std::vector<Half> values(8, Half(1.0f));
  values[0] = Half(2048.0f);
  std::vector<const void*> from;
  for (Half& value : values) from.push_back(&value);
  std::vector<Half> results(8);
  std::vector<void*> to;
  for (Half& result : results) to.push_back(&result);
  meet({pool, nullptr}, step(Kind::all_reduce, DType::F16, 1), {from, to});
  // The exact sum is 2055, a tie between 2054 and 2056: even wins.
  for (Half result : results) CHECK(static_cast<float>(result) == 2056.0f);
}

TEST_CASE("all_gather and permute") {
  Pool pool(3);
  for (int devices : device_counts) {
    for (int64_t bytes :
         {int64_t{0}, int64_t{5}, int64_t{4 << 20} / devices / devices}) {
      Memory from(devices, bytes), stacked(devices, bytes * devices),
          moved(devices, bytes);
      uint64_t state = 5;
      for (int d = 0; d < devices; ++d)
        for (int64_t i = 0; i < bytes; ++i)
          from.of(d)[i] = static_cast<uint8_t>(random_bits(state));
      auto sources = from.pointers();
      std::vector<const void*> constant(sources.begin(), sources.end());

      auto results = stacked.pointers();
      meet({pool, nullptr}, step(Kind::all_gather, DType::U8, bytes),
           {constant, results});
      CHECK(stacked.gaps_untouched());
      for (int to = 0; to < devices; ++to)
        for (int d = 0; d < devices; ++d)
          REQUIRE((bytes == 0 || std::memcmp(stacked.of(to) + d * bytes,
                                             from.of(d), bytes) == 0));

      // Each sends to the next; what the last sends is lost.
      CollectiveStep shift = step(Kind::permute, DType::U8, bytes);
      for (int d = 0; d + 1 < devices; ++d) shift.pairs.emplace_back(d, d + 1);
      results = moved.pointers();
      meet({pool, nullptr}, shift, {constant, results});
      CHECK(moved.gaps_untouched());
      std::vector<uint8_t> zeros(static_cast<size_t>(bytes));
      for (int d = 0; d < devices; ++d) {
        const uint8_t* expected = d ? from.of(d - 1) : zeros.data();
        REQUIRE((bytes == 0 || std::memcmp(moved.of(d), expected, bytes) == 0));
      }
    }
  }
}

TEST_CASE("reduce_scatter: each device has its part of the all_reduce") {
  Pool pool(3);
  for (int devices : device_counts)
    for (int64_t elements : {0, 1, 37, 3000}) {
      const int64_t all = elements * devices;
      Memory from(devices, 4 * all), whole(devices, 4 * all),
          part(devices, 4 * elements);
      uint64_t state = 77;
      for (int d = 0; d < devices; ++d)
        for (int64_t i = 0; i < all; ++i) {
          const auto value =
              static_cast<float>(static_cast<int32_t>(random_bits(state)));
          std::memcpy(from.of(d) + 4 * i, &value, 4);
        }
      auto sources = from.pointers();
      std::vector<const void*> constant(sources.begin(), sources.end());
      for (ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        auto results = whole.pointers();
        meet({pool, nullptr}, step(Kind::all_reduce, DType::F32, all, op),
             {constant, results});
        results = part.pointers();
        meet({pool, nullptr},
             step(Kind::reduce_scatter, DType::F32, elements, op),
             {constant, results});
        CHECK(part.gaps_untouched());
        for (int d = 0; d < devices; ++d)
          REQUIRE((elements == 0 ||
                   std::memcmp(part.of(d), whole.of(d) + 4 * elements * d,
                               static_cast<size_t>(4 * elements)) == 0));
      }
    }
}

TEST_CASE("all_to_all: part j of device i becomes part i of device j") {
  Pool pool(3);
  for (int devices : device_counts)
    for (int64_t bytes : {int64_t{0}, int64_t{7}, int64_t{200'000} / devices}) {
      Memory from(devices, bytes * devices), to(devices, bytes * devices);
      uint64_t state = 9;
      for (int d = 0; d < devices; ++d)
        for (int64_t i = 0; i < bytes * devices; ++i)
          from.of(d)[i] = static_cast<uint8_t>(random_bits(state));
      auto sources = from.pointers(), results = to.pointers();
      std::vector<const void*> constant(sources.begin(), sources.end());
      meet({pool, nullptr}, step(Kind::all_to_all, DType::U8, bytes),
           {constant, results});
      CHECK(to.gaps_untouched());
      for (int i = 0; i < devices; ++i)
        for (int j = 0; j < devices; ++j)
          REQUIRE((bytes == 0 ||
                   std::memcmp(to.of(j) + i * bytes, from.of(i) + j * bytes,
                               static_cast<size_t>(bytes)) == 0));
    }
}

}  // namespace
}  // namespace unisono
