#include "lang/context/traced_text.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace unisono::lang {

Value traced_character_of(const ArrayValue& code_point, std::string_view spec) {
  DeferredText out;
  out.format = {"", ""};
  out.specs = {std::string(spec)};
  out.operands = {code_point};
  return StrValue{std::nullopt,
                  std::make_shared<const DeferredText>(std::move(out))};
}

bool is_character_spec(std::string_view spec) {
  return spec == code_point_spec || spec == ascii_spec;
}

Value ascii_character_of(const ArrayValue& code_point) {
  return traced_character_of(code_point, ascii_spec);
}

ArrayValue traced_code_point(const Value& value) {
  const auto* text = value.get_if<StrValue>();
  if (!text || !text->deferred) return nullptr;
  const DeferredText& made = *text->deferred;
  const bool is_character = made.operands.size() == 1 &&
                            is_character_spec(made.specs[0]) &&
                            made.format[0].empty() && made.format[1].empty();
  return is_character ? made.operands[0] : nullptr;
}

ArrayValue traced_ascii(const Value& value) {
  const ArrayValue point = traced_code_point(value);
  const bool is_ascii =
      point && value.get_if<StrValue>()->deferred->specs[0] == ascii_spec;
  return is_ascii ? point : nullptr;
}

ArrayValue as_int(Walk& walk, const ArrayValue& x, Span where) {
  const ArrayValue number =
      walk.add(ir::Op::cast, {x}, ir::CastAttrs{DType::I64}, where);
  number->weak = true;
  return number;
}

// Such a text has a format, but no operand.
StrValue growing_text(int64_t number) {
  DeferredText out;
  out.format = {""};
  out.specs = {fmt::format("{}", number)};
  return {std::nullopt, std::make_shared<const DeferredText>(std::move(out))};
}

int64_t growing_number(const StrValue& text) {
  if (!text.deferred || !text.deferred->operands.empty() ||
      text.deferred->specs.size() != 1)
    return 0;
  return std::stoll(text.deferred->specs[0]);
}

}  // namespace unisono::lang
