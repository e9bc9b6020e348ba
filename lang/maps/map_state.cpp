#include "lang/maps/map_state.h"

#include <algorithm>

#include "lang/context/builtin.h"
#include "lang/context/environment.h"

namespace unisono::lang {
namespace {

bool same_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::ranges::equal(a, b, same_for_code);
}

bool same_fields(const RecordValue& a, const RecordValue& b) {
  return std::ranges::equal(
      a.fields, b.fields, [](const auto& x, const auto& y) {
        return x.first == y.first && same_for_code(x.second, y.second);
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

bool same_function(const FunctionValue& a, const FunctionValue& b) {
  if (&a == &b) return true;
  if (a.what.index() != b.what.index()) return false;
  if (const auto* closure = std::get_if<Closure>(&a.what)) {
    const auto& other = std::get<Closure>(b.what);
    return closure->definition == other.definition &&
           closure->lambda == other.lambda &&
           closure->environment == other.environment;
  }
  if (const auto* builtin = std::get_if<const Builtin*>(&a.what))
    return *builtin == std::get<const Builtin*>(b.what);
  if (const auto* map = std::get_if<Transformed>(&a.what)) {
    const auto& other = std::get<Transformed>(b.what);
    return map->kind == other.kind && map->state == other.state &&
           same_function(*map->inner, *other.inner);
  }
  if (const auto* made = std::get_if<Differentiated>(&a.what)) {
    const auto& other = std::get<Differentiated>(b.what);
    return made->kind == other.kind && made->wrt == other.wrt &&
           made->wrt_is_tuple == other.wrt_is_tuple && made->aux == other.aux &&
           !made->rule == !other.rule &&
           same_function(*made->inner, *other.inner) &&
           (!made->rule || same_function(*made->rule, *other.rule));
  }
  return false;
}

struct SameForCode {
  const Value& other;

  bool operator()(const NoneValue&) const { return true; }
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
    return a.definition == b.definition && a.environment == b.environment;
  }
  bool operator()(const std::shared_ptr<const TupleValue>& a) const {
    return same_items(a->items, other.tuple()->items);
  }
  bool operator()(const std::shared_ptr<const RecordValue>& a) const {
    return same_fields(*a, *other.record());
  }
  bool operator()(const std::shared_ptr<const FunctionValue>& a) const {
    return same_function(
        *a, **other.get_if<std::shared_ptr<const FunctionValue>>());
  }
  bool operator()(const RangeValue& a) const {
    return same_items(*a.start_stop_step,
                      *other.get_if<RangeValue>()->start_stop_step);
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
    return same_for_code(*a.item, *other.get_if<ManyValue>()->item);
  }
  bool operator()(const IterableValue& a) const {
    return a.iterable == other.get_if<IterableValue>()->iterable;
  }
  bool operator()(const ProgressValue& a) const {
    return same_for_code(*a.over, *other.get_if<ProgressValue>()->over);
  }
  bool operator()(const ModuleValue& a) const {
    return a.environment == other.get_if<ModuleValue>()->environment;
  }
};

}  // namespace

bool same_for_code(const Value& a, const Value& b) {
  const ArrayCell* known = a.array();
  if (const auto* now = b.get_if<IntValue>();
      now && known && known->int_argument)
    return now->value.value() >= known->int_argument->low &&
           now->value.value() <= known->int_argument->high;
  return a.any.index() == b.any.index() && std::visit(SameForCode{b}, a.any);
}

std::shared_ptr<AxisInfo> anonymous_axis(Walk& walk, std::string map,
                                         Span where) {
  auto axis = std::make_shared<AxisInfo>();
  axis->id = walk.new_axis_id();
  axis->any_size = ir::Dim::symbol(walk.new_symbol_id(), "members");
  axis->name = std::move(map);
  axis->declared = where;
  axis->anonymous = true;
  return axis;
}

bool MapCache::FunctionKey::operator==(const FunctionKey& other) const {
  const auto same_environment = [](const auto& a, const auto& b) {
    return !a.owner_before(b) && !b.owner_before(a);
  };
  return code == other.code &&
         same_environment(environment, other.environment) &&
         std::ranges::equal(
             made, other.made, [&](const Made& a, const Made& b) {
               return a.is_map == b.is_map && a.kind == b.kind &&
                      a.wrt == b.wrt && a.wrt_is_tuple == b.wrt_is_tuple &&
                      a.aux == b.aux && a.rule == b.rule &&
                      same_environment(a.map, b.map);
             });
}

bool MapCache::FunctionKey::expired() const {
  return (has_environment && environment.expired()) ||
         std::ranges::any_of(made, [](const Made& m) {
           return (m.is_map && m.map.expired()) ||
                  std::ranges::any_of(m.rule, &FunctionKey::expired);
         });
}

/// Through the functions that it is made of, to the one that is written.
std::optional<MapCache::FunctionKey> MapCache::key_of(
    const FunctionValue& function) {
  FunctionKey key;
  const FunctionValue* inner = &function;
  while (true) {
    if (const auto* map = std::get_if<Transformed>(&inner->what)) {
      key.made.push_back({.is_map = true, .map = map->state});
      inner = map->inner.get();
    } else if (const auto* made = std::get_if<Differentiated>(&inner->what)) {
      key.made.push_back({.kind = made->kind,
                          .wrt = made->wrt,
                          .wrt_is_tuple = made->wrt_is_tuple,
                          .aux = made->aux});
      if (made->rule) {
        std::optional<FunctionKey> rule = key_of(*made->rule);
        if (!rule) return std::nullopt;
        key.made.back().rule.push_back(std::move(*rule));
      }
      inner = made->inner.get();
    } else {
      break;
    }
  }
  if (const auto* closure = std::get_if<Closure>(&inner->what)) {
    key.code = closure->definition
                   ? static_cast<const void*>(closure->definition)
                   : closure->lambda;
    key.environment = closure->environment;
    key.has_environment = true;
  } else if (const auto* builtin = std::get_if<const Builtin*>(&inner->what)) {
    key.code = *builtin;
  } else {
    return std::nullopt;
  }
  return key;
}

std::optional<MapCache::Key> MapCache::key_of(const Transformed& map) {
  std::optional<FunctionKey> function = key_of(*map.inner);
  if (!function) return std::nullopt;
  return Key{map.kind, std::move(*function), map.in_axes, map.out_axes,
             map.over, map.donated};
}

std::shared_ptr<MapState> MapCache::find(const Transformed& map) {
  states_.erase_if(
      [](const auto& item) { return item.first.function.expired(); });
  const std::optional<Key> key = key_of(map);
  if (!key) return nullptr;
  const auto* found = states_.find_if([&](const auto& item) {
    const Key& other = item.first;
    return other.kind == key->kind && other.function == key->function &&
           same_for_code(other.in_axes, key->in_axes) &&
           same_for_code(other.out_axes, key->out_axes) &&
           same_for_code(other.over, key->over) &&
           other.donated == key->donated;
  });
  return found ? found->second : nullptr;
}

std::shared_ptr<MapState> MapCache::insert(const Transformed& map,
                                           std::shared_ptr<MapState> state) {
  if (auto key = key_of(map)) states_.put({std::move(*key), state});
  return state;
}

std::shared_ptr<const AxisInfo> MapCache::innermost(Walk& walk) {
  if (!innermost_) innermost_ = anonymous_axis(walk, "a map around it", {});
  return innermost_;
}

ir::AxisId MapCache::nested_id(Walk& walk,
                               const std::shared_ptr<const AxisInfo>& axis,
                               int64_t members) {
  const Nested* known = nested_.find_if([&](const Nested& nested) {
    return nested.axis->id == axis->id && nested.members == members;
  });
  if (!known) known = &nested_.put({walk.new_axis_id(), axis, members});
  return known->id;
}

const MapCache::Nested* MapCache::find_nested(ir::AxisId id) {
  return nested_.find_if([&](const Nested& nested) { return nested.id == id; });
}

MapCache& map_cache(Walk& walk) {
  if (!walk.map_cache) walk.map_cache = std::make_shared<MapCache>();
  return *walk.map_cache;
}

}  // namespace unisono::lang
