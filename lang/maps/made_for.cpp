#include "lang/maps/made_for.h"

#include <algorithm>

namespace unisono::lang {
namespace {

template <class A, class B>
bool same_owner(const A& a, const B& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

bool same_items(const std::vector<Value>& a, const std::vector<Value>& b,
                Counterparts& counterparts) {
  return std::ranges::equal(a, b, [&](const Value& x, const Value& y) {
    return same_for_code(x, y, counterparts);
  });
}

bool same_fields(const RecordValue& a, const RecordValue& b,
                 Counterparts& counterparts) {
  return std::ranges::equal(
      a.fields, b.fields, [&](const auto& x, const auto& y) {
        return x.first == y.first &&
               same_for_code(x.second, y.second, counterparts);
      });
}

bool same_array(const ArrayCell& known, const ArrayCell& now) {
  if (&known == &now) return true;
  if (known.weak != now.weak || !(known.type == now.type)) return false;
  if (known.weak && known.literal != now.literal) return false;
  if (!known.constant) return true;
  return now.constant &&
         (known.constant == now.constant || *known.constant == *now.constant);
}

/// Calls `f` for each function written in the language that `function` is made
/// of, as long as it gives true.
template <class F>
bool for_each_closure(const FunctionValue& function, const F& f) {
  if (const auto* closure = std::get_if<Closure>(&function.what))
    return f(*closure);
  if (const auto* map = std::get_if<Transformed>(&function.what))
    return for_each_closure(*map->inner, f);
  if (const auto* made = std::get_if<Differentiated>(&function.what))
    return for_each_closure(*made->inner, f) &&
           (!made->rule || for_each_closure(*made->rule, f));
  return true;
}

bool same_function(const FunctionValue& a, const FunctionValue& b,
                   Counterparts& counterparts) {
  if (&a == &b)
    return for_each_closure(a, [&](const Closure& closure) {
      return counterparts.match(closure.environment, closure.environment);
    });
  if (a.what.index() != b.what.index()) return false;
  if (const auto* closure = std::get_if<Closure>(&a.what)) {
    const auto& other = std::get<Closure>(b.what);
    return closure->definition == other.definition &&
           closure->lambda == other.lambda &&
           counterparts.match(closure->environment, other.environment);
  }
  if (const auto* builtin = std::get_if<const Builtin*>(&a.what))
    return *builtin == std::get<const Builtin*>(b.what);
  if (const auto* map = std::get_if<Transformed>(&a.what)) {
    const auto& other = std::get<Transformed>(b.what);
    return map->kind == other.kind && map->state == other.state &&
           same_function(*map->inner, *other.inner, counterparts);
  }
  // What runs has no function of which only the type is known.
  const auto& made = std::get<Differentiated>(a.what);
  const auto& other = std::get<Differentiated>(b.what);
  return made.kind == other.kind && made.wrt == other.wrt &&
         made.wrt_is_tuple == other.wrt_is_tuple && made.aux == other.aux &&
         same_function(*made.inner, *other.inner, counterparts) &&
         (!made.rule || same_function(*made.rule, *other.rule, counterparts));
}

struct SameForCode {
  const Value& other;
  Counterparts& counterparts;

  bool operator()(const NoneValue&) const { return true; }
  bool operator()(const UnsetValue&) const { return true; }
  bool operator()(const ArrayValue& a) const {
    return same_array(*a, *other.array());
  }
  bool operator()(const IntValue& a) const {
    return a.value == other.get_if<IntValue>()->value;
  }
  bool operator()(const BoolValue& a) const {
    return a.value == other.get_if<BoolValue>()->value;
  }
  bool operator()(const StrValue& a) const {
    return a.value == other.get_if<StrValue>()->value;
  }
  bool operator()(const TypeValue& a) const {
    const auto& b = *other.get_if<TypeValue>();
    return a.type == b.type && a.note == b.note;
  }
  bool operator()(const TypeAliasValue& a) const {
    const auto& b = *other.get_if<TypeAliasValue>();
    return a.definition == b.definition &&
           counterparts.match(a.environment, b.environment);
  }
  bool operator()(const std::shared_ptr<const TupleValue>& a) const {
    return same_items(a->items, other.tuple()->items, counterparts);
  }
  bool operator()(const std::shared_ptr<const RecordValue>& a) const {
    return same_fields(*a, *other.record(), counterparts);
  }
  bool operator()(const std::shared_ptr<const FunctionValue>& a) const {
    return same_function(*a,
                         **other.get_if<std::shared_ptr<const FunctionValue>>(),
                         counterparts);
  }
  bool operator()(const RangeValue& a) const {
    return same_items(*a.start_stop_step,
                      *other.get_if<RangeValue>()->start_stop_step,
                      counterparts);
  }
  bool operator()(const DeviceValue& a) const {
    return a.index == other.get_if<DeviceValue>()->index;
  }
  bool operator()(const AxisValue& a) const {
    return a.axis->id == other.get_if<AxisValue>()->axis->id;
  }
  bool operator()(const SplitValue& a) const {
    return a.axis == other.get_if<SplitValue>()->axis;
  }
  bool operator()(const ManyValue& a) const {
    return same_for_code(*a.item, *other.get_if<ManyValue>()->item,
                         counterparts);
  }
  bool operator()(const IterableValue& a) const {
    return a.iterable == other.get_if<IterableValue>()->iterable;
  }
  bool operator()(const ProgressValue& a) const {
    return same_for_code(*a.over, *other.get_if<ProgressValue>()->over,
                         counterparts);
  }
  bool operator()(const ModuleValue& a) const {
    return a.environment == other.get_if<ModuleValue>()->environment;
  }
};

ArrayValue leaf_of(const Value& tree, int wanted) {
  if (const auto* array = tree.get_if<ArrayValue>()) return *array;
  ArrayValue found;
  int leaf = 0;
  for_each_leaf(tree, [&](const Value& value) {
    if (leaf++ == wanted) found = *value.get_if<ArrayValue>();
  });
  return found;
}

/// What a name read by the traced function is now, or null if it is gone or
/// something else.
const Value* value_now(const OuterName& read, Counterparts& counterparts) {
  const std::shared_ptr<Environment> environment =
      counterparts.now(read.environment);
  if (!environment) return nullptr;
  const Binding* binding = environment->find(read.name).first;
  if (!binding || !same_for_code(read.value, binding->value, counterparts))
    return nullptr;
  return &binding->value;
}

/// The leaf of the names read that is this array.
Capture find_capture(const std::vector<OuterRead>& reads,
                     const ArrayValue& array) {
  Capture capture;
  for (size_t i = 0; i < reads.size(); ++i) {
    int leaf = 0;
    for_each_leaf(reads[i].value, [&](const Value& value) {
      if (value.array() == array.get() && capture.name < 0) {
        capture.name = static_cast<int>(i);
        capture.leaf = leaf;
      }
      ++leaf;
    });
    if (capture.name >= 0) return capture;
  }
  capture.fixed = array;  // made while the function was, and held by it alone
  return capture;
}

}  // namespace

// ---- environments

/// The environment and those around it stand for themselves.
bool Counterparts::stays(const Environment& environment) {
  for (const auto* each = &environment; each; each = each->parent.get()) {
    if (std::ranges::find(same_, each) != same_.end()) return true;
    for (const auto& [known, counterpart] : pairs_)
      if (same_owner(known, each->weak_from_this())) return false;
    same_.push_back(each);
  }
  return true;
}

bool Counterparts::match(const Environments& known,
                         const std::shared_ptr<Environment>& now) {
  const std::shared_ptr<Environment>* environment = &now;
  for (const std::weak_ptr<Environment>& before : known) {
    if (!*environment) return false;
    if (same_owner(before, *environment)) return stays(**environment);
    for (const auto& [each, counterpart] : pairs_)
      if (same_owner(each, before)) return counterpart == *environment;
    for (const Environment* each : same_)
      if (same_owner(before, each->weak_from_this())) return false;
    pairs_.emplace_back(before, *environment);
    environment = &(*environment)->parent;
  }
  return !*environment;
}

bool Counterparts::match(const std::shared_ptr<Environment>& known,
                         const std::shared_ptr<Environment>& now) {
  if (known == now) return stays(*now);
  Environments around;
  for (const auto* each = &known; *each; each = &(*each)->parent)
    around.push_back(*each);
  return match(around, now);
}

std::shared_ptr<Environment> Counterparts::now(
    const std::weak_ptr<Environment>& known) const {
  for (const auto& [each, counterpart] : pairs_)
    if (same_owner(each, known)) return counterpart;
  return known.lock();
}

// ---- values

bool same_for_code(const Value& a, const Value& b, Counterparts& counterparts) {
  const ArrayCell* known = a.array();
  if (const auto* now = b.get_if<IntValue>();
      now && known && known->int_argument)
    return now->value.value() >= known->int_argument->low &&
           now->value.value() <= known->int_argument->high;
  return a.any.index() == b.any.index() &&
         std::visit(SameForCode{b, counterparts}, a.any);
}

Value types_of(const Value& value, bool keep_constants) {
  return map_leaves(value, [&](const Value& leaf) -> Value {
    const ArrayCell* array = leaf.array();
    if (!array) return leaf;
    auto type = std::make_shared<ArrayCell>();
    type->type = array->type;
    type->weak = array->weak;
    type->int_argument = array->int_argument;
    // Code for a literal is none for what a `var` holds, though neither's value
    // may count.
    type->literal = array->literal || !array->call_numbers.empty();
    if (array->literal || (keep_constants && !array->weak))
      type->constant = array->constant;
    return type;
  });
}

// ---- calls

void MadeFor::set_call(const FunctionValue& function,
                       const Positional& given_positional,
                       const Named& given_named) {
  for_each_closure(function, [&](const Closure& closure) {
    auto& all = around.emplace_back();
    for (const auto* each = &closure.environment; *each;
         each = &(*each)->parent)
      all.push_back(*each);
    return true;
  });
  for (const CallArgument& argument : given_positional)
    positional.push_back(types_of(argument.value));
  for (const auto& [name, argument] : given_named)
    named.emplace_back(name, types_of(argument.value));
}

void MadeFor::set_trace(const std::vector<OuterRead>& reads,
                        const std::vector<ArrayValue>& captured,
                        const Value& result) {
  for_each_leaf(result, [&](const Value& leaf) {
    holds_functions |= leaf.is<std::shared_ptr<const FunctionValue>>();
  });
  for (const ArrayValue& capture : captured)
    captures.push_back(find_capture(reads, capture));
  for (const OuterRead& read : reads)
    names.push_back({read.environment, read.name, types_of(read.value, true)});
}

bool MadeFor::same_arguments(const Positional& given_positional,
                             const Named& given_named,
                             Counterparts& counterparts) const {
  if (positional.size() != given_positional.size()) return false;
  if (named.size() != given_named.size()) return false;
  for (size_t i = 0; i < positional.size(); ++i)
    if (!same_for_code(positional[i], given_positional[i].value, counterparts))
      return false;
  for (size_t i = 0; i < named.size(); ++i) {
    if (named[i].first != given_named[i].first) return false;
    if (!same_for_code(named[i].second, given_named[i].second.value,
                       counterparts))
      return false;
  }
  return true;
}

bool MadeFor::serves(const FunctionValue& function,
                     const Positional& given_positional,
                     const Named& given_named,
                     std::vector<ArrayValue>& captured) const {
  Counterparts counterparts;
  auto next = around.begin();
  const bool same_code =
      for_each_closure(function, [&](const Closure& closure) {
        return next != around.end() &&
               counterparts.match(*next++, closure.environment);
      });
  if (!same_code || next != around.end() ||
      !same_arguments(given_positional, given_named, counterparts))
    return false;
  std::vector<const Value*> values;
  values.reserve(names.size());
  for (const OuterName& read : names) {
    values.push_back(value_now(read, counterparts));
    if (!values.back()) return false;
  }
  if (holds_functions && !counterparts.empty()) return false;
  captured.clear();
  for (const Capture& capture : captures)
    captured.push_back(capture.name < 0
                           ? capture.fixed
                           : leaf_of(*values[capture.name], capture.leaf));
  return true;
}

}  // namespace unisono::lang
