// `pmap` and `jit` at the top level: the first call with some types traces the
// function for one member and compiles it; further calls place their arrays and
// run.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "jit/partition/map_graph.h"
#include "lang/context/processes.h"
#include "lang/context/scope.h"
#include "lang/context/under_way.h"
#include "lang/maps/donation.h"
#include "lang/maps/map_call.h"
#include "lang/maps/map_mesh.h"
#include "lang/maps/map_state.h"
#include "lang/maps/typed_function.h"
#include "lang/ops/print_value.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/kept_copies.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

using Named = std::vector<std::pair<std::string, CallArgument>>;

// ---- finding what was compiled

/// The entry for this call, moved to the front, and the arrays that it
/// captures; null if there is none.
MapEntry* find_entry(const MapCallee& callee, int compiled_for,
                     const std::vector<CallArgument>& positional,
                     const Named& named, std::vector<ArrayValue>& captures) {
  const auto* found = callee.map.state->entries.find_if([&](const auto& entry) {
    return entry->compiled_for == compiled_for &&
           entry->made_for.serves(*callee.map.inner, positional, named,
                                  captures);
  });
  return found ? found->get() : nullptr;
}

// ---- making it

/// An array on the map's mesh; `cuts` says which of its axes is cut along each
/// of the mesh's.
ArrayLayout place(const ir::Type& type, const jit::MemberGraph& map,
                  const std::vector<int>& cuts,
                  const std::vector<Device*>& devices) {
  // On one device, a block is the whole.
  if (devices.size() == 1)
    return {type.dtype, type.sizes(), Sharding{-1, devices, {}}};
  std::vector<MeshCut> mesh;
  for (size_t i = 0; i < cuts.size(); ++i)
    mesh.push_back({map.mesh[i].size, cuts[i]});
  return {type.dtype, type.sizes(),
          Sharding::on_mesh(std::move(mesh), devices)};
}

/// The axes of a map of maps by which errors name a member. Where a device has
/// several members along an axis it does not know which one failed. Axes of a
/// mesh are declared, so all have names.
std::vector<MapEntry::Place> member_places(Walk& walk,
                                           const jit::MemberGraph& map,
                                           const AxisInfo& outermost) {
  std::vector<MapEntry::Place> places;
  if (map.axes.size() < 2) return places;
  std::set<std::string> several;
  for (const jit::MapAxis& axis : map.axes) {
    const MapCache::Nested* nested = map_cache(walk).find_nested(axis.id);
    const AxisInfo& info = nested ? *nested->axis : outermost;
    if (axis.per_device != 1) several.insert(info.name);
    MapEntry::Place place{info.name, 1, axis.devices};
    for (size_t i = jit::mesh_axis(map, axis) + 1; i < map.mesh.size(); ++i)
      place.stride *= map.mesh[i].size;
    const bool again = std::ranges::any_of(
        places, [&](const auto& known) { return known.axis == info.name; });
    if (!again) places.push_back(std::move(place));
  }
  std::erase_if(
      places, [&](const auto& place) { return several.contains(place.axis); });
  return places;
}

/// Finds the devices of a traced graph, places its arrays and compiles it (or
/// keeps it for the reference evaluator). `outermost` is the axis of the map
/// that it is one member of, or null.
void prepare(Walk& walk, jit::MemberGraph map, const AxisInfo* outermost,
             MapEntry& entry, Span where) {
  Executable& executable = entry.executable;
  executable.names_devices = true;
  executable.devices = complete_mesh(walk, map, outermost, where);
  if (outermost) entry.places = member_places(walk, map, *outermost);
  for (size_t i = 0; i < map.graph.inputs.size(); ++i)
    executable.inputs.push_back(place(jit::whole_input(map, i), map,
                                      jit::input_cuts(map, i),
                                      executable.devices));
  for (size_t i = 0; i < map.graph.outputs.size(); ++i)
    executable.outputs.push_back(std::make_shared<const ArrayLayout>(
        place(jit::whole_output(map, i), map, jit::output_cuts(map, i),
              executable.devices)));
  executable.donated.resize(executable.inputs.size(), false);
  if (map.members() == 0) return;  // nothing will run
  if (walk.machine().reference_only)
    executable.member = std::make_shared<jit::MemberGraph>(std::move(map));
  else
    compile(walk, map, executable, where);
}

/// Traces and compiles one call.
class EntryBuilder {
 public:
  EntryBuilder(Walk& walk, const MapCallee& callee, Span where)
      : walk_(walk), callee_(callee), where_(where) {}

  /// `captures` are then the arrays that it captures.
  std::unique_ptr<MapEntry> build(const std::vector<CallArgument>& positional,
                                  const Named& named,
                                  std::vector<ArrayValue>& captures) {
    bool ints = true;
    while (!attempt(positional, named, ints, captures)) continue;
    prepare(walk_, std::move(map_), callee_.axis.get(), *entry_, where_);
    return std::move(entry_);
  }

 private:
  /// Traces the call with arrays for the numbers that need not be known. False
  /// if another attempt has to know more.
  bool attempt(const std::vector<CallArgument>& given, const Named& given_named,
               bool& ints, std::vector<ArrayValue>& captures) {
    KnownNumbers& known = callee_.map.state->known;
    ints = ints && !known.ints;
    NumberAttempt attempt(walk_, known, ints, where_);
    std::vector<CallArgument> positional = given;
    Named named = given_named;
    for (CallArgument& a : positional) a.value = attempt.next(a.value);
    for (auto& [name, a] : named) a.value = attempt.next(a.value);
    try {
      captures = trace_call(positional, named);
    } catch (const Failure& failure) {
      if (!attempt.given_up(failure, known)) throw;
      return false;
    }
    Counterparts counterparts;
    if (!ints ||
        entry_->made_for.same_arguments(given, given_named, counterparts))
      return true;
    ints = false;  // an element type that is asked for does not hold one
    return false;
  }

  std::vector<ArrayValue> trace_call(std::vector<CallArgument> positional,
                                     Named named) {
    entry_ = std::make_unique<MapEntry>();
    map_ = {};
    entry_->made_for.set_call(*callee_.map.inner, positional, named);
    const BoundCall call = bind_call(walk_, callee_, std::move(positional),
                                     std::move(named), where_);
    entry_->executable.donated = donated_inputs(callee_, call);
    return trace(call);
  }

  std::vector<ArrayValue> trace(const BoundCall& call) {
    jit::MapAxis axis;
    axis.id = callee_.axis ? callee_.axis->id : 0;
    axis.devices = call.layout.devices;
    axis.per_device = entry_->per_device = call.layout.per_device.value();
    BoundResult result;
    std::vector<OuterRead> reads;
    ContextScope recording(walk_);
    recording->outer_reads = &reads;
    const auto scope = walk_.trace([&] {
      InsideMap inside(walk_, callee_.axis, call.layout.members, true, where_,
                       call.inputs);
      std::vector<ArrayValue> members;
      for (const MapInput& input : call.inputs) {
        const bool whole = input.entry.is_none();
        const ArrayValue member = walk_.scope()->add_parameter(
            input.member, member_varies(input, callee_.axis.get()),
            whole ? input.value->varies_from : input.where);
        member->weak = whole && input.value->weak;
        member->int_argument = input.value->int_argument;
        member->call_numbers = input.value->call_numbers;
        // A literal that has to be known is itself; its parameter is not used.
        members.push_back(whole && input.value->literal ? input.value : member);
      }
      result = call_member(walk_, callee_, call, members, where_);
      std::vector<ArrayValue> values;
      for (const MapOutput& output : result.outputs)
        values.push_back(output.value);
      map_.graph = walk_.scope()->finish(values);
    });
    for (const MapInput& input : call.inputs)
      axis.inputs.push_back(input.entry);
    axis.inputs.resize(axis.inputs.size() + scope->captures().size());
    entry_->made_for.set_trace(reads, scope->captures(), result.tree);
    for (const MapOutput& output : result.outputs)
      axis.outputs.push_back(output.entry);
    if (callee_.axis) map_.axes.push_back(std::move(axis));
    entry_->result = types_of(result.tree);
    return scope->captures();
  }

  Walk& walk_;
  const MapCallee& callee_;
  Span where_;
  std::unique_ptr<MapEntry> entry_;
  jit::MemberGraph map_;
};

// ---- running it

/// Fails as a map does that has an error of the machine or of compiled code.
/// It may outlive the map.
struct MapFailure {
  Walk& walk;
  bool is_jit;
  int64_t per_device;
  Span where;
  std::vector<MapEntry::Place> places;
  std::vector<Device*> devices;

  /// Programs count devices along the axis, and members on the device.
  /// `jit` has one device, which is not worth words.
  void operator()(Error error) const {
    if (is_jit) {
      if (error.kind != Error::Kind::device_lost && devices.size() == 1)
        error.device = -1;
      error.member = -1;
    }
    const std::string member = member_name(error);
    if (error.device >= 0) {
      if (error.member >= 0) error.member += error.device * per_device;
      error.device = devices[error.device]->index();
      for (int& device : error.missing) device = devices[device]->index();
    }
    if (member.empty()) walk.fail(error, where);
    const Device& device = *walk.machine().runtime->devices()[error.device];
    error.device = -1;
    try {
      walk.fail(error, where);
    } catch (Failure& failure) {
      failure.diagnostic.add_fact(
          fmt::format("on {}, member {}", device.name(), member));
      throw;
    }
  }

 private:
  /// "rows=1, cols=0", of an error in a map of maps; else nothing.
  std::string member_name(const Error& error) const {
    std::string name;
    const bool of_member = error.kind == Error::Kind::integer_division ||
                           error.kind == Error::Kind::index_out_of_bounds ||
                           error.kind == Error::Kind::check_failed;
    if (error.device < 0 || !of_member) return name;
    for (const MapEntry::Place& place : places)
      name += fmt::format("{}{}={}", name.empty() ? "" : ", ", place.axis,
                          error.device / place.stride % place.size);
    return name;
  }
};

/// One run of an entry.
class MapRun {
 public:
  MapRun(Walk& walk, const MapEntry& entry, bool is_jit, Span where)
      : walk_(walk),
        entry_(entry),
        executable_(entry.executable),
        is_jit_(is_jit),
        where_(where),
        owns_(
            std::ranges::count(executable_.donated, true) > 0 ||
            (executable_.program && !executable_.program->host_calls.empty())) {
    const size_t count = executable_.inputs.size();
    inputs_.reserve(count);
    if (owns_) passed_.reserve(count);
  }

  /// The caller holds the arguments until this has run, and so the captures.
  void add_arguments(const std::vector<CallArgument>& positional,
                     const Named& named) {
    for (size_t i = 0; i < positional.size(); ++i)
      add_leaves(positional[i].value, entry_.made_for.positional[i], false,
                 positional[i].where);
    for (size_t i = 0; i < named.size(); ++i)
      add_leaves(named[i].second.value, entry_.made_for.named[i].second, false,
                 named[i].second.where);
  }

  void add_captures(const std::vector<ArrayValue>& captures) {
    for (const ArrayValue& capture : captures) {
      if (owns_) passed_.push_back({capture, where_, ""});
      add_captured(*capture, force_anywhere(walk_, capture, where_));
    }
  }

  /// The next input, brought to where the program reads it. The caller holds
  /// the array until this has run.
  void add_array(const unisono::Array& array) {
    if (array.sharding() != next_sharding())
      own(owns_ ? walk_.moved(array, next_sharding(), where_)
                : moved_aside(walk_, array, next_sharding(), where_));
    else if (owns_)
      own(array);
    else
      inputs_.push_back(&array);
  }

  /// What is donated belongs to this call alone from now on.
  void take_donated(const FunctionValue& function) {
    const std::vector<bool>& donated = executable_.donated;
    give_away(walk_, function, passed_, donated);
    for (size_t i = 0; i < passed_.size(); ++i)
      donated_.push_back(donated[i] ? passed_[i].value : nullptr);
    if (owns_) passed_.clear();
  }

  Value run() {
    std::vector<unisono::Array> arrays = outputs();
    auto next = arrays.begin();
    return with_arrays(entry_.result, next);
  }

  std::vector<unisono::Array> outputs() {
    tell_place(walk_, where_);
    std::unique_ptr<RunUnderWay> left;
    std::unique_ptr<RunUnderWay>* leave = leaves_runs(walk_) ? &left : nullptr;
    auto outputs = owns_
                       ? unisono::lang::run(walk_, executable_, arrays_, leave)
                       : unisono::lang::run(walk_, executable_, inputs_, leave);
    if (left)
      keep_under_way(walk_, std::move(left), executable_.program, failure());
    if (outputs) return std::move(*outputs);
    if (outputs.error().untouched) take_back();
    failure()(outputs.error());
    __builtin_unreachable();
  }

 private:
  /// `named`: something else than this call holds the value, such as a name.
  void add_leaves(const Value& value, const Value& known, bool named,
                  Span where) {
    if (const auto* tuple = value.get_if<std::shared_ptr<const TupleValue>>()) {
      named = named || tuple->use_count() > 1;
      const std::vector<Value>& items = (*tuple)->items;
      for (size_t i = 0; i < items.size(); ++i)
        add_leaves(items[i], known.tuple()->items[i], named, where);
    } else if (const auto* record =
                   value.get_if<std::shared_ptr<const RecordValue>>()) {
      named = named || record->use_count() > 1;
      const auto& fields = (*record)->fields;
      for (size_t i = 0; i < fields.size(); ++i)
        add_leaves(fields[i].second, known.record()->fields[i].second, named,
                   where);
    } else if (const auto* array = value.get_if<ArrayValue>()) {
      add_leaf(*array, named || array->use_count() > 1, where);
    } else if (known.array()) {
      numbers_.push_back(number_argument(walk_, value, where));
      add_leaf(numbers_.back(), false, where);
    }
  }

  void add_leaf(const ArrayValue& array, bool named, Span where) {
    if (owns_) passed_.push_back({array, where, ""});
    const unisono::Array& forced = force_anywhere(walk_, array, where_);
    // What comes from a file is read once.
    if (is_in_file(forced) || (named && is_worth_keeping(forced)))
      add_captured(*array, forced);
    else
      add_array(forced);
  }

  /// Whether the argument stays on the devices for the next call. An array that
  /// processes exchange does not: it is on its way while the run begins.
  bool is_worth_keeping(const unisono::Array& array) {
    return array.bytes() >= tuning().least_kept_argument &&
           !executable_.donated[inputs_.size()] &&
           !copies_of(walk_).was_short() && is_moved_alone(walk_, array);
  }

  /// An array that was captured before stays on the devices, as long as it is,
  /// and there is memory. Where processes move it together, all have it, and no
  /// shortage of one takes it.
  void add_captured(ArrayCell& cell, const unisono::Array& array) {
    const Sharding& to = next_sharding();
    if (array.sharding() == to) return add_array(array);
    auto known = cell.copies ? cell.copies->find(to) : std::nullopt;
    if (known) return own(std::move(*known));
    own(walk_.moved(array, to, where_));
    if (Walk::is_absent(array)) return;
    if (!cell.copies)
      cell.copies = std::make_shared<KeptCopies>(copies_of(walk_),
                                                 is_moved_alone(walk_, array));
    cell.copies->keep(*inputs_.back());
  }

  static CopyShelf& copies_of(Walk& walk) {
    return walk.machine().runtime->copies();
  }

  const Sharding& next_sharding() const {
    return executable_.inputs[inputs_.size()].sharding;
  }
  void own(unisono::Array array) {
    if (arrays_.empty()) arrays_.reserve(executable_.inputs.size());
    arrays_.push_back(std::move(array));
    inputs_.push_back(&arrays_.back());
  }

  /// What was given away for a run that did not begin is there again.
  void take_back() {
    for (size_t i = 0; i < donated_.size(); ++i) {
      const ArrayValue& value = donated_[i];
      if (!value) continue;
      value->donated.reset();
      value->array = std::move(arrays_[i]);
    }
  }

  MapFailure failure() const {
    return {walk_,  is_jit_,       entry_.per_device,
            where_, entry_.places, executable_.devices};
  }

  using NextArray = std::vector<unisono::Array>::iterator;

  ArrayValue with_array(const ArrayCell& known, NextArray& next) {
    ArrayValue value = walk_.from_array(std::move(*next++));
    value->weak = known.weak;
    return value;
  }

  /// A part of the result with the next arrays as its leaves, as map_leaves
  /// would make it, without a call by pointer for each.
  Value with_arrays(const Value& part, NextArray& next) {
    if (const ArrayCell* known = part.array()) return with_array(*known, next);
    if (const TupleValue* tuple = part.tuple()) {
      std::vector<Value> items;
      items.reserve(tuple->items.size());
      for (const Value& item : tuple->items)
        if (const ArrayCell* known = item.array())
          items.emplace_back(with_array(*known, next));
        else
          items.push_back(with_arrays(item, next));
      return make_tuple(std::move(items));
    }
    return map_leaves(part, [&](const Value& leaf) -> Value {
      const ArrayCell* known = leaf.array();
      return known ? with_array(*known, next) : leaf;
    });
  }

  Walk& walk_;
  const MapEntry& entry_;
  const Executable& executable_;
  bool is_jit_;
  Span where_;
  /// Whether all inputs are in `arrays_`: where some are given away, and where
  /// functions of the host, which are called meanwhile, may do that. Else they
  /// stay where they are, in values that the caller or `numbers_` holds; only
  /// what had to be moved is in `arrays_`.
  const bool owns_;
  std::vector<const unisono::Array*> inputs_;
  std::vector<unisono::Array> arrays_;  // has room: these do not move
  std::vector<PassedArray> passed_;     // if owns_: in the order of the inputs
  std::vector<ArrayValue> numbers_;     // made of numbers that were passed
  std::vector<ArrayValue> donated_;     // likewise; null: it is not
};

}  // namespace

Value run_map(Walk& walk, const MapCallee& callee,
              const std::vector<CallArgument>& positional, const Named& named,
              Span where) {
  MapState& state = *callee.map.state;
  // What waits to be computed may read what is given away.
  if (!callee.map.donated.empty()) walk.flush(where);
  std::vector<ArrayValue> captures;
  const int compiled_for = walk.machine().compiled_for;
  MapEntry* entry =
      find_entry(callee, compiled_for, positional, named, captures);
  if (!entry) {
    auto made =
        EntryBuilder(walk, callee, where).build(positional, named, captures);
    made->compiled_for = compiled_for;
    entry = state.entries.put(std::move(made)).get();
  } else if (Recorder* recorder = walk.machine().recorder) {
    recorder->count_cache_hit();
  }
  MapRun run(walk, *entry, !state.axis, where);
  run.add_arguments(positional, named);
  run.add_captures(captures);
  if (!callee.map.donated.empty()) run.take_donated(callee.function);
  return run.run();
}

TypedFunction compile_typed(Walk& walk, const Value& function,
                            const std::vector<Value>& examples, Span where) {
  const auto& inner = *function.get_if<std::shared_ptr<const FunctionValue>>();
  Transformed map;
  map.kind = Transformed::Kind::jit;
  map.inner = inner;
  map.in_axes = map.out_axes = NoneValue{};
  map.where = where;
  map.state = std::make_shared<MapState>();
  const FunctionValue whole{fmt::format("jit({})", inner->name),
                            std::move(map)};
  const MapCallee callee{whole, std::get<Transformed>(whole.what), nullptr};
  // Numbers stay part of the code: arguments are arrays alone.
  KnownNumbers& known = callee.map.state->known;
  known.ints = true;
  std::vector<CallArgument> positional;
  std::vector<ArrayValue> fixed;  // by input; null: an argument
  size_t leaves = 0;
  for (const Value& example : examples) {
    for_each_leaf(example, [&](const Value& leaf) {
      known.literals.insert(leaves++);
      if (const auto* array = leaf.get_if<ArrayValue>())
        fixed.push_back((*array)->literal ? *array : nullptr);
    });
    positional.push_back({example, where});
  }
  std::vector<ArrayValue> captures;
  const std::unique_ptr<MapEntry> entry =
      EntryBuilder(walk, callee, where).build(positional, {}, captures);
  fixed.insert(fixed.end(), captures.begin(), captures.end());
  TypedFunction typed;
  typed.executable = std::move(entry->executable);
  typed.result = std::move(entry->result);
  for (size_t i = 0; i < fixed.size(); ++i) {
    std::optional<unisono::Array>& always = typed.fixed.emplace_back();
    if (fixed[i])
      always = walk.moved(walk.force(fixed[i], where),
                          typed.executable.inputs[i].sharding, where);
  }
  return typed;
}

std::vector<unisono::Array> run_on_mesh(
    Walk& walk, const ir::Graph& graph,
    const std::vector<unisono::Array>& inputs, Span where) {
  MapEntry entry;
  jit::MemberGraph map;
  map.graph = graph;
  prepare(walk, std::move(map), nullptr, entry, where);
  MapRun run(walk, entry, true, where);
  for (const unisono::Array& input : inputs) run.add_array(input);
  return run.outputs();
}

}  // namespace unisono::lang
