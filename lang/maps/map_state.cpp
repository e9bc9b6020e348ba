#include "lang/maps/map_state.h"

#include <algorithm>

#include "jit/ir/hash.h"
#include "lang/context/builtin.h"
#include "lang/context/environment.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
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

void MapCache::FunctionKey::forget_environments() {
  environment.reset();
  has_environment = false;
  for (Made& each : made)
    for (FunctionKey& rule : each.rule) rule.forget_environments();
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
  if (map.kind == Transformed::Kind::jit) function->forget_environments();
  return Key{map.kind, std::move(*function), map.in_axes, map.out_axes,
             map.over, map.donated};
}

std::shared_ptr<MapState> MapCache::find(const Transformed& map) {
  states_.erase_if(
      [](const auto& item) { return item.first.function.expired(); });
  const std::optional<Key> key = key_of(map);
  if (!key) return nullptr;
  Counterparts counterparts;  // of no function: axes have none
  const auto* found = states_.find_if([&](const auto& item) {
    const Key& other = item.first;
    return other.kind == key->kind && other.function == key->function &&
           same_for_code(other.in_axes, key->in_axes, counterparts) &&
           same_for_code(other.out_axes, key->out_axes, counterparts) &&
           same_for_code(other.over, key->over, counterparts) &&
           other.donated == key->donated;
  });
  return found ? found->second : nullptr;
}

std::shared_ptr<MapState> MapCache::insert(const Transformed& map,
                                           std::shared_ptr<MapState> state) {
  if (auto key = key_of(map)) states_.put({std::move(*key), state});
  return state;
}

const ScanTrace* MapCache::find_scan(const FunctionValue& function,
                                     bool backwards, bool stacks,
                                     const MadeFor::Positional& call,
                                     std::vector<ArrayValue>& captured) {
  FunctionKey key = key_of(function).value();  // one that runs has a key
  key.forget_environments();
  const auto* found = scans_.find_if([&](const auto& item) {
    const ScanTrace& trace = item.second;
    return trace.backwards == backwards && trace.stacks == stacks &&
           item.first == key &&
           trace.made_for.serves(function, call, {}, captured);
  });
  return found ? &found->second : nullptr;
}

void MapCache::keep_scan(const FunctionValue& function, ScanTrace trace) {
  FunctionKey key = key_of(function).value();
  key.forget_environments();
  scans_.put({std::move(key), std::move(trace)});
}

const Executable* MapCache::find_statement(const ir::Graph& graph,
                                           int compiled_for) {
  const auto same_node = [](const ir::Node& a, const ir::Node& b) {
    return ir::equal(a, b) && a.source == b.source;
  };
  const auto* found = statements_.find_if([&](const KeptStatement& known) {
    return known.compiled_for == compiled_for &&
           known.graph.outputs == graph.outputs &&
           std::ranges::equal(known.graph.nodes, graph.nodes, same_node);
  });
  return found ? &found->executable : nullptr;
}

void MapCache::keep_statement(KeptStatement statement) {
  statements_.put(std::move(statement));
}

bool MapCache::is_evaluated(const ir::Graph& graph, double once,
                            double compile) {
  const double most =
      compile * static_cast<double>(tuning().most_evaluated_share) / 100;
  if (once > most) return false;
  size_t key = 0;
  const auto add = [&key](size_t value) {
    key = key * 0x9e3779b97f4a7c15 + value;
  };
  for (const ir::Node& node : graph.nodes) add(ir::hash(node));
  for (const ir::NodeId output : graph.outputs)
    add(static_cast<size_t>(output));
  constexpr size_t graphs = 4096;
  if (evaluated_.size() >= graphs && !evaluated_.contains(key))
    evaluated_.clear();
  double& spent = evaluated_[key];
  if (spent + once > most) return false;
  spent += once;
  return true;
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
