// Captures of streams, and the graphs they become.
#include <algorithm>

#include "simcuda/driver/driver.h"

namespace simcuda {
namespace {

/// Whether all nodes come before some node of `frontier`, or are in it.
bool all_joined(const GraphObject& graph, const std::vector<size_t>& frontier) {
  std::vector<bool> before(graph.nodes.size(), false);
  for (size_t node : frontier) before[node] = true;
  // Edges go from lower to higher numbers.
  for (size_t node = graph.nodes.size(); node-- > 0;) {
    if (!before[node]) continue;
    for (size_t earlier : graph.nodes[node].after) before[earlier] = true;
  }
  return std::find(before.begin(), before.end(), false) == before.end();
}

/// Every stream that takes part leaves the capture.
void leave(Simulator& simulator, const CapturePtr& capture) {
  for (auto& [handle, stream] : simulator.streams) {
    if (stream->capture != capture) continue;
    stream->capture.reset();
    stream->is_origin = false;
    stream->frontier.clear();
  }
  for (auto& [handle, event] : simulator.events) {
    if (event->capture == capture) {
      event->capture.reset();
      event->frontier.clear();
    }
  }
}

Code launch_graph(Call& call, ExecObject& exec, StreamObject& stream) {
  Simulator& s = call.simulator;
  if (stream.capture) {
    stream.capture->invalidated = true;
    return not_supported;  // graphs within graphs
  }
  DeviceState& device = *stream.device;
  // Launches of one executable graph follow each other.
  std::vector<OperationPtr> begin = {stream.last, exec.last};
  if (&stream == &device.legacy) {
    auto more = s.tails(device, true);
    begin.insert(begin.end(), more.begin(), more.end());
  } else if (stream.blocking) {
    begin.push_back(device.legacy.last);
  }
  std::vector<OperationPtr> operations, all = begin;
  for (const GraphObject::Node& node : exec.graph.nodes) {
    std::vector<OperationPtr> after;
    for (size_t earlier : node.after) after.push_back(operations[earlier]);
    if (node.after.empty()) after = begin;
    operations.push_back(s.add(node.work, stream, after, true));
  }
  all.insert(all.end(), operations.begin(), operations.end());
  auto end = std::make_shared<Work>();
  end->what = "end of a graph";
  end->device = &device;
  stream.last = exec.last = s.add(std::move(end), stream, all);
  if (s.races) {
    std::vector<OperationTracePtr> nodes;
    for (const OperationPtr& node : operations) nodes.push_back(node->trace);
    s.races->close(nodes, *stream.last->trace);
  }
  return success;
}

}  // namespace

extern "C" {

Code cuStreamBeginCapture_v2(Stream stream, CaptureMode mode) {
  return enter(Entry::stream_begin_capture, Needs::context, [&](Call& call) {
    StreamObject* object = call.stream(stream);
    if (object == nullptr) return invalid_handle;
    const int m = static_cast<int>(mode);
    if (m < 0 || m > 2) return invalid_value;
    if (object == &object->device->legacy) return stream_capture_unsupported;
    if (object->capture) return illegal_state;
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    object->capture = capture;
    object->is_origin = true;
    object->frontier.clear();
    auto& captures = call.simulator.captures;
    std::erase_if(captures, [](auto& weak) { return weak.expired(); });
    captures.push_back(capture);
    return success;
  });
}

Code cuStreamEndCapture(Stream stream, Graph* graph) {
  return enter(Entry::stream_end_capture, Needs::context, [&](Call& call) {
    StreamObject* object = call.stream(stream);
    if (object == nullptr) return invalid_handle;
    if (graph == nullptr) return invalid_value;
    *graph = nullptr;
    if (!object->capture) return illegal_state;
    CapturePtr capture = object->capture;
    if (!object->is_origin) return stream_capture_unmatched;
    if (capture->mode != CaptureMode::relaxed &&
        capture->thread != std::this_thread::get_id()) {
      return stream_capture_wrong_thread;
    }
    const bool joined = all_joined(capture->graph, object->frontier);
    leave(call.simulator, capture);
    if (capture->invalidated) return stream_capture_invalidated;
    if (!joined) return stream_capture_unjoined;
    auto made = std::make_unique<GraphObject>(capture->graph);
    void* handle = made.get();
    call.simulator.graphs[handle] = std::move(made);
    *graph = static_cast<Graph>(handle);
    return success;
  });
}

Code cuStreamIsCapturing(Stream stream, CaptureStatus* status) {
  return enter(Entry::stream_is_capturing, Needs::context, [&](Call& call) {
    StreamObject* object = call.stream(stream);
    if (object == nullptr) return invalid_handle;
    if (status == nullptr) return invalid_value;
    *status = !object->capture               ? CaptureStatus::none
              : object->capture->invalidated ? CaptureStatus::invalidated
                                             : CaptureStatus::active;
    return success;
  });
}

Code cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph,
                                 unsigned long long flags) {
  return enter(Entry::graph_instantiate, Needs::context, [&](Call& call) {
    GraphObject* object = call.find(call.simulator.graphs, graph);
    if (exec == nullptr || object == nullptr || (flags & ~15ull))
      return invalid_value;
    auto made = std::make_unique<ExecObject>();
    made->device = call.device;
    made->graph = *object;
    void* handle = made.get();
    call.simulator.execs[handle] = std::move(made);
    *exec = static_cast<GraphExec>(handle);
    return success;
  });
}

Code cuGraphUpload(GraphExec exec, Stream stream) {
  return enter(Entry::graph_upload, Needs::context, [&](Call& call) {
    if (call.find(call.simulator.execs, exec) == nullptr) return invalid_value;
    return call.stream(stream) ? success : invalid_handle;
  });
}

Code cuGraphLaunch(GraphExec exec, Stream stream) {
  return enter(Entry::graph_launch, Needs::context, [&](Call& call) {
    ExecObject* object = call.find(call.simulator.execs, exec);
    StreamObject* in = call.stream(stream);
    if (object == nullptr) return invalid_value;
    if (in == nullptr) return invalid_handle;
    return launch_graph(call, *object, *in);
  });
}

Code cuGraphExecUpdate_v2(GraphExec exec, Graph graph,
                          GraphExecUpdateResultInfo* result) {
  return enter(Entry::graph_exec_update, Needs::context, [&](Call& call) {
    ExecObject* object = call.find(call.simulator.execs, exec);
    GraphObject* from = call.find(call.simulator.graphs, graph);
    if (object == nullptr || from == nullptr || result == nullptr)
      return invalid_value;
    *result = {GraphExecUpdate::success, nullptr, nullptr};
    const auto& old = object->graph.nodes;
    bool same = old.size() == from->nodes.size();
    for (size_t i = 0; same && i < old.size(); ++i) {
      same = old[i].after == from->nodes[i].after &&
             !old[i].work->launch == !from->nodes[i].work->launch;
    }
    if (!same) {
      result->result = GraphExecUpdate::topology_changed;
      return graph_exec_update_failure;
    }
    object->graph = *from;
    return success;
  });
}

Code cuGraphExecDestroy(GraphExec exec) {
  return give_back(
      Entry::graph_exec_destroy, Needs::initialised, exec, [&](Call& call) {
        return call.simulator.execs.erase(exec) ? success : invalid_value;
      });
}

Code cuGraphGetNodes(Graph graph, GraphNode* nodes, size_t* count) {
  return enter(Entry::graph_get_nodes, Needs::initialised, [&](Call& call) {
    GraphObject* object = call.find(call.simulator.graphs, graph);
    if (object == nullptr || count == nullptr) return invalid_value;
    const size_t all = object->nodes.size();
    if (nodes != nullptr) {
      for (size_t i = 0; i < *count; ++i) {
        nodes[i] =
            i < all ? reinterpret_cast<GraphNode>(&object->nodes[i]) : nullptr;
      }
    }
    *count = nodes == nullptr ? all : std::min(*count, all);
    return success;
  });
}

Code cuGraphDestroy(Graph graph) {
  return give_back(
      Entry::graph_destroy, Needs::initialised, graph, [&](Call& call) {
        return call.simulator.graphs.erase(graph) ? success : invalid_value;
      });
}

}  // extern "C"
}  // namespace simcuda
