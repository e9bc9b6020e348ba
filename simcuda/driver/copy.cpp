// Copies and fills. What is asynchronous for a device is so here: memory is
// read and written when the stream comes to it; only pageable memory of the
// host is read at the call, as the driver stages it.
#include <algorithm>
#include <cstring>

#include "simcuda/driver/driver.h"

namespace simcuda {
namespace {

/// `rows` runs of `bytes`, whose starts lie `step` apart.
struct End {
  uint64_t address = 0;
  uint64_t step = 0;        // from row to row
  uint64_t slice_step = 0;  // from slice to slice
};
struct CopyShape {
  uint64_t bytes = 0, rows = 1, slices = 1;
  uint64_t total() const { return bytes * rows * slices; }
};
uint64_t span(const End& end, const CopyShape& shape) {
  return (shape.slices - 1) * end.slice_step + (shape.rows - 1) * end.step +
         shape.bytes;
}

/// The host's memory behind [address, +bytes), while the copy happens.
Failure locate(DeviceMemory& memory, const char* what, uint64_t address,
               uint64_t bytes, uint8_t*& data,
               std::shared_ptr<Allocation>& allocation) {
  allocation = memory.find(address);
  if (!allocation) {
    if (address < (uint64_t{1} << 47)) {
      data = reinterpret_cast<uint8_t*>(address);  // NOLINT: the host's
      return {};
    }
    return {illegal_address,
            std::string(what) + " " + memory.describe(address)};
  }
  switch (allocation->state.load()) {
    case Allocation::State::freed:
      return {illegal_address,
              std::string(what) + " freed memory: " + memory.describe(address)};
    case Allocation::State::pending:
      return {illegal_address,
              std::string(what) +
                  " memory whose stream-ordered allocation has not happened "
                  "yet: " +
                  memory.describe(address)};
    case Allocation::State::live: break;
  }
  if (address + bytes > allocation->end()) {
    return {illegal_address,
            std::string(what) + " beyond " + memory.describe(address)};
  }
  data = allocation->data + (address - allocation->begin);
  return {};
}

/// One run. Which bytes were ever written goes along with them.
Failure copy_run(Simulator& s, uint64_t to, uint64_t from,
                 const uint8_t* staged, uint64_t bytes) {
  uint8_t* target = nullptr;
  uint8_t* data = nullptr;
  std::shared_ptr<Allocation> a, b;
  Failure failure = locate(s.memory, "a copy writes", to, bytes, target, a);
  if (failure.code != success) return failure;
  if (staged != nullptr) {
    std::memcpy(target, staged, bytes);
    if (a) a->mark_written(to - a->begin, bytes);
    return {};
  }
  failure = locate(s.memory, "a copy reads", from, bytes, data, b);
  if (failure.code != success) return failure;
  std::memmove(target, data, bytes);
  const uint64_t offset = b ? from - b->begin : 0;
  const int64_t missing = b ? b->first_unwritten(offset, bytes) : -1;
  const bool into_device = a && a->device != host_device;
  if (missing >= 0 && !into_device) {
    s.report("a copy to the host reads byte " + std::to_string(missing) +
             " that was never written, of " + s.memory.describe(from));
  }
  if (!a) return {};
  if (missing < 0)
    a->mark_written(to - a->begin, bytes);
  else
    a->mark_as(to - a->begin, *b, offset, bytes);
  return {};
}

Failure copy_all(Simulator& s, const End& to, const End& from,
                 const std::vector<uint8_t>& staged, const CopyShape& shape) {
  const uint8_t* next = staged.empty() ? nullptr : staged.data();
  for (uint64_t z = 0; z < shape.slices; ++z) {
    for (uint64_t y = 0; y < shape.rows; ++y) {
      Failure failure =
          copy_run(s, to.address + z * to.slice_step + y * to.step,
                   from.address + z * from.slice_step + y * from.step, next,
                   shape.bytes);
      if (failure.code != success) return failure;
      if (next) next += shape.bytes;
    }
  }
  return {};
}

/// Copies from context to context are no nodes of graphs, and their ends are in
/// these contexts; others the current context's device must have access to.
enum class Between : uint8_t { one_context, contexts };

bool may_copy(Call& call, const StreamObject& stream,
              const std::shared_ptr<Allocation>& to,
              const std::shared_ptr<Allocation>& from) {
  const DeviceState& device = *stream.device;
  if (stream.device != call.device &&
      ((to && to->kind == Allocation::Kind::pool) ||
       (from && from->kind == Allocation::Kind::pool))) {
    call.simulator.report(
        "an asynchronous copy of a pool's memory in a stream of a context that "
        "is not current");
  }
  return (!to || device.may_write(*to)) && (!from || device.may_read(*from));
}

Code refuse_captured(StreamObject* stream) {
  if (stream == nullptr || !stream->capture) return success;
  stream->capture->invalidated = true;
  return stream_capture_unsupported;
}

bool is_of(Call& call, Context context, DevicePointer pointer) {
  auto allocation = call.simulator.memory.find(pointer);
  return allocation && (allocation->device == host_device ||
                        call.device_at(allocation->device).handle() == context);
}

std::vector<uint8_t> host_bytes(const End& from, const CopyShape& shape) {
  std::vector<uint8_t> bytes;
  bytes.reserve(shape.total());
  for (uint64_t z = 0; z < shape.slices; ++z) {
    for (uint64_t y = 0; y < shape.rows; ++y) {
      const auto* row = reinterpret_cast<const uint8_t*>(
          from.address + z * from.slice_step + y * from.step);
      bytes.insert(bytes.end(), row, row + shape.bytes);
    }
  }
  return bytes;
}

/// What pinned memory held when a copy from it was queued, and when that was.
/// Only where races are looked for.
struct HostSource {
  std::vector<uint8_t> bytes;
  uint64_t operations_done = 0;
};
constexpr uint64_t most_compared = 1 << 20;

/// Pinned memory that the host changes before a copy has read it.
Failure check_source(Simulator& s, const End& from, const CopyShape& shape,
                     const HostSource& source) {
  if (source.bytes.empty() || host_bytes(from, shape) == source.bytes)
    return {};
  Simulator::Lock lock(s.mutex);
  if (s.races->written_since(source.operations_done, from.address,
                             from.address + span(from, shape), s.memory)) {
    return {};
  }
  const std::string text =
      "the host has changed pinned memory that a queued copy of " +
      std::to_string(shape.total()) +
      " bytes had still to read: " + s.memory.describe(from.address);
  s.report(text);
  if (s.configuration.races != LaunchShape::Races::fault) return {};
  return {launch_failed, text};
}

void note_uses(Work& work, const End& end, const CopyShape& shape,
               MemoryUse::Kind kind) {
  for (uint64_t z = 0; z < shape.slices; ++z) {
    for (uint64_t y = 0; y < shape.rows; ++y) {
      const uint64_t begin = end.address + z * end.slice_step + y * end.step;
      work.uses.push_back({begin, begin + shape.bytes, kind});
    }
  }
}

/// `wait`: the call returns when the bytes have arrived.
Code copy(Call& call, StreamObject* stream, const End& to, const End& from,
          const CopyShape& shape, bool host_too, bool wait,
          Between between = Between::one_context) {
  if (stream == nullptr) return invalid_handle;
  if (shape.total() == 0) return success;
  if (wait) {
    if (Code code = call.refuse_in_capture(); code != success) return code;
  }
  std::shared_ptr<Allocation> a, b;
  if (!check_range(call, to.address, span(to, shape), host_too, a) ||
      !check_range(call, from.address, span(from, shape), host_too, b)) {
    return invalid_value;
  }
  if (between == Between::one_context && !may_copy(call, *stream, a, b))
    return invalid_value;
  Simulator& s = call.simulator;
  s.copied_bytes += shape.total();
  if (a && b && a->device != b->device && a->device >= 0 && b->device >= 0)
    s.peer_bytes += shape.total();
  auto work = std::make_shared<Work>();
  work->what = "copy of " + std::to_string(shape.total()) + " bytes";
  work->device = stream->device;
  if (a) work->memory_of[0] = a->device;
  if (b) work->memory_of[1] = b->device;
  if (s.races) {
    note_uses(*work, from, shape, MemoryUse::Kind::read);
    note_uses(*work, to, shape, MemoryUse::Kind::write);
  }
  std::vector<uint8_t> staged;
  if (!b && !wait && !stream->capture) staged = host_bytes(from, shape);
  HostSource source;
  if (s.races && b && b->device == host_device && !wait && !stream->capture &&
      shape.total() <= most_compared) {
    source = {host_bytes(from, shape), s.races->operations_done()};
  }
  // Into pageable memory, the call returns when all is there.
  if (!a && !stream->capture) wait = true;
  work->run = [&s, to, from, shape, staged = std::move(staged),
               source = std::move(source)] {
    Failure failure = check_source(s, from, shape, source);
    if (failure.code != success) return failure;
    return copy_all(s, to, from, staged, shape);
  };
  Code code = s.enqueue(call.lock, *stream, std::move(work));
  if (code != success || !wait) return code;
  s.wait_for(call.lock, stream->last);
  s.host_waited(stream->last);
  return call.outcome(*stream->device);
}

Code copy_line(Call& call, StreamObject* stream, uint64_t to, uint64_t from,
               uint64_t bytes, bool host_too, bool wait,
               Between between = Between::one_context) {
  return copy(call, stream, {to, 0, 0}, {from, 0, 0}, {bytes, 1, 1}, host_too,
              wait, between);
}

/// A named side must be what it is said to be.
bool is_device_memory(Call& call, uint64_t address) {
  return call.simulator.memory.find(address) != nullptr;
}
bool is_host_memory(const void* pointer) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  return address != 0 && address < (uint64_t{1} << 47);
}

Code from_host(Call& call, StreamObject* stream, DevicePointer to,
               const void* from, size_t bytes, bool wait) {
  if (bytes == 0) return success;
  if (!is_device_memory(call, to) || !is_host_memory(from))
    return invalid_value;
  return copy_line(call, stream, to, reinterpret_cast<uint64_t>(from), bytes,
                   true, wait);
}
Code to_host(Call& call, StreamObject* stream, void* to, DevicePointer from,
             size_t bytes, bool wait) {
  if (bytes == 0) return success;
  if (!is_device_memory(call, from) || !is_host_memory(to))
    return invalid_value;
  return copy_line(call, stream, reinterpret_cast<uint64_t>(to), from, bytes,
                   true, wait);
}

constexpr size_t most_pitch = 2147483647;  // DeviceAttribute::max_pitch

/// The start of one side of a Copy2D or Copy3DPeer; false: not supported.
bool side(MemoryType type, const void* host, DevicePointer device, size_t x,
          size_t y, size_t z, size_t pitch, size_t height, uint64_t width,
          uint64_t rows, End& end) {
  switch (type) {
    case MemoryType::host:
      end.address = reinterpret_cast<uint64_t>(host);
      break;
    case MemoryType::device:
    case MemoryType::unified: end.address = device; break;
    case MemoryType::array: return false;
    default: return false;
  }
  end.step = pitch != 0 ? pitch : width;
  end.slice_step = end.step * (height != 0 ? height : rows);
  end.address += x + y * end.step + z * end.slice_step;
  return pitch == 0 || (pitch >= width && pitch <= most_pitch);
}

Code copy_2d(Call& call, const Copy2D* c, StreamObject* stream, bool wait) {
  if (c == nullptr) return invalid_value;
  End to, from;
  if (!side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY,
            0, c->srcPitch, 0, c->WidthInBytes, c->Height, from) ||
      !side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY,
            0, c->dstPitch, 0, c->WidthInBytes, c->Height, to)) {
    return invalid_value;
  }
  return copy(call, stream, to, from, {c->WidthInBytes, c->Height, 1}, true,
              wait);
}

Code fill(Call& call, StreamObject* stream, DevicePointer to, uint32_t value,
          uint64_t width, uint64_t count) {
  if (stream == nullptr) return invalid_handle;
  if (count == 0) return success;
  if (to % width != 0 || count > (uint64_t{1} << 50)) return invalid_value;
  const uint64_t bytes = width * count;
  std::shared_ptr<Allocation> allocation;
  if (!check_range(call, to, bytes, false, allocation)) return invalid_value;
  auto work = std::make_shared<Work>();
  work->what = "fill of " + std::to_string(bytes) + " bytes";
  work->device = stream->device;
  work->uses = {{to, to + bytes, MemoryUse::Kind::write}};
  Simulator& s = call.simulator;
  work->run = [&s, to, value, width, bytes] {
    uint8_t* data = nullptr;
    std::shared_ptr<Allocation> a;
    Failure failure = locate(s.memory, "a fill writes", to, bytes, data, a);
    if (failure.code != success) return failure;
    if (width == 1)
      std::memset(data, static_cast<int>(value), bytes);
    else
      for (uint64_t k = 0; k < bytes; k += width)
        std::memcpy(data + k, &value, width);
    if (a) a->mark_written(to - a->begin, bytes);
    return failure;
  };
  return s.enqueue(call.lock, *stream, std::move(work));
}

}  // namespace

extern "C" {

Code cuMemcpy(DevicePointer to, DevicePointer from, size_t bytes) {
  return enter(Entry::memcpy, Needs::context, [&](Call& call) {
    return copy_line(call, call.stream(nullptr), to, from, bytes, true, true);
  });
}
Code cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes,
                   Stream stream) {
  return enter(Entry::memcpy_async, Needs::context, [&](Call& call) {
    return copy_line(call, call.stream(stream), to, from, bytes, true, false);
  });
}
Code cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  return enter(Entry::memcpy_htod, Needs::context, [&](Call& call) {
    return from_host(call, call.stream(nullptr), to, from, bytes, true);
  });
}
Code cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  return enter(Entry::memcpy_dtoh, Needs::context, [&](Call& call) {
    return to_host(call, call.stream(nullptr), to, from, bytes, true);
  });
}
Code cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, size_t bytes) {
  return enter(Entry::memcpy_dtod, Needs::context, [&](Call& call) {
    // The host does not wait for a copy within devices.
    if (Code code = call.refuse_in_capture(); code != success) return code;
    return copy_line(call, call.stream(nullptr), to, from, bytes, false, false);
  });
}
Code cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes,
                          Stream stream) {
  return enter(Entry::memcpy_htod_async, Needs::context, [&](Call& call) {
    return from_host(call, call.stream(stream), to, from, bytes, false);
  });
}
Code cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes,
                          Stream stream) {
  return enter(Entry::memcpy_dtoh_async, Needs::context, [&](Call& call) {
    return to_host(call, call.stream(stream), to, from, bytes, false);
  });
}
Code cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes,
                          Stream stream) {
  return enter(Entry::memcpy_dtod_async, Needs::context, [&](Call& call) {
    return copy_line(call, call.stream(stream), to, from, bytes, false, false);
  });
}

Code cuMemcpyPeer(DevicePointer to, Context to_context, DevicePointer from,
                  Context from_context, size_t bytes) {
  return enter(Entry::memcpy_peer, Needs::context, [&](Call& call) {
    if (!call.context(to_context) || !call.context(from_context))
      return invalid_context;
    if (Code code = call.refuse_in_capture(); code != success) return code;
    if (!is_of(call, to_context, to) || !is_of(call, from_context, from))
      return invalid_value;
    return copy_line(call, call.stream(nullptr), to, from, bytes, false, false,
                     Between::contexts);
  });
}
Code cuMemcpyPeerAsync(DevicePointer to, Context to_context, DevicePointer from,
                       Context from_context, size_t bytes, Stream stream) {
  return enter(Entry::memcpy_peer_async, Needs::context, [&](Call& call) {
    if (!call.context(to_context) || !call.context(from_context))
      return invalid_context;
    StreamObject* in = call.stream(stream);
    if (Code code = refuse_captured(in); code != success) return code;
    if (!is_of(call, to_context, to) || !is_of(call, from_context, from))
      return invalid_value;
    return copy_line(call, in, to, from, bytes, false, false,
                     Between::contexts);
  });
}

Code cuMemcpy2DUnaligned_v2(const Copy2D* c) {
  return enter(Entry::memcpy_2d, Needs::context, [&](Call& call) {
    return copy_2d(call, c, call.stream(nullptr), true);
  });
}
Code cuMemcpy2DAsync_v2(const Copy2D* c, Stream stream) {
  return enter(Entry::memcpy_2d_async, Needs::context, [&](Call& call) {
    return copy_2d(call, c, call.stream(stream), false);
  });
}
Code cuMemcpy3DPeerAsync(const Copy3DPeer* c, Stream stream) {
  return enter(Entry::memcpy_3d_peer_async, Needs::context, [&](Call& call) {
    if (c == nullptr) return invalid_value;
    End to, from;
    if (!side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes,
              c->srcY, c->srcZ, c->srcPitch, c->srcHeight, c->WidthInBytes,
              c->Height, from) ||
        !side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes,
              c->dstY, c->dstZ, c->dstPitch, c->dstHeight, c->WidthInBytes,
              c->Height, to)) {
      return invalid_value;
    }
    StreamObject* in = call.stream(stream);
    if (Code code = refuse_captured(in); code != success) return code;
    const bool own = (c->srcMemoryType == MemoryType::host ||
                      is_of(call, c->srcContext, c->srcDevice)) &&
                     (c->dstMemoryType == MemoryType::host ||
                      is_of(call, c->dstContext, c->dstDevice));
    if (!own) return invalid_value;
    return copy(call, in, to, from, {c->WidthInBytes, c->Height, c->Depth},
                true, false, Between::contexts);
  });
}

Code cuMemsetD8_v2(DevicePointer to, unsigned char value, size_t count) {
  return enter(Entry::memset_d8, Needs::context, [&](Call& call) {
    if (Code code = call.refuse_in_capture(); code != success) return code;
    return fill(call, call.stream(nullptr), to, value, 1, count);
  });
}
Code cuMemsetD32_v2(DevicePointer to, unsigned value, size_t count) {
  return enter(Entry::memset_d32, Needs::context, [&](Call& call) {
    if (Code code = call.refuse_in_capture(); code != success) return code;
    return fill(call, call.stream(nullptr), to, value, 4, count);
  });
}
Code cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count,
                     Stream stream) {
  return enter(Entry::memset_d8_async, Needs::context, [&](Call& call) {
    return fill(call, call.stream(stream), to, value, 1, count);
  });
}
Code cuMemsetD16Async(DevicePointer to, unsigned short value, size_t count,
                      Stream stream) {
  return enter(Entry::memset_d16_async, Needs::context, [&](Call& call) {
    return fill(call, call.stream(stream), to, value, 2, count);
  });
}
Code cuMemsetD32Async(DevicePointer to, unsigned value, size_t count,
                      Stream stream) {
  return enter(Entry::memset_d32_async, Needs::context, [&](Call& call) {
    return fill(call, call.stream(stream), to, value, 4, count);
  });
}

}  // extern "C"
}  // namespace simcuda
