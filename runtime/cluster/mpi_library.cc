// libunisono_mpi.so: compiled against the MPI that mpicc names (MPICH, Open MPI
// and their like), and opened by processes that a launcher of MPI has started.
// Of MPI it needs messages between two processes, from one thread at a time.
#include "runtime/cluster/mpi_library.h"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace unisono {
namespace {

constexpr int head_tag = 0x756e, body_tag = 0x756f;
constexpr int64_t gone = -1;
// MPI counts in int.
constexpr int64_t most_bytes = int64_t{1} << 30;
constexpr size_t packet = MpiLibrary::packet;

using Packet = std::unique_ptr<char[]>;
struct Kept {
  MPI_Request request = MPI_REQUEST_NULL;
  Packet bytes;
};

struct Peer {
  // Heads that are sent from a copy of them.
  std::list<Kept> kept;
  // A head is asked for before it comes: then it goes straight there.
  Packet head;
  MPI_Request head_request = MPI_REQUEST_NULL;
  MPI_Request body_request = MPI_REQUEST_NULL;
  int64_t body_bytes = 0;
  // A body that was longer than what it was asked for.
  std::vector<char> rest;
  size_t taken = 0;
};

/// MPI is one thing for a process, and so is this.
struct State {
  MPI_Comm all = MPI_COMM_NULL;
  std::vector<Peer> peers;
  Packet spare;  // for the next head that is sent
  bool moved = false;
  int idle = 0;
  /// Every process of this host has a processor of its own.
  bool own_processor = false;
};
State state;

bool ok(int code) { return code == MPI_SUCCESS; }

int open_mpi(int* process, int* processes, char* name, char* problem) {
  int provided = 0;
  if (!ok(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED,
                          &provided)) ||
      provided < MPI_THREAD_SERIALIZED) {
    std::snprintf(problem, 256, "MPI gives no MPI_THREAD_SERIALIZED");
    return -1;
  }
  // Errors come back, and no other library's messages are ours.
  if (!ok(MPI_Comm_dup(MPI_COMM_WORLD, &state.all)) ||
      !ok(MPI_Comm_set_errhandler(state.all, MPI_ERRORS_RETURN)) ||
      !ok(MPI_Comm_rank(state.all, process)) ||
      !ok(MPI_Comm_size(state.all, processes))) {
    std::snprintf(problem, 256, "MPI has no communicator");
    return -1;
  }
  state.peers.resize(static_cast<size_t>(*processes));
  MPI_Comm host = MPI_COMM_NULL;
  int on_host = 0;
  if (ok(MPI_Comm_split_type(state.all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                             &host)) &&
      ok(MPI_Comm_size(host, &on_host)))
    state.own_processor = on_host <= sysconf(_SC_NPROCESSORS_ONLN);
  if (host != MPI_COMM_NULL) MPI_Comm_free(&host);
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  const size_t end = std::strcspn(version, "\n\t,");
  version[end] = '\0';
  std::snprintf(name, 256, "MPI (%s)", version);
  return 0;
}

void drop_sent(Peer& peer) {
  while (!peer.kept.empty()) {
    int done = 0;
    MPI_Test(&peer.kept.front().request, &done, MPI_STATUS_IGNORE);
    if (!done) return;
    peer.kept.pop_front();
  }
}

/// Most are sent when this returns, and leave nothing behind.
int64_t try_send_head(int to, const void* data, int64_t bytes) {
  Peer& peer = state.peers[to];
  drop_sent(peer);
  if (!state.spare) state.spare = std::make_unique<char[]>(packet);
  std::memcpy(state.spare.get(), data, static_cast<size_t>(bytes));
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  if (!ok(MPI_Isend(state.spare.get(), static_cast<int>(bytes), MPI_BYTE, to,
                    head_tag, state.all, &request)) ||
      !ok(MPI_Test(&request, &done, MPI_STATUS_IGNORE)))
    return gone;
  if (!done) peer.kept.push_back({request, std::move(state.spare)});
  state.moved = true;
  return bytes;
}

int64_t try_send(int to, const void* data, int64_t bytes) {
  Peer& peer = state.peers[to];
  drop_sent(peer);
  if (peer.body_request == MPI_REQUEST_NULL) {  // else it is this call again
    peer.body_bytes = std::min(bytes, most_bytes);
    if (!ok(MPI_Isend(data, static_cast<int>(peer.body_bytes), MPI_BYTE, to,
                      body_tag, state.all, &peer.body_request)))
      return gone;
  }
  int done = 0;
  if (!ok(MPI_Test(&peer.body_request, &done, MPI_STATUS_IGNORE))) return gone;
  if (!done) return 0;
  state.moved = true;
  return peer.body_bytes;
}

bool ask_for_head(Peer& peer, int from) {
  return ok(MPI_Irecv(peer.head.get(), static_cast<int>(packet), MPI_BYTE, from,
                      head_tag, state.all, &peer.head_request));
}

int64_t try_receive_head(int from, void* data) {
  Peer& peer = state.peers[from];
  if (!peer.head) {
    peer.head = std::make_unique<char[]>(packet);
    if (!ask_for_head(peer, from)) return gone;
  }
  int done = 0, count = 0;
  MPI_Status status;
  if (!ok(MPI_Test(&peer.head_request, &done, &status))) return gone;
  if (!done) return 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  std::memcpy(data, peer.head.get(), static_cast<size_t>(count));
  state.moved = true;
  return ask_for_head(peer, from) ? count : gone;
}

int64_t try_receive(int from, void* data, int64_t bytes) {
  Peer& peer = state.peers[from];
  if (peer.taken < peer.rest.size()) {
    const int64_t some =
        std::min(bytes, static_cast<int64_t>(peer.rest.size() - peer.taken));
    std::memcpy(data, peer.rest.data() + peer.taken, static_cast<size_t>(some));
    peer.taken += static_cast<size_t>(some);
    return some;
  }
  int there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  if (!ok(MPI_Improbe(from, body_tag, state.all, &there, &message, &status)))
    return gone;
  if (!there) return 0;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  state.moved = true;
  if (count <= bytes) {
    if (!ok(MPI_Mrecv(data, count, MPI_BYTE, &message, MPI_STATUS_IGNORE)))
      return gone;
    return count;
  }
  peer.rest.resize(static_cast<size_t>(count));
  peer.taken = 0;
  if (!ok(MPI_Mrecv(peer.rest.data(), count, MPI_BYTE, &message,
                    MPI_STATUS_IGNORE)))
    return gone;
  return try_receive(from, data, bytes);
}

void cancel(MPI_Request& request) {
  if (request == MPI_REQUEST_NULL) return;
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void forget() {
  for (Peer& peer : state.peers) cancel(peer.body_request);
}

/// MPI makes progress in its calls alone, so nobody sleeps for long. An answer
/// that comes at once is not worth giving the processor away: on a busy machine
/// it does not come back for milliseconds.
int wait(int microseconds) {
  constexpr int asks = 500, yields = 2000;  // an ask takes some 0.2 µs
  if (std::exchange(state.moved, false)) state.idle = 0;
  ++state.idle;
  if (state.own_processor && state.idle < asks) return 0;
  if (state.idle < yields) {
    sched_yield();
    return 1;
  }
  usleep(static_cast<useconds_t>(
      std::min(microseconds, std::min(1000, state.idle / 100))));
  return 1;
}

void close_mpi(int clean) {
  if (!clean) MPI_Abort(MPI_COMM_WORLD, 1);
  for (Peer& peer : state.peers) {
    for (Kept& kept : peer.kept) MPI_Wait(&kept.request, MPI_STATUS_IGNORE);
    cancel(peer.head_request);
  }
  state.peers.clear();
  MPI_Comm_free(&state.all);
  MPI_Finalize();
}

constexpr MpiLibrary library = {
    MpiLibrary::current, open_mpi, try_send_head, try_send, try_receive_head,
    try_receive,         forget,   wait,          close_mpi};

}  // namespace
}  // namespace unisono

const unisono::MpiLibrary* unisono_mpi() { return &unisono::library; }
