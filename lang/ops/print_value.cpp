#include "lang/ops/print_value.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "lang/context/literals.h"
#include "lang/context/traced_text.h"
#include "lang/ops/format_spec.h"
#include "lang/ops/operators.h"
#include "lang/ops/text.h"
#include "lang/source/utf8.h"

namespace unisono::lang {
namespace {

/// Of more elements than these, `print` says the type before the corners.
constexpr int64_t large_elements = 1000;

/// Stands before the spec of an operand of a text that stands in quotes, as
/// often as there are quotes around it. No spec of a program has a line end.
constexpr char quoted_mark = '\n';

/// The text as it stands between quotes.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

std::string quote(std::string_view text) { return "\"" + escaped(text) + "\""; }

/// A line with the type of a large array, and with `placed` where an array
/// lies that is spread; else nothing.
std::string heading(Walk& walk, const ArrayValue& value, bool placed,
                    Span where) {
  const ir::Type& type = value->type;
  if (type.rank() == 0) return "";
  if (placed) {
    const unisono::Array& array = walk.force(value, where);
    if (array.sharding().is_split())
      return type.to_string() + " " + array.sharding().to_string() + "\n";
  }
  const bool large = ir::element_count(type.shape).value() > large_elements;
  return large ? type.to_string() + "\n" : "";
}

SpecClass class_of_array(DType dtype) {
  if (is_bool(dtype)) return SpecClass::boolean;
  return is_floating(dtype) ? SpecClass::floating : SpecClass::integer;
}

void require_spec(Walk& walk, std::string_view spec, SpecClass what,
                  Span where) {
  std::string reason = check_spec(spec, what);
  if (reason.empty()) return;
  Diagnostic d =
      diagnostic(Code::bad_format_spec, where, std::string(spec), reason);
  d.set_help(spec.find('#') != std::string_view::npos
                 ? "what says the base stands before the braces: `0x{n:x}`"
                 : "write `{x:8.3f}` for floats, `{n:5d}` for integers, or no "
                   "spec");
  walk.fail(std::move(d));
}

}  // namespace

void TextBuilder::text(std::string_view text) { pieces_.format.back() += text; }

void TextBuilder::array(const ArrayValue& array, std::string_view spec,
                        Span where) {
  require_spec(walk_, spec, class_of_array(array->type.dtype), where);
  switch (walk_.mode()) {
    case Mode::check:
      known_ = false;
      deferred_ |= walk_.in_compiled_code();
      return;
    case Mode::run:
      if (walk_.machine().compile_only) {
        known_ = false;
        return;
      }
      text(array_text(array->type, walk_.host_bytes(array, where), spec));
      return;
    case Mode::trace:
      pieces_.operands.push_back(array);
      pieces_.specs.emplace_back(spec);
      pieces_.format.emplace_back();
      return;
  }
}

void TextBuilder::tree(const Value& value, std::string_view spec, Span where) {
  text("(");
  if (const TupleValue* tuple = value.tuple()) {
    for (size_t i = 0; i < tuple->items.size(); ++i) {
      if (i > 0) text(", ");
      this->value(tuple->items[i], spec, where, true);
    }
    if (tuple->items.size() == 1) text(",");
  } else {
    const auto& fields = value.record()->fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      text(fmt::format("{}{} = ", i > 0 ? ", " : "", fields[i].first));
      this->value(fields[i].second, spec, where, true);
    }
  }
  text(")");
}

void TextBuilder::value(const Value& value, std::string_view spec, Span where,
                        bool quoted) {
  if (const ArrayCell* cell = value.array()) {
    // A float shows as f32, an integer with all its digits.
    ArrayValue shown = *value.get_if<ArrayValue>();
    pieces_.call_numbers.insert(cell->call_numbers.begin(),
                                cell->call_numbers.end());
    if (cell->weak && is_floating(cell->type.dtype))
      shown = cast_to(walk_, shown, DType::F32, where);
    else if (cell->weak && walk_.mode() == Mode::trace)
      shown = cast_to(walk_, shown, cell->type.dtype, where);
    if (cell->literal && walk_.mode() != Mode::run) {  // a constant, so known
      require_spec(walk_, spec, class_of_array(shown->type.dtype), where);
      text(array_text(shown->type, walk_.host_bytes(shown, where), spec));
    } else {
      array(shown, spec, where);
    }
  } else if (value.tuple() || value.record()) {
    tree(value, spec, where);
  } else if (const auto* i = value.get_if<IntValue>()) {
    require_spec(walk_, spec, SpecClass::integer, where);
    known_ = known_ && i->value.is_constant();
    if (!i->value.is_constant()) return;
    text(format_integer(i->value.value(), read_spec(spec)));
  } else if (const auto* b = value.get_if<BoolValue>()) {
    require_spec(walk_, spec, SpecClass::boolean, where);
    known_ = known_ && b->value.has_value();
    if (b->value)
      text(format_text(*b->value ? "true" : "false", read_spec(spec)));
  } else if (const auto* s = value.get_if<StrValue>()) {
    require_spec(walk_, spec, SpecClass::text, where);
    if (s->deferred && walk_.mode() == Mode::check) {
      known_ = false;
      deferred_ = true;
    } else if (s->deferred) {
      const DeferredText& d = *s->deferred;
      if (!spec.empty() || growing_number(*s) != 0)
        known_text(walk_, *s, where);  // an error
      const auto piece = [&](const std::string& known) {
        text(quoted ? escaped(known) : known);
      };
      pieces_.call_numbers.insert(d.call_numbers.begin(), d.call_numbers.end());
      if (quoted) text("\"");
      piece(d.format[0]);
      for (size_t k = 0; k < d.operands.size(); ++k) {
        pieces_.operands.push_back(d.operands[k]);
        pieces_.specs.push_back(quoted ? quoted_mark + d.specs[k] : d.specs[k]);
        pieces_.format.emplace_back();
        piece(d.format[k + 1]);
      }
      if (quoted) text("\"");
    } else if (s->value) {
      text(format_text(quoted ? quote(*s->value) : *s->value, read_spec(spec)));
    } else {
      known_ = false;
    }
  } else if (const auto* range = value.get_if<RangeValue>()) {
    text("range");
    tree(make_tuple(*range->start_stop_step), spec, where);
  } else if (value.is<NoneValue>()) {
    text("none");
  } else if (const auto* device = value.get_if<DeviceValue>()) {
    text(walk_.machine().runtime->devices()[device->index]->name());
  } else if (const auto* type = value.get_if<TypeValue>()) {
    text(type->type.to_string() + type->note);
  } else if (value.is<ManyValue>()) {
    known_ = false;
  } else {
    text(type_name(value));
  }
}

size_t TextBuilder::size() const {
  size_t bytes = 0;
  for (const std::string& piece : pieces_.format) bytes += piece.size();
  return bytes;
}

StrValue TextBuilder::finish() {
  if (!known_ && deferred_)
    return {std::nullopt, std::make_shared<const DeferredText>()};
  if (!known_) return {std::nullopt};
  if (pieces_.operands.empty()) return {pieces_.format[0]};
  return {std::nullopt,
          std::make_shared<const DeferredText>(std::move(pieces_))};
}

std::string to_text(Walk& walk, const Value& value, bool placed, Span where) {
  TextBuilder builder(walk);
  if (const auto* array = value.get_if<ArrayValue>())
    builder.text(heading(walk, *array, placed, where));
  builder.value(value, "", where);
  const Text text = builder.finish().value;
  return text ? *text : "";
}

namespace {
std::string operand_text(const jit::HostArray& operand, std::string_view spec) {
  if (spec.starts_with(quoted_mark))
    return escaped(operand_text(operand, spec.substr(1)));
  if (!is_character_spec(spec))
    return array_text(operand.type, operand.bytes, spec);
  uint32_t point = 0;
  std::memcpy(&point, operand.bytes.data(), sizeof point);
  std::string text;
  append_utf8(text, point);
  return text;
}
}  // namespace

std::string render_host_call(const ir::HostCallAttrs& attrs,
                             const std::vector<jit::HostArray>& operands) {
  std::string text = attrs.format[0];
  for (size_t i = 0; i < operands.size(); ++i) {
    text += operand_text(operands[i], attrs.specs[i]);
    text += attrs.format[i + 1];
  }
  return text;
}

}  // namespace unisono::lang
