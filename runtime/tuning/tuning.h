#pragma once
// The process's thresholds, and the orders of its sums (README.md). A value is
// read once, from UNISONO_TUNING and UNISONO_ORDERS, when the process starts:
//   least, most        every row at that end
//   seed:17            each row at an end, at its value, or in between, at
//   random name=value,...     these rows; the others have their values
// Tests move thresholds; no user has a reason to.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace unisono {

struct Tuning {
#define THRESHOLD(type, name, value, unit, least, most, bench, processor) \
  type name = value;
#include "runtime/tuning/tuning.def"
};

/// Chunks are powers of 2, and at least as long as what is fixed.
struct Orders {
#define ORDER(name, value, unit, least, most) int64_t name = value;
#define FIXED_ORDER(name, value, unit, reason) \
  static constexpr int64_t name = value;
#include "runtime/tuning/orders.def"
};

namespace detail {
extern Tuning tuning;
extern Orders orders;
}  // namespace detail

/// Of this process. Nothing changes them while something runs.
inline const Tuning& tuning() { return detail::tuning; }
inline const Orders& orders() { return detail::orders; }

/// For tests, before what depends on them is made: a compiler keeps programs.
void set_tuning(const Tuning& tuning);
void set_orders(const Orders& orders);

/// What the words above mean; `small` is another word for `least`. Gives what
/// is wrong with them, or nothing.
std::string read_tuning(std::string_view words, Tuning& out);
std::string read_orders(std::string_view words, Orders& out);

/// What is wrong with the environment, where all has its value then: an error
/// of whoever starts something. Empty: nothing.
const std::string& tuning_problem();

/// Names the rows that differ from the tables, for the keys of what is kept
/// and for processes that must agree. Empty: none differs.
std::string tuning_fingerprint();

}  // namespace unisono
