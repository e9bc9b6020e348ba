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

void agree(Walk& walk, void* data, int64_t bytes, Span where) {
  Cluster* cluster = cluster_of(walk);
  if (!cluster) return;
  tell_place(walk, where);
  if (const Status same = cluster->broadcast(0, data, bytes); !same)
    walk.fail(same.error(), where);
}

}  // namespace unisono::lang
