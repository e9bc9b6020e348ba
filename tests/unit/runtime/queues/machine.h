#pragma once
// Devices with queues, as GPUs are, but in the host's memory and as late as can
// be: what is put in a lane is done when somebody waits for it, and not before,
// so that a wait that is missing shows in the numbers; and each call can be
// made to fail. Kernels are functions of C++, by the names of their entries.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/execute/program.h"
#include "runtime/kernel_library/kernel_library.h"
#include "runtime/member_tree.h"
#include "runtime/queue.h"

namespace unisono::queues {

/// What a kernel is called with.
struct KernelCall {
  std::vector<void*> arguments;
  const std::vector<uint8_t>& constants;
  GridError* error;
  uint64_t number;
  int32_t position;

  template <class T>
  T* argument(size_t i) const {
    return static_cast<T*>(arguments[i]);
  }
  template <class T>
  T constant() const {
    T out;
    std::memcpy(&out, constants.data(), sizeof out);
    return out;
  }
};
using Kernel = std::function<void(const KernelCall&)>;

/// What the devices of a process have in common. One thread at a time is in it.
struct Machine {
  std::recursive_mutex mutex;
  std::map<std::string, Kernel> kernels;
  std::function<bool(int, int)> reaches = [](int, int) { return true; };
  int most_parcels = 100;  // of a queue, under way
  bool has_queues = true;

  /// The call that fails (from 1), or which ones do, by what they are.
  int64_t fails_at = 0;
  std::function<bool(const std::string&)> fails = [](const auto&) {
    return false;
  };
  int64_t calls = 0;
  std::string failed;  // what the first one that failed was
  int64_t put = 0;     // pieces of work
  int64_t staging_lent = 0;
  int64_t bytes_in_use = 0;

  Status call(const std::string& what) {
    ++calls;
    if (calls != fails_at && !fails(what)) return Unit{};
    if (failed.empty()) failed = what;
    return Error{.kind = Error::Kind::device_lost,
                 .message = "a call fails: " + what};
  }
  using Work = std::function<void()>;
  std::vector<Work>* captured = nullptr;  // where work is captured
  // Freed memory keeps what is in it until the end.
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory;
};

/// The call by which a word for errors is made clean again.
inline const std::string clears = fmt::format("copy {}", sizeof(GridError));

using Lock = std::lock_guard<std::recursive_mutex>;

class LateQueue final : public Queue {
 public:
  LateQueue(Machine& machine, int index, bool captures = false)
      : machine_(machine), index_(index), captures_(captures) {}

  void stop_when(const std::atomic<bool>* flag) override { stop = flag; }
  Status prepare(const GridLaunch& launch) override {
    const Lock lock(machine_.mutex);
    TRY(call("prepare"));
    if (!machine_.kernels.contains(launch.entry)) FAIL_CHECK(launch.entry);
    return Unit{};
  }
  Status launch(const GridLaunch& launch, const Call& call) override {
    const Lock lock(machine_.mutex);
    TRY(this->call("launch"));
    std::vector<void*> arguments(call.arguments.begin(), call.arguments.end());
    put(call.lane, [&kernel = machine_.kernels.at(launch.entry), arguments,
                    constants = launch.constants, number = call.number,
                    position = call.position,
                    error = static_cast<GridError*>(call.error)] {
      kernel({arguments, constants, error, number, position});
    });
    return Unit{};
  }
  Status copy(void* to, const Queue&, const void* from, int64_t bytes,
              Lane lane) override {
    const Lock lock(machine_.mutex);
    TRY(call(fmt::format("copy {}", bytes)));
    if (bytes <= 0 || to == from) FAIL_CHECK("a copy of nothing");
    put(lane, [=] { std::memmove(to, from, static_cast<size_t>(bytes)); });
    return Unit{};
  }
  Status copy_to_staging(void* to, const void* from, int64_t bytes) override {
    return copy(to, *this, from, bytes, Lane::kernels);
  }
  Status zero(void* to, int64_t bytes, Lane lane) override {
    const Lock lock(machine_.mutex);
    TRY(call("zero"));
    put(lane, [=] { std::memset(to, 0, static_cast<size_t>(bytes)); });
    return Unit{};
  }
  Status mark(Lane lane) override {
    const Lock lock(machine_.mutex);
    TRY(call("mark"));
    Line& line = lines_[static_cast<int>(lane)];
    line.mark = line.work.size();
    return Unit{};
  }
  Status wait_for(const Queue& other, Lane own, Lane others) override {
    const Lock lock(machine_.mutex);
    TRY(call("wait_for"));
    const auto& queue = static_cast<const LateQueue&>(other);
    if (captures_ != queue.captures_)
      FAIL_CHECK("work that is captured waits for what is not, or that for it");
    if (captures_) return Unit{};  // in the order in which it is captured
    Line& line = queue.lines_[static_cast<int>(others)];
    lines_[static_cast<int>(own)].work.emplace_back(
        [&line, until = line.mark] { line.run(until); });
    return Unit{};
  }
  Status read(std::span<const Read> what, Lane lane) override {
    const Lock lock(machine_.mutex);
    TRY(call("read"));
    if (captures_) FAIL_CHECK("a queue that captures reads");
    finish(lane);
    for (const Read& each : what)
      std::memcpy(each.to, each.from, static_cast<size_t>(each.extent.bytes));
    return Unit{};
  }
  Result<std::unique_ptr<Parcel>> send(const void* from,
                                       int64_t bytes) override {
    const Lock lock(machine_.mutex);
    TRY(call("send"));
    if (*parcels_ >= machine_.most_parcels) return std::unique_ptr<Parcel>();
    auto parcel = std::make_unique<LateParcel>(*this);
    if (bytes > 0)
      put(Lane::kernels, [to = parcel->memory, from, bytes] {
        std::memcpy(to->data(), from, static_cast<size_t>(bytes));
      });
    parcel->until = lines_[0].work.size();
    return std::unique_ptr<Parcel>(std::move(parcel));
  }
  Result<std::unique_ptr<Moment>> moment(Lane) override {
    const Lock lock(machine_.mutex);
    TRY(call("moment"));
    return std::unique_ptr<Moment>(std::make_unique<LateMoment>());
  }
  void settle() override {
    const Lock lock(machine_.mutex);
    finish(Lane::kernels);
    finish(Lane::copies);
  }
  Status write(void* to, const void* from, const CopyExtent& extent,
               Lane lane) override {
    const Lock lock(machine_.mutex);
    TRY(call("write"));
    const auto* bytes = static_cast<const char*>(from);
    put(lane, [to, copy = std::vector<char>(bytes, bytes + extent.bytes)] {
      std::memcpy(to, copy.data(), copy.size());
    });
    if (lane == Lane::copies) finish(lane);
    return Unit{};
  }
  bool reaches(const Queue& other) const override {
    const int there = static_cast<const LateQueue&>(other).index_;
    return index_ == there || machine_.reaches(index_, there);
  }
  Result<void*> borrow_staging(int64_t bytes) override {
    const Lock lock(machine_.mutex);
    TRY(call("borrow_staging"));
    ++machine_.staging_lent;
    return machine_.memory
        .emplace_back(std::malloc(static_cast<size_t>(bytes)), &std::free)
        .get();
  }
  void return_staging(void*) override {
    const Lock lock(machine_.mutex);
    --machine_.staging_lent;
  }
  Result<std::unique_ptr<Queue>> capturing() override {
    const Lock lock(machine_.mutex);
    TRY(call("capturing"));
    return std::unique_ptr<Queue>(
        std::make_unique<LateQueue>(machine_, index_, true));
  }
  Status begin_capture() override {
    const Lock lock(machine_.mutex);
    TRY(call("begin"));
    capture_ = std::make_unique<LateCapture>();
    machine_.captured = &capture_->work;
    return Unit{};
  }
  Result<std::unique_ptr<Captured>> end_capture() override {
    const Lock lock(machine_.mutex);
    machine_.captured = nullptr;
    TRY(call("end"));
    return std::unique_ptr<Captured>(std::move(capture_));
  }
  Status replay(const Captured& work) override {
    const Lock lock(machine_.mutex);
    TRY(call("replay"));
    put(Lane::kernels, [&all = static_cast<const LateCapture&>(work).work] {
      for (const Machine::Work& each : all) each();
    });
    return Unit{};
  }
  void finish(Lane lane) {
    Line& line = lines_[static_cast<int>(lane)];
    line.run(line.work.size());
  }

  const std::atomic<bool>* stop = nullptr;  // the run's, while there is one

 private:
  /// A lane's work in order, of which so much is done.
  struct Line {
    std::vector<Machine::Work> work;
    size_t done = 0;
    size_t mark = 0;
    void run(size_t until) {
      while (done < until) {
        const Machine::Work next = std::move(work[done++]);
        next();
      }
    }
  };
  struct LateCapture final : Captured {
    std::vector<Machine::Work> work;
  };
  struct LateMoment final : Moment {
    Result<std::chrono::steady_clock::time_point> time() override {
      return std::chrono::steady_clock::now();
    }
  };
  struct LateParcel final : Parcel {
    explicit LateParcel(LateQueue& of)
        : queue(of),
          memory(std::make_shared<std::vector<char>>(most_sent)),
          count(of.parcels_) {
      ++*count;
    }
    ~LateParcel() override {
      const Lock lock(queue.machine_.mutex);
      --*count;
    }
    Status wait() override {
      const Lock lock(queue.machine_.mutex);
      TRY(queue.call("wait"));
      queue.lines_[0].run(until);
      return Unit{};
    }
    const void* bytes() const override { return memory->data(); }
    LateQueue& queue;
    std::shared_ptr<std::vector<char>> memory;
    std::shared_ptr<int> count;
    size_t until = 0;
  };

  Status call(const std::string& what) {
    return machine_.call((captures_ ? "captured " : "") + what);
  }
  void put(Lane lane, Machine::Work work) {
    if (captures_) {
      machine_.captured->push_back(std::move(work));
      return;
    }
    ++machine_.put;
    lines_[static_cast<int>(lane)].work.push_back(std::move(work));
  }

  Machine& machine_;
  const int index_;
  const bool captures_;
  mutable Line lines_[2];  // by lane
  std::unique_ptr<LateCapture> capture_;
  std::shared_ptr<int> parcels_ = std::make_shared<int>(0);
};

class LateDevice final : public Device {
 public:
  LateDevice(std::shared_ptr<Machine> machine, int index)
      : machine_(std::move(machine)),
        index_(index),
        name_(fmt::format("late:{}", index)),
        queue_(*machine_, index) {}

  const std::string& name() const override { return name_; }
  int index() const override { return index_; }
  DeviceKind kind() const override { return DeviceKind::gpu; }
  Queue* queue() override { return machine_->has_queues ? &queue_ : nullptr; }
  int capability() const override { return 90; }
  /// Full of what nobody has written.
  Result<Buffer> allocate(int64_t bytes) override {
    const Lock lock(machine_->mutex);
    TRY(machine_->call("allocate"));
    const size_t size = static_cast<size_t>(bytes + 63) / 64 * 64;
    void* data = std::aligned_alloc(64, std::max<size_t>(size, 64));
    std::memset(data, 0x7b, std::max<size_t>(size, 64));
    machine_->memory.emplace_back(data, &std::free);
    machine_->bytes_in_use += bytes;
    return Buffer(this, data, bytes);
  }
  void free(void*, int64_t bytes) override {
    const Lock lock(machine_->mutex);
    machine_->bytes_in_use -= bytes;
  }
  Status copy_from_host(void* to, const void* from,
                        const CopyExtent& extent) override {
    const Lock lock(machine_->mutex);
    TRY(machine_->call("copy_from_host"));
    std::memcpy(to, from, static_cast<size_t>(extent.bytes));
    return Unit{};
  }
  Status copy_to_host(void* to, const void* from,
                      const CopyExtent& extent) override {
    const Lock lock(machine_->mutex);
    queue_.finish(Lane::kernels);
    std::memcpy(to, from, static_cast<size_t>(extent.bytes));
    return Unit{};
  }
  Status copy_from_peer(void*, const Device&, const void*,
                        const CopyExtent&) override {
    return Error{.message = "no such copies"};
  }
  int64_t bytes_in_use() const override { return machine_->bytes_in_use; }
  int64_t peak_bytes() const override { return 0; }

 private:
  const std::shared_ptr<Machine> machine_;
  const int index_;
  const std::string name_;
  LateQueue queue_;
};

// ---- kernels ---------------------------------------------------------------

/// A launch of a kernel that goes over `elements`.
inline std::shared_ptr<GridLaunch> grid(const char* entry,
                                        int64_t elements = 0) {
  auto launch = std::make_shared<GridLaunch>();
  launch->entry = entry;
  launch->constants.resize(sizeof elements);
  std::memcpy(launch->constants.data(), &elements, sizeof elements);
  return launch;
}

/// A check in `launch` failed with this index, of member `member`.
inline void fail_check(const KernelCall& call, uint64_t check, int64_t index,
                       uint64_t member = 0) {
  if (call.error->launch) return;
  call.error->launch = call.number;
  const uint64_t key = member << grid_check_bits | check;
  for (size_t i = 0; i < 8; ++i)
    call.error->parts[i] =
        key << 8 | (static_cast<uint64_t>(index) >> 8 * i & 0xff);
}

/// As combine.cc has them; `Small` is what is small.
template <class Small>
Kernel combine_of() {
  return [](const KernelCall& call) {
    const auto combine = call.constant<CombineCall>();
    const auto load = [&](size_t argument, int bit, int64_t i) {
      return (combine.small & bit) != 0
                 ? static_cast<float>(call.argument<Small>(argument)[i])
                 : call.argument<float>(argument)[i];
    };
    for (int64_t i = 0; i < combine.elements; ++i) {
      const float a = load(1, 1, i), b = load(2, 2, i);
      const float out = combine.op == 0   ? a + b
                        : combine.op == 1 ? std::max(a, b)
                                          : std::min(a, b);
      if ((combine.small & 4) != 0)
        call.argument<Small>(0)[i] = static_cast<Small>(out);
      else
        call.argument<float>(0)[i] = out;
    }
  };
}

/// With the kernels of the library that executors launch.
inline std::shared_ptr<Machine> make_machine() {
  auto machine = std::make_shared<Machine>();
  machine->kernels["seal"] = [](const KernelCall& call) {
    auto* word = call.argument<uint64_t>(0);
    if (word[0] != 0)
      word[0] |= grid_sealed;
    else
      word[9] += call.constant<uint64_t>();
  };
  machine->kernels["combine_f32"] = combine_of<float>();
  machine->kernels["combine_f16"] = combine_of<_Float16>();
  return machine;
}

/// Devices of their own for a runtime.
inline std::vector<std::unique_ptr<Device>> late_devices(
    const std::shared_ptr<Machine>& machine, int count) {
  std::vector<std::unique_ptr<Device>> out;
  for (int d = 0; d < count; ++d)
    out.push_back(std::make_unique<LateDevice>(machine, d));
  return out;
}

}  // namespace unisono::queues
