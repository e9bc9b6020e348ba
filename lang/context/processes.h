#pragma once
// What the host's part of a program owes to others: where several processes
// walk it (runtime/cluster/cluster.h), and where devices may still be at work.
#include <cstdint>
#include <string>

#include "lang/context/under_way.h"
#include "lang/context/walk.h"
#include "lang/source/source.h"
#include "runtime/cluster/cluster.h"
#include "runtime/result.h"

namespace unisono::lang {

/// Null if this process is alone.
Cluster* cluster_of(Walk& walk);

/// How many processes there are; and the one that has a device.
int process_count(Walk& walk);
int process_of(const Device& device);
/// "process 1 on alpha"; "each process" where all have one of that name.
std::string process_and_host(Walk& walk, const Device& device);

/// Where the walk is, for messages about processes that are elsewhere.
void tell_place(Walk& walk, Span where);

/// Before output: what is printed now would have been printed by one process,
/// too, and by one that waits for its devices. An error at `where` if another
/// process has failed.
void settle(Walk& walk, Span where);
/// The same where errors are a Result's.
Status settle(const Machine& machine);

/// Writes a file: in process 0, when all have done what stands before it; and
/// none goes on before it is written.
template <class Write>
Status write_once(Walk& walk, Span where, Write&& write) {
  wait_for_runs(walk, where);
  Cluster* cluster = cluster_of(walk);
  if (!cluster) return write();
  tell_place(walk, where);
  TRY(cluster->barrier());
  if (cluster->process() == 0) TRY(write());
  return cluster->barrier();
}

/// An array whose elements are in a file is read to where the host's part of
/// the program has its arrays.
void bring_home(Walk& walk, ArrayCell& array, Span where);
/// Whether this is the place of the host's arrays, of which there is one in
/// each of several processes.
bool is_home(Walk& walk, const Sharding& sharding);
/// The same elements where this process reads them without the others, if each
/// has them all.
unisono::Array own_copy(Walk& walk, const unisono::Array& array);
/// Whether this process brings the array elsewhere without the others.
bool is_moved_alone(Walk& walk, const unisono::Array& array);
/// Walk::force for who places the array somewhere: it may be in a file still
/// (runtime/files/file_device.h).
const unisono::Array& force_anywhere(Walk& walk, const ArrayValue& array,
                                     Span where);

/// Walk::moved for an array that the next run alone reads, and that nobody
/// writes to before that has ended: where it comes from other processes, and is
/// large, it is on its way when this returns, and the run waits for it where it
/// reads it.
unisono::Array moved_aside(Walk& walk, const unisono::Array& array,
                           const Sharding& to, Span where);

/// What the machine says to process 0 is what it says to all: the bytes of
/// `data` there.
void agree(Walk& walk, void* data, int64_t bytes, Span where);

}  // namespace unisono::lang
