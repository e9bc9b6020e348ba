// Values: made of what the host has, and read.
#include "embed/value.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "host/session/help.h"
#include "jit/scalar/element.h"
#include "lang/ops/text.h"
#include "lang/source/utf8.h"

namespace unisono::embed {
namespace {

using lang::Value;

void require(const void* pointer, const char* what) {
  if (!pointer) refuse(fmt::format("{} is null", what));
}

const Value& value_of(const UnisonoValue* value) {
  require(value, "the value");
  return value->value;
}

UnisonoValueKind kind_of(const Value& value) {
  if (value.is<lang::NoneValue>()) return UNISONO_VALUE_NONE;
  if (value.is<lang::BoolValue>()) return UNISONO_VALUE_BOOL;
  if (value.is<lang::IntValue>()) return UNISONO_VALUE_INT;
  if (value.is<lang::StrValue>()) return UNISONO_VALUE_TEXT;
  if (value.tuple()) return UNISONO_VALUE_TUPLE;
  if (value.record()) return UNISONO_VALUE_RECORD;
  if (const lang::ArrayCell* array = value.array())
    return array->weak ? UNISONO_VALUE_NUMBER : UNISONO_VALUE_ARRAY;
  if (value.is<std::shared_ptr<const lang::FunctionValue>>())
    return UNISONO_VALUE_FUNCTION;
  return UNISONO_VALUE_OTHER;
}

[[noreturn]] void refuse_kind(const Value& value, const char* wanted) {
  refuse(
      fmt::format("{} was expected, not {}", wanted, lang::type_name(value)));
}

/// The parts of a tree as one tree. They may be of several sessions: then
/// arrays of all of them are kept by the parts, and nothing else may be there.
struct Parts {
  std::vector<Value> values;
  std::shared_ptr<Session> session, home;
};

Parts parts_of(const UnisonoValue* const* items, size_t count,
               const char* what) {
  if (count > 0) require(items, what);
  Parts parts;
  for (size_t i = 0; i < count; ++i) {
    require(items[i], what);
    const std::shared_ptr<Session>& session = items[i]->session;
    if (session && parts.session && session != parts.session)
      refuse(fmt::format("{} belong to different sessions", what));
    if (session) parts.session = session;
    if (items[i]->home) parts.home = items[i]->home;
    parts.values.push_back(items[i]->value);
  }
  return parts;
}

UnisonoValue* tree(const Parts& parts, const Value& value) {
  const lang::TreeSize size = lang::tree_size(value);
  if (size.leaves > lang::max_leaves || size.height > lang::max_levels)
    refuse(fmt::format("a tree of values has at most {} leaves and {} levels",
                       lang::max_leaves, lang::max_levels));
  return new UnisonoValue(parts.session, value, parts.home);
}

/// f(the element as a C++ number) for a scalar that the host may read.
template <class F>
void with_scalar(const UnisonoValue& value, const char* wanted, F&& f) {
  const lang::ArrayCell* array = value.value.array();
  if (!array || array->type.rank() != 0) refuse_kind(value.value, wanted);
  const void* element = tensor_of(value).data;
  with_dtype(array->type.dtype, [&]<DType D>() {
    typename StorageOf<D>::type stored;
    std::memcpy(&stored, element, sizeof stored);
    f(static_cast<typename ComputeOf<D>::type>(stored));
  });
}

}  // namespace
}  // namespace unisono::embed

using namespace unisono;
using namespace unisono::embed;

UnisonoValue* unisono_value_retain(const UnisonoValue* value) {
  return retain(const_cast<UnisonoValue*>(value));
}
void unisono_value_release(UnisonoValue* value) { release(value); }

int32_t unisono_value_kind(const UnisonoValue* value) {
  return value ? kind_of(value->value) : UNISONO_VALUE_NONE;
}

UnisonoError* unisono_value_type(const UnisonoValue* value, const char** type) {
  return guarded([&] {
    const Value& of = value_of(value);
    require(type, "`type`");
    const std::lock_guard lock(value->mutex);
    if (!value->type) value->type = lang::type_name(of);
    *type = value->type->c_str();
  });
}

UnisonoError* unisono_function_signature(const UnisonoValue* function,
                                         const char** signature) {
  return guarded([&] {
    const Value& of = value_of(function);
    require(signature, "`signature`");
    const auto* what = of.get_if<std::shared_ptr<const lang::FunctionValue>>();
    if (!what) refuse_kind(of, "a function");
    const std::lock_guard lock(function->mutex);
    if (!function->signature) function->signature = host::signature_of(**what);
    *signature = function->signature->c_str();
  });
}

UnisonoError* unisono_value_none(UnisonoValue** value) {
  return guarded([&] {
    require(value, "`value`");
    *value = new UnisonoValue(nullptr, lang::NoneValue{});
  });
}

UnisonoError* unisono_value_bool(int truth, UnisonoValue** value) {
  return guarded([&] {
    require(value, "`value`");
    *value = new UnisonoValue(nullptr, lang::BoolValue{truth != 0});
  });
}

UnisonoError* unisono_value_int(int64_t number, UnisonoValue** value) {
  return guarded([&] {
    require(value, "`value`");
    *value = new UnisonoValue(nullptr, lang::IntValue{ir::Dim(number)});
  });
}

UnisonoError* unisono_value_number(double number, UnisonoValue** value) {
  return guarded([&] {
    require(value, "`value`");
    if (!std::isfinite(number))
      refuse("a number without an element type is finite; others are tensors");
    auto cell = std::make_shared<lang::ArrayCell>();
    cell->type = {DType::F64, {}};
    cell->weak = cell->literal = true;
    cell->constant = std::make_shared<const std::vector<uint8_t>>(
        jit::element_bytes(DType::F64, number));
    *value = new UnisonoValue(nullptr, std::move(cell));
  });
}

UnisonoError* unisono_value_text(const char* text, size_t length,
                                 UnisonoValue** value) {
  return guarded([&] {
    require(value, "`value`");
    if (length > 0) require(text, "the text");
    std::string copy(text ? text : "", length);
    for (size_t at = 0; at < copy.size();) {
      const uint32_t bytes = lang::decode_utf8(copy, at).length;
      if (bytes == 0) refuse("the text is not UTF-8");
      at += bytes;
    }
    *value = new UnisonoValue(nullptr, lang::StrValue{std::move(copy)});
  });
}

UnisonoError* unisono_value_tuple(const UnisonoValue* const* items,
                                  size_t count, UnisonoValue** value) {
  return guarded([&] {
    require(value, "`value`");
    Parts parts = parts_of(items, count, "items of a tuple");
    *value = tree(parts, lang::make_tuple(std::move(parts.values)));
  });
}

UnisonoError* unisono_value_record(const char* const* names,
                                   const UnisonoValue* const* fields,
                                   size_t count, UnisonoValue** value) {
  return guarded([&] {
    require(value, "`value`");
    if (count == 0) refuse("a record has at least one field");
    require(names, "the names of fields");
    const Parts parts = parts_of(fields, count, "fields of a record");
    std::vector<std::pair<std::string, Value>> all;
    for (size_t i = 0; i < count; ++i) {
      require(names[i], "the name of a field");
      for (const auto& [name, field] : all)
        if (name == names[i])
          refuse(fmt::format("the field `{}` stands twice", name));
      if (!is_name(names[i]))
        refuse(fmt::format("`{}` is not the name of a field", names[i]));
      all.emplace_back(names[i], parts.values[i]);
    }
    *value = tree(parts, lang::make_record(std::move(all)));
  });
}

UnisonoError* unisono_value_get_bool(const UnisonoValue* value, int* truth) {
  return guarded([&] {
    const Value& of = value_of(value);
    require(truth, "`truth`");
    if (const auto* known = of.get_if<lang::BoolValue>()) {
      *truth = known->value.value_or(false);
      return;
    }
    with_scalar(*value, "a truth value", [&](auto element) {
      if constexpr (std::is_same_v<decltype(element), bool>)
        *truth = element;
      else
        refuse_kind(of, "a truth value");
    });
  });
}

UnisonoError* unisono_value_get_int(const UnisonoValue* value,
                                    int64_t* number) {
  return guarded([&] {
    const Value& of = value_of(value);
    require(number, "`number`");
    if (const auto* known = of.get_if<lang::IntValue>()) {
      *number = known->value.value();
      return;
    }
    with_scalar(*value, "an integer", [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (!std::in_range<int64_t>(element))
          refuse("the number does not fit 64 bits");
        *number = static_cast<int64_t>(element);
      } else {
        refuse_kind(of, "an integer");
      }
    });
  });
}

UnisonoError* unisono_value_get_number(const UnisonoValue* value,
                                       double* number) {
  return guarded([&] {
    const Value& of = value_of(value);
    require(number, "`number`");
    if (const auto* known = of.get_if<lang::IntValue>()) {
      *number = static_cast<double>(known->value.value());
      return;
    }
    with_scalar(*value, "a number", [&](auto element) {
      if constexpr (std::is_same_v<decltype(element), bool>)
        refuse_kind(of, "a number");
      else
        *number = static_cast<double>(element);
    });
  });
}

UnisonoError* unisono_value_get_text(const UnisonoValue* value,
                                     const char** text, size_t* length) {
  return guarded([&] {
    const auto* known = value_of(value).get_if<lang::StrValue>();
    require(text, "`text`");
    if (!known || !known->value) refuse_kind(value->value, "a text");
    *text = known->value->c_str();
    if (length) *length = known->value->size();
  });
}

size_t unisono_value_size(const UnisonoValue* value) {
  if (!value) return 0;
  if (const lang::TupleValue* tuple = value->value.tuple())
    return tuple->items.size();
  if (const lang::RecordValue* record = value->value.record())
    return record->fields.size();
  return 0;
}

UnisonoError* unisono_value_item(const UnisonoValue* value, size_t index,
                                 UnisonoValue** item) {
  return guarded([&] {
    const Value& of = value_of(value);
    require(item, "`item`");
    const lang::TupleValue* tuple = of.tuple();
    const lang::RecordValue* record = of.record();
    if (!tuple && !record) refuse_kind(of, "a tuple or a record");
    const size_t size = unisono_value_size(value);
    if (index >= size)
      refuse(
          fmt::format("there is no item {} in {}", index, lang::type_name(of)));
    *item = new UnisonoValue(
        value->session,
        tuple ? tuple->items[index] : record->fields[index].second,
        value->home);
  });
}

UnisonoError* unisono_value_field(const UnisonoValue* value, const char* name,
                                  UnisonoValue** field) {
  return guarded([&] {
    const lang::RecordValue* record = value_of(value).record();
    require(name, "the name of a field");
    require(field, "`field`");
    if (!record) refuse_kind(value->value, "a record");
    const Value* found = record->find(name);
    if (!found)
      refuse(fmt::format("there is no field `{}` in {}", name,
                         lang::type_name(value->value)));
    *field = new UnisonoValue(value->session, *found, value->home);
  });
}

const char* unisono_value_field_name(const UnisonoValue* value, size_t index) {
  const lang::RecordValue* record = value ? value->value.record() : nullptr;
  return record && index < record->fields.size()
             ? record->fields[index].first.c_str()
             : nullptr;
}
