#include "lang/context/processes.h"

#include <algorithm>

#include "lang/context/under_way.h"
#include "runtime/cluster/cluster_device.h"

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

void agree(Walk& walk, void* data, int64_t bytes, Span where) {
  Cluster* cluster = cluster_of(walk);
  if (!cluster) return;
  tell_place(walk, where);
  if (const Status same = cluster->broadcast(0, data, bytes); !same)
    walk.fail(same.error(), where);
}

}  // namespace unisono::lang
