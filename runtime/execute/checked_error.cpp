#include <fmt/format.h>

#include "runtime/execute/program.h"

namespace unisono {

Error checked_error(ErrorWord::Code code, int64_t value, int64_t bound) {
  switch (code) {
    case ErrorWord::integer_division_by_zero:
      return {Error::Kind::integer_division, "integer division by zero"};
    case ErrorWord::index_out_of_bounds:
      return {
          Error::Kind::index_out_of_bounds,
          fmt::format("index {} is out of bounds for size {}", value, bound)};
    case ErrorWord::negative_exponent:
      return {
          Error::Kind::check_failed,
          fmt::format("an integer cannot be raised to the negative power {}",
                      value)};
    case ErrorWord::none: break;
  }
  return {Error::Kind::check_failed,
          fmt::format("check {} failed", static_cast<int>(code))};
}

}  // namespace unisono
