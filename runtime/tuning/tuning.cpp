#include "runtime/tuning/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <type_traits>

namespace unisono {
namespace {

/// Calls row(name, member, value, least, most) for each row of the table.
template <class Row>
void for_each_row(Tuning*, Row&& row) {
#define THRESHOLD(type, name, value, unit, least, most, bench, processor) \
  row(#name, &Tuning::name, static_cast<type>(value),                     \
      static_cast<type>(least), static_cast<type>(most));
#include "runtime/tuning/tuning.def"
}
template <class Row>
void for_each_row(Orders*, Row&& row) {
#define ORDER(name, value, unit, least, most)            \
  row(#name, &Orders::name, static_cast<int64_t>(value), \
      static_cast<int64_t>(least), static_cast<int64_t>(most));
#define FIXED_ORDER(name, value, unit, reason)
#include "runtime/tuning/orders.def"
}

/// Vigna's splitmix64.
uint64_t next_random(uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  uint64_t mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
  return mixed ^ mixed >> 31;
}

/// An end, the value, or a power of 2 between the ends.
template <class T>
T random_value(uint64_t& state, T value, T least, T most) {
  const uint64_t random = next_random(state);
  switch (random % 4) {
    case 0: return least;
    case 1: return most;
    case 2: return value;
    default: break;
  }
  const double low = std::max(
      0.0,
      std::ceil(std::log2(std::max<double>(static_cast<double>(least), 1))));
  const double high = std::floor(std::log2(static_cast<double>(most)));
  if (high < low) return value;
  const auto steps = static_cast<uint64_t>(high - low) + 1;
  return static_cast<T>(
      std::exp2(low + static_cast<double>((random >> 32) % steps)));
}

template <class T>
bool read_number(std::string_view text, T& out) {
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, out);
  return problem == std::errc() && rest == end;
}

/// `name=value`.
template <class Table>
std::string read_row(std::string_view name, std::string_view number,
                     Table& out) {
  std::string problem = fmt::format("has no row `{}`", name);
  for_each_row(&out, [&]<class T>(const char* row, T Table::* member, T,
                                  T least, T most) {
    if (name != row) return;
    T value{};
    bool fits = read_number(number, value) && least <= value && value <= most;
    if constexpr (std::is_same_v<Table, Orders>)
      fits = fits && std::has_single_bit(static_cast<uint64_t>(value));
    problem = fits ? ""
                   : fmt::format("expects {} from {} to {}; got `{}`", name,
                                 least, most, number);
    if (fits) out.*member = value;
  });
  return problem;
}

/// All rows at once, by a word.
template <class Table>
std::string read_all(std::string_view word, Table& out) {
  const bool at_least = word == "least" || word == "small";
  uint64_t seed = 0;
  const bool is_random =
      word.starts_with("seed:") && read_number(word.substr(5), seed);
  if (!at_least && !is_random && word != "most")
    return fmt::format(
        "expects least, most, seed:N or NAME=VALUE, with `,` between; got `{}`",
        word);
  for_each_row(&out, [&]<class T>(const char*, T Table::* member, T value,
                                  T least, T most) {
    out.*member = at_least    ? least
                  : is_random ? random_value(seed, value, least, most)
                              : most;
  });
  return "";
}

template <class Table>
std::string read(std::string_view words, Table& out) {
  out = {};
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    const size_t equals = word.find('=');
    const std::string problem =
        equals == word.npos
            ? read_all(word, out)
            : read_row(word.substr(0, equals), word.substr(equals + 1), out);
    if (!problem.empty()) return problem;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return "";
}

template <class Table>
void add_differences(const Table& table, std::string& out) {
  for_each_row(
      const_cast<Table*>(&table),
      [&]<class T>(const char* name, T Table::* member, T value, T, T) {
        if (table.*member != value)
          out += fmt::format("{}={},", name, table.*member);
      });
}

/// Reads both variables when the process starts.
std::string read_environment() {
  std::string problem;
  const auto take = [&](const char* name, auto& table) {
    const char* words = std::getenv(name);
    if (!words) return;
    const std::string wrong = read(std::string_view(words), table);
    if (wrong.empty()) return;
    table = {};
    problem += fmt::format("{}{} {}", problem.empty() ? "" : "; ", name, wrong);
  };
  take("UNISONO_TUNING", detail::tuning);
  take("UNISONO_ORDERS", detail::orders);
  return problem;
}

}  // namespace

namespace detail {
constinit Tuning tuning;
constinit Orders orders;
}  // namespace detail

namespace {
const std::string environment_problem = read_environment();
}  // namespace

void set_tuning(const Tuning& tuning) { detail::tuning = tuning; }
void set_orders(const Orders& orders) { detail::orders = orders; }

std::string read_tuning(std::string_view words, Tuning& out) {
  return read(words, out);
}
std::string read_orders(std::string_view words, Orders& out) {
  return read(words, out);
}

const std::string& tuning_problem() { return environment_problem; }

std::string tuning_fingerprint() {
  std::string out;
  add_differences(tuning(), out);
  add_differences(orders(), out);
  return out;
}

}  // namespace unisono
