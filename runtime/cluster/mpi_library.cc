// libunisono_mpi.so: compiled against the MPI that mpicc names (MPICH, Open MPI
// and their like), and opened by processes that a launcher of MPI has started.
// Of MPI it needs messages between two processes, from one thread at a time.
// Heads between processes of one host go through memory that these share, which
// MPI gives them: that takes a fourth of the time of MPI's messages. Of bodies
// the same memory says where they are, and the receiver reads them there, if
// the system lets processes do so: each byte moves once, piece by piece to
// where it is asked for.
#include "runtime/cluster/mpi_library.h"

#include <mpi.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unisono {
namespace {

constexpr int head_tag = 0x756e, body_tag = 0x756f;
constexpr int64_t gone = -1;
// MPI counts in int.
constexpr int64_t most_bytes = int64_t{1} << 30;
constexpr size_t packet = MpiLibrary::packet;

using Clock = std::chrono::steady_clock;

using Packet = std::unique_ptr<char[]>;
struct Kept {
  MPI_Request request = MPI_REQUEST_NULL;
  Packet bytes;
};

/// A head or some of a body in shared memory, or the word that MPI has it, or
/// where the body lies.
struct alignas(64) Slot {
  static constexpr uint32_t by_mpi = 0xffff'ffff, in_place = 0xffff'fffe,
                            withdrawn = 0xffff'fffd;
  std::atomic<uint32_t> state{0};  // 0: empty; its bytes, or one of these
  std::array<char, 2044> bytes;
};
static_assert(sizeof(Slot) == 2048 &&
              std::atomic<uint32_t>::is_always_lock_free);
/// Bytes of another process's memory: a slot that is `in_place` has this.
struct Place {
  const char* address = nullptr;
  int64_t bytes = 0;
};
/// So much is read in one call, so that others have their turn.
constexpr int64_t most_read = 512 << 10;
/// Of fewer bytes a call of the system takes longer than MPI's copies.
constexpr int64_t least_read = 16 << 10;
/// From one process to another, which alone writes, and reads. No process waits
/// for room while another one waits for what it has not sent: what is in here
/// belongs to exchanges before the one that its reader waits in.
using Ring = std::array<Slot, 8>;

/// One end of a ring.
struct End {
  Ring* ring = nullptr;  // null: on another host
  size_t next = 0;

  Slot& slot() const { return (*ring)[next % ring->size()]; }
  void pass(uint32_t state) {
    slot().state.store(state, std::memory_order_release);
    ++next;
  }
};

struct Peer {
  End out, in;
  // Heads that are sent from a copy of them.
  std::list<Kept> kept;
  // A head is asked for before it comes: then it goes straight there.
  Packet head;
  MPI_Request head_request = MPI_REQUEST_NULL;
  bool head_by_mpi = false;  // the ring said so
  MPI_Request body_request = MPI_REQUEST_NULL;
  int64_t body_bytes = 0;
  pid_t pid = 0;             // 0: its memory cannot be read
  Slot* lent = nullptr;      // says where a body lies that it reads
  bool body_by_mpi = false;  // the ring said so
  int64_t read = 0;          // of the slot of `in` that is next
  // A body that was longer than what it was asked for.
  std::vector<char> rest;
  size_t taken = 0;
};

/// MPI is one thing for a process, and so is this.
struct State {
  MPI_Comm all = MPI_COMM_NULL;
  std::vector<Peer> peers;
  Packet spare;  // for the next head that is sent
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Win shared = MPI_WIN_NULL;
  bool moved = false;
  int idle = 0;
  Clock::time_point idle_since;
  /// Every process of this host has a processor of its own.
  bool own_processor = false;
};
State state;

bool ok(int code) { return code == MPI_SUCCESS; }

bool read_memory(pid_t pid, const char* address, void* to, int64_t bytes) {
  while (bytes > 0) {
    const iovec here{to, static_cast<size_t>(bytes)};
    const iovec there{const_cast<char*>(address), here.iov_len};
    const ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to = static_cast<char*>(to) + got;
    address += got;
    bytes -= got;
  }
  return true;
}

/// Whether processes of this host, `members` by rank there, may read each
/// other's memory is tried: a container or the system's settings may forbid it.
void open_memory(const std::vector<int>& members) {
  struct Sample {
    const char* address = nullptr;
    uint64_t value = 0;
    int64_t pid = 0;
  };
  static uint64_t value = 0;
  const auto now = Clock::now().time_since_epoch().count();
  value = static_cast<uint64_t>(now) * 0x9e3779b97f4a7c15 ^
          static_cast<uint64_t>(getpid());
  // Where only parents may, or who was allowed to.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const Sample own{reinterpret_cast<const char*>(&value), value, getpid()};
  std::vector<Sample> all(members.size());
  if (!ok(MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own,
                        MPI_BYTE, state.host)))
    return;
  int own_reads = 1, reads = 0;
  for (const Sample& sample : all) {
    uint64_t seen = 0;
    if (!read_memory(static_cast<pid_t>(sample.pid), sample.address, &seen,
                     sizeof seen) ||
        seen != sample.value)
      own_reads = 0;
  }
  if (!ok(MPI_Allreduce(&own_reads, &reads, 1, MPI_INT, MPI_MIN, state.host)) ||
      reads == 0)
    return;
  for (size_t i = 0; i < members.size(); ++i)
    if (state.peers[members[i]].in.ring)
      state.peers[members[i]].pid = static_cast<pid_t>(all[i].pid);
}

/// Each process has the rings of what comes to it from this host. Without them
/// all goes by MPI.
void open_rings() {
  int own = 0, count = 0;
  void* base = nullptr;
  if (!ok(MPI_Comm_rank(state.host, &own)) ||
      !ok(MPI_Comm_size(state.host, &count)))
    return;
  const bool made =
      ok(MPI_Win_allocate_shared(static_cast<MPI_Aint>(sizeof(Ring)) * count, 1,
                                 MPI_INFO_NULL, state.host,
                                 static_cast<void*>(&base), &state.shared)) &&
      ok(MPI_Win_lock_all(MPI_MODE_NOCHECK, state.shared));
  const int own_made = made ? 1 : 0;
  int all_made = 0;
  auto* const rings = static_cast<Ring*>(base);
  for (int i = 0; made && i < count; ++i) new (&rings[i]) Ring;
  // Others write there after this.
  if (!ok(MPI_Allreduce(&own_made, &all_made, 1, MPI_INT, MPI_MIN,
                        state.host)) ||
      all_made == 0)
    return;
  MPI_Group all = MPI_GROUP_NULL, here = MPI_GROUP_NULL;
  MPI_Comm_group(state.all, &all);
  MPI_Comm_group(state.host, &here);
  std::vector<int> members(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    int& process = members[i];
    int unit = 1;
    MPI_Aint bytes = 0;
    void* there = nullptr;
    if (!ok(MPI_Group_translate_ranks(here, 1, &i, all, &process)) ||
        i == own ||
        !ok(MPI_Win_shared_query(state.shared, i, &bytes, &unit,
                                 static_cast<void*>(&there))))
      continue;
    state.peers[process].in.ring = &rings[i];
    state.peers[process].out.ring = &static_cast<Ring*>(there)[own];
  }
  MPI_Group_free(&all);
  MPI_Group_free(&here);
  open_memory(members);
}

/// "MPICH 4.0.2", "Open MPI v4.1.4": of what the library says, which begins
/// with "MPICH Version:\t4.0.2\n" or "Open MPI v4.1.4, package: ".
std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  std::string name(text.data(), std::strcspn(text.data(), "\n,"));
  constexpr std::string_view title = " Version:";
  if (const size_t at = name.find(title); at != name.npos)
    name.erase(at, title.size());
  std::ranges::replace(name, '\t', ' ');
  return name;
}

int open_mpi(int* process, int* processes, char* name, char* problem) {
  // Where MPICH has UCX, and that only sockets, what was put into another's
  // memory is confirmed when MPI ends, by processes that may be in the last
  // barrier of MPI_Finalize already, which answers nobody: about one run in
  // fifty hung. Without such messages there is nothing to confirm.
  setenv("UCX_TCP_PUT_ENABLE", "n", 0);
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
  int on_host = 0;
  if (ok(MPI_Comm_split_type(state.all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                             &state.host)) &&
      ok(MPI_Comm_set_errhandler(state.host, MPI_ERRORS_RETURN)) &&
      ok(MPI_Comm_size(state.host, &on_host)) && on_host > 1) {
    state.own_processor = on_host <= sysconf(_SC_NPROCESSORS_ONLN);
    open_rings();
  }
  std::snprintf(name, 256, "MPI (%s)", library_name().c_str());
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
int64_t send_head(int to, const void* data, int64_t bytes) {
  Peer& peer = state.peers[to];
  if (!state.spare) state.spare = std::make_unique<char[]>(packet);
  std::memcpy(state.spare.get(), data, static_cast<size_t>(bytes));
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  if (!ok(MPI_Isend(state.spare.get(), static_cast<int>(bytes), MPI_BYTE, to,
                    head_tag, state.all, &request)) ||
      !ok(MPI_Test(&request, &done, MPI_STATUS_IGNORE)))
    return gone;
  if (!done) peer.kept.push_back({request, std::move(state.spare)});
  return bytes;
}

int64_t try_send_head(int to, const void* data, int64_t bytes) {
  Peer& peer = state.peers[to];
  if (!peer.kept.empty()) drop_sent(peer);
  if (peer.out.ring) {
    Slot& slot = peer.out.slot();
    if (slot.state.load(std::memory_order_acquire) != 0) return 0;
    if (bytes <= static_cast<int64_t>(slot.bytes.size())) {
      std::memcpy(slot.bytes.data(), data, static_cast<size_t>(bytes));
      peer.out.pass(static_cast<uint32_t>(bytes));
      state.moved = true;
      return bytes;
    }
    peer.out.pass(Slot::by_mpi);
  }
  state.moved = true;
  return send_head(to, data, bytes);
}

/// The slot is empty again when the other one has read all.
int64_t lend(Peer& peer, const void* data, int64_t bytes) {
  if (peer.lent) {  // it is this call again
    if (peer.lent->state.load(std::memory_order_acquire) != 0) return 0;
    peer.lent = nullptr;
    state.moved = true;
    return peer.body_bytes;
  }
  Slot& slot = peer.out.slot();
  if (slot.state.load(std::memory_order_acquire) != 0) return 0;
  state.moved = true;
  if (bytes <= static_cast<int64_t>(slot.bytes.size())) {
    std::memcpy(slot.bytes.data(), data, static_cast<size_t>(bytes));
    peer.out.pass(static_cast<uint32_t>(bytes));
    return bytes;
  }
  const Place place{static_cast<const char*>(data), bytes};
  std::memcpy(slot.bytes.data(), &place, sizeof place);
  peer.body_bytes = bytes;
  peer.lent = &slot;
  peer.out.pass(Slot::in_place);
  return 0;
}

int64_t try_send(int to, const void* data, int64_t bytes) {
  Peer& peer = state.peers[to];
  if (peer.pid != 0 && peer.body_request == MPI_REQUEST_NULL) {
    Slot& slot = peer.out.slot();
    if (peer.lent || bytes >= least_read ||
        bytes <= static_cast<int64_t>(slot.bytes.size()))
      return lend(peer, data, bytes);
    if (slot.state.load(std::memory_order_acquire) != 0) return 0;
    peer.out.pass(Slot::by_mpi);
  }
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
  if (peer.in.ring && !peer.head_by_mpi) {
    const Slot& slot = peer.in.slot();
    const uint32_t bytes = slot.state.load(std::memory_order_acquire);
    if (bytes == 0) return 0;
    peer.head_by_mpi = bytes == Slot::by_mpi;
    if (!peer.head_by_mpi) std::memcpy(data, slot.bytes.data(), bytes);
    peer.in.pass(0);
    state.moved = true;
    if (!peer.head_by_mpi) return bytes;
  }
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
  peer.head_by_mpi = false;
  state.moved = true;
  return ask_for_head(peer, from) ? count : gone;
}

/// From the slot that is next, or from the memory that it names.
int64_t read_body(Peer& peer, void* data, int64_t bytes) {
  const Slot& slot = peer.in.slot();
  const uint32_t what = slot.state.load(std::memory_order_acquire);
  if (what == 0 || what == Slot::withdrawn) return 0;
  Place place{nullptr, what};
  if (what == Slot::in_place)
    std::memcpy(&place, slot.bytes.data(), sizeof place);
  bytes = std::min({bytes, place.bytes - peer.read, most_read});
  if (what != Slot::in_place)
    std::memcpy(data, slot.bytes.data() + peer.read,
                static_cast<size_t>(bytes));
  else if (!read_memory(peer.pid, place.address + peer.read, data, bytes))
    return gone;
  peer.read += bytes;
  state.moved = true;
  if (peer.read < place.bytes) return bytes;
  peer.read = 0;
  peer.in.pass(0);
  return bytes;
}

int64_t try_receive(int from, void* data, int64_t bytes) {
  Peer& peer = state.peers[from];
  if (peer.pid != 0 && !peer.body_by_mpi) {
    if (peer.in.slot().state.load(std::memory_order_acquire) != Slot::by_mpi)
      return read_body(peer, data, bytes);
    peer.in.pass(0);
    peer.body_by_mpi = true;
  }
  if (peer.taken < peer.rest.size()) {
    const int64_t some =
        std::min(bytes, static_cast<int64_t>(peer.rest.size() - peer.taken));
    std::memcpy(data, peer.rest.data() + peer.taken, static_cast<size_t>(some));
    peer.taken += static_cast<size_t>(some);
    peer.body_by_mpi = peer.taken < peer.rest.size();
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
    peer.body_by_mpi = false;
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
  for (Peer& peer : state.peers) {
    cancel(peer.body_request);
    uint32_t lent = Slot::in_place;
    if (peer.lent)
      peer.lent->state.compare_exchange_strong(lent, Slot::withdrawn);
    peer.lent = nullptr;
  }
}

/// MPI makes progress in its calls alone, so nobody sleeps for long. An answer
/// that comes at once is not worth giving the processor away: on a busy machine
/// it does not come back for milliseconds.
int wait(int most) {
  using std::chrono::microseconds;
  constexpr int asks = 64;  // before it looks at the time
  constexpr microseconds spin{100}, yield{1000};
  if (std::exchange(state.moved, false)) state.idle = 0;
  if (state.own_processor && ++state.idle < asks) return 0;
  // Who asks rings alone may be waited for by one that waits for MPI.
  int there = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, head_tag, state.all, &there, MPI_STATUS_IGNORE);
  const Clock::time_point now = Clock::now();
  if (state.idle <= asks) state.idle_since = now;
  state.idle = asks + 1;
  const auto waited = now - state.idle_since;
  if (state.own_processor && waited < spin) return 0;
  if (waited < yield) {
    sched_yield();
    return 1;
  }
  const auto sleep =
      std::chrono::duration_cast<microseconds>(waited / 50).count();
  usleep(static_cast<useconds_t>(std::min<int64_t>({most, sleep, 1000})));
  return 1;
}

void close_mpi(int clean) {
  if (!clean) MPI_Abort(MPI_COMM_WORLD, 1);
  for (Peer& peer : state.peers) {
    for (Kept& kept : peer.kept) MPI_Wait(&kept.request, MPI_STATUS_IGNORE);
    cancel(peer.head_request);
  }
  if (state.shared != MPI_WIN_NULL) {
    MPI_Win_unlock_all(state.shared);
    MPI_Win_free(&state.shared);
  }
  if (state.host != MPI_COMM_NULL) MPI_Comm_free(&state.host);
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
