#include "lang/context/value.h"

#include <algorithm>
#include <iterator>

#include "lang/context/function.h"
#include "lang/context/iterable.h"
#include "lang/context/literals.h"
#include "lang/syntax/ast.h"

namespace unisono::lang {

const Value* RecordValue::find(std::string_view name) const {
  for (const auto& [field, value] : fields)
    if (field == name) return &value;
  return nullptr;
}

TreeSize tree_size(const Value& value) {
  if (const TupleValue* tuple = value.tuple()) return tuple->size;
  if (const RecordValue* record = value.record()) return record->size;
  return {};
}

namespace {
void add_part(TreeSize& whole, const Value& part) {
  const TreeSize size = tree_size(part);
  constexpr size_t most = SIZE_MAX / 2;  // so that a sum of two fits
  whole.leaves = std::min(most, whole.leaves + size.leaves);
  whole.height = std::max(whole.height, size.height + 1);
}
}  // namespace

void TupleValue::append(Value item) {
  add_part(size, item);
  items.push_back(std::move(item));
}

Value make_tuple(std::vector<Value> items) {
  TreeSize size{0, 1};
  for (const Value& item : items) add_part(size, item);
  // It is no constant object, as a `var` may let it grow in its place.
  return std::shared_ptr<const TupleValue>(
      std::make_shared<TupleValue>(TupleValue{std::move(items), size}));
}

Value make_record(std::vector<std::pair<std::string, Value>> fields) {
  TreeSize size{0, 1};
  for (const auto& [name, value] : fields) add_part(size, value);
  return std::make_shared<const RecordValue>(
      RecordValue{std::move(fields), size});
}

namespace {

struct TypeName {
  const ArrayNote& note;

  std::string operator()(const NoneValue&) const { return "none"; }
  std::string operator()(const ArrayValue& a) const {
    return shown_type(*a).to_string() + (note ? note(*a) : "");
  }
  std::string operator()(const IntValue&) const { return "int"; }
  std::string operator()(const BoolValue&) const { return "bool"; }
  std::string operator()(const StrValue&) const { return "str"; }
  std::string operator()(const TypeValue&) const { return "type"; }
  std::string operator()(const std::shared_ptr<const TupleValue>& t) const {
    std::string out = "(";
    for (size_t i = 0; i < t->items.size(); ++i) {
      if (i) out += ", ";
      out += type_name(t->items[i], note);
    }
    return out + (t->items.size() == 1 ? ",)" : ")");
  }
  std::string operator()(const std::shared_ptr<const RecordValue>& r) const {
    std::string out = "(";
    for (size_t i = 0; i < r->fields.size(); ++i) {
      if (i) out += ", ";
      out += r->fields[i].first + ": " + type_name(r->fields[i].second, note);
    }
    return out + ")";
  }
  std::string operator()(const std::shared_ptr<const FunctionValue>& f) const {
    return "function " + f->name;
  }
  std::string operator()(const RangeValue&) const { return "range"; }
  std::string operator()(const DeviceValue&) const { return "device"; }
  std::string operator()(const AxisValue& a) const {
    return "axis " + a.axis->name;
  }
  std::string operator()(const SplitValue&) const { return "split"; }
  std::string operator()(const ModuleValue& m) const {
    return "module " + m.name;
  }
  std::string operator()(const TypeAliasValue&) const { return "type"; }
  std::string operator()(const ManyValue& m) const {
    return "(" + type_name(*m.item, note) + ", ...)";
  }
  std::string operator()(const IterableValue& i) const {
    return i.iterable->type_name();
  }
  std::string operator()(const ProgressValue& p) const {
    return type_name(*p.over, note);
  }
  std::string operator()(const UnsetValue&) const { return "nothing yet"; }
};

}  // namespace

std::string type_name(const Value& value) { return type_name(value, {}); }

std::string type_name(const Value& value, const ArrayNote& note) {
  return std::visit(TypeName{note}, value.any);
}

std::string open_type_name(const Value& value) {
  const std::function<Value(const Value&)> any =
      [&](const Value& leaf) -> Value {
    if (const auto* many = leaf.get_if<ManyValue>())
      return ManyValue{
          std::make_shared<const Value>(map_leaves(*many->item, any))};
    const ArrayCell* array = leaf.array();
    if (!array) return leaf;
    auto type = std::make_shared<ArrayCell>(*array);
    for (ir::Dim& size : type->type.shape)
      if (size.is_open()) size = ir::Dim::symbol(0, "?", /*open=*/true);
    return ArrayValue(type);
  };
  return type_name(map_leaves(value, any));
}

Value map_leaves(const Value& tree,
                 const std::function<Value(const Value&)>& f) {
  if (const TupleValue* tuple = tree.tuple()) {
    std::vector<Value> items;
    items.reserve(tuple->items.size());
    for (const Value& item : tuple->items) items.push_back(map_leaves(item, f));
    return make_tuple(std::move(items));
  }
  if (const RecordValue* record = tree.record()) {
    std::vector<std::pair<std::string, Value>> fields;
    fields.reserve(record->fields.size());
    for (const auto& [name, value] : record->fields)
      fields.emplace_back(name, map_leaves(value, f));
    return make_record(std::move(fields));
  }
  return f(tree);
}

void for_each_leaf(const Value& tree,
                   const std::function<void(const Value&)>& f) {
  if (const TupleValue* tuple = tree.tuple())
    for (const Value& item : tuple->items) for_each_leaf(item, f);
  else if (const RecordValue* record = tree.record())
    for (const auto& [name, value] : record->fields) for_each_leaf(value, f);
  else
    f(tree);
}

AxisSet join(const AxisSet& a, const AxisSet& b) {
  AxisSet out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(),
                 std::back_inserter(out));
  return out;
}

DerivativeArguments join(const DerivativeArguments& a,
                         const DerivativeArguments& b) {
  DerivativeArguments out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(),
                 std::back_inserter(out));
  return out;
}

void copy_facts(const ArrayCell& from, ArrayCell& to) {
  to.varies = from.varies;
  to.varies_from = from.varies_from;
  to.depends = from.depends;
  to.linearity = from.linearity;
}

}  // namespace unisono::lang
