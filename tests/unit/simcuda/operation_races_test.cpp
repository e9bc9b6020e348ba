// Operations that nothing orders and that touch the same bytes are found in
// every run, in whatever order they were executed.
#include <algorithm>

#include "tests/conformance/driver.h"
#include "tests/conformance/kernels.h"

using namespace driver_test;

namespace {

constexpr unsigned n = 256;

struct Races : Session {
  explicit Races(uint64_t seed, int contexts = 1)
      : Session(("devices=2;races=report;unwritten=off;seed=" +
                 std::to_string(seed))
                    .c_str(),
                contexts) {
    Module module = load(kernels_ptx);
    fill = function(module, "fill");
    accumulate = function(module, "accumulate");
    a = stream(), b = stream();
    x = upload(std::vector<unsigned>(n, 1));
    y = upload(std::vector<unsigned>(n, 2));
    done = event();
  }
  Function fill, accumulate;
  Stream a, b;
  DevicePointer x, y;
  Event done;

  Stream stream() {
    Stream made = nullptr;
    REQUIRE(d.stream_create(&made, stream_non_blocking) == success);
    return made;
  }
  Event event() {
    Event made = nullptr;
    REQUIRE(d.event_create(&made, event_disable_timing) == success);
    return made;
  }
  /// x[from …] = 3, and o += from.
  void set(Stream in, DevicePointer o, unsigned count = n) {
    CHECK(launch(fill, 1, n, in, o, 3u, count, 0u) == success);
  }
  void add(Stream in, DevicePointer o, DevicePointer from) {
    CHECK(launch(accumulate, 1, n, in, o, from, n) == success);
  }
  void after(Stream later, Stream earlier) {
    CHECK(d.event_record(done, earlier) == success);
    CHECK(d.stream_wait_event(later, done, 0) == success);
  }
  std::string found() {
    CHECK(d.ctx_synchronize() == success);
    return text_of(d.findings);
  }
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}
constexpr const char* unordered = "nothing orders two operations on allocation";

/// What `body` leaves behind, under each way to order work.
template <class Body>
void each_seed(const char* finding, Body&& body) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Races s(seed);
    body(s);
    const std::string text = s.found();
    if (finding == nullptr)
      CHECK(text == "");
    else
      CHECK_MESSAGE(has(text, finding), text);
  }
}

}  // namespace

TEST_CASE("operations: a missing event between two streams") {
  each_seed(unordered, [](Races& s) {
    s.set(s.a, s.x);
    s.add(s.b, s.y, s.x);
  });
  each_seed(nullptr, [](Races& s) {
    s.set(s.a, s.x);
    s.after(s.b, s.a);
    s.add(s.b, s.y, s.x);
  });
  each_seed(unordered, [](Races& s) {  // recorded too early
    CHECK(s.d.event_record(s.done, s.a) == success);
    s.set(s.a, s.x);
    CHECK(s.d.stream_wait_event(s.b, s.done, 0) == success);
    s.add(s.b, s.y, s.x);
  });
  each_seed(unordered, [](Races& s) {  // read, then overwritten
    s.add(s.b, s.y, s.x);
    s.set(s.a, s.x);
  });
  each_seed(nullptr, [](Races& s) {  // both only read
    s.add(s.b, s.y, s.x);
    s.after(s.a, s.b);
    s.add(s.a, s.y, s.x);
    DevicePointer z = s.upload(std::vector<unsigned>(n, 0));
    s.add(s.b, z, s.x);
  });
  Races s(0);
  s.set(s.a, s.x);
  s.add(s.b, s.y, s.x);
  const std::string text = s.found();
  CHECK_MESSAGE(
      has(text,
          "nothing orders two operations on allocation #2 (1024 bytes), "
          "byte 0: kernel `fill` on device 0, stream 1 writes, kernel "
          "`accumulate` on device 0, stream 2 reads"),
      text);
}

TEST_CASE("operations: other bytes are no conflict") {
  each_seed(nullptr, [](Races& s) {
    s.set(s.a, s.x, n / 2);
    CHECK(s.d.memset_d32_async(s.x + n * 2, 7, n / 2, s.b) == success);
  });
  each_seed(unordered, [](Races& s) {
    s.set(s.a, s.x, n / 2 + 1);
    CHECK(s.d.memset_d32_async(s.x + n * 2, 7, n / 2, s.b) == success);
  });
}

TEST_CASE("operations: order goes through other streams and the host") {
  each_seed(nullptr, [](Races& s) {
    Stream c = s.stream();
    s.set(s.a, s.x);
    s.after(c, s.a);
    s.after(s.b, c);
    s.add(s.b, s.y, s.x);
  });
  each_seed(nullptr, [](Races& s) {
    s.set(s.a, s.x);
    CHECK(s.d.stream_synchronize(s.a) == success);
    s.add(s.b, s.y, s.x);
  });
  each_seed(nullptr, [](Races& s) {
    s.set(s.a, s.x);
    CHECK(s.d.event_record(s.done, s.a) == success);
    CHECK(s.d.event_synchronize(s.done) == success);
    s.add(s.b, s.y, s.x);
  });
  each_seed(nullptr, [](Races& s) {
    s.set(s.a, s.x);
    while (s.d.stream_query(s.a) == not_ready) {
    }
    s.add(s.b, s.y, s.x);
  });
  each_seed(unordered, [](Races& s) {  // another stream was waited for
    s.set(s.a, s.x);
    CHECK(s.d.stream_synchronize(s.b) == success);
    s.add(s.b, s.y, s.x);
  });
  each_seed(unordered, [](Races& s) {
    // Destroying a stream does not wait for it, though it is simulated so.
    s.set(s.a, s.x);
    CHECK(s.d.stream_destroy(s.a) == success);
    s.add(s.b, s.y, s.x);
  });
  each_seed(nullptr, [](Races& s) {
    s.set(s.a, s.x);
    CHECK(s.d.stream_destroy(s.a) == success);
    CHECK(s.d.ctx_synchronize() == success);
    s.add(s.b, s.y, s.x);
  });
  each_seed(nullptr, [](Races& s) {
    // The legacy stream: behind all that block, and all behind it.
    Stream blocking = nullptr;
    CHECK(s.d.stream_create(&blocking, stream_default) == success);
    s.set(blocking, s.x);
    s.add(nullptr, s.y, s.x);
    s.set(blocking, s.y);
  });
  each_seed(unordered, [](Races& s) {
    s.set(s.a, s.x);
    s.add(nullptr, s.y, s.x);
  });
}

TEST_CASE("operations: copies, between devices and with pinned memory") {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (bool with_event : {true, false}) {
      Races s(seed, 2);
      s.d.ctx_push_current(s.context[1]);
      Stream other = s.stream();
      DevicePointer far = s.upload(std::vector<unsigned>(n, 0));
      s.d.ctx_pop_current(nullptr);
      s.set(s.a, s.x);
      CHECK(s.d.event_record(s.done, s.a) == success);
      s.d.ctx_push_current(s.context[1]);
      if (with_event) CHECK(s.d.stream_wait_event(other, s.done, 0) == success);
      CHECK(s.d.memcpy_peer_async(far, s.context[1], s.x, s.context[0], n * 4,
                                  other) == success);
      CHECK(s.d.ctx_synchronize() == success);
      s.d.ctx_pop_current(nullptr);
      CHECK(has(s.found(), unordered) == !with_event);
    }
  }
  each_seed(unordered, [](Races& s) {
    void* pinned = nullptr;
    CHECK(s.d.mem_host_alloc(&pinned, n * 4, 0) == success);
    CHECK(s.d.memcpy_dtoh_async(pinned, s.x, n * 4, s.a) == success);
    CHECK(s.d.memcpy_htod_async(s.y, pinned, n * 4, s.b) == success);
    CHECK(s.d.ctx_synchronize() == success);
    s.d.mem_free_host(pinned);
  });
}

TEST_CASE("operations: the host changes what a copy has still to read") {
  // In the order of the calls a copy is executed when somebody waits.
  for (int how = 0; how < 4; ++how) {
    Races s(0);
    unsigned* pinned = nullptr;
    CHECK(s.d.mem_host_alloc(reinterpret_cast<void**>(&pinned), n * 4, 0) ==
          success);
    std::fill_n(pinned, n, 1u);
    const auto address = reinterpret_cast<DevicePointer>(pinned);
    if (how == 2) CHECK(s.d.memset_d32_async(address, 9, n, s.a) == success);
    CHECK(s.d.memcpy_htod_async(s.x, pinned, n * 4, s.a) == success);
    if (how == 1) CHECK(s.d.stream_synchronize(s.a) == success);
    if (how < 2) pinned[7] = 5;
    const std::string text = s.found();
    if (how == 0) {
      CHECK(has(text,
                "the host has changed pinned memory that a queued copy of "
                "1024 bytes had still to read"));
    } else {
      CHECK(text == "");
    }
    s.d.mem_free_host(pinned);
  }
}

TEST_CASE("operations: stream-ordered memory, used behind its allocation") {
  each_seed(nullptr, [](Races& s) {
    DevicePointer p = 0;
    CHECK(s.d.mem_alloc_async(&p, n * 4, s.a) == success);
    s.set(s.a, p);
    s.after(s.b, s.a);
    s.add(s.b, s.y, p);
    s.after(s.a, s.b);
    CHECK(s.d.mem_free_async(p, s.a) == success);
  });
  // In the order of the calls nothing fails, and yet: freed too early.
  Races s(0);
  DevicePointer p = 0;
  CHECK(s.d.mem_alloc_async(&p, n * 4, s.a) == success);
  s.set(s.a, p);
  s.after(s.b, s.a);
  s.add(s.b, s.y, p);
  CHECK(s.d.mem_free_async(p, s.a) == success);
  CHECK(has(s.found(), "free of 1024 bytes on device 0, stream 1 writes"));
}

TEST_CASE("operations: stream-ordered memory, used before its allocation") {
  Races s(0);
  DevicePointer p = 0;
  CHECK(s.d.mem_alloc_async(&p, n * 4, s.a) == success);
  s.set(s.b, p);
  CHECK(
      has(s.found(), "allocation of 1024 bytes on device 0, stream 1 writes"));
  CHECK(s.d.mem_free(p) == success);
}

TEST_CASE("operations: graphs, whose nodes have the order of their capture") {
  for (bool joined_late : {false, true}) {
    each_seed(joined_late ? unordered : nullptr, [&](Races& s) {
      Event begun = s.event(), ended = s.event();
      CHECK(s.d.stream_begin_capture(s.a, CaptureMode::thread_local_) ==
            success);
      CHECK(s.d.event_record(begun, s.a) == success);
      CHECK(s.d.stream_wait_event(s.b, begun, 0) == success);
      s.set(s.a, s.x);
      if (!joined_late) s.after(s.b, s.a);
      s.add(s.b, s.y, s.x);
      CHECK(s.d.event_record(ended, s.b) == success);
      CHECK(s.d.stream_wait_event(s.a, ended, 0) == success);
      Graph graph = nullptr;
      CHECK(s.d.stream_end_capture(s.a, &graph) == success);
      GraphExec exec = nullptr;
      CHECK(s.d.graph_instantiate(&exec, graph, 0) == success);
      for (int i = 0; i < 3; ++i) CHECK(s.d.graph_launch(exec, s.a) == success);
      s.add(s.a, s.x, s.y);  // behind the whole graph
      CHECK(s.d.ctx_synchronize() == success);
      s.d.graph_exec_destroy(exec);
      s.d.graph_destroy(graph);
    });
  }
}

TEST_CASE("operations: a race ends a context, when asked for") {
  Session s("races=fault;unwritten=off");
  DevicePointer x = s.upload(std::vector<unsigned>(n, 1));
  Stream a = nullptr;
  CHECK(s.d.stream_create(&a, stream_non_blocking) == success);
  CHECK(s.d.memset_d32_async(x, 1, n, a) == success);
  CHECK(s.d.memset_d32_async(x, 2, n, nullptr) == success);
  CHECK(s.d.ctx_synchronize() == launch_failed);
}

TEST_CASE("operations: atomics of two kernels are no conflict") {
  const std::string ptx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 x)
{
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [x];
red.global.add.u32 [%rd1], 1;
ret;
}
)";
  each_seed(nullptr, [&](Races& s) {
    Function count = s.function(s.load(ptx), "count");
    CHECK(s.launch(count, 4, 64, s.a, s.x) == success);
    CHECK(s.launch(count, 4, 64, s.b, s.x) == success);
  });
  each_seed(unordered, [&](Races& s) {
    Function count = s.function(s.load(ptx), "count");
    CHECK(s.launch(count, 4, 64, s.a, s.x) == success);
    s.add(s.b, s.y, s.x);
  });
}
