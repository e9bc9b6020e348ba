#include "lang/context/processes.h"

#include <algorithm>

#include "lang/context/under_way.h"
#include "runtime/array_blocks.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/pool.h"

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

const unisono::Array& force_anywhere(Walk& walk, const ArrayValue& array,
                                     Span where) {
  if (!array->array || array->donated || !is_in_file(*array->array))
    return walk.force(array, where);
  return *array->array;
}

namespace {

/// To begin an exchange aside takes some 20 µs.
constexpr int64_t worth_going_aside = int64_t{256} << 10;

/// Whether some process's CPUs have the parts, each its own.
bool is_on_processes(const Sharding& sharding) {
  return sharding.is_split() &&
         std::ranges::all_of(sharding.devices, [](const Device* device) {
           const ClusterDevice* shared = cluster_device(*device);
           return shared && shared->process() != ClusterDevice::all &&
                  shared->kind() == DeviceKind::cpu;
         });
}

}  // namespace

unisono::Array moved_aside(Walk& walk, const unisono::Array& array,
                           const Sharding& to, Span where) {
  Cluster* cluster = cluster_of(walk);
  // Who runs a program waits for what it reads; the reference evaluator does
  // not.
  if (!cluster || Walk::is_absent(array) || walk.machine().reference_only ||
      (array.bytes() < worth_going_aside && !cluster->is_eager()) ||
      !is_on_processes(array.sharding()) || !is_on_processes(to))
    return walk.moved(array, to, where);
  tell_place(walk, where);
  CopyCounter counter{.recorder = walk.machine().recorder};
  auto begun = begin_reshard(array, to, counter);
  if (!begun) walk.fail(begun.error(), where);
  cluster->begin_aside(
      std::move(begun->fill), std::move(begun->places),
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
