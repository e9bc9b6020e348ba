// What only the simulator does: adversarial order, checked memory, faults.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <thread>

#include "tests/conformance/driver.h"
#include "tests/conformance/kernels.h"

using namespace driver_test;

namespace {

constexpr unsigned n = 256;

std::string with(const char* first, uint64_t seed) {
  return std::string(first) + ";seed=" + std::to_string(seed);
}
bool finds(const char* text) {
  return text_of(driver().findings).find(text) != std::string::npos;
}

struct Simulation : Session {
  explicit Simulation(const std::string& configuration = "", int contexts = 1)
      : Session(configuration.c_str(), contexts) {
    module = load(kernels_ptx);
    fill = function(module, "fill");
    accumulate = function(module, "accumulate");
  }
  Module module;
  Function fill, accumulate;

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
};

/// Device 1 adds what device 0 computes, with or without the event between.
unsigned two_devices(uint64_t seed, bool with_event) {
  Simulation s(with("devices=2;unwritten=off;races=off", seed), 2);
  Stream a = s.stream();
  DevicePointer x = s.upload(std::vector<unsigned>(n, 0));
  Event ready = s.event();
  s.d.ctx_push_current(s.context[1]);
  Stream b = s.stream();
  DevicePointer y = s.upload(std::vector<unsigned>(n, 0));
  s.d.ctx_pop_current(nullptr);
  CHECK(s.launch(s.fill, 1, n, a, x, 5u, n, 10u) == success);
  CHECK(s.d.event_record(ready, a) == success);
  s.d.ctx_push_current(s.context[1]);
  if (with_event) CHECK(s.d.stream_wait_event(b, ready, 0) == success);
  CHECK(s.d.memcpy_peer_async(y, s.context[1], x, s.context[0], n * 4, b) ==
        success);
  CHECK(s.d.stream_synchronize(b) == success);
  unsigned last = s.download<unsigned>(y, n).back();
  s.d.ctx_pop_current(nullptr);
  return last;
}

}  // namespace

TEST_CASE("order: a missing event gives a wrong answer under some seed") {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    CHECK(two_devices(seed, true) == 5);
    wrong += two_devices(seed, false) != 5;
  }
  CHECK(wrong >= 2);
  CHECK(two_devices(0, false) == 5);  // in the order of the calls
}

TEST_CASE("order: pinned memory is read when the copy happens") {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Simulation s(with("races=off", seed));
    void* pinned = nullptr;
    CHECK(s.d.mem_host_alloc(&pinned, 4, 0) == success);
    auto& value = *static_cast<unsigned*>(pinned);
    value = 1;
    DevicePointer x = s.allocate<unsigned>(1);
    Stream a = s.stream();
    CHECK(s.d.memcpy_htod_async(x, pinned, 4, a) == success);
    value = 2;  // too early
    CHECK(s.d.stream_synchronize(a) == success);
    changed += s.download<unsigned>(x, 1)[0] == 2;
    unsigned pageable = 3;
    CHECK(s.d.memcpy_htod_async(x, &pageable, 4, a) == success);
    pageable = 4;  // has been staged
    CHECK(s.d.stream_synchronize(a) == success);
    CHECK(s.download<unsigned>(x, 1)[0] == 3);
    s.d.mem_free_host(pinned);
  }
  CHECK(changed > 0);
}

TEST_CASE("order: a deadlock within a block is reported") {
  Simulation s("fuel=1M");
  Function two = s.function(s.module, "two_barriers");
  CHECK(s.launch(two, 1, 64, nullptr) == success);
  CHECK(s.d.ctx_synchronize() == launch_timeout);
  CHECK(finds("deadlock in kernel `two_barriers`"));
  CHECK(finds("wait at barrier 1"));
}

TEST_CASE("order: a kernel that waits for what does not come is reported") {
  Simulation s("seed=3");
  Function wait = s.function(s.module, "wait_flag");
  DevicePointer flag = s.upload(std::vector<unsigned>{0});
  DevicePointer o = s.upload(std::vector<unsigned>{0});
  CHECK(s.launch(wait, 1, 1, nullptr, flag, o) == success);
  CHECK(s.d.ctx_synchronize() == launch_timeout);
  CHECK(finds("deadlock: all that could run waits"));
}

TEST_CASE("order: kernels of two devices can wait for each other") {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    // Flags order them, which is not looked at.
    Simulation s(with("devices=2;races=off", seed), 2);
    CHECK(s.d.ctx_enable_peer_access(s.context[1], 0) == success);
    s.d.ctx_push_current(s.context[1]);
    DevicePointer flag = s.upload(std::vector<unsigned>{0});
    Module module = s.load(kernels_ptx);
    Function fill = s.function(module, "fill");
    s.d.ctx_pop_current(nullptr);
    DevicePointer o = s.upload(std::vector<unsigned>{0});
    Function wait = s.function(s.module, "wait_flag");
    CHECK(s.launch(wait, 1, 1, nullptr, flag, o) == success);
    s.d.ctx_push_current(s.context[1]);
    CHECK(s.launch(fill, 1, 1, nullptr, flag, 17u, 1u, 0u) == success);
    s.d.ctx_pop_current(nullptr);
    CHECK(s.d.ctx_synchronize() == success);
    CHECK(s.download<unsigned>(o, 1)[0] == 17);
  }
}

TEST_CASE("order: a launch that never ends runs out of fuel") {
  Simulation s("fuel=100K");
  Function f = s.function(s.module, "for_ever");
  CHECK(s.launch(f, 2, 64, nullptr) == success);
  CHECK(s.d.ctx_synchronize() == launch_timeout);
  CHECK(s.d.ctx_synchronize() == launch_timeout);  // for ever
  CHECK(finds("was stopped after"));
}

TEST_CASE("memory: out of bounds, freed, misaligned") {
  const auto fault = [](const char* text, Code want, auto&& misuse) {
    Simulation s("devices=2", 2);
    DevicePointer x = s.upload(std::vector<unsigned>(n, 0));
    misuse(s, x);
    CHECK(s.d.ctx_synchronize() == want);
    CHECK_MESSAGE(finds(text), text_of(s.d.findings));
    DevicePointer more = 0;
    CHECK(s.d.mem_alloc(&more, 4) == want);  // the context is lost
    // ... but not that of another device.
    s.d.ctx_push_current(s.context[1]);
    CHECK(s.d.mem_alloc(&more, 4) == success);
    s.d.ctx_pop_current(nullptr);
  };
  fault(
      "0 bytes behind the end of allocation", illegal_address,
      [](Simulation& s, DevicePointer x) {
        CHECK(s.launch(s.fill, 1, n + 1, nullptr, x, 1u, n + 1, 0u) == success);
      });
  fault("which was freed", illegal_address, [](Simulation& s, DevicePointer x) {
    CHECK(s.d.mem_free(x) == success);
    CHECK(s.launch(s.fill, 1, n, nullptr, x, 1u, n, 0u) == success);
  });
  fault("not aligned", misaligned_address, [](Simulation& s, DevicePointer x) {
    CHECK(s.launch(s.fill, 1, 4, nullptr, x + 2, 1u, 4u, 0u) == success);
  });
  fault("which belongs to no allocation", illegal_address,
        [](Simulation& s, DevicePointer) {
          CHECK(s.launch(s.fill, 1, 4, nullptr, DevicePointer{1} << 60, 1u, 4u,
                         0u) == success);
        });
  fault("trap", launch_failed, [](Simulation& s, DevicePointer) {
    CHECK(s.launch(s.function(s.module, "trapper"), 1, 1, nullptr) == success);
  });
}

TEST_CASE("memory: another device's memory needs peer access") {
  auto attempt = [](const char* topology, bool enable) {
    Simulation s(topology, 2);
    s.d.ctx_push_current(s.context[1]);
    DevicePointer far = s.upload(std::vector<unsigned>(n, 1));
    s.d.ctx_pop_current(nullptr);
    if (enable) {
      Code code = s.d.ctx_enable_peer_access(s.context[1], 0);
      if (code != success) return code;
      CHECK(s.d.ctx_enable_peer_access(s.context[1], 0) ==
            peer_access_already_enabled);
    }
    CHECK(s.launch(s.fill, 1, n, nullptr, far, 9u, n, 0u) == success);
    return s.d.ctx_synchronize();
  };
  CHECK(attempt("devices=2", true) == success);
  CHECK(attempt("devices=2", false) == illegal_address);
  CHECK(finds("has no access to"));
  CHECK(attempt("devices=2;peers=none", true) == peer_access_unsupported);
}

TEST_CASE("memory: pools need access of their own") {
  for (bool allow : {false, true}) {
    Simulation s("devices=2", 2);
    CHECK(s.d.ctx_enable_peer_access(s.context[1], 0) == success);
    MemoryPool pool = nullptr;
    CHECK(s.d.device_get_default_mem_pool(&pool, 1) == success);
    if (allow) {
      MemoryAccessDescription access{{MemoryLocationType::device, 0},
                                     MemoryAccess::read_write};
      CHECK(s.d.mem_pool_set_access(pool, &access, 1) == success);
    }
    s.d.ctx_push_current(s.context[1]);
    DevicePointer far = 0;
    CHECK(s.d.mem_alloc_async(&far, n * 4, nullptr) == success);
    CHECK(s.d.ctx_synchronize() == success);
    s.d.ctx_pop_current(nullptr);
    CHECK(s.launch(s.fill, 1, n, nullptr, far, 9u, n, 0u) == success);
    CHECK(s.d.ctx_synchronize() == (allow ? success : illegal_address));
  }
}

TEST_CASE("memory: stream-ordered memory used before, or after, its time") {
  int early = 0, late = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    for (bool after : {false, true}) {
      Simulation s(with("races=off", seed));
      Stream a = s.stream(), b = s.stream();
      DevicePointer x = 0;
      CHECK(s.d.mem_alloc_async(&x, n * 4, a) == success);
      if (after) CHECK(s.d.stream_synchronize(a) == success);
      CHECK(s.launch(s.fill, 1, n, b, x, 9u, n, 0u) == success);
      if (after) {
        CHECK(s.d.mem_free_async(x, a) == success);
        CHECK(s.d.stream_synchronize(a) == success);
      }
      (after ? late : early) += s.d.stream_synchronize(b) == illegal_address;
    }
  }
  CHECK(early > 0);
  CHECK(late > 0);
}

TEST_CASE("memory: what a stream has freed it gets again, with reuse") {
  for (uint64_t seed = 0; seed <= 4; ++seed) {
    for (const bool reuse : {false, true}) {
      Simulation s(with(reuse ? "reuse=1;races=report" : "races=report", seed));
      Stream a = s.stream(), b = s.stream();
      const auto allocate = [&](Stream in, size_t bytes) {
        DevicePointer made = 0;
        CHECK(s.d.mem_alloc_async(&made, bytes, in) == success);
        return made;
      };
      DevicePointer x = allocate(a, n * 4);
      CHECK(s.launch(s.fill, 1, n, a, x, 9u, n, 0u) == success);
      CHECK(s.d.mem_free_async(x, a) == success);
      // Neither another stream, nor what would waste it, nor what is larger.
      CHECK(allocate(b, n * 4) != x);
      CHECK(allocate(a, n) != x);
      CHECK(allocate(a, n * 4 + 1) != x);
      DevicePointer y = allocate(a, n * 4 - 100);
      CHECK((y == x) == reuse);
      // It is new memory: nobody has written it, and it has its own end.
      CHECK(s.launch(s.fill, 1, n, a, y, 9u, n - 25, 0u) == success);
      CHECK(s.d.stream_synchronize(a) == success);
      CHECK_MESSAGE(!finds("simcuda"), text_of(s.d.findings));
      CHECK(s.launch(s.fill, 1, n, a, y, 9u, n, 0u) == success);
      CHECK(s.d.stream_synchronize(a) == illegal_address);
    }
  }
}

TEST_CASE("memory: reads of what nobody wrote are reported") {
  Simulation s;
  DevicePointer x = s.allocate<unsigned>(n), y = s.allocate<unsigned>(n);
  CHECK(s.d.memset_d8(y, 0, n * 4) == success);
  CHECK(s.d.memset_d8(x, 0, n * 4 - 4) == success);
  CHECK(s.launch(s.accumulate, 1, n - 1, nullptr, y, x, n - 1) == success);
  CHECK(s.d.ctx_synchronize() == success);
  CHECK(!finds("never written"));
  CHECK(s.launch(s.accumulate, 1, n, nullptr, y, x, n) == success);
  CHECK(s.d.ctx_synchronize() == success);
  CHECK(finds("reads byte 1020 that was never written"));
}

TEST_CASE("memory: reads of what nobody wrote end a kernel, when asked for") {
  Simulation strict("unwritten=fault");
  DevicePointer x = strict.allocate<unsigned>(n);
  CHECK(strict.launch(strict.accumulate, 1, n, nullptr, x, x, n) == success);
  CHECK(strict.d.ctx_synchronize() == launch_failed);
}

TEST_CASE("memory: reads of unwritten shared memory, when asked for") {
  const char* ptx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 o)
{
  .shared .align 4 .b8 s[8];
  .reg .b32 %r<2>; .reg .b64 %rd<3>;
  mov.u64 %rd1, s;
  ld.param.u64 %rd2, [o];
  st.shared.u32 [%rd1], 1;
  ld.shared.u32 %r1, [%rd1+4];
  st.global.u32 [%rd2], %r1;
  ret;
}
)";
  std::set<unsigned> seen;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Simulation s(with("unwritten_shared=report", seed));
    DevicePointer o = s.allocate<unsigned>(1);
    CHECK(s.launch(s.function(s.load(ptx), "k"), 1, 1, nullptr, o) == success);
    CHECK(s.d.ctx_synchronize() == success);
    CHECK(finds("PTX line 12: reads shared memory that no thread wrote"));
    seen.insert(s.download<unsigned>(o, 1)[0]);
  }
  CHECK(seen.size() > 1);  // and it is not always the same
}

TEST_CASE("memory: the host cannot follow an address of a device") {
  Simulation s;
  DevicePointer x = s.upload(std::vector<unsigned>(n, 0));
  pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGBUS, SIG_DFL);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is what is tested
    _exit(*reinterpret_cast<volatile int*>(x) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("ledger: what was not given back") {
  Simulation s;
  CHECK(s.d.module_unload(s.module) == success);
  Stream a = s.stream();
  DevicePointer x = s.allocate<unsigned>(100);
  std::string leaks = text_of(s.d.leaks);
  CHECK(leaks.find("(400 bytes of device memory on device 0)") !=
        std::string::npos);
  CHECK(leaks.find("1 streams") != std::string::npos);
  CHECK(s.d.mem_free(x) == success);
  CHECK(s.d.stream_destroy(a) == success);
  s.d.ctx_pop_current(nullptr);
  CHECK(s.d.primary_ctx_release(0) == success);
  CHECK(text_of(s.d.leaks).empty());
  CHECK(s.d.primary_ctx_retain(&s.context[0], 0) == success);
}

TEST_CASE("faults: the k-th call, once and for ever") {
  Simulation s(
      "fail=cuMemAlloc_v2:2:out_of_memory;"
      "fail=stream_create:1:999:sticky");
  DevicePointer x = 0;
  CHECK(s.d.mem_alloc(&x, 4) == success);
  CHECK(s.d.mem_alloc(&x, 4) == out_of_memory);
  CHECK(s.d.mem_alloc(&x, 4) == success);
  Stream a = nullptr;
  CHECK(s.d.stream_create(&a, 0) == unknown);
  CHECK(s.d.stream_create(&a, 0) == unknown);
  CHECK(s.d.calls("cuMemAlloc_v2") == 3);
  CHECK(s.d.calls(nullptr) > 5);
}

TEST_CASE("faults: an operation fails, and a later call says so") {
  Simulation s("devices=2;fault=0:2:ecc_uncorrectable", 2);
  DevicePointer x = s.allocate<unsigned>(n);
  Stream a = s.stream();
  CHECK(s.launch(s.fill, 1, n, a, x, 9u, n, 0u) == success);
  CHECK(s.launch(s.fill, 1, n, a, x, 9u, n, 0u) == success);
  CHECK(s.d.stream_synchronize(a) == ecc_uncorrectable);
  CHECK(s.d.mem_alloc(&x, 4) == ecc_uncorrectable);
  s.d.ctx_push_current(s.context[1]);
  CHECK(s.d.mem_alloc(&x, 4) == success);
  s.d.ctx_pop_current(nullptr);
}

TEST_CASE("faults: what waits for a lost device is not done") {
  int waited = 0;
  for (uint64_t seed = 0; seed <= 4; ++seed) {
    for (const bool late : {false, true}) {
      Simulation s(with("devices=2", seed), 2);
      Stream a = s.stream();
      Event ready = s.event();
      CHECK(s.launch(s.function(s.module, "trapper"), 1, 1, a) == success);
      DevicePointer far = 0;
      if (s.d.mem_alloc_async(&far, n * 4, a) != success) continue;
      if (s.d.event_record(ready, a) != success) continue;  // lost at once
      ++waited;
      if (late) CHECK(s.d.stream_synchronize(a) == launch_failed);
      s.d.ctx_push_current(s.context[1]);
      Module module = s.load(kernels_ptx);
      Function fill = s.function(module, "fill");
      Function accumulate = s.function(module, "accumulate");
      Stream b = s.stream();
      DevicePointer y = s.upload(std::vector<unsigned>(n, 7));
      DevicePointer x = 0, z = 0;
      CHECK(s.d.mem_alloc_async(&x, n * 4, b) == success);
      CHECK(s.d.stream_wait_event(b, ready, 0) == success);
      // Memory begins and ends all the same.
      CHECK(s.d.mem_alloc_async(&z, n * 4, b) == success);
      CHECK(s.launch(accumulate, 1, n, b, y, x, n) == success);
      CHECK(s.d.memcpy_peer_async(y, s.context[1], far, s.context[0], n * 4,
                                  b) == success);
      CHECK(s.d.mem_free_async(x, b) == success);
      CHECK(s.d.stream_synchronize(b) == success);
      CHECK(!finds("never written"));
      CHECK(s.download<unsigned>(y, n).back() == 7);
      // The device itself is well.
      CHECK(s.launch(fill, 1, n, b, y, 5u, n, 0u) == success);
      CHECK(s.launch(fill, 1, n, b, z, 5u, n, 0u) == success);
      CHECK(s.d.stream_synchronize(b) == success);
      CHECK(s.download<unsigned>(y, n).back() == 5);
      s.d.ctx_pop_current(nullptr);
    }
  }
  CHECK(waited >= 6);
}

TEST_CASE("faults: out of memory after so many bytes") {
  Simulation s("oom=0:1M");
  DevicePointer x = 0;
  CHECK(s.d.mem_alloc(&x, 900 << 10) == success);
  CHECK(s.d.mem_alloc(&x, 900 << 10) == out_of_memory);
  CHECK(s.d.mem_alloc(&x, 4) == success);
}

TEST_CASE("topology: devices have only so much memory") {
  Simulation small("memory=1M");
  DevicePointer x = 0;
  CHECK(small.d.mem_alloc(&x, 2 << 20) == out_of_memory);
  size_t free = 0, total = 0;
  CHECK(small.d.mem_get_info(&free, &total) == success);
  CHECK(total == 1 << 20);
}

TEST_CASE("topology: devices, links, models") {
  Session s("devices=4;peers=ring;cc=9.0,8.0,7.5;memory=8G,4G", 0);
  int count = 0, can = -1, major = 0;
  CHECK(s.d.device_get_count(&count) == success);
  CHECK(count == 4);
  auto linked = [&](int a, int b) {
    CHECK(s.d.device_can_access_peer(&can, a, b) == success);
    return can == 1;
  };
  CHECK(linked(0, 1));
  CHECK(!linked(0, 2));
  CHECK(linked(0, 3));
  CHECK(!linked(1, 1));
  CHECK(s.d.device_get_attribute(
            &major, DeviceAttribute::compute_capability_major, 3) == success);
  CHECK(major == 7);
  size_t bytes = 0;
  CHECK(s.d.device_total_mem(&bytes, 2) == success);
  CHECK(bytes == size_t{4} << 30);
  CHECK(s.d.configure("devices=64;peers=islands:4") == 0);
  CHECK(s.d.init(0) == success);
  CHECK(linked(4, 7));
  CHECK(!linked(3, 4));
  CHECK(s.d.configure("devices=0") == 0);
  CHECK(s.d.init(0) == no_device);
  CHECK(s.d.configure("devices=65") != 0);
  CHECK(s.d.configure("nonsense=1") != 0);
  CHECK(s.d.configure("devices=2;peers=01/00") == 0);
  CHECK(s.d.init(0) == success);
  CHECK(linked(0, 1));
  CHECK(!linked(1, 0));
}

TEST_CASE("modules: too new for the driver, or for the device") {
  Session s("cc=8.0;ptx=7.8");
  auto code = [&](const char* head) {
    Module module = nullptr;
    std::string text = std::string(head) + "\n.address_size 64\n";
    return s.d.module_load_data(&module, text.c_str());
  };
  CHECK(code(".version 7.8\n.target sm_80") == success);
  CHECK(code(".version 8.0\n.target sm_80") == unsupported_ptx_version);
  CHECK(code(".version 7.8\n.target sm_90") == invalid_ptx);
  CHECK(code("ELF") == invalid_image);
}

TEST_CASE("calls: strict about contexts and handles") {
  Simulation s("devices=2", 2);
  DevicePointer x = s.allocate<unsigned>(n);
  // A function of another device's module.
  s.d.ctx_push_current(s.context[1]);
  CHECK(s.launch(s.fill, 1, n, nullptr, x, 1u, n, 0u) == invalid_handle);
  Stream far = s.stream();
  s.d.ctx_pop_current(nullptr);
  CHECK(s.launch(s.fill, 1, n, far, x, 1u, n, 0u) == invalid_handle);
  Event event = s.event();
  CHECK(s.d.event_record(event, far) == invalid_handle);
  CHECK(s.d.stream_destroy(reinterpret_cast<Stream>(&s)) == invalid_handle);
  CHECK(s.d.module_unload(reinterpret_cast<Module>(far)) == invalid_handle);
  CHECK(s.d.mem_free(12345) == invalid_value);
  CHECK(s.d.mem_free(x) == success);
  CHECK(s.d.mem_free(x) == invalid_value);
  std::thread([&] {
    DevicePointer y = 0;
    CHECK(s.d.mem_alloc(&y, 4) == invalid_context);
  }).join();
  static Code inside;
  CHECK(s.d.launch_host_func(
            nullptr,
            [](void*) {
              DevicePointer y = 0;
              inside = driver().mem_alloc(&y, 4);
            },
            nullptr) == success);
  CHECK(s.d.ctx_synchronize() == success);
  CHECK(inside == not_permitted);
}

TEST_CASE("calls: a driver's entry by its name and version") {
  Session s("driver=11.4");
  void* function = nullptr;
  ProcAddressResult result;
  CHECK(s.d.get_proc_address("cuMemAlloc", &function, 11040, 0, &result) ==
        success);
  CHECK(function == reinterpret_cast<void*>(s.d.mem_alloc));
  CHECK(s.d.get_proc_address("cuGraphExecUpdate", &function, 12000, 0,
                             &result) == success);
  CHECK(result == ProcAddressResult::version_not_sufficient);
  CHECK(s.d.get_proc_address("cuNonsense", &function, 12000, 0, &result) ==
        success);
  CHECK(result == ProcAddressResult::symbol_not_found);
  int version = 0;
  CHECK(s.d.driver_get_version(&version) == success);
  CHECK(version == 11040);
}
