#include "lang/context/processes.h"

#include <algorithm>

#include "lang/context/under_way.h"
#include "runtime/array_blocks.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/pool.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {

Cluster* cluster_of(Walk& walk) {
  return unisono::cluster_of(walk.machine().runtime->devices());
}

int process_count(Walk& walk) {
  const Cluster* cluster = cluster_of(walk);
  return cluster ? cluster->processes() : 1;
}

int process_of(const Device& device) {
  const ClusterDevice* shared = cluster_device(device);
  return shared ? std::max(shared->process(), 0) : 0;
}

std::string process_and_host(Walk& walk, const Device& device) {
  const Cluster* cluster = cluster_of(walk);
  if (!cluster) return "process 0 on " + host_name();
  const ClusterDevice* shared = cluster_device(device);
  if (!shared || shared->process() == ClusterDevice::all) return "each process";
  return cluster->label_with_host(shared->process());
}

void tell_place(Walk& walk, Span where) {
  Cluster* cluster = cluster_of(walk);
  if (cluster && where) cluster->at(to_string(where));
}

void settle(Walk& walk, Span where) {
  wait_for_runs(walk, where);
  Cluster* cluster = cluster_of(walk);
  if (!cluster) return;
  tell_place(walk, where);
  if (const Status settled = cluster->settle(); !settled)
    walk.fail(settled.error(), where);
}

Status settle(const Machine& machine) {
  Cluster* cluster = unisono::cluster_of(machine.runtime->devices());
  if (!cluster || cluster->in_member()) return Unit{};
  return cluster->settle();
}

void bring_home(Walk& walk, ArrayCell& array, Span where) {
  if (!array.array || !is_in_file(*array.array)) return;
  Device& home = home_device(walk.machine().runtime->devices());
  array.array = walk.moved(*array.array, Sharding{-1, {&home}}, where);
}

bool is_home(Walk& walk, const Sharding& sharding) {
  return sharding.devices.size() == 1 &&
         sharding.devices[0] ==
             &home_device(walk.machine().runtime->devices()) &&
         cluster_of(walk);
}

unisono::Array own_copy(Walk& walk, const unisono::Array& array) {
  if (!cluster_of(walk) || Walk::is_absent(array)) return array;
  return unisono::own_copy(array,
                           home_device(walk.machine().runtime->devices()));
}

bool is_moved_alone(Walk& walk, const unisono::Array& array) {
  return !cluster_of(walk) || is_in_file(array) ||
         is_home(walk, array.sharding());
}

const unisono::Array& force_anywhere(Walk& walk, const ArrayValue& array,
                                     Span where) {
  if (!array->array || array->donated || !is_in_file(*array->array))
    return walk.force(array, where);
  return *array->array;
}

namespace {

/// Whether processes' devices have the parts, each its own, and it takes a
/// thread of the host's to bring them.
bool is_on_processes(const Sharding& sharding) {
  return sharding.is_split() &&
         std::ranges::all_of(sharding.devices, [](const Device* device) {
           const ClusterDevice* shared = cluster_device(*device);
           return shared && shared->process() != ClusterDevice::all &&
                  (shared->kind() == DeviceKind::cpu ||
                   shared->mover().waits());
         });
}

/// What has been put on queues, before another thread copies: memory comes in
/// that order, and few bytes. Kernels that are put later it does not wait for.
Result<std::vector<std::shared_ptr<Queue::Parcel>>> put_so_far(
    const Sharding& from, const Sharding& to) {
  std::vector<Queue*> queues;
  for (const Sharding* sharding : {&from, &to})
    for (Device* device : sharding->devices)
      if (Queue* queue = is_here(*device) ? device->queue() : nullptr)
        if (std::ranges::find(queues, queue) == queues.end())
          queues.push_back(queue);
  std::vector<std::shared_ptr<Queue::Parcel>> out;
  for (Queue* queue : queues) {
    std::shared_ptr<Queue::Parcel> parcel = TRY(queue->send(nullptr, 0));
    if (parcel)
      out.push_back(std::move(parcel));
    else
      TRY(queue->read({}));
  }
  return out;
}

}  // namespace

unisono::Array moved_aside(Walk& walk, const unisono::Array& array,
                           const Sharding& to, Span where) {
  Cluster* cluster = cluster_of(walk);
  // Who runs a program waits for what it reads; the reference evaluator does
  // not.
  if (!cluster || Walk::is_absent(array) || walk.machine().reference_only ||
      (array.bytes() < tuning().least_aside_bytes && !cluster->is_eager()) ||
      !is_on_processes(array.sharding()) || !is_on_processes(to))
    return walk.moved(array, to, where);
  tell_place(walk, where);
  CopyCounter counter{.recorder = walk.machine().recorder};
  auto begun = begin_reshard(array, to, counter);
  if (!begun) walk.fail(begun.error(), where);
  auto before = put_so_far(array.sharding(), to);
  if (!before) walk.fail(before.error(), where);
  cluster->begin_aside(
      [before = *std::move(before), fill = std::move(begun->fill)]() -> Status {
        for (const auto& parcel : before) TRY(parcel->wait());
        return fill();
      },
      std::move(begun->places),
      [&pool = walk.machine().runtime->pool()] { pool.notify(); });
  return std::move(begun->array);
}

void agree(Walk& walk, void* data, int64_t bytes, Span where) {
  Cluster* cluster = cluster_of(walk);
  if (!cluster) return;
  tell_place(walk, where);
  if (const Status same = cluster->broadcast(0, data, bytes); !same)
    walk.fail(same.error(), where);
}

}  // namespace unisono::lang
