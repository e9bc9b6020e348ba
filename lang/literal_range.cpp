#include "lang/literal_range.h"

#include <fmt/format.h>

#include <cmath>

#include "lang/evaluator.h"
#include "runtime/half.h"

namespace unisono::lang {
namespace {

std::string_view range_of(DType dtype) {
  if (dtype == DType::F16) return "-65504 to 65504";
  return dtype == DType::BF16 ? "-3.39e38 to 3.39e38"
                              : "-3.4028e38 to 3.4028e38";
}

}  // namespace

bool stays_finite(double value, DType dtype) {
  if (!is_floating(dtype) || dtype == DType::F64 || std::isinf(value))
    return true;
  auto narrow = static_cast<float>(value);
  if (dtype == DType::F16) narrow = static_cast<float>(Half(narrow));
  if (dtype == DType::BF16) narrow = static_cast<float>(BFloat16(narrow));
  return !std::isinf(narrow);
}

void require_finite(Evaluator& evaluator, double value, DType dtype,
                    Span where) {
  if (stays_finite(value, dtype)) return;
  evaluator.fail(
      diagnostic(Code::literal_range, where, fmt::format("{}", value),
                 name(dtype), range_of(dtype))
          .set_help(dtype == DType::F32
                        ? fmt::format("write it with its type: `{}f64`; "
                                      "`inf` is infinite",
                                      value)
                        : "it needs a wider type, such as `f32`; `inf` is "
                          "infinite"));
}

void require_finite(Evaluator& evaluator, const ArrayCell& array, Span where) {
  if (array.weak && array.literal)
    require_finite(evaluator, *array.literal, array.type.dtype, where);
}

}  // namespace unisono::lang
