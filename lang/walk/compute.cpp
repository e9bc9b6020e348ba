// Graphs of statements are computed: by the reference evaluator, by compiled
// code, and where the arrays lie.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "jit/ir/renaming.h"
#include "jit/partition/placement.h"
#include "jit/reference/nodes.h"
#include "jit/reference/straight.h"
#include "lang/context/line_times.h"
#include "lang/context/processes.h"
#include "lang/maps/executable.h"
#include "lang/maps/map_call.h"
#include "lang/maps/map_mesh.h"
#include "lang/maps/map_state.h"
#include "lang/ops/elements.h"
#include "lang/source/stdlib.h"
#include "lang/walk/walker.h"
#include "runtime/array_blocks.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/files/file_device.h"
#include "runtime/recycling.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

using Arrays = std::vector<unisono::Array>;

int64_t bytes_of(const ir::Graph& graph, int64_t most) {
  int64_t bytes = 0;
  for (const ir::Node& node : graph.nodes)
    bytes = std::min(bytes + std::min(node.type.bytes(), most), most);
  return bytes;
}

bool has_loop(const ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const ir::Node& node) {
    return node.op == ir::Op::loop;
  });
}

/// Whether it makes nothing but arrays of one value each, and so few bytes that
/// they are there before code for it were.
bool is_small_fill(const ir::Graph& graph) {
  return bytes_of(graph, tuning().most_small_fill) < tuning().most_small_fill &&
         std::ranges::all_of(
             graph.nodes,
             [](const ir::Node& node) {
               const auto* a = std::get_if<ir::ConstantAttrs>(&node.attrs);
               return a && static_cast<int64_t>(a->bytes.size()) ==
                               byte_size(node.type.dtype);
             });
}

/// Outside a map no error is a device's own, unless the device is lost.
Error without_device(Error error) {
  error.member = -1;
  if (error.kind != Error::Kind::device_lost) error.device = -1;
  return error;
}

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// One run of a statement's graph.
class StatementRun {
 public:
  StatementRun(Walk& walk, Span where) : walk_(walk), where_(where) {}

  Arrays compute(ir::Graph graph, Arrays inputs) {
    if (has_nested_maps(walk_, graph))
      return run_on_mesh(walk_, graph, inputs, where_);
    if (!is_spread(inputs)) {
      for (unisono::Array& input : inputs) input = own_copy(walk_, input);
      take_parts(graph, inputs);
      return compute_together(std::move(graph), std::move(inputs));
    }
    if (auto plan = jit::plan_blocks(graph, inputs))
      return compute_in_place(std::move(graph), std::move(*plan),
                              std::move(inputs));
    if (auto division = jit::divide(graph, inputs))
      return compute_divided(std::move(*division), inputs);
    return gather_and_compute(std::move(graph), std::move(inputs));
  }

  /// The same of a graph as it was traced. One with a loop is compiled whatever
  /// its size; if it runs on the first device, what came of it is kept, and
  /// found again by the graph itself, in which a `scan` has the body that it
  /// had before: so it is neither cleaned nor printed once more.
  Arrays compute_traced(const ir::Graph& traced, Arrays inputs) {
    if (!has_loop(traced) || is_spread(inputs))
      return compute(jit::cse_dce(traced), std::move(inputs));
    MapCache& cache = map_cache(walk_);
    const int compiled_for = walk_.machine().compiled_for;
    if (const Executable* known = cache.find_statement(traced, compiled_for)) {
      // One that it may call meanwhile may drop it.
      const Executable executable = *known;
      move_here(inputs);
      return run(executable, inputs);
    }
    ir::Graph graph = jit::cse_dce(traced);
    if (!has_loop(graph) || !is_compiled(graph) ||
        has_nested_maps(walk_, graph))
      return compute(std::move(graph), std::move(inputs));
    const Executable executable = together(std::move(graph), inputs);
    cache.keep_statement({traced, compiled_for, executable});
    return run(executable, inputs);
  }

  /// See `overwrite`.
  void compute_over(ir::Graph graph, ArrayCell& variable, Arrays others) {
    const Sharding here{-1, {&first_device()}};
    Executable executable;
    executable.devices = here.devices;
    for (const ir::NodeId input : graph.inputs)
      executable.inputs.push_back(*placed(graph.type(input), here));
    executable.outputs = {placed(graph.type(graph.outputs[0]), here)};
    executable.donated.resize(graph.inputs.size());
    executable.donated[0] = true;
    compile(walk_, {std::move(graph), {}, {}}, executable, where_);
    move_here(others);
    Arrays inputs = {std::move(*variable.array)};
    variable.array.reset();
    inputs.insert(inputs.end(), others.begin(), others.end());
    auto outputs = lang::run(walk_, executable, inputs);
    if (outputs) {
      variable.array = std::move((*outputs)[0]);
      return;
    }
    if (!inputs.empty()) variable.array = std::move(inputs[0]);
    walk_.fail(without_device(outputs.error()), where_);
  }

  /// Whether the reference evaluator computes a graph on the first device,
  /// where the arrays lie, rather than code that would have to be made for it.
  bool is_evaluated(const ir::Graph& graph, const Arrays& inputs) {
    const Machine& machine = walk_.machine();
    if (machine.reference_only || machine.compile_only ||
        machine.compile_threshold == 0 || cluster_of(walk_) ||
        first_device().kind() != DeviceKind::cpu ||
        !jit::reference::is_straight(graph) ||
        std::ranges::any_of(inputs, Walk::is_absent))
      return false;
    if (!is_compiled(graph)) return true;
    const auto [once, compile] = jit::reference::estimate(graph);
    return map_cache(walk_).is_evaluated(graph, once, compile);
  }

 private:
  static bool is_spread(const unisono::Array& array) {
    return array.sharding().is_split() && array.sharding().devices.size() > 1;
  }
  static bool is_spread(const Arrays& inputs) {
    return std::ranges::any_of(
        inputs, [](const unisono::Array& array) { return is_spread(array); });
  }

  /// After all arrays were brought to the first device.
  Arrays compute_together(ir::Graph graph, Arrays inputs) {
    if (is_evaluated(graph, inputs)) return evaluate(graph, std::move(inputs));
    const Executable executable = together(std::move(graph), inputs);
    return run(executable, inputs);
  }
  Executable together(ir::Graph graph, Arrays& inputs) {
    const Sharding here{-1, {&first_device()}};
    Executable executable;
    executable.devices = here.devices;
    for (const ir::NodeId output : graph.outputs)
      executable.outputs.push_back(placed(graph.type(output), here));
    if (is_compiled(graph)) {
      move_here(inputs);
      compile(walk_, {std::move(graph), {}, {}}, executable, where_);
    } else {
      executable.member = std::make_shared<jit::MemberGraph>(
          jit::MemberGraph{std::move(graph), {}, {}});
    }
    return executable;
  }
  void move_here(Arrays& inputs) {
    const Sharding here{-1, {&first_device()}};
    for (unisono::Array& array : inputs)
      array = walk_.moved(array, here, where_);
  }

  Arrays evaluate(const ir::Graph& graph, Arrays inputs) {
    using jit::reference::Value;
    move_here(inputs);
    const LineTime time(line_times(walk_), LineTimes::Part::devices, 0);
    std::vector<Value> values;
    for (const unisono::Array& array : inputs)
      values.push_back(
          Value::view(static_cast<const uint8_t*>(array.blocks()[0]->data()),
                      array.bytes()));
    const auto outputs = jit::reference::evaluate_straight(
        graph, values, walk_.machine().checked);
    if (!outputs) walk_.fail(without_device(outputs.error()), where_);
    Arrays results;
    for (size_t i = 0; i < outputs->size(); ++i) {
      const ir::Type& type = graph.type(graph.outputs[i]);
      const Value value = jit::reference::dense((*outputs)[i], type);
      auto array = value.ok() ? array_from_host(first_device(), type.dtype,
                                                type.sizes(), value.data())
                              : jit::reference::out_of_memory(type);
      if (!array) walk_.fail(without_device(array.error()), where_);
      results.push_back(std::move(*array));
    }
    return results;
  }

  /// A graph in which everything is a block's own affair, on the devices that
  /// hold the blocks.
  Arrays compute_in_place(ir::Graph graph, jit::BlockPlan plan, Arrays inputs) {
    Executable executable;
    executable.devices = plan.devices;
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      executable.outputs.push_back(
          placed(graph.type(graph.outputs[i]), plan.outputs[i]));
    if (is_compiled(graph)) {
      for (size_t i = 0; i < inputs.size(); ++i)
        inputs[i] = walk_.moved(inputs[i], plan.inputs[i], where_);
      compile(walk_, {std::move(plan.graph), {}, std::move(plan.mesh)},
              executable, where_);
    } else {
      executable.member = std::make_shared<jit::MemberGraph>(
          jit::MemberGraph{std::move(graph), {}, {}});
    }
    return run(executable, inputs);
  }

  /// What can be computed block by block first, then the rest.
  Arrays compute_divided(jit::Division division, const Arrays& inputs) {
    Arrays all = inputs;
    const auto of = [&](const jit::GraphPart& part) {
      Arrays arrays;
      for (const int input : part.inputs) arrays.push_back(all[input]);
      return arrays;
    };
    const Arrays placed =
        compute_in_place(std::move(division.placed.graph),
                         std::move(division.plan), of(division.placed));
    all.insert(all.end(), placed.begin(), placed.end());
    const Arrays rest =
        gather_and_compute(std::move(division.rest.graph), of(division.rest));
    Arrays results(placed.size() + rest.size());
    for (size_t i = 0; i < placed.size(); ++i)
      results[division.placed.outputs[i]] = placed[i];
    for (size_t i = 0; i < rest.size(); ++i)
      results[division.rest.outputs[i]] = rest[i];
    return results;
  }

  /// Brings everything to the first device.
  Arrays gather_and_compute(ir::Graph graph, Arrays arrays) {
    take_parts(graph, arrays);
    for (const unisono::Array& array : arrays)
      walk_.note_gather(array, first_device(), where_);
    return compute_together(std::move(graph), std::move(arrays));
  }

  /// Of arrays that are cut or in a file, and of which the graph reads parts
  /// alone, only these are brought.
  void take_parts(ir::Graph& graph, Arrays& arrays) {
    using Rows = jit::PartsOf::Rows;
    std::vector<jit::PartsOf> read;
    for (const unisono::Array& array : arrays) {
      // Of files several processes would have to read the same positions.
      const bool file = is_in_file(array) && !cluster_of(walk_);
      read.push_back({is_spread(array) || is_in_file(array), file,
                      file               ? Rows::all
                      : is_spread(array) ? Rows::few
                                         : Rows::none});
    }
    if (std::ranges::none_of(read, &jit::PartsOf::any)) return;
    const std::vector<jit::ReadPart> parts = jit::parts_read(graph, read);
    if (parts.empty()) return;
    // The slices become inputs; the arrays that they are of are read no more.
    ir::Graph out;
    ir::Renaming placed(graph);
    Arrays inputs;
    for (size_t i = 0; i < arrays.size(); ++i) {
      const bool in_parts =
          std::ranges::any_of(parts, [&](const jit::ReadPart& part) {
            return part.input == static_cast<int>(i);
          });
      if (in_parts) continue;
      const ir::NodeId id = graph.inputs[i];
      placed.set(id, out.add_input(graph.type(id)));
      inputs.push_back(arrays[i]);
    }
    // A graph's inputs stand before its other nodes.
    std::vector<std::vector<ir::NodeId>> brought;
    for (const jit::ReadPart& part : parts)
      brought.push_back(bring(part, graph, arrays, out, inputs));
    for (size_t i = 0; i < parts.size(); ++i)
      placed.set(parts[i].node, part_of(graph[parts[i].node], brought[i], out));
    for (const ir::NodeId id : ir::node_ids(graph))
      if (graph[id].op != ir::Op::input && !placed.contains(id))
        placed.set(id, out.append(placed.renamed(id)));
    out.outputs = placed.renamed(graph.outputs);
    graph = std::move(out);
    arrays = std::move(inputs);
  }

  /// Brings what a node reads of an array, as inputs of `out`: of a slice the
  /// box of rows that it takes, in two parts where the last row stands alone.
  std::vector<ir::NodeId> bring(const jit::ReadPart& part,
                                const ir::Graph& graph, const Arrays& arrays,
                                ir::Graph& out, Arrays& inputs) {
    const ir::Node& node = graph[part.node];
    const unisono::Array& from = arrays[part.input];
    if (node.op == ir::Op::gather)
      return {bring_rows_at(from, node, graph, arrays, out, inputs)};
    const auto& a = ir::attrs<ir::SliceAttrs>(node);
    std::vector<int64_t> start, extent;
    for (size_t i = 0; i < a.start.size(); ++i) {
      const int64_t size = a.size[i].value();
      start.push_back(a.start[i].value());
      extent.push_back(size == 0 ? 0 : (size - 1) * a.step[i].value() + 1);
    }
    const int64_t step = a.step.empty() ? 1 : a.step[0].value();
    if (step == 1 || a.size[0].value() <= 1)
      return {bring_box(from, start, extent, out, inputs)};
    return bring_every(step, a.size[0].value(), from, start, extent, out,
                       inputs);
  }

  /// The value of a node of which `brought` came.
  static ir::NodeId part_of(const ir::Node& node,
                            const std::vector<ir::NodeId>& brought,
                            ir::Graph& out) {
    if (node.op == ir::Op::gather) return brought[0];
    ir::SliceAttrs rest = ir::attrs<ir::SliceAttrs>(node);
    if (std::ranges::all_of(rest.step,
                            [](const ir::Dim& s) { return s == ir::Dim(1); }))
      return brought[0];
    ir::NodeId rows = brought[0];
    ir::Shape shape = out.type(rows).shape;
    if (shape.size() > rest.size.size()) {  // one row of each group
      shape.erase(shape.begin() + 1);
      rows = out.add(ir::Op::reshape, {rows}, ir::ShapeAttrs{shape});
    }
    if (brought.size() > 1)
      rows = out.add(ir::Op::concat, {rows, brought[1]}, ir::AxisAttrs{0});
    // Of other axes all is there that lies between.
    rest.step[0] = 1;
    std::ranges::fill(rest.start, ir::Dim(0));
    return out.add(ir::Op::slice, {rows}, rest);
  }

  ir::NodeId bring_box(const unisono::Array& from,
                       const std::vector<int64_t>& start,
                       const std::vector<int64_t>& extent, ir::Graph& out,
                       Arrays& inputs) {
    Device& device = first_device();
    CopyCounter counter{.recorder = walk_.machine().recorder};
    Result<unisono::Array> array =
        Walk::is_absent(from)
            ? Walk::absent(from.dtype(), extent, Sharding{-1, {&device}})
            : copy_part(from, start, extent, device, &counter);
    return input_of(std::move(array), out, inputs);
  }

  ir::NodeId input_of(Result<unisono::Array> array, ir::Graph& out,
                      Arrays& inputs) {
    if (!array) walk_.fail(array.error(), where_);
    ir::Type type{array->dtype(), {}};
    for (const int64_t size : array->shape()) type.shape.emplace_back(size);
    inputs.push_back(std::move(*array));
    return out.add_input(type);
  }

  /// Every step-th row of a box of an array in a file: the array is read as
  /// groups of so many rows, of which one is wanted each. The last one may lie
  /// behind the last whole group.
  std::vector<ir::NodeId> bring_every(int64_t step, int64_t rows,
                                      const unisono::Array& from,
                                      std::vector<int64_t> start,
                                      std::vector<int64_t> extent,
                                      ir::Graph& out, Arrays& inputs) {
    const int64_t groups = from.shape()[0] / step,
                  whole = std::min(rows, groups - start[0] / step);
    std::vector<int64_t> shape = from.shape(), at = start, size = extent;
    shape[0] = groups;
    shape.insert(shape.begin() + 1, step);
    at[0] = start[0] / step;
    at.insert(at.begin() + 1, start[0] % step);
    size[0] = whole;
    size.insert(size.begin() + 1, 1);
    const unisono::Array grouped(from.dtype(), shape, from.sharding(),
                                 from.blocks());
    std::vector<ir::NodeId> found = {bring_box(grouped, at, size, out, inputs)};
    if (whole == rows) return found;
    start[0] += whole * step;
    extent[0] = 1;
    found.push_back(bring_box(from, start, extent, out, inputs));
    return found;
  }

  /// The rows of an array in a file, or of one that is split, that a gather
  /// takes.
  ir::NodeId bring_rows_at(const unisono::Array& from, const ir::Node& gather,
                           const ir::Graph& graph, const Arrays& arrays,
                           ir::Graph& out, Arrays& inputs) {
    Device& device = first_device();
    const std::vector<int64_t> shape = gather.type.sizes();
    if (Walk::is_absent(from))
      return input_of(
          Walk::absent(from.dtype(), shape, Sharding{-1, {&device}}), out,
          inputs);
    jit::GraphPart part = jit::part_for(graph, gather.inputs[1]);
    // Positions that are none are this gather's error, of any array as long.
    const ir::NodeId element =
        part.graph.add_constant({DType::Bool, {}}, std::vector<uint8_t>{0});
    const ir::NodeId rows =
        part.graph.add(ir::Op::broadcast, {element},
                       ir::BroadcastAttrs{{ir::Dim(from.shape()[0])}, {}});
    part.graph.outputs.push_back(
        part.graph.add(ir::Op::gather, {rows, part.graph.outputs[0]},
                       ir::attrs<ir::IndexAttrs>(gather), gather.source));
    Arrays operands;
    for (const int input : part.inputs) operands.push_back(arrays[input]);
    const unisono::Array positions =
        compute_together(std::move(part.graph), std::move(operands))[0];
    wait_for_runs(walk_, where_);
    const auto numbers = array_to_host(positions);
    if (!numbers) walk_.fail(numbers.error(), where_);
    const auto number = [&](int64_t i) -> int64_t {
      if (positions.dtype() == DType::I64) return read_as<int64_t>(*numbers, i);
      return read_as<int32_t>(*numbers, i);
    };
    std::vector<int64_t> taken;
    for (int64_t i = 0; from.shape()[0] > 0 && i < positions.elements(); ++i) {
      // Negative ones count from the end. Where nothing is checked, a position
      // that is none reads a row.
      const int64_t size = from.shape()[0], place = number(i);
      taken.push_back(
          std::clamp<int64_t>(place < 0 ? place + size : place, 0, size - 1));
    }
    return input_of(is_in_file(from)
                        ? rows_of_file(from, taken, shape, device)
                        : rows_of_blocks(from, taken, shape, device),
                    out, inputs);
  }

  static int64_t bytes_with(std::span<const int64_t> shape,
                            const unisono::Array& like) {
    int64_t bytes = byte_size(like.dtype());
    for (const int64_t size : shape) bytes *= size;
    return bytes;
  }
  static int64_t row_bytes_of(const unisono::Array& array) {
    return bytes_with(std::span(array.shape()).subspan(1), array);
  }

  /// These rows as an array of this shape.
  Result<unisono::Array> rows_of_file(const unisono::Array& from,
                                      const std::vector<int64_t>& rows,
                                      const std::vector<int64_t>& shape,
                                      Device& device) {
    const int64_t row_bytes = row_bytes_of(from);
    std::vector<uint8_t> bytes(static_cast<size_t>(bytes_with(shape, from)));
    const auto* start = static_cast<const char*>(from.blocks()[0]->data());
    for (size_t i = 0; row_bytes > 0 && i < rows.size(); ++i)
      TRY(from.sharding().devices[0]->copy_to_host(
          bytes.data() + static_cast<int64_t>(i) * row_bytes,
          start + rows[i] * row_bytes, row_bytes));
    return array_from_host(device, from.dtype(), shape, bytes.data());
  }

  /// Neighbours are one copy.
  Result<unisono::Array> rows_of_blocks(const unisono::Array& from,
                                        const std::vector<int64_t>& rows,
                                        const std::vector<int64_t>& shape,
                                        Device& device) {
    const int64_t row_bytes = row_bytes_of(from);
    Buffer buffer = TRY(device.allocate(bytes_with(shape, from)));
    CopyCounter counter{.recorder = walk_.machine().recorder};
    Elements some{std::vector<int64_t>(from.shape().size(), 0),
                  std::vector<int64_t>(from.shape().size(), 1), from.shape()};
    for (size_t i = 0, next = 0; i < rows.size(); i = next) {
      next = i + 1;
      while (next < rows.size() && rows[next] == rows[next - 1] + 1) ++next;
      some.start[0] = rows[i];
      some.extent[0] = static_cast<int64_t>(next - i);
      TRY(read_elements(static_cast<char*>(buffer.data()) +
                            static_cast<int64_t>(i) * row_bytes,
                        device, from, some, &counter));
    }
    return unisono::Array(from.dtype(), shape, Sharding{-1, {&device}},
                          {std::make_shared<Buffer>(std::move(buffer))});
  }

  template <class T>
  static T read_as(const std::vector<uint8_t>& bytes, int64_t i) {
    T value;
    std::memcpy(&value, bytes.data() + i * static_cast<int64_t>(sizeof(T)),
                sizeof(T));
    return value;
  }

  Arrays run(const Executable& executable, Arrays& inputs) {
    std::unique_ptr<RunUnderWay> left;
    auto outputs = lang::run(walk_, executable, inputs,
                             leaves_runs(walk_) ? &left : nullptr);
    if (!outputs) walk_.fail(without_device(outputs.error()), where_);
    if (left)
      keep_under_way(walk_, std::move(left), executable.program,
                     [&walk = walk_, where = where_](const Error& error) {
                       walk.fail(without_device(error), where);
                     });
    return std::move(*outputs);
  }

  bool is_compiled(const ir::Graph& graph) const {
    const Machine& machine = walk_.machine();
    const int64_t threshold = machine.compile_threshold;
    return !machine.reference_only &&
           !(threshold > 0 && is_small_fill(graph)) &&
           (bytes_of(graph, threshold) >= threshold || has_loop(graph));
  }

  static std::shared_ptr<const ArrayLayout> placed(const ir::Type& type,
                                                   const Sharding& where) {
    return make_recycled<ArrayLayout>(type.dtype, type.sizes(), where);
  }

  Device& first_device() const {
    return home_device(walk_.machine().runtime->devices());
  }

  Walk& walk_;
  Span where_;
};

}  // namespace

std::vector<unisono::Array> Walk::compute(const ir::Graph& graph,
                                          std::vector<unisono::Array> inputs,
                                          Span where) {
  tell_place(*this, where);
  return StatementRun(*this, where).compute_traced(graph, std::move(inputs));
}

bool is_evaluated(Walk& walk, const ir::Graph& graph) {
  return StatementRun(walk, Span()).is_evaluated(graph, {});
}

void overwrite(Walk& walk, ir::Graph graph, ArrayCell& variable,
               std::vector<unisono::Array> others, Span where) {
  tell_place(walk, where);
  StatementRun(walk, where)
      .compute_over(std::move(graph), variable, std::move(others));
}

// ---- runs under way --------------------------------------------------------

bool leaves_runs(Walk& walk) {
  const Machine& machine = walk.machine();
  return machine.runtime->devices()[0]->queue() && !machine.lose_device &&
         !line_times(walk) && !cluster_of(walk);
}

void keep_under_way(Walk& walk, std::unique_ptr<RunUnderWay> run,
                    std::shared_ptr<const unisono::Program> program,
                    std::function<void(const Error&)> fail) {
  Walker walker(walk);
  std::deque<LeftRun>& under_way = walker.state().under_way;
  under_way.push_back({std::move(program), std::move(run), std::move(fail),
                       walker.calls_around()});
  if (under_way.size() <= tuning().most_runs_under_way) return;
  const LeftRun oldest = std::move(under_way.front());
  under_way.pop_front();
  if (const std::optional<Error> error = oldest.run->wait())
    walker.fail_left(oldest, *error);
}

// What was started after one that failed is waited for, and forgotten: it would
// not have been.
void wait_for_runs(Walk& walk, Span where) {
  Walker walker(walk);
  std::deque<LeftRun>& under_way = walker.state().under_way;
  if (under_way.empty()) return;
  while (!under_way.empty()) {
    const LeftRun oldest = std::move(under_way.front());
    under_way.pop_front();
    const std::optional<Error> error = oldest.run->wait();
    if (stop_requested()) {
      under_way.clear();  // nobody wants the results
      if (!where) walker.fail_left(oldest, stopped_error());
    } else if (error) {
      walker.fail_left(oldest, *error);
    }
  }
  if (stop_requested()) walker.poll(where);
}

// As `report` does it in run mode, with the calls that were around then.
void Walker::fail_left(const LeftRun& left, const Error& error) {
  s_.under_way.clear();
  Failure failure{Diagnostic(), true};
  try {
    left.fail(error);
  } catch (...) {
    failure = caught(Span());
  }
  Diagnostic& diagnostic = failure.diagnostic;
  const auto of_user = std::find_if(
      left.calls.rbegin(), left.calls.rend(),
      [](const LeftRun::Call& call) { return !is_in_stdlib(call.where); });
  if (is_in_stdlib(diagnostic.where) && of_user != left.calls.rend()) {
    diagnostic.add_note(diagnostic.where, "found here");
    diagnostic.where = of_user->where;
  }
  const Span at = diagnostic.where;
  if (!failure.reported &&
      walk_.reported.emplace(diagnostic.code, at.file, at.begin, at.end)
          .second) {
    size_t added = 0;
    for (size_t i = left.calls.size(); i-- > 0 && added < max_call_notes;) {
      if (left.calls[i].where == at) continue;
      diagnostic.add_note(left.calls[i].where, left.calls[i].note);
      ++added;
    }
    walk_.diagnostics_.add(diagnostic);
  }
  failure.reported = true;
  throw failure;
}

bool Walker::report_earlier(const Diagnostic& diagnostic) {
  if (s_.under_way.empty() || checking()) return false;
  if (diagnostic.code == Code::cancelled) {
    s_.under_way.clear();
    return false;
  }
  try {
    wait_for_runs(walk_, diagnostic.where);
    return false;
  } catch (...) {
    const Failure earlier = caught(diagnostic.where);
    if (!earlier.reported) report(earlier.diagnostic);
    return true;
  }
}

Ranges* ranges_of(Walk& walk) { return Walker(walk).state().ranges.get(); }

void set_ranges(Walk& walk, std::unique_ptr<Ranges> ranges) {
  Walker(walk).state().ranges = std::move(ranges);
}

unisono::Array Walk::moved(const unisono::Array& array, const Sharding& to,
                           Span where) {
  if (array.sharding() == to) return array;
  if (is_absent(array)) return absent(array.dtype(), array.shape(), to);
  if (is_home(*this, to))
    if (unisono::Array own = own_copy(*this, array); own.sharding() == to)
      return own;
  tell_place(*this, where);
  if (array.sharding().is_split() && !to.is_split())
    note_gather(array, *to.devices[0], where);
  CopyCounter counter{.recorder = machine_.recorder};
  const LineTime time(line_times(*this), LineTimes::Part::copies, 0);
  auto result = reshard(array, to, &counter);
  if (result) return std::move(*result);
  Error error = result.error();
  if (error.kind == Error::Kind::out_of_memory && is_in_file(array))
    error.message +=
        ", which is in a file still: parts of it are read by `x[i:j]`, "
        "`x[rows]` and `batches(x, n)`";
  fail(error, where);
}

void Walk::note_gather(const unisono::Array& array, const Device& device,
                       Span where) {
  const Sharding& sharding = array.sharding();
  if (!machine_.performance_notes || !sharding.is_split() ||
      sharding.devices.size() < 2 ||
      array.bytes() < tuning().large_gather_bytes)
    return;
  if (!state_->noted.emplace(where.file, where.begin).second) return;
  ir::Type type{array.dtype(), {array.shape().begin(), array.shape().end()}};
  auto note = diagnostic(Code::gathered, where, type.to_string(), device.name(),
                         megabytes(array.bytes()));
  note.add_fact(fmt::format("it lies {}", sharding.to_string()));
  note.set_help(
      "do this inside a `pmap`, where each device has its own part; `--quiet` "
      "says nothing of such things");
  diagnostics_.add(std::move(note));
}

void Walk::note_copied_updates(const unisono::Program& program) {
  if (LineTimes* times = line_times(*this))
    for (const auto& [source, bytes] : program.copied_updates)
      times->note(source,
                  fmt::format("each turn copies the array, {}, as what it held "
                              "before is read after this",
                              megabytes(bytes)));
  if (!machine_.performance_notes) return;
  for (const auto& [source, bytes] : program.copied_updates) {
    const Span where = source_span(source);
    if (!where || is_in_stdlib(where) ||
        !state_->noted.emplace(where.file, where.begin).second)
      continue;
    auto note = diagnostic(Code::copied_update, where, megabytes(bytes));
    note.set_help(
        "what the array held before is read after this: read that first, and "
        "update it in place then; `--quiet` says nothing of such things");
    diagnostics_.add(std::move(note));
  }
}

}  // namespace unisono::lang
