// What counts as given back: what was, and what a caller tried to give back
// when the driver refused, as a lost context makes it do.
#include <algorithm>

#include "tests/conformance/driver.h"
#include "tests/conformance/kernels.h"

using namespace driver_test;

namespace {

bool leaks(const std::string& text) {
  const std::string all = text_of(driver().leaks);
  INFO(all);
  return all.find(text) != std::string::npos;
}

/// One of each thing that a caller has to give back, on device 0.
struct Belongings : Session {
  explicit Belongings(const std::string& configuration)
      : Session(configuration.c_str(), 1) {
    module = load(kernels_ptx);
    REQUIRE(d.stream_create(&stream, stream_non_blocking) == success);
    REQUIRE(d.event_create(&event, event_disable_timing) == success);
    MemoryPoolProperties properties{};
    properties.allocType = AllocationType::pinned;
    properties.location = {MemoryLocationType::device, 0};
    REQUIRE(d.mem_pool_create(&pool, &properties) == success);
    REQUIRE(d.mem_alloc_from_pool_async(&ordered, 100, pool, stream) ==
            success);
    REQUIRE(d.stream_synchronize(stream) == success);
    memory = allocate<char>(200);
    REQUIRE(d.mem_host_alloc(&pinned, 300, 0) == success);
    REQUIRE(d.mem_host_register(registered, sizeof registered, 0) == success);
    REQUIRE(d.stream_begin_capture(stream, CaptureMode::relaxed) == success);
    REQUIRE(d.stream_end_capture(stream, &graph) == success);
    REQUIRE(d.graph_instantiate(&exec, graph, 0) == success);
    REQUIRE(d.link_create(0, nullptr, nullptr, &link) == success);
  }
  /// All but the context, whatever becomes of it.
  void give_back() {
    codes = {d.link_destroy(link),
             d.graph_exec_destroy(exec),
             d.graph_destroy(graph),
             d.mem_host_unregister(registered),
             d.mem_free_host(pinned),
             d.mem_free(memory),
             d.mem_free_async(ordered, stream),
             d.mem_pool_destroy(pool),
             d.event_destroy(event),
             d.stream_destroy(stream),
             d.module_unload(module)};
  }
  void lose() {
    Function fill = function(module, "fill");
    REQUIRE(launch(fill, 1, 1, stream, DevicePointer{8}, 1u, 1u, 0u) ==
            success);
    REQUIRE(d.ctx_synchronize() == illegal_address);
  }
  /// Ends the context, with what it has.
  void end() {
    d.ctx_pop_current(nullptr);
    REQUIRE(d.primary_ctx_release(0) == success);
  }
  void begin_again() {
    REQUIRE(d.primary_ctx_retain(&context[0], 0) == success);
  }

  Module module = nullptr;
  Stream stream = nullptr;
  Event event = nullptr;
  MemoryPool pool = nullptr;
  DevicePointer ordered = 0, memory = 0;
  void* pinned = nullptr;
  char registered[64] = {};
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  LinkState link = nullptr;
  std::vector<Code> codes;
};

}  // namespace

TEST_CASE("ledger: nothing is left when all is given back") {
  Belongings all("");
  all.give_back();
  for (Code code : all.codes) CHECK(code == success);
  all.end();
  CHECK(text_of(driver().leaks) == "");
  CHECK(text_of(driver().findings) == "");
  all.begin_again();
}

TEST_CASE("ledger: what nobody tried to give back is a leak") {
  for (bool lost : {false, true}) {
    CAPTURE(lost);
    Belongings all("");
    if (lost) all.lose();
    all.end();
    for (const char* what :
         {"1 streams", "1 events", "1 modules", "1 memory pools", "1 graphs",
          "1 executable graphs", "1 link states", "2 allocations of device 0",
          "1 allocations of pinned memory", "64 bytes"})
      CHECK_MESSAGE(leaks(what), what);
    all.begin_again();
  }
}

TEST_CASE("ledger: a lost context keeps all, and it is no leak") {
  Belongings all("");
  all.lose();
  all.give_back();
  CHECK(std::count(all.codes.begin(), all.codes.end(), illegal_address) == 8);
  CHECK(text_of(driver().leaks).find("is retained 1 times") !=
        std::string::npos);
  all.end();
  CHECK(text_of(driver().leaks) == "");
  CHECK(text_of(driver().findings).find("in use") == std::string::npos);
  all.begin_again();
}

TEST_CASE("ledger: what the plan refuses to take back is no leak") {
  Belongings all(
      "fail=link_destroy:1:999;fail=graph_exec_destroy:1:999;"
      "fail=graph_destroy:1:999;fail=mem_host_unregister:1:999;"
      "fail=mem_free_host:1:999;fail=mem_free:1:999;fail=mem_free_async:1:999;"
      "fail=mem_pool_destroy:1:999;fail=event_destroy:1:999;"
      "fail=stream_destroy:1:999;fail=module_unload:1:999;"
      "fail=primary_ctx_release:1:999");
  all.give_back();
  for (Code code : all.codes) CHECK(code == unknown);
  CHECK(leaks("is retained 1 times"));
  CHECK(all.d.primary_ctx_release(0) == unknown);
  CHECK(text_of(driver().leaks) == "");
  all.end();
  CHECK(text_of(driver().leaks) == "");
  all.begin_again();
}

TEST_CASE("ledger: a wrong call gives nothing back") {
  Belongings all("");
  Context none = nullptr;
  CHECK(all.d.ctx_pop_current(&none) == success);
  CHECK(all.d.event_destroy(all.event) == invalid_context);
  CHECK(all.d.stream_destroy(reinterpret_cast<Stream>(all.event)) != success);
  CHECK(leaks("1 events"));
  CHECK(leaks("1 streams"));
  CHECK(all.d.ctx_push_current(all.context[0]) == success);
  all.give_back();
}
