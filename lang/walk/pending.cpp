// The values of arrays in the three modes, and the graph of the current
// statement: operations collect in it, and it is computed when the statement
// ends or something needs a value.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "jit/ir/kinds.h"
#include "jit/partition/placement.h"
#include "jit/reference/reference.h"
#include "jit/scalar/element.h"
#include "lang/context/derivative_facts.h"
#include "lang/context/line_times.h"
#include "lang/context/literals.h"
#include "lang/context/processes.h"
#include "lang/maps/map_call.h"
#include "lang/maps/map_mesh.h"
#include "lang/ops/elements.h"
#include "lang/ops/operators.h"
#include "lang/ops/print_value.h"
#include "lang/ops/small_work.h"
#include "lang/sizes/known_sizes.h"
#include "lang/source/stdlib.h"
#include "lang/walk/walker.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/files/file.h"
#include "runtime/files/file_device.h"
#include "runtime/heap.h"
#include "runtime/recycling.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

/// More bytes than this in one array are a mistake in a size, even where fused
/// code never holds it.
constexpr int64_t max_array_bytes = int64_t{1} << 38;

/// Shapes of arrays that are gone, empty, for the arrays that come next: a call
/// gives and frees them by the hundred (runtime/recycling.h).
class KeptShapes {
 public:
  static ir::Shape take() {
    if (!kept_ || kept_->shapes.empty()) return {};
    ir::Shape shape = std::move(kept_->shapes.back());
    kept_->shapes.pop_back();
    return shape;
  }
  static void keep(ir::Shape shape) {
    constexpr size_t most = 512, most_sizes = 8;
    if (shape.capacity() == 0 || shape.capacity() > most_sizes || ended_)
      return;
    static thread_local KeptShapes kept;
    kept_ = &kept;
    if (kept.shapes.size() >= most) return;
    shape.clear();
    kept.shapes.push_back(std::move(shape));
  }
  ~KeptShapes() {
    kept_ = nullptr;
    ended_ = true;
  }

 private:
  std::vector<ir::Shape> shapes;
  // These have no destructors: arrays may still be freed while the thread's
  // others run.
  static constinit thread_local KeptShapes* kept_;
  static constinit thread_local bool ended_;
};
constinit thread_local KeptShapes* KeptShapes::kept_ = nullptr;
constinit thread_local bool KeptShapes::ended_ = false;

/// Memory of the cells that `from_array` makes.
template <class T>
struct CellMemory : Recycling<T> {
  using value_type = T;
  template <class U>
  struct rebind {
    using other = CellMemory<U>;
  };
  CellMemory() = default;
  template <class U>
  CellMemory(const CellMemory<U>&) {}  // NOLINT: implicit, as allocators are

  static void destroy(ArrayCell* cell) {
    KeptShapes::keep(std::move(cell->type.shape));
    cell->~ArrayCell();
  }
};

AxisSet joined_varies(std::span<const ArrayValue> operands) {
  AxisSet out;
  for (const ArrayValue& operand : operands)
    if (!operand->varies.empty()) out = join(out, operand->varies);
  return out;
}

Span first_varying(std::span<const ArrayValue> operands) {
  for (const ArrayValue& operand : operands)
    if (!operand->varies.empty()) return operand->varies_from;
  return {};
}

/// The bytes of all elements of a constant.
Result<std::vector<uint8_t>> expand_constant(const ArrayCell& cell) {
  const int64_t all = cell.type.bytes();
  const auto element = static_cast<int64_t>(cell.constant->size());
  if (element == all) return *cell.constant;
  auto out = TRY(allocate_bytes(all, MemoryBudget::default_limit()));
  for (int64_t i = 0; i < all; i += element)
    std::copy(cell.constant->begin(), cell.constant->end(), out.begin() + i);
  return out;
}

bool fits(int64_t value, DType dtype) {
  if (!is_integer(dtype)) return true;
  return with_dtype(dtype, [&]<DType D>() {
    using T = typename ComputeOf<D>::type;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return std::in_range<T>(value);
    return true;
  });
}

}  // namespace

// ---- operations ------------------------------------------------------------

ArrayValue Walk::add(ir::Op op, std::initializer_list<ArrayValue> operands,
                     ir::Attrs attrs, Span where) {
  return add(op, std::span(operands.begin(), operands.size()), std::move(attrs),
             where);
}

namespace {
/// The number of an `int` is asked for in an element type, which then bounds
/// it. All else may depend on its value: the attempt to do without is given up
/// (map_run.cpp).
void use_as_number(const ArrayCell& cell, ir::Op op, const ir::Attrs& attrs,
                   Span where) {
  const auto* cast = std::get_if<ir::CastAttrs>(&attrs);
  if (op != ir::Op::cast || !cast || is_bool(cast->dtype))
    give_up_int_argument(where);
  if (!is_integer(cast->dtype)) return;
  with_dtype(cast->dtype, [&]<DType D>() {
    using T = typename ComputeOf<D>::type;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      NumberArgument& range = *cell.int_argument;
      if (std::in_range<int64_t>(std::numeric_limits<T>::lowest()))
        range.low = std::max(
            range.low, static_cast<int64_t>(std::numeric_limits<T>::lowest()));
      if (std::in_range<int64_t>(std::numeric_limits<T>::max()))
        range.high = std::min(
            range.high, static_cast<int64_t>(std::numeric_limits<T>::max()));
    }
    return 0;
  });
}

/// Whether an operation makes arrays, so that a number without an element type
/// gets one. Map operations of such numbers alone stay without, and what
/// chooses or carries them leaves them as they are.
bool needs_type(ir::Op op) {
  switch (ir::kind(op)) {
    case ir::Kind::map:
    case ir::Kind::control: return false;
    case ir::Kind::source:
    case ir::Kind::reduce:
    case ir::Kind::argreduce:
    case ir::Kind::scan:
    case ir::Kind::move:
    case ir::Kind::dot:
    case ir::Kind::index:
    case ir::Kind::sort:
    case ir::Kind::collective:
    case ir::Kind::host: return true;
  }
  __builtin_unreachable();
}

std::vector<ArrayValue> with_types(Walk& walk,
                                   std::span<const ArrayValue> operands,
                                   Span where) {
  std::vector<ArrayValue> typed;
  typed.reserve(operands.size());
  for (const ArrayValue& operand : operands)
    typed.push_back(cast_to(walk, operand, default_dtype(*operand), where));
  return typed;
}
}  // namespace

ArrayValue Walk::add(ir::Op op, std::span<const ArrayValue> operands,
                     ir::Attrs attrs, Span where) {
  for (const ArrayValue& operand : operands)
    if (operand->donated || !state_->donated.empty())
      forbid_donated(operand, where);
  if (needs_type(op))
    for (const ArrayValue& operand : operands)
      if (operand->weak)
        return add(op, with_types(*this, operands, where), std::move(attrs),
                   where);
  for (const ArrayValue& operand : operands)
    if (operand->int_argument) use_as_number(*operand, op, attrs, where);
  ir::Type type;
  if (op == ir::Op::project) {
    // Only in a graph: the type rule needs the node that it reads.
    const ir::NodeId id = scope()->import(operands[0]);
    type = ir::result_type(scope()->graph()[id],
                           std::get<ir::ProjectAttrs>(attrs).index);
  } else {
    std::vector<ir::Type> types;
    types.reserve(operands.size());
    for (const ArrayValue& operand : operands) types.push_back(operand->type);
    auto inferred = ir::infer_type(op, types, attrs);
    if (!inferred)
      fail(diagnostic(Code::compile_failed, where, inferred.error().message));
    type = std::move(*inferred);
  }
  check_size(type, where);
  if (auto folded = fold_literals(op, operands, type.dtype)) return *folded;
  if (!context_.derivatives.empty() && lacks_derivative(op, operands))
    fail(no_derivative(op, where));
  const Linearity linearity =
      context_.in_linear_rule
          ? linearity_of(op, operands, attrs, type.dtype, where)
          : Linearity{};

  const auto number = mode() == Mode::run
                          ? std::nullopt
                          : result_number(*this, op, operands, attrs, type);
  ArrayValue out;
  if (mode() == Mode::check) {
    out = unknown_array(std::move(type));
  } else if (out = compute_small(*this, op, operands, attrs, type); !out) {
    // Not between a loop or branch and its results.
    if (mode() == Mode::run && op != ir::Op::project &&
        scope()->graph().nodes.size() > tuning().most_pending_nodes)
      flush(where);
    std::vector<ir::NodeId> ids;
    ids.reserve(operands.size());
    for (const ArrayValue& operand : operands)
      ids.push_back(scope()->import(operand));
    out = scope()->add(op, std::move(ids), std::move(attrs), std::move(type),
                       source_id(where));
  }
  if (number) note_result(*this, op, operands, *number, *out);
  out->varies = joined_varies(operands);
  if (!out->varies.empty()) out->varies_from = first_varying(operands);
  if (!context_.derivatives.empty()) set_depends(context_, op, operands, *out);
  out->linearity = linearity;
  out->weak = ir::kind(op) == ir::Kind::map && !operands.empty() &&
              !is_bool(out->type.dtype) && op != ir::Op::cast &&
              std::all_of(operands.begin(), operands.end(),
                          [](const ArrayValue& a) { return a->weak; });
  if (out->weak)
    for (const ArrayValue& operand : operands)
      out->call_numbers.insert(operand->call_numbers.begin(),
                               operand->call_numbers.end());
  return out;
}

ir::Dim Walk::extreme_size(bool larger, const ir::Dim& a, const ir::Dim& b) {
  if (a.is_constant() && b.is_constant())
    return (a.value() > b.value()) == larger ? a : b;
  const ir::Dim difference = a - b;
  if (difference.is_constant() && !difference.overflowed())
    return (difference.value() > 0) == larger ? a : b;
  for (const ExtremeSize& known : extreme_sizes_)
    if (known.larger == larger &&
        ((known.a == a && known.b == b) || (known.a == b && known.b == a)))
      return known.symbol;
  const auto symbol =
      ir::Dim::symbol(new_symbol_id(),
                      fmt::format("{}({}, {})", larger ? "maximum" : "minimum",
                                  a.to_string(), b.to_string()),
                      a.is_open() || b.is_open());
  extreme_sizes_.push_back({larger, a, b, symbol});
  return symbol;
}

void Walk::check_size(const ir::Type& type, Span where) {
  bool concrete = true;
  for (const ir::Dim& size : type.shape) {
    if (size.overflowed())
      fail(diagnostic(Code::too_large, where, "this array"));
    if (!size.is_constant()) {
      concrete = false;
    } else if (size.value() < 0) {
      fail(diagnostic(Code::bad_size, where, size.to_string())
               .set_help("sizes are not negative"));
    }
  }
  if (concrete && type.bytes() > max_array_bytes)
    fail(diagnostic(Code::too_large, where, type.to_string()));
}

namespace {
ArrayValue constant_cell(ir::Type type, std::vector<uint8_t> bytes) {
  auto cell = make_recycled<ArrayCell>();
  cell->type = std::move(type);
  cell->constant = make_recycled<std::vector<uint8_t>>(std::move(bytes));
  return cell;
}
}  // namespace

ArrayValue Walk::constant(double value, DType dtype, bool weak, Span where) {
  if (weak) dtype = DType::F64;
  require_finite(*this, value, dtype, where);
  ArrayValue cell =
      constant_cell({dtype, {}}, jit::element_bytes(dtype, value));
  cell->weak = cell->literal = weak;
  return cell;
}

ArrayValue Walk::constant_int(int64_t value, DType dtype, bool weak,
                              Span where) {
  if (weak) dtype = literal_dtype(is_floating(dtype));
  require_finite(*this, static_cast<double>(value), dtype, where);
  if (!fits(value, dtype))
    fail(diagnostic(Code::literal_range, where, value, name(dtype),
                    integer_range(dtype))
             .set_help(
                 dtype == DType::I32
                     ? fmt::format("write it with its type: `{}i64`", value)
                     : "it needs a wider type: `i64`, or a float"));
  ArrayValue cell =
      constant_cell({dtype, {}}, jit::element_bytes(dtype, value));
  cell->weak = cell->literal = weak;
  return cell;
}

ArrayValue Walk::unknown_number(bool floating) {
  ArrayValue number = unknown_array({literal_dtype(floating), {}});
  number->weak = true;
  return number;
}

ArrayValue Walk::constant_size(const ir::Dim& size, Span where) {
  if (size.is_constant())
    return constant_int(size.value(), DType::I64, true, where);
  ArrayValue number = unknown_number(false);
  set_size(*this, *number, size);
  return number;
}

ArrayValue Walk::constant_array(ir::Type type, std::vector<uint8_t> bytes,
                                Span) {
  return constant_cell(std::move(type), std::move(bytes));
}

ArrayValue Walk::on_first_device(const ArrayCell& constant, Span where) {
  ArrayValue number =
      on_first_device(constant.type.dtype, constant.constant->data(), where);
  number->weak = constant.weak;
  return number;
}

ArrayValue Walk::on_first_device(DType dtype, const void* element, Span where) {
  Device& home = home_device(machine_.runtime->devices());
  if (home.kind() == DeviceKind::cpu && !machine_.compile_only)
    if (auto [out, data] = unset_array(*this, dtype, {}); out) {
      std::memcpy(data, element, static_cast<size_t>(byte_size(dtype)));
      return out;
    }
  auto array = array_from_host(home, dtype, {}, element);
  if (!array) fail(array.error(), where);
  return from_array(std::move(*array));
}

std::shared_ptr<const ArrayLayout> Walk::whole_layout(DType dtype,
                                                      const ir::Shape& shape,
                                                      Device& device) {
  auto hash = static_cast<uint64_t>(dtype);
  for (const ir::Dim& size : shape)
    hash = hash * 31 + static_cast<uint64_t>(size.value());
  auto& kept = layouts_[(hash ^ (hash >> 4)) % layouts_.size()];
  const bool same =
      kept && kept->dtype == dtype && kept->sharding.devices[0] == &device &&
      std::ranges::equal(kept->shape, shape, {}, {},
                         [](const ir::Dim& size) { return size.value(); });
  if (!same) {
    std::vector<int64_t> sizes;
    for (const ir::Dim& size : shape) sizes.push_back(size.value());
    kept = std::make_shared<const ArrayLayout>(
        ArrayLayout{dtype, std::move(sizes), Sharding{-1, {&device}}});
  }
  return kept;
}

ArrayValue Walk::from_array(unisono::Array array) {
  ir::Type type{array.dtype(), KeptShapes::take()};
  type.shape.reserve(array.shape().size());
  for (int64_t size : array.shape()) type.shape.emplace_back(size);
  auto cell =
      std::allocate_shared<ArrayCell>(CellMemory<ArrayCell>(), std::move(type));
  cell->array.emplace(std::move(array));
  return cell;
}

ArrayValue Walk::unknown_array(ir::Type type) {
  auto cell = std::make_shared<ArrayCell>();
  cell->type = std::move(type);
  return cell;
}

ArrayValue Walk::to_array(const Value& value, Span where,
                          std::string_view what) {
  const ArrayValue array = to_operand(value, where, what);
  return array->weak ? cast_to(*this, array, default_dtype(*array), where)
                     : array;
}

ArrayValue Walk::to_operand(const Value& value, Span where,
                            std::string_view what) {
  if (const auto* array = value.get_if<ArrayValue>()) return *array;
  if (const auto* i = value.get_if<IntValue>())
    return constant_size(i->value, where);
  if (const auto* b = value.get_if<BoolValue>()) {
    if (!b->value) return unknown_array({DType::Bool, {}});
    return constant_cell({DType::Bool, {}}, {uint8_t{*b->value}});
  }
  Diagnostic d =
      diagnostic(Code::expected_array, where, what, type_name(value));
  const TupleValue* items = value.tuple();
  if (items && !items->items.empty() && items->items[0].is<StrValue>())
    d.set_help(what.ends_with("`max`") || what.ends_with("`min`")
                   ? fmt::format("of words write `sort(words)[{}]`",
                                 what.ends_with("`max`") ? "-1" : "0")
                   : "words are joined by `\", \".join(words)`");
  else if (items || value.is<ManyValue>())
    d.set_help("of a tuple of numbers, or of arrays, `stack(...)` makes one");
  fail(std::move(d));
}

uint32_t Walk::source_id(Span where) { return sources_.number(where); }
Span Walk::source_span(uint32_t id) const { return sources_.span(id); }

// ---- scopes ----------------------------------------------------------------

std::shared_ptr<GraphScope> Walk::with_scope(
    const std::function<void()>& body) {
  if (mode() == Mode::check) {
    body();
    return nullptr;
  }
  if (mode() == Mode::run) forget_sizes(*this);
  const auto inner = std::make_shared<GraphScope>(scope());
  ContextScope context(*this);
  context->mode = Mode::trace;
  context->scope = inner;
  body();
  return inner;
}

std::shared_ptr<GraphScope> Walk::trace(const std::function<void()>& body) {
  ContextScope context(*this);
  context->trace_base = state_->last_call;
  if (mode() == Mode::check) {
    body();
    return nullptr;
  }
  if (mode() == Mode::run) forget_sizes(*this);
  const auto inner = std::make_shared<GraphScope>();
  context->mode = Mode::trace;
  context->scope = inner;
  body();
  return inner;
}

// ---- computing -------------------------------------------------------------

const unisono::Array& Walk::computed(const ArrayCell& cell, Span where) {
  if (cell.array) return *cell.array;
  fail(diagnostic(
      Code::check_failed_at_run_time, where,
      std::string_view(
          "this value was not computed: the statement that should have "
          "computed it failed")));
}

const unisono::Array& Walk::force(const ArrayValue& value, Span where) {
  if (value->donated) forbid_donated(value, where);
  bring_home(*this, *value, where);
  if (value->array) return *value->array;
  if (mode() != Mode::run)
    fail(diagnostic(Code::host_value_in_compiled_code, where,
                    std::string_view("this")));
  if (value->constant) {
    ir::Graph graph;
    graph.outputs = {graph.add_constant(value->type, *value->constant)};
    value->array = compute(graph, {}, where)[0];
    return *value->array;
  }
  flush(where);
  return computed(*value, where);
}

std::vector<uint8_t> Walk::host_bytes(const ArrayValue& value, Span where) {
  if (value->donated) forbid_donated(value, where);
  count_host_bytes(value->type.bytes(), where);
  // While tracing nothing is computed, however large.
  if (value->constant && (mode() != Mode::run ||
                          value->type.bytes() < machine_.compile_threshold)) {
    auto bytes = expand_constant(*value);
    if (!bytes) fail(bytes.error(), where);
    return std::move(*bytes);
  }
  CopyCounter counter{.recorder = machine_.recorder};
  const unisono::Array array = own_copy(*this, force(value, where));
  if (is_absent(array)) fail_needs_run(where);
  tell_place(*this, where);
  wait_for_runs(*this, where);
  const LineTime time(line_times(*this), LineTimes::Part::copies, 0);
  auto bytes = array_to_host(array, &counter);
  if (!bytes) fail(bytes.error(), where);
  return std::move(*bytes);
}

/// Which of the graph's inputs are in a file of which it reads parts alone:
/// only these are read then (StatementRun::take_parts).
static std::vector<bool> stay_in_file(Walk& walk, ir::Graph& graph,
                                      const std::vector<ArrayValue>& captures) {
  std::vector<jit::PartsOf> inputs;
  for (const ArrayValue& capture : captures)
    if (capture->array && is_in_file(*capture->array))
      inputs.push_back({true, true, jit::PartsOf::Rows::all});
    else
      inputs.emplace_back();
  std::vector<bool> stay(inputs.size());
  if (cluster_of(walk) || std::ranges::none_of(inputs, &jit::PartsOf::any))
    return stay;
  graph = jit::cse_dce(graph);
  if (std::ranges::any_of(graph.nodes, [](const ir::Node& node) {
        return node.op == ir::Op::loop;
      }))
    return stay;
  for (const jit::ReadPart& part : jit::parts_read(graph, inputs))
    stay[part.input] = true;
  return stay;
}

void Walk::flush(Span where) {
  if (mode() != Mode::run) return;
  if (pending_->graph().nodes.empty() && pending_->values().empty()) return;
  const std::shared_ptr<GraphScope> scope = std::move(pending_);
  pending_ = std::make_shared<GraphScope>();

  // Several values may be one node: a literal's, and the same made strong.
  std::vector<ArrayValue> wanted, outputs;
  std::vector<size_t> output_of;
  std::unordered_map<ir::NodeId, size_t> by_node;
  for (const std::weak_ptr<ArrayCell>& weak : scope->values()) {
    ArrayValue cell = weak.lock();
    if (!cell) continue;
    const auto [known, added] = by_node.emplace(cell->node, outputs.size());
    if (added) outputs.push_back(cell);
    output_of.push_back(known->second);
    wanted.push_back(std::move(cell));
  }
  ir::Graph graph = scope->finish(outputs);
  if (wanted.empty()) {
    graph = jit::cse_dce(graph);
    const bool idle = std::none_of(
        graph.nodes.begin(), graph.nodes.end(),
        [](const ir::Node& node) { return node.op != ir::Op::input; });
    if (idle) return;
  }
  std::vector<unisono::Array> inputs;
  const std::vector<bool> stay = stay_in_file(*this, graph, scope->captures());
  for (const ArrayValue& capture : scope->captures()) {
    if (!stay[inputs.size()]) bring_home(*this, *capture, where);
    inputs.push_back(computed(*capture, where));
  }
  const std::vector<unisono::Array> results =
      compute(graph, std::move(inputs), where);
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i]->array = results[output_of[i]];
    wanted[i]->scope.reset();
    wanted[i]->node = -1;
  }
}

// ---- failures --------------------------------------------------------------

void Walk::count_host_bytes(int64_t bytes, Span where) {
  Limits& limits = machine_.limits;
  if (mode() != Mode::run || limits.host_bytes == 0) return;
  limits.host_bytes_made += bytes;
  if (limits.host_bytes_made > limits.host_bytes)
    fail(diagnostic(
        Code::limit_reached, where,
        fmt::format("{} bytes in the host's memory", limits.host_bytes)));
}

void Walk::assert_when_it_runs(const ArrayValue& holds, Diagnostic error) {
  if (mode() == Mode::check || !machine_.checked) return;
  // A condition that is false reads beside an array of one element.
  const Span where = error.where;
  const ArrayValue fails = add(ir::Op::bit_not, {holds}, ir::NoAttrs{}, where);
  const ArrayValue beside = cast_to(*this, fails, DType::I32, where);
  const ArrayValue one = constant_array({DType::Bool, {ir::Dim(1)}},
                                        std::vector<uint8_t>{1}, where);
  add(ir::Op::gather, {one, beside}, ir::IndexAttrs{{0}, true}, where);
  state_->assertions.insert_or_assign(source_id(where), std::move(error));
}

void Walk::assert_inside_when_it_runs(const ArrayValue& start,
                                      const SliceCheck& slice, Span where) {
  if (mode() == Mode::check || !machine_.checked) return;
  const auto op = [&](ir::Op what, std::initializer_list<ArrayValue> operands) {
    return add(what, operands, ir::NoAttrs{}, where);
  };
  const auto number = [&](int64_t value) {
    return constant_int(value, DType::I64, false, where);
  };
  const int64_t last =
      slice.size - 1 - (slice.length - 1) / slice.step * slice.step;
  // What an array of one element has no index for: failed_start reads it.
  const ArrayValue before = op(ir::Op::sub, {start, number(1)});
  const ArrayValue beyond = op(ir::Op::gt, {start, number(last)});
  const ArrayValue index =
      op(ir::Op::select, {op(ir::Op::lt, {start, number(0)}), before,
                          op(ir::Op::select, {beyond, start, number(0)})});
  const ArrayValue one = constant_array({DType::Bool, {ir::Dim(1)}},
                                        std::vector<uint8_t>{1}, where);
  add(ir::Op::gather, {one, index}, ir::IndexAttrs{{0}, true}, where);
  const auto [known, added] =
      state_->slices.try_emplace(source_id(where), slice);
  if (!added && known->second != slice) known->second = {};
}

void Walk::note_failed(Diagnostic assertion) {
  std::optional<Diagnostic>& failed = Walker(*this).failed();
  if (!failed) failed = std::move(assertion);
}

void Walk::fail(Diagnostic diagnostic) {
  CHECK(diagnostic.tells_sizes || !info(diagnostic.code).of_sizes);
  const bool open = mode() == Mode::check && diagnostic.open;
  throw Failure{std::move(diagnostic), false, open};
}

RunOptions run_options(const Machine& machine) {
  RunOptions options;
  options.stop = machine.stop;
  options.watchdog = machine.watchdog;
  options.lose_device = machine.lose_device;
  options.recorder = machine.recorder;
  return options;
}

namespace {

/// `psum(x, dev)` as what it calls.
std::string called(Span where) {
  const std::string_view text = where.text();
  const size_t end = text.find('(');
  return end == std::string_view::npos || end == 0
             ? "a collective"
             : fmt::format("`{}`", text.substr(0, end));
}

/// The start that assert_inside_when_it_runs has made an index of.
int64_t failed_start(const Error& error) {
  constexpr std::string_view before = "index ";
  CHECK(error.message.starts_with(before));
  const int64_t index = std::stoll(error.message.substr(before.size()));
  return index < 0 ? index + 1 : index;
}

Diagnostic outside(const SliceCheck& slice, const Error& error, Span place) {
  const int64_t start = failed_start(error);
  // Code for arrays of several sizes has one place.
  if (slice.length == 0)
    return diagnostic(
        Code::index_out_of_bounds, place,
        fmt::format("the slice `{}`, which starts at {}, is out of bounds",
                    place.text(), start));
  std::string text = fmt::format("{}:{}", start, start + slice.length);
  if (slice.step != 1) text += fmt::format(":{}", slice.step);
  return diagnostic(Code::index_out_of_bounds, place,
                    fmt::format("the slice {} is out of bounds for size {}",
                                text, slice.size));
}

Diagnostic stalled(const Machine& machine, const Error& error, Span place) {
  std::vector<std::string> missing;
  for (int device : error.missing)
    missing.push_back(machine.runtime->devices()[device]->name());
  const std::string names = fmt::format("{}", fmt::join(missing, ", "));
  Diagnostic out =
      diagnostic(Code::collective_stalled, place, called(place), names,
                 static_cast<double>(machine.watchdog.count()) / 1000);
  return out.set_help(
      fmt::format("look for a loop that does not end on {}; `--watchdog "
                  "SECONDS` waits longer, `--watchdog 0` for ever",
                  missing.empty() ? "it" : missing[0]));
}

}  // namespace

void Walk::fail(const Error& error, Span where) {
  const Span found = error.source ? source_span(error.source) : Span();
  // The library shows how; what is wrong is where the user waits for it.
  const bool in_library = is_in_stdlib(found) && where && !is_in_stdlib(where);
  const Span place = found && !in_library ? found : where;
  auto make = [&]() -> Diagnostic {
    switch (error.kind) {
      case Error::Kind::integer_division:
        if (place.text().starts_with("range("))  // the step's check
          return diagnostic(Code::zero_step, place, "`range`");
        return diagnostic(Code::division_by_zero, place);
      case Error::Kind::index_out_of_bounds:
        if (const auto assertion = state_->assertions.find(error.source);
            assertion != state_->assertions.end()) {
          Diagnostic failed = assertion->second;
          failed.where = place;
          return failed;
        }
        if (const auto slice = state_->slices.find(error.source);
            slice != state_->slices.end())
          return outside(slice->second, error, place)
              .set_help(
                  "compiled code cuts no slice: leave the last part to the "
                  "host, or pad the array");
        return diagnostic(Code::index_out_of_bounds, place, error.message);
      case Error::Kind::check_failed:
      case Error::Kind::invalid_file:
      case Error::Kind::io:
        return diagnostic(Code::check_failed_at_run_time, place, error.message);
      case Error::Kind::out_of_memory:
        return diagnostic(Code::out_of_memory, place, error.message);
      case Error::Kind::cancelled:
        state_->stopped = true;
        return diagnostic(Code::cancelled, place);
      case Error::Kind::device_lost:
        return diagnostic(Code::device_lost, place, error.message);
      case Error::Kind::stalled: return stalled(machine_, error, place);
      case Error::Kind::compile_failed:
        return diagnostic(Code::compile_failed, place, error.message);
      case Error::Kind::host_function: {
        const size_t name = error.message.find(": ");
        return diagnostic(Code::host_function_failed, place,
                          error.message.substr(0, name),
                          error.message.substr(name + 2));
      }
    }
    __builtin_unreachable();
  };
  Diagnostic out = make();
  if (in_library) out.add_note(found, "found here");
  // Of compiled code outside a map there is one device and no member.
  if (error.device >= 0 && error.missing.empty()) {
    const std::string& device =
        machine_.runtime->devices()[error.device]->name();
    out.add_fact(error.member >= 0
                     ? fmt::format("on {}, member {}", device, error.member)
                     : fmt::format("on {}", device));
  }
  fail(std::move(out));
}

}  // namespace unisono::lang
