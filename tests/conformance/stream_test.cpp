#include <thread>

#include "tests/conformance/driver.h"
#include "tests/conformance/kernels.h"

using namespace driver_test;

namespace {
constexpr unsigned n = 1000;
struct Streams : Session {
  using Session::Session;
  Stream a = make(), b = make();
  Event done = make_event();
  Module module = load(kernels_ptx);
  Function fill = function(module, "fill");
  Function accumulate = function(module, "accumulate");

  Stream make() {
    Stream stream = nullptr;
    REQUIRE(d.stream_create(&stream, stream_non_blocking) == success);
    return stream;
  }
  Event make_event() {
    Event event = nullptr;
    REQUIRE(d.event_create(&event, event_disable_timing) == success);
    return event;
  }
  ~Streams() {
    d.stream_destroy(a);
    d.stream_destroy(b);
    d.event_destroy(done);
    d.module_unload(module);
  }
};
}  // namespace

TEST_CASE("streams: work in one stream is in order") {
  Streams s;
  DevicePointer x = s.allocate<unsigned>(n), y = s.allocate<unsigned>(n);
  CHECK(s.launch(s.fill, 4, 256, s.a, x, 5u, n, 1000u) == success);
  CHECK(s.launch(s.fill, 4, 256, s.a, y, 2u, n, 0u) == success);
  CHECK(s.launch(s.accumulate, 4, 256, s.a, x, y, n) == success);
  CHECK(s.d.stream_synchronize(s.a) == success);
  CHECK(s.download<unsigned>(x, n) == std::vector<unsigned>(n, 7));
  s.d.mem_free(x);
  s.d.mem_free(y);
}

TEST_CASE("streams: an event orders two streams") {
  for (const char* seed : {"seed=0", "seed=1", "seed=2", "seed=3", "seed=4",
                           "seed=5", "seed=6", "seed=7"}) {
    Streams s(seed);
    DevicePointer x = s.upload(std::vector<unsigned>(n, 0));
    DevicePointer y = s.upload(std::vector<unsigned>(n, 0));
    CHECK(s.launch(s.fill, 4, 256, s.a, x, 5u, n, 1000u) == success);
    CHECK(s.d.event_record(s.done, s.a) == success);
    CHECK(s.d.stream_wait_event(s.b, s.done, 0) == success);
    CHECK(s.launch(s.accumulate, 4, 256, s.b, y, x, n) == success);
    CHECK(s.d.stream_synchronize(s.b) == success);
    CHECK(s.d.event_query(s.done) == success);
    CHECK(s.download<unsigned>(y, n) == std::vector<unsigned>(n, 5));
    s.d.mem_free(x);
    s.d.mem_free(y);
    if (!simulated()) break;
  }
}

TEST_CASE("streams: questions make progress, and are answered") {
  Streams s;
  DevicePointer x = s.allocate<unsigned>(n);
  CHECK(s.launch(s.fill, 4, 256, s.a, x, 5u, n, 10u) == success);
  CHECK(s.d.event_record(s.done, s.a) == success);
  Code code = not_ready;
  for (int i = 0; i < 10'000'000 && code == not_ready; ++i)
    code = s.d.event_query(s.done);
  CHECK(code == success);
  CHECK(s.d.stream_query(s.a) == success);
  if (simulated())  // a real driver may follow a wrong handle
    CHECK(s.d.stream_query(reinterpret_cast<Stream>(&s)) == invalid_handle);
  s.d.mem_free(x);
}

TEST_CASE("streams: the legacy stream waits for blocking streams") {
  for (const char* seed : {"seed=0", "seed=1", "seed=2", "seed=3", "seed=4"}) {
    Streams s(seed);
    Stream blocking = nullptr;
    REQUIRE(s.d.stream_create(&blocking, stream_default) == success);
    DevicePointer x = s.upload(std::vector<unsigned>(n, 0));
    CHECK(s.launch(s.fill, 4, 256, blocking, x, 5u, n, 1000u) == success);
    // A synchronous copy is in the legacy stream.
    CHECK(s.download<unsigned>(x, n) == std::vector<unsigned>(n, 5));
    s.d.stream_destroy(blocking);
    s.d.mem_free(x);
  }
}

TEST_CASE("streams: time between events") {
  Session s;
  Event a = nullptr, b = nullptr;
  CHECK(s.d.event_create(&a, event_default) == success);
  CHECK(s.d.event_create(&b, event_default) == success);
  CHECK(s.d.event_record(a, nullptr) == success);
  CHECK(s.d.event_record(b, nullptr) == success);
  CHECK(s.d.event_synchronize(b) == success);
  float milliseconds = -1;
  CHECK(s.d.event_elapsed_time(&milliseconds, a, b) == success);
  CHECK(milliseconds >= 0);
  CHECK(s.d.event_destroy(a) == success);
  CHECK(s.d.event_destroy(b) == success);
}

TEST_CASE("pools: memory lives in the order of its stream") {
  Streams s;
  DevicePointer x = 0;
  CHECK(s.d.mem_alloc_async(&x, n * 4, s.a) == success);
  CHECK(s.launch(s.fill, 4, 256, s.a, x, 9u, n, 0u) == success);
  std::vector<unsigned> back(n);
  CHECK(s.d.memcpy_dtoh_async(back.data(), x, n * 4, s.a) == success);
  CHECK(s.d.mem_free_async(x, s.a) == success);
  CHECK(s.d.stream_synchronize(s.a) == success);
  CHECK(back == std::vector<unsigned>(n, 9));
  MemoryPool pool = nullptr;
  CHECK(s.d.device_get_default_mem_pool(&pool, 0) == success);
  uint64_t used = 1;
  CHECK(s.d.mem_pool_get_attribute(pool, MemoryPoolAttribute::used_mem_current,
                                   &used) == success);
  CHECK(used == 0);
}

TEST_CASE("pools: a threshold keeps memory, trimming gives it back") {
  Streams s;
  MemoryPool pool = nullptr;
  CHECK(s.d.device_get_default_mem_pool(&pool, 0) == success);
  uint64_t threshold = ~0ull, reserved = 0;
  CHECK(s.d.mem_pool_set_attribute(pool, MemoryPoolAttribute::release_threshold,
                                   &threshold) == success);
  DevicePointer x = 0;
  CHECK(s.d.mem_alloc_async(&x, 1 << 20, s.a) == success);
  CHECK(s.d.mem_free_async(x, s.a) == success);
  CHECK(s.d.stream_synchronize(s.a) == success);
  auto attribute = MemoryPoolAttribute::reserved_mem_current;
  CHECK(s.d.mem_pool_get_attribute(pool, attribute, &reserved) == success);
  CHECK(reserved >= 1 << 20);
  CHECK(s.d.mem_pool_trim_to(pool, 0) == success);
  uint64_t left = 0;
  CHECK(s.d.mem_pool_get_attribute(pool, attribute, &left) == success);
  // A driver frees what it can safely free.
  CHECK((simulated() ? left == 0 : left <= reserved));
  threshold = 0;
  s.d.mem_pool_set_attribute(pool, MemoryPoolAttribute::release_threshold,
                             &threshold);
}

TEST_CASE("graphs: a captured sequence is launched again and again") {
  Streams s;
  DevicePointer x = s.upload(std::vector<unsigned>(n, 0));
  DevicePointer one = s.upload(std::vector<unsigned>(n, 1));
  CHECK(s.d.stream_begin_capture(s.a, CaptureMode::thread_local_) == success);
  // Into a second stream and back.
  CHECK(s.launch(s.accumulate, 4, 256, s.a, x, one, n) == success);
  CHECK(s.d.event_record(s.done, s.a) == success);
  CHECK(s.d.stream_wait_event(s.b, s.done, 0) == success);
  CHECK(s.launch(s.accumulate, 4, 256, s.b, x, one, n) == success);
  CHECK(s.d.event_record(s.done, s.b) == success);
  CHECK(s.d.stream_wait_event(s.a, s.done, 0) == success);
  CHECK(s.launch(s.accumulate, 4, 256, s.a, x, one, n) == success);
  CaptureStatus status;
  CHECK(s.d.stream_is_capturing(s.b, &status) == success);
  CHECK(status == CaptureStatus::active);
  Graph graph = nullptr;
  CHECK(s.d.stream_end_capture(s.a, &graph) == success);
  size_t nodes = 0;
  CHECK(s.d.graph_get_nodes(graph, nullptr, &nodes) == success);
  CHECK(nodes == 3);
  GraphExec exec = nullptr;
  CHECK(s.d.graph_instantiate(&exec, graph, 0) == success);
  for (int i = 0; i < 10; ++i) CHECK(s.d.graph_launch(exec, s.a) == success);
  CHECK(s.d.stream_synchronize(s.a) == success);
  CHECK(s.download<unsigned>(x, n) == std::vector<unsigned>(n, 30));
  CHECK(s.d.graph_exec_destroy(exec) == success);
  CHECK(s.d.graph_destroy(graph) == success);
  s.d.mem_free(x);
  s.d.mem_free(one);
}

TEST_CASE("graphs: a capture that waits, or is not joined, is an error") {
  Streams s;
  Graph graph = nullptr;
  CHECK(s.d.stream_begin_capture(s.a, CaptureMode::thread_local_) == success);
  CHECK(s.d.stream_synchronize(s.a) == stream_capture_unsupported);
  CHECK(s.d.stream_end_capture(s.a, &graph) == stream_capture_invalidated);
  DevicePointer x = s.upload(std::vector<unsigned>(n, 0));
  CHECK(s.d.stream_begin_capture(s.a, CaptureMode::thread_local_) == success);
  CHECK(s.launch(s.fill, 4, 256, s.a, x, 1u, n, 0u) == success);
  CHECK(s.d.event_record(s.done, s.a) == success);
  CHECK(s.d.stream_wait_event(s.b, s.done, 0) == success);
  CHECK(s.launch(s.fill, 4, 256, s.b, x, 2u, n, 0u) == success);
  CHECK(s.d.stream_end_capture(s.a, &graph) == stream_capture_unjoined);
  s.d.mem_free(x);
}

TEST_CASE("streams: a function of the host runs in order") {
  Streams s;
  static int seen;
  seen = 0;
  DevicePointer x = s.upload(std::vector<unsigned>(n, 0));
  CHECK(s.launch(s.fill, 4, 256, s.a, x, 1u, n, 100u) == success);
  CHECK(s.d.launch_host_func(
            s.a, [](void* data) { *static_cast<int*>(data) = 4; }, &seen) ==
        success);
  CHECK(s.d.stream_synchronize(s.a) == success);
  CHECK(seen == 4);
  s.d.mem_free(x);
}

TEST_CASE("launch: blocks of a cooperative launch are resident together") {
  Streams s;
  Function meet = s.function(s.module, "meet_blocks");
  DevicePointer counter = s.upload(std::vector<unsigned>{0});
  DevicePointer o = s.upload(std::vector<unsigned>{0});
  void* list[] = {&counter, &o};
  CHECK(s.d.launch_cooperative_kernel(meet, 8, 1, 1, 1, 1, 1, 0, s.a, list) ==
        success);
  CHECK(s.d.stream_synchronize(s.a) == success);
  CHECK(s.download<unsigned>(o, 1)[0] == 8);
  CHECK(s.d.launch_cooperative_kernel(meet, 1 << 20, 1, 1, 1024, 1, 1, 0, s.a,
                                      list) == cooperative_launch_too_large);
  s.d.mem_free(counter);
  s.d.mem_free(o);
}

TEST_CASE("launch: atomics between blocks") {
  Streams s;
  Function count = s.function(s.module, "count_blocks");
  DevicePointer counter = s.upload(std::vector<unsigned>{0});
  DevicePointer o = s.upload(std::vector<unsigned>{0});
  CHECK(s.launch(count, 500, 64, s.a, counter, o) == success);
  CHECK(s.d.stream_synchronize(s.a) == success);
  CHECK(s.download<unsigned>(o, 1)[0] == 500);
  s.d.mem_free(counter);
  s.d.mem_free(o);
}

TEST_CASE("streams: several threads of the host, each with its own") {
  Streams s;
  constexpr int threads = 4, rounds = 30;
  std::vector<unsigned> results(threads, 0);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      Driver& d = s.d;
      bool fine = d.ctx_set_current(s.context[0]) == success;
      Stream stream = nullptr;
      fine &= d.stream_create(&stream, stream_non_blocking) == success;
      DevicePointer x = 0, one = 0;
      fine &= d.mem_alloc_async(&x, n * 4, stream) == success;
      fine &= d.mem_alloc_async(&one, n * 4, stream) == success;
      fine &= d.memset_d32_async(x, 0, n, stream) == success;
      fine &= d.memset_d32_async(one, unsigned(t + 1), n, stream) == success;
      for (int round = 0; round < rounds; ++round) {
        fine &= s.launch(s.accumulate, 4, 256, stream, x, one, n) == success;
        if (round % 7 == t) fine &= d.stream_synchronize(stream) == success;
      }
      std::vector<unsigned> back(n);
      fine &= d.memcpy_dtoh_async(back.data(), x, n * 4, stream) == success;
      fine &= d.stream_synchronize(stream) == success;
      fine &= d.mem_free_async(x, stream) == success;
      fine &= d.mem_free_async(one, stream) == success;
      fine &= d.stream_synchronize(stream) == success;
      fine &= d.stream_destroy(stream) == success;
      results[size_t(t)] = fine ? back[n - 1] : 0;
    });
  }
  for (std::thread& thread : all) thread.join();
  for (int t = 0; t < threads; ++t)
    CHECK(results[size_t(t)] == unsigned(rounds * (t + 1)));
}
