// Graphs of statements are computed: by the reference evaluator, by compiled
// code, and where the arrays lie.
#include <fmt/format.h>

#include <algorithm>

#include "jit/ir/text.h"
#include "jit/partition/placement.h"
#include "jit/reference/reference.h"
#include "jit/transform/transforms.h"
#include "lang/maps/map_call.h"
#include "lang/maps/map_grid.h"
#include "lang/ops/print_value.h"
#include "lang/walk/walker.h"

namespace unisono::lang {
namespace {

/// Programs of statements that are kept.
constexpr size_t max_programs = 256;
/// Fewer bytes than this may come together without a word.
constexpr int64_t large_gather = int64_t{8} << 20;

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

/// Outside a map no error is a device's own, unless the device is lost.
Error without_device(Error error) {
  error.member = -1;
  if (error.kind != Error::Kind::device_lost) error.device = -1;
  return error;
}

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

std::vector<unisono::Array> Walk::compute(
    const ir::Graph& graph, const std::vector<unisono::Array>& inputs,
    Span where) {
  if (has_nested_maps(*this, graph))
    return run_on_grid(*this, graph, inputs, where);
  const bool spread = std::ranges::any_of(inputs, [](const auto& array) {
    return array.sharding().is_split() && array.sharding().devices.size() > 1;
  });
  if (spread) {
    if (auto plan = jit::plan_blocks(graph, inputs))
      return run_in_place(graph, *plan, inputs, where);
    if (auto division = jit::divide(graph, inputs))
      return run_divided(*division, inputs, where);
    return gather_and_run(graph, inputs, where);
  }
  return compute_together(graph, inputs, where);
}

std::vector<unisono::Array> Walk::gather_and_run(
    ir::Graph graph, std::vector<unisono::Array> arrays, Span where) {
  take_parts(graph, arrays, where);
  for (const unisono::Array& array : arrays)
    note_gather(array, *machine_.runtime->devices()[0], where);
  return compute_together(graph, arrays, where);
}

std::vector<unisono::Array> Walk::run_divided(
    const jit::Division& division, const std::vector<unisono::Array>& inputs,
    Span where) {
  std::vector<unisono::Array> all = inputs;
  auto of = [&](const jit::GraphPart& part) {
    std::vector<unisono::Array> arrays;
    for (int input : part.inputs) arrays.push_back(all[input]);
    return arrays;
  };
  const std::vector<unisono::Array> placed = run_in_place(
      division.placed.graph, division.plan, of(division.placed), where);
  all.insert(all.end(), placed.begin(), placed.end());
  const std::vector<unisono::Array> rest =
      gather_and_run(division.rest.graph, of(division.rest), where);
  std::vector<unisono::Array> results(placed.size() + rest.size());
  for (size_t i = 0; i < placed.size(); ++i)
    results[division.placed.outputs[i]] = placed[i];
  for (size_t i = 0; i < rest.size(); ++i)
    results[division.rest.outputs[i]] = rest[i];
  return results;
}

std::vector<unisono::Array> Walk::compute_together(
    const ir::Graph& graph, const std::vector<unisono::Array>& inputs,
    Span where) {
  return is_compiled(graph) ? run_compiled(graph, inputs, where)
                            : run_reference(graph, inputs, where);
}

bool Walk::is_compiled(const ir::Graph& graph) const {
  const int64_t threshold = machine_.compile_threshold;
  return !machine_.reference_only &&
         (bytes_of(graph, threshold) >= threshold || has_loop(graph));
}

std::vector<unisono::Array> Walk::run_in_place(
    const ir::Graph& graph, const jit::BlockPlan& plan,
    const std::vector<unisono::Array>& arrays, Span where) {
  if (!is_compiled(graph)) {
    std::vector<unisono::Array> results = run_reference(graph, arrays, where);
    for (size_t i = 0; i < results.size(); ++i)
      results[i] = moved(results[i], plan.outputs[i], where);
    return results;
  }
  const auto program =
      statement_program(plan.graph, plan.devices, plan.grid, where);
  std::vector<std::vector<std::shared_ptr<Buffer>>> blocks;
  for (size_t i = 0; i < arrays.size(); ++i)
    blocks.push_back(moved(arrays[i], plan.inputs[i], where).blocks());
  auto outputs = run_program(*program, plan.devices, blocks);
  if (!outputs) fail(without_device(outputs.error()), where);
  std::vector<unisono::Array> results;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::Type& type = graph.type(graph.outputs[i]);
    const Sharding& place = plan.outputs[i];
    (*outputs)[i].resize(place.devices.size());
    results.emplace_back(type.dtype, type.sizes(), place,
                         std::move((*outputs)[i]));
  }
  return results;
}

void Walk::take_parts(ir::Graph& graph, std::vector<unisono::Array>& arrays,
                      Span where) {
  const std::vector<jit::ReadPart> parts = jit::parts_read(graph, arrays);
  if (parts.empty()) return;
  Device& device = *machine_.runtime->devices()[0];
  CopyCounter counter{.recorder = machine_.recorder};
  // The slices become inputs; the arrays that they are of are read no more.
  ir::Graph out;
  std::vector<ir::NodeId> placed(graph.nodes.size(), -1);
  std::vector<unisono::Array> inputs;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool in_parts =
        std::ranges::any_of(parts, [&](const jit::ReadPart& part) {
          return part.input == static_cast<int>(i);
        });
    if (in_parts) continue;
    placed[i] = out.add_input(graph.type(static_cast<ir::NodeId>(i)));
    inputs.push_back(arrays[i]);
  }
  for (const jit::ReadPart& part : parts) {
    const auto& a = ir::attrs<ir::SliceAttrs>(graph[part.slice]);
    std::vector<int64_t> start, extent;
    for (size_t i = 0; i < a.start.size(); ++i) {
      start.push_back(a.start[i].value());
      extent.push_back(a.size[i].value());
    }
    const unisono::Array& from = arrays[part.input];
    Result<unisono::Array> array =
        is_absent(from) ? absent(from.dtype(), extent, Sharding{-1, {&device}})
                        : copy_part(from, start, extent, device, &counter);
    if (!array) fail(array.error(), where);
    placed[part.slice] = out.add_input(graph.type(part.slice));
    inputs.push_back(std::move(*array));
  }
  for (size_t i = arrays.size(); i < graph.nodes.size(); ++i) {
    if (placed[i] >= 0) continue;
    ir::Node node = graph.nodes[i];
    for (ir::NodeId& operand : node.inputs) operand = placed[operand];
    placed[i] = static_cast<ir::NodeId>(out.nodes.size());
    out.nodes.push_back(std::move(node));
  }
  for (ir::NodeId output : graph.outputs) out.outputs.push_back(placed[output]);
  graph = std::move(out);
  arrays = std::move(inputs);
}

unisono::Array Walk::moved(const unisono::Array& array, const Sharding& to,
                           Span where) {
  if (array.sharding() == to) return array;
  if (is_absent(array)) return absent(array.dtype(), array.shape(), to);
  if (array.sharding().is_split() && !to.is_split())
    note_gather(array, *to.devices[0], where);
  CopyCounter counter{.recorder = machine_.recorder};
  auto result = reshard(array, to, &counter);
  if (!result) fail(result.error(), where);
  return std::move(*result);
}

void Walk::note_gather(const unisono::Array& array, const Device& device,
                       Span where) {
  const Sharding& sharding = array.sharding();
  if (!machine_.performance_notes || !sharding.is_split() ||
      sharding.devices.size() < 2 || array.bytes() < large_gather)
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

std::vector<unisono::Array> Walk::run_reference(
    const ir::Graph& graph, const std::vector<unisono::Array>& arrays,
    Span where) {
  if (std::ranges::any_of(arrays, is_absent)) return absent_outputs(graph);
  CopyCounter counter{.recorder = machine_.recorder};
  std::vector<jit::HostArray> inputs;
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto bytes = array_to_host(arrays[i], &counter);
    if (!bytes) fail(bytes.error(), where);
    inputs.push_back({graph.type(graph.inputs[i]), std::move(*bytes)});
  }
  jit::ReferenceOptions options;
  options.checked = machine_.checked;
  options.host_call = [this](const ir::Node& node, int64_t,
                             const std::vector<jit::HostArray>& operands) {
    machine_.output(
        render_host_call(ir::attrs<ir::HostCallAttrs>(node), operands) + "\n");
  };
  auto outputs = jit::evaluate(graph, inputs, options);
  if (!outputs) fail(outputs.error(), where);
  std::vector<unisono::Array> results;
  for (const jit::HostArray& output : *outputs) {
    auto array =
        array_from_host(*machine_.runtime->devices()[0], output.type.dtype,
                        output.type.sizes(), output.bytes.data());
    if (!array) fail(array.error(), where);
    results.push_back(std::move(*array));
  }
  return results;
}

std::shared_ptr<const unisono::Program> Walk::statement_program(
    const ir::Graph& graph, const std::vector<Device*>& devices,
    const std::vector<jit::GridAxis>& grid, Span where) {
  std::string key =
      fmt::format("{} {}\n{}", machine_.compiled_for,
                  fmt::join(capabilities(devices), "+"), ir::print(graph));
  for (const jit::GridAxis& axis : grid) key += fmt::format(" {}", axis.size);
  if (auto found = state_->programs.find(key);
      found != state_->programs.end()) {
    if (machine_.recorder) machine_.recorder->count_cache_hit();
    return found->second;
  }
  jit::CompileOptions options;
  options.devices = static_cast<int>(devices.size());
  options.grid = grid;
  options.capabilities = capabilities(devices);
  options.checked = machine_.checked;
  options.host_call = [this](const ir::Node& node, int,
                             const std::vector<jit::HostArray>& operands) {
    machine_.output(
        render_host_call(ir::attrs<ir::HostCallAttrs>(node), operands) + "\n");
  };
  const Recording recording(machine_.recorder, Recorder::Kind::compile,
                            Recorder::host);
  auto program = machine_.compiler->compile(graph, options);
  if (!program) fail(program.error(), where);
  if (state_->programs.size() >= max_programs) state_->programs.clear();
  return state_->programs.emplace(std::move(key), *program).first->second;
}

std::vector<unisono::Array> Walk::run_compiled(
    const ir::Graph& graph, const std::vector<unisono::Array>& arrays,
    Span where) {
  const auto program =
      statement_program(graph, {machine_.runtime->devices()[0]}, {}, where);
  Device* device = machine_.runtime->devices()[0];
  const Sharding here{-1, {device}};
  std::vector<std::vector<std::shared_ptr<Buffer>>> blocks;
  for (const unisono::Array& array : arrays)
    blocks.push_back(moved(array, here, where).blocks());
  auto outputs = run_program(*program, {device}, blocks);
  if (!outputs) fail(without_device(outputs.error()), where);
  std::vector<unisono::Array> results;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::Type& type = graph.type(graph.outputs[i]);
    results.emplace_back(type.dtype, type.sizes(), here,
                         std::move((*outputs)[i]));
  }
  return results;
}

}  // namespace unisono::lang
