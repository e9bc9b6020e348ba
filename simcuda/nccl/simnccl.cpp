// A simulated NCCL for the simulated driver. Ranks are connected by sockets of
// this machine whose names follow from the unique id. What is sent leaves the
// GPU by a copy in the caller's stream and goes out by a thread of the
// communicator; what comes waits there until an operation in the receiver's
// stream takes it (simcuda_await). As a simulated GPU does something only when
// it is asked, that thread also asks while something is under way: a real one
// goes on by itself.
//
// $SIMNCCL: "refuse": communicators do not start.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/nccl_library.h"
#include "simcuda/driver/simcuda.h"

using namespace unisono::nccl;
namespace cuda = unisono::cuda;

// The simulated driver's.
namespace unisono::cuda {
extern "C" {
#define CUDA_FUNCTION(name, symbol, since, parameters) Code symbol parameters;
#include "runtime/cuda/driver.def"
}
}  // namespace unisono::cuda

namespace {

using Bytes = std::vector<char>;
using Clock = std::chrono::steady_clock;
constexpr int version = 22705;
constexpr std::chrono::milliseconds tick{1}, most_flush{500};

/// What a rank says of itself when it calls another one.
struct Hello {
  int32_t rank = 0;
  int32_t process = 0, device = 0;  // no two ranks have one device
};

/// Pinned memory for what is under way.
struct Pinned {
  void* memory = nullptr;
  size_t bytes = 0;
  std::atomic<bool> busy{false};
};

struct Communicator;

/// A send or receive in a stream.
struct Step {
  Communicator* in = nullptr;
  int peer = 0;
  bool sends = false;
  size_t bytes = 0;
  void* data = nullptr;  // of the device
  cuda::Stream stream = nullptr;
  Pinned* through = nullptr;
};

struct Peer {
  int socket = -1;
  bool gone = false;
  bool known = false;  // its hello has come
  Hello hello;
  std::deque<Bytes> out, in;  // whole messages
  size_t sent = 0;            // of the first of `out`
  Bytes partial;              // of what comes
};

struct Communicator {
  Communicator(std::string name, int rank, int ranks)
      : name(std::move(name)), rank(rank), peers(static_cast<size_t>(ranks)) {}

  const std::string name;
  const int rank;
  cuda::Context context = nullptr;
  cuda::Device device = 0;
  std::mutex mutex;  // of all that follows
  std::vector<Peer> peers;
  Status state = Status::in_progress;
  bool aborted = false;
  std::vector<std::unique_ptr<Pinned>> memory;
  std::vector<std::unique_ptr<Step>> steps;  // under way
  std::thread thread;

  void run();
  bool connect_all();
  Hello own_hello() const { return {rank, getpid(), device}; }
  void exchange();
  void take(Peer& peer);
  void ask();
  Pinned* borrow(size_t bytes);
  Status put(Step step);
};

Communicator& of(Comm comm) { return *reinterpret_cast<Communicator*>(comm); }

sockaddr_un address_of(const std::string& name, int rank, socklen_t& size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;  // begins with 0: a name without a file
  const std::string text = name + "-" + std::to_string(rank);
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

void send_whole(Bytes& to, const void* data, size_t bytes) {
  const size_t at = to.size();
  to.resize(at + bytes);
  std::memcpy(to.data() + at, data, bytes);
}

/// Calls those of lower rank and hears those of higher; false: aborted.
bool Communicator::connect_all() {
  socklen_t size = 0;
  sockaddr_un address = address_of(name, rank, size);
  const int listener =
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, static_cast<int>(peers.size())) != 0) {
    close(listener);
    std::lock_guard lock(mutex);
    state = Status::system_error;
    return false;
  }
  const Hello own = own_hello();
  const int ranks = static_cast<int>(peers.size());
  for (int left = ranks - 1; left > 0;) {
    {
      std::lock_guard lock(mutex);
      if (aborted) break;
    }
    for (int p = 0; p < rank; ++p) {
      if (peers[p].socket >= 0) continue;
      const int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      address = address_of(name, p, size);
      if (connect(to, reinterpret_cast<sockaddr*>(&address), size) != 0) {
        close(to);
        continue;
      }
      (void)!write(to, &own, sizeof own);
      peers[p].socket = to;
      --left;
    }
    pollfd ready{listener, POLLIN, 0};
    if (poll(&ready, 1, 1) <= 0) continue;
    const int from = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    Hello hello;
    if (from < 0) continue;
    if (recv(from, &hello, sizeof hello, MSG_WAITALL) != sizeof hello) {
      close(from);
      continue;
    }
    (void)!write(from, &own, sizeof own);
    peers[hello.rank].socket = from;
    peers[hello.rank].hello = hello;
    peers[hello.rank].known = true;
    --left;
  }
  close(listener);
  for (Peer& peer : peers) {
    if (peer.socket < 0) continue;
    if (!peer.known && recv(peer.socket, &peer.hello, sizeof peer.hello,
                            MSG_WAITALL) != sizeof peer.hello)
      peer.gone = true;
    fcntl(peer.socket, F_SETFL, O_NONBLOCK);
  }
  std::lock_guard lock(mutex);
  for (const Peer& peer : peers)
    if (peer.socket >= 0 && peer.hello.process == own.process &&
        peer.hello.device == own.device)
      state = Status::invalid_usage;
  return !aborted && state == Status::in_progress;
}

void Communicator::run() {
  if (!connect_all()) return;
  {
    std::lock_guard lock(mutex);
    state = Status::success;
  }
  cuda::cuCtxSetCurrent(context);
  std::vector<pollfd> polls;
  for (;;) {
    {
      std::lock_guard lock(mutex);
      if (aborted) break;
      exchange();
      polls.clear();
      for (const Peer& peer : peers)
        if (peer.socket >= 0 && !peer.gone)
          polls.push_back(
              {peer.socket,
               static_cast<short>(peer.out.empty() ? POLLIN : POLLIN | POLLOUT),
               0});
    }
    ask();
    poll(polls.data(), polls.size(), 1);
  }
  // What was sent is there for the receiver, whatever becomes of this.
  const Clock::time_point end = Clock::now() + most_flush;
  for (bool left = true; left && Clock::now() < end;) {
    std::lock_guard lock(mutex);
    exchange();
    left = std::ranges::any_of(peers, [](const Peer& peer) {
      return !peer.gone && !peer.out.empty();
    });
    if (left) std::this_thread::sleep_for(tick);
  }
}

/// With the lock held.
void Communicator::exchange() {
  for (Peer& peer : peers) {
    if (peer.socket < 0 || peer.gone) continue;
    while (!peer.out.empty()) {
      const Bytes& first = peer.out.front();
      const ssize_t done =
          ::send(peer.socket, first.data() + peer.sent,
                 first.size() - peer.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (done < 0 && errno != EAGAIN && errno != EINTR) peer.gone = true;
      if (done <= 0) break;
      peer.sent += static_cast<size_t>(done);
      if (peer.sent < first.size()) continue;
      peer.out.pop_front();
      peer.sent = 0;
    }
    take(peer);
  }
}

void Communicator::take(Peer& peer) {
  char some[65536];
  for (;;) {
    const ssize_t got = recv(peer.socket, some, sizeof some, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
      peer.gone = true;
    if (got <= 0) break;
    send_whole(peer.partial, some, static_cast<size_t>(got));
  }
  size_t at = 0;
  for (uint64_t bytes = 0; peer.partial.size() - at >= sizeof bytes;) {
    std::memcpy(&bytes, peer.partial.data() + at, sizeof bytes);
    if (peer.partial.size() - at - sizeof bytes < bytes) break;
    at += sizeof bytes;
    peer.in.emplace_back(
        peer.partial.begin() + static_cast<ptrdiff_t>(at),
        peer.partial.begin() + static_cast<ptrdiff_t>(at + bytes));
    at += bytes;
  }
  peer.partial.erase(peer.partial.begin(),
                     peer.partial.begin() + static_cast<ptrdiff_t>(at));
}

/// Time passes for the simulated GPU by asking.
void Communicator::ask() {
  std::vector<cuda::Stream> streams;
  {
    std::lock_guard lock(mutex);
    std::erase_if(steps, [](const std::unique_ptr<Step>& step) {
      return !step->through->busy;
    });
    for (const auto& step : steps)
      if (std::ranges::find(streams, step->stream) == streams.end())
        streams.push_back(step->stream);
  }
  for (const cuda::Stream stream : streams) cuda::cuStreamQuery(stream);
}

/// Without the lock where it calls the driver, which may be asking has_come.
Pinned* Communicator::borrow(size_t bytes) {
  {
    std::lock_guard lock(mutex);
    for (const auto& one : memory)
      if (!one->busy && one->bytes >= bytes) {
        one->busy = true;
        return one.get();
      }
  }
  auto made = std::make_unique<Pinned>();
  made->bytes = std::max<size_t>(bytes, 4096);
  if (cuda::cuMemHostAlloc(&made->memory, made->bytes,
                           cuda::host_alloc_portable) != cuda::success)
    return nullptr;
  made->busy = true;
  std::lock_guard lock(mutex);
  memory.push_back(std::move(made));
  return memory.back().get();
}

// ---- operations in streams, which call no driver

void goes_out(void* data) {
  Step& step = *static_cast<Step*>(data);
  Communicator& in = *step.in;
  const uint64_t bytes = step.bytes;
  Bytes message;
  send_whole(message, &bytes, sizeof bytes);
  send_whole(message, step.through->memory, step.bytes);
  std::lock_guard lock(in.mutex);
  Peer& peer = in.peers[step.peer];
  if (peer.gone && in.state == Status::success) in.state = Status::remote_error;
  peer.out.push_back(std::move(message));
  step.through->busy = false;
}

bool has_come(void* data) {
  const Step& step = *static_cast<Step*>(data);
  Communicator& in = *step.in;
  std::lock_guard lock(in.mutex);
  if (in.aborted) return true;
  Peer& peer = in.peers[step.peer];
  if (peer.in.empty() && peer.gone && in.state == Status::success)
    in.state = Status::remote_error;
  return !peer.in.empty();
}

void takes(void* data) {
  const Step& step = *static_cast<Step*>(data);
  Communicator& in = *step.in;
  std::lock_guard lock(in.mutex);
  std::memset(step.through->memory, 0, step.bytes);
  Peer& peer = in.peers[step.peer];
  if (peer.in.empty()) return;  // aborted
  const Bytes message = std::move(peer.in.front());
  peer.in.pop_front();
  if (message.size() == step.bytes)
    std::memcpy(step.through->memory, message.data(), step.bytes);
  else
    in.state = Status::invalid_usage;
}

void is_over(void* data) { static_cast<Step*>(data)->through->busy = false; }

/// The communicator's context is the thread's while this lives.
struct Current {
  explicit Current(cuda::Context context) {
    cuda::cuCtxGetCurrent(&before);
    cuda::cuCtxSetCurrent(context);
  }
  ~Current() { cuda::cuCtxSetCurrent(before); }
  Current(const Current&) = delete;
  cuda::Context before = nullptr;
};

/// Puts a step into its stream.
Status Communicator::put(Step given) {
  const Current current(context);
  auto made = std::make_unique<Step>(given);
  Step& step = *made;
  step.in = this;
  step.through = borrow(step.bytes);
  if (!step.through) return Status::unhandled_cuda_error;
  {
    std::lock_guard lock(mutex);
    if (state != Status::success || aborted) {
      step.through->busy = false;
      return state == Status::remote_error ? state : Status::invalid_usage;
    }
    steps.push_back(std::move(made));
  }
  const auto address = reinterpret_cast<cuda::DevicePointer>(step.data);
  cuda::Code code = cuda::success;
  if (step.sends) {
    code = cuda::cuMemcpyDtoHAsync_v2(step.through->memory, address, step.bytes,
                                      step.stream);
    if (code == cuda::success)
      code = cuda::cuLaunchHostFunc(step.stream, goes_out, &step);
  } else {
    code = static_cast<cuda::Code>(
        simcuda_await(step.stream, has_come, takes, &step));
    if (code == cuda::success)
      code = cuda::cuMemcpyHtoDAsync_v2(address, step.through->memory,
                                        step.bytes, step.stream);
    if (code == cuda::success)
      code = cuda::cuLaunchHostFunc(step.stream, is_over, &step);
  }
  return code == cuda::success ? Status::success : Status::unhandled_cuda_error;
}

// ---- groups, of the calling thread

thread_local int depth = 0;
thread_local std::vector<std::pair<Communicator*, Step>> grouped;

/// Nothing waits for what comes before all is on its way.
Status put_all() {
  Status result = Status::success;
  for (const bool sends : {true, false})
    for (const auto& [in, step] : grouped)
      if (step.sends == sends)
        if (const Status one = in->put(step); one != Status::success)
          result = one;
  grouped.clear();
  return result;
}

Status add(Comm comm, Step step) {
  if (!comm) return Status::invalid_argument;
  Communicator& in = of(comm);
  if (step.peer < 0 || step.peer >= static_cast<int>(in.peers.size()) ||
      step.peer == in.rank || (!step.data && step.bytes > 0))
    return Status::invalid_argument;
  grouped.emplace_back(&in, step);
  return depth > 0 ? Status::success : put_all();
}

/// Threads end, memory and sockets go.
Status end(Comm comm) {
  if (!comm) return Status::invalid_argument;
  Communicator* in = &of(comm);
  const Current current(in->context);
  {
    std::lock_guard lock(in->mutex);
    in->aborted = true;
  }
  if (in->thread.joinable()) in->thread.join();
  // Receives that nothing comes for are let go.
  for (const auto& step : in->steps) cuda::cuStreamSynchronize(step->stream);
  for (const auto& one : in->memory) cuda::cuMemFreeHost(one->memory);
  for (const Peer& peer : in->peers)
    if (peer.socket >= 0) close(peer.socket);
  delete in;
  return Status::success;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) Status

EXPORT ncclGetVersion(int* out) {
  *out = version;
  return Status::success;
}

EXPORT ncclGetUniqueId(UniqueId* id) {
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "simnccl-%d-%08x%08x",
                getpid(), random(), random());
  return Status::success;
}

EXPORT ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank,
                              void* given) {
  const auto* config = static_cast<const Config*>(given);
  if (!comm || rank < 0 || rank >= ranks || !config ||
      config->magic != Config().magic || config->blocking != 0)
    return Status::invalid_argument;
  const char* plan = std::getenv("SIMNCCL");
  auto made = std::make_unique<Communicator>(id.internal, rank, ranks);
  if (cuda::cuCtxGetCurrent(&made->context) != cuda::success ||
      cuda::cuCtxGetDevice(&made->device) != cuda::success)
    return Status::unhandled_cuda_error;
  Communicator* in = made.release();
  if (plan && std::string(plan) == "refuse")
    in->state = Status::system_error;
  else
    in->thread = std::thread([in] { in->run(); });
  *comm = reinterpret_cast<Comm>(in);
  return Status::in_progress;
}

EXPORT ncclCommDestroy(Comm comm) { return end(comm); }
EXPORT ncclCommAbort(Comm comm) { return end(comm); }

EXPORT ncclCommGetAsyncError(Comm comm, Status* error) {
  if (!comm || !error) return Status::invalid_argument;
  std::lock_guard lock(of(comm).mutex);
  *error = of(comm).state;
  return Status::success;
}

EXPORT ncclGroupStart() {
  ++depth;
  return Status::success;
}

EXPORT ncclGroupEnd() {
  if (depth == 0) return Status::invalid_usage;
  return --depth > 0 ? Status::success : put_all();
}

EXPORT ncclSend(const void* from, size_t count, DataType, int peer, Comm comm,
                cuda::Stream stream) {
  return add(comm, {.peer = peer,
                    .sends = true,
                    .bytes = count,
                    .data = const_cast<void*>(from),
                    .stream = stream});
}

EXPORT ncclRecv(void* to, size_t count, DataType, int peer, Comm comm,
                cuda::Stream stream) {
  return add(comm,
             {.peer = peer, .bytes = count, .data = to, .stream = stream});
}
