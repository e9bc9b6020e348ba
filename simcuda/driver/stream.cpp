// Streams and events.
#include <algorithm>

#include "simcuda/driver/driver.h"

namespace simcuda {
namespace {

Code create_stream(Call& call, Stream* stream, unsigned flags, int priority) {
  if (stream == nullptr || (flags & ~1u)) return invalid_value;
  auto made = std::make_unique<StreamObject>();
  made->device = call.device;
  made->number = call.simulator.next_stream++;
  made->blocking = flags == stream_default;
  made->priority = priority;
  void* handle = made.get();
  call.simulator.streams[handle] = std::move(made);
  *stream = static_cast<Stream>(handle);
  return success;
}

/// An operation that does nothing, in a stream.
Code enqueue_marker(Call& call, StreamObject& stream) {
  auto work = std::make_shared<Work>();
  work->what = "marker";
  work->device = stream.device;
  return call.simulator.enqueue(call.lock, stream, std::move(work));
}

bool is_done(const OperationPtr& operation) {
  return !operation || operation->state == Operation::State::done;
}

/// The answer to a question whether work is done: time passes by asking.
Code progress(Call& call, DeviceState& device, const OperationPtr& operation) {
  if (!is_done(operation)) call.simulator.run_one(call.lock, operation.get());
  if (device.sticky != success) return device.sticky;
  if (!is_done(operation)) return not_ready;
  call.simulator.host_waited(operation);
  return success;
}

}  // namespace

extern "C" {

Code cuStreamCreate(Stream* stream, unsigned flags) {
  return enter(Entry::stream_create, Needs::context, [&](Call& call) {
    return create_stream(call, stream, flags, 0);
  });
}

Code cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  return enter(
      Entry::stream_create_with_priority, Needs::context, [&](Call& call) {
        return create_stream(call, stream, flags, std::clamp(priority, -5, 0));
      });
}

Code cuStreamDestroy_v2(Stream stream) {
  return give_back(
      Entry::stream_destroy, Needs::context, stream, [&](Call& call) {
        StreamObject* object = call.find(call.simulator.streams, stream);
        if (object == nullptr) return invalid_handle;
        if (object->capture) object->capture->invalidated = true;
        // What it holds is still done: its operations know each other.
        const bool known = call.simulator.races && object->last;
        if (known || !is_done(object->last)) {
          DeviceState& device = *object->device;
          if (object->blocking) {
            // The legacy stream still has to wait for it.
            std::vector<OperationPtr> after = {device.legacy.last,
                                               object->last};
            auto work = std::make_shared<Work>();
            work->what = "marker";
            work->device = &device;
            device.legacy.last =
                call.simulator.add(std::move(work), device.legacy, after);
          } else {
            call.simulator.wait_for(call.lock, object->last);
            if (known) device.orphans.push_back(object->last);
          }
        }
        call.simulator.streams.erase(stream);
        return success;
      });
}

Code cuStreamSynchronize(Stream stream) {
  return enter(Entry::stream_synchronize, Needs::context, [&](Call& call) {
    StreamObject* object = call.stream(stream);
    if (object == nullptr) return invalid_handle;
    if (object->capture) {
      object->capture->invalidated = true;
      return stream_capture_unsupported;
    }
    DeviceState& device = *object->device;
    if (object == &device.legacy) {
      // The legacy stream's work waits for all blocking streams.
      for (const OperationPtr& last : call.simulator.tails(device, true)) {
        call.simulator.wait_for(call.lock, last);
        call.simulator.host_waited(last);
      }
    } else {
      call.simulator.wait_for(call.lock, object->last);
      call.simulator.host_waited(object->last);
    }
    return call.outcome(device);
  });
}

Code cuStreamQuery(Stream stream) {
  return enter(Entry::stream_query, Needs::context, [&](Call& call) {
    StreamObject* object = call.stream(stream);
    if (object == nullptr) return invalid_handle;
    if (object->capture) {
      object->capture->invalidated = true;
      return stream_capture_unsupported;
    }
    return progress(call, *object->device, object->last);
  });
}

Code cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  return enter(Entry::stream_wait_event, Needs::context, [&](Call& call) {
    StreamObject* object = call.stream(stream);
    EventObject* what = call.find(call.simulator.events, event);
    if (object == nullptr || what == nullptr) return invalid_handle;
    if (flags & ~1u) return invalid_value;
    if (what->capture) {
      Capture& capture = *what->capture;
      if (capture.invalidated) return stream_capture_invalidated;
      if (object->capture && object->capture != what->capture) {
        capture.invalidated = object->capture->invalidated = true;
        return stream_capture_merge;
      }
      if (!object->capture) {
        if (object == &object->device->legacy) return stream_capture_implicit;
        object->capture = what->capture;
        object->is_origin = false;
        object->frontier = what->frontier;
        return success;
      }
      for (size_t node : what->frontier) {
        if (std::find(object->frontier.begin(), object->frontier.end(), node) ==
            object->frontier.end()) {
          object->frontier.push_back(node);
        }
      }
      return success;
    }
    if (object->capture) {
      // Work outside the capture cannot be waited for when it is launched.
      object->capture->invalidated = true;
      return stream_capture_isolation;
    }
    if (!what->recorded) return success;
    const bool lost = what->recorded->dropped;
    if (is_done(what->recorded) && !call.simulator.races && !lost)
      return success;
    auto work = std::make_shared<Work>();
    work->what = "wait for an event";
    work->device = object->device;
    std::vector<OperationPtr> after = {what->recorded, object->last};
    DeviceState& device = *object->device;
    if (object != &device.legacy && object->blocking)
      after.push_back(device.legacy.last);
    if (object == &device.legacy) {
      auto more = call.simulator.tails(device, true);
      after.insert(after.end(), more.begin(), more.end());
    }
    object->last = call.simulator.add(std::move(work), *object, after);
    object->last->dropped |= lost;
    return success;
  });
}

Code cuEventCreate(Event* event, unsigned flags) {
  return enter(Entry::event_create, Needs::context, [&](Call& call) {
    if (event == nullptr || (flags & ~7u)) return invalid_value;
    if ((flags & event_interprocess) && !(flags & event_disable_timing))
      return invalid_value;
    auto made = std::make_unique<EventObject>();
    made->device = call.device;
    made->flags = flags;
    void* handle = made.get();
    call.simulator.events[handle] = std::move(made);
    *event = static_cast<Event>(handle);
    return success;
  });
}

Code cuEventRecord(Event event, Stream stream) {
  return enter(Entry::event_record, Needs::context, [&](Call& call) {
    EventObject* object = call.find(call.simulator.events, event);
    StreamObject* in = call.stream(stream);
    if (object == nullptr || in == nullptr) return invalid_handle;
    if (object->device != in->device) return invalid_handle;
    if (in->capture) {
      if (in->capture->invalidated) return stream_capture_invalidated;
      object->capture = in->capture;
      object->frontier = in->frontier;
      object->recorded.reset();
      return success;
    }
    object->capture.reset();
    Code code = enqueue_marker(call, *in);
    if (code == success) object->recorded = in->last;
    return code;
  });
}

Code cuEventQuery(Event event) {
  return enter(Entry::event_query, Needs::context, [&](Call& call) {
    EventObject* object = call.find(call.simulator.events, event);
    if (object == nullptr) return invalid_handle;
    if (object->capture) return captured_event;
    return progress(call, *object->device, object->recorded);
  });
}

Code cuEventSynchronize(Event event) {
  return enter(Entry::event_synchronize, Needs::context, [&](Call& call) {
    EventObject* object = call.find(call.simulator.events, event);
    if (object == nullptr) return invalid_handle;
    if (object->capture) {
      object->capture->invalidated = true;
      return captured_event;
    }
    call.simulator.wait_for(call.lock, object->recorded);
    call.simulator.host_waited(object->recorded);
    return call.outcome(*object->device);
  });
}

Code cuEventDestroy_v2(Event event) {
  return give_back(
      Entry::event_destroy, Needs::context, event, [&](Call& call) {
        return call.simulator.events.erase(event) ? success : invalid_handle;
      });
}

Code cuEventElapsedTime(float* milliseconds, Event start, Event end) {
  return enter(Entry::event_elapsed_time, Needs::context, [&](Call& call) {
    EventObject* a = call.find(call.simulator.events, start);
    EventObject* b = call.find(call.simulator.events, end);
    if (milliseconds == nullptr) return invalid_value;
    if (a == nullptr || b == nullptr || !a->recorded || !b->recorded ||
        ((a->flags | b->flags) & event_disable_timing)) {
      return invalid_handle;
    }
    if (!is_done(a->recorded) || !is_done(b->recorded)) return not_ready;
    std::chrono::duration<float, std::milli> took =
        b->recorded->end - a->recorded->end;
    *milliseconds = took.count();
    return success;
  });
}

}  // extern "C"
}  // namespace simcuda
