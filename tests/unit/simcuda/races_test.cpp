// Races inside a kernel are found whatever order its warps ran in; what is
// ordered is not one. The key `races`; simcuda/machine/races.h.
#include "tests/conformance/driver.h"

using namespace driver_test;

namespace {

/// r1: the thread, r2: the block, r5: its word of shared memory, r6, r7, r8:
/// those of threads t ^ 1, t ^ 16, t ^ 32; rd1: memory of 16 KiB, rd3: the
/// thread's word of it, rd4: that of the block's own 4 KiB, rd5: of t ^ 32.
std::string kernel(const std::string& body) {
  return R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
.reg .b16 %h<4>; .reg .b32 %r<24>; .reg .b64 %rd<16>; .reg .pred %p<8>;
.shared .align 16 .b8 s[4096];
ld.param.u64 %rd1, [x]; ld.param.u64 %rd8, [y];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
shl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r5, %r4, %r3;
xor.b32 %r9, %r3, 4; add.u32 %r6, %r4, %r9;
xor.b32 %r9, %r3, 64; add.u32 %r7, %r4, %r9;
xor.b32 %r9, %r3, 128; add.u32 %r8, %r4, %r9;
mul.wide.u32 %rd5, %r9, 1; add.s64 %rd5, %rd5, %rd1;
mul.wide.u32 %rd2, %r3, 1; add.s64 %rd3, %rd1, %rd2;
mul.wide.u32 %rd4, %r2, 4096; add.s64 %rd4, %rd3, %rd4;
setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 16;
)" + body +
         "\nret;\n}\n";
}

/// What is found when this runs on so many blocks of so many threads.
std::string found(const std::string& body, unsigned blocks, unsigned threads,
                  const char* configuration = "races=report",
                  Code expected = success) {
  Session s(configuration);
  Function f = s.function(s.load(kernel(body)), "k");
  DevicePointer x = s.upload(std::vector<unsigned>(4096, 0));
  DevicePointer y = s.upload(std::vector<unsigned>(4096, 0));
  void* list[] = {&x, &y, nullptr};
  CHECK(s.d.launch_kernel(f, blocks, 1, 1, threads, 1, 1, 0, nullptr, list,
                          nullptr) == success);
  CHECK(s.d.ctx_synchronize() == expected);
  return text_of(s.d.findings);
}

bool has(const std::string& text, const char* part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

struct Case {
  const char* body;
  const char* finding;  // null: none
  unsigned blocks = 1, threads = 64;
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    INFO(c.body);
    for (const char* configuration :
         {"races=report", "races=report;seed=3", "races=report;seed=6"}) {
      const std::string text =
          found(c.body, c.blocks, c.threads, configuration);
      if (c.finding == nullptr) {
        CHECK(text == "");
      } else {
        CHECK_MESSAGE(has(text, c.finding), text);
        CHECK(has(text, "kernel `k`: "));
        CHECK(has(text, " in PTX line"));
      }
    }
  }
}

constexpr const char* of_block = "no barrier of the block lies between";
constexpr const char* of_warp = "no bar.warp.sync of both lies between";
constexpr const char* of_blocks = "nothing orders these blocks";

}  // namespace

TEST_CASE("races: shared memory and barriers of the block") {
  check({
      {"st.shared.u32 [%r5], %r1; bar.sync 0; ld.shared.u32 %r10, [%r8];",
       nullptr},
      {"st.shared.u32 [%r5], %r1; ld.shared.u32 %r10, [%r8];", of_block},
      {"st.shared.u32 [%r5], %r1; bar.warp.sync -1; ld.shared.u32 %r10, [%r8];",
       of_block},
      // A word is read, then another thread overwrites it.
      {"st.shared.u32 [%r5], %r1; bar.sync 0; ld.shared.u32 %r10, [%r8];"
       "st.shared.u32 [%r5], %r10;",
       of_block},
      {"st.shared.u32 [%r5], %r1; bar.sync 0; ld.shared.u32 %r10, [%r8];"
       "bar.sync 0; st.shared.u32 [%r5], %r10;",
       nullptr},
      // The same value: still two writes.
      {"st.shared.u32 [%r4], 7;", of_block},
      {"@%p1 st.shared.u32 [%r4], 7; bar.sync 0; ld.shared.u32 %r10, [%r4];",
       nullptr},
      {"@%p1 st.shared.u32 [%r4], 7; ld.shared.u32 %r10, [%r4];", of_block},
      {"@%p1 st.shared.u32 [%r4], 0; bar.sync 0; red.shared.add.u32 [%r4], 1;"
       "bar.sync 0; ld.shared.u32 %r10, [%r4];",
       nullptr},
      {"@%p1 st.shared.u32 [%r4], 0; bar.sync 0; red.shared.add.u32 [%r4], 1;"
       "ld.shared.u32 %r10, [%r4];",
       of_block},
      // Bytes beside each other, and a word over them.
      {"cvt.u16.u32 %h1, %r1; add.u32 %r10, %r4, %r1; st.shared.u8 [%r10], %h1;"
       "bar.sync 0; ld.shared.u32 %r11, [%r4];",
       nullptr},
      {"cvt.u16.u32 %h1, %r1; add.u32 %r10, %r4, %r1; st.shared.u8 [%r10], %h1;"
       "ld.shared.u32 %r11, [%r5];",
       of_block},
      {"bar.sync 0; ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r4];"
       "@%p1 st.shared.u32 [%r4+12], 0;",
       of_block},
      // Two of four warps meet at a barrier of their own.
      {"shr.u32 %r10, %r1, 6; add.u32 %r10, %r10, 1; st.shared.u32 [%r5], %r1;"
       "bar.sync %r10, 64; ld.shared.u32 %r11, [%r8];",
       nullptr, 1, 128},
      {"shr.u32 %r10, %r1, 6; add.u32 %r10, %r10, 1; st.shared.u32 [%r5], %r1;"
       "bar.sync %r10, 64; xor.b32 %r11, %r3, 256; add.u32 %r11, %r11, %r4;"
       "ld.shared.u32 %r11, [%r11];",
       of_block, 1, 128},
  });
}

TEST_CASE("races: lanes of a warp have no order but bar.warp.sync") {
  check({
      {"st.shared.u32 [%r5], %r1; ld.shared.u32 %r10, [%r6];", of_warp, 1, 32},
      {"st.shared.u32 [%r5], %r1; bar.warp.sync -1; ld.shared.u32 %r10, [%r6];",
       nullptr, 1, 32},
      {"st.shared.u32 [%r5], %r1; shfl.sync.bfly.b32 %r11, %r1, 1, 31, -1;"
       "ld.shared.u32 %r10, [%r6];",
       of_warp, 1, 32},
      {"st.shared.u32 [%r5], %r1; bar.warp.sync -1; ld.shared.u32 %r10, [%r6];"
       "st.shared.u32 [%r5], %r10;",
       of_warp, 1, 32},
      // Each half of the warp meets.
      {"st.shared.u32 [%r5], %r1; @%p2 bra L; bar.warp.sync 0xffff0000; bra M;"
       "L: bar.warp.sync 0xffff; M: ld.shared.u32 %r10, [%r6];",
       nullptr, 1, 32},
      {"st.shared.u32 [%r5], %r1; @%p2 bra L; bar.warp.sync 0xffff0000; bra M;"
       "L: bar.warp.sync 0xffff; M: ld.shared.u32 %r10, [%r7];",
       of_warp, 1, 32},
      // Lanes 0 … 15 and 16 learn through lanes that met before.
      {"st.shared.u32 [%r5], %r1; @%p2 bra L; bar.warp.sync 0xffff0000; bra M;"
       "L: bar.warp.sync 0xffff; M: setp.eq.u32 %p3, %r1, 16;"
       "or.pred %p3, %p3, %p1; @!%p3 bra E; bar.warp.sync 0x10001;"
       "@!%p1 bra E; ld.shared.u32 %r10, [%r4+124];E:",
       nullptr, 1, 32},
  });
}

TEST_CASE("races: global memory, within a block and between blocks") {
  check({
      {"st.global.u32 [%rd4], %r1;", nullptr, 4, 64},
      {"st.global.u32 [%rd3], %r1;", of_blocks, 2, 64},
      {"st.global.u32 [%rd3], 0;", of_blocks, 2, 64},
      {"ld.global.u32 %r10, [%rd1]; st.global.u32 [%rd4+256], %r10;", nullptr,
       4, 64},
      {"ld.global.u32 %r10, [%rd1]; st.global.u32 [%rd4], %r10;", of_block, 1,
       64},
      {"red.global.add.u32 [%rd1], 1;", nullptr, 4, 64},
      {"red.global.add.u32 [%rd1], 1; ld.volatile.global.u32 %r10, [%rd1];",
       nullptr, 4, 64},
      {"red.global.add.u32 [%rd1], 1; ld.global.u32 %r10, [%rd1];", of_blocks,
       4, 64},
      {"st.global.u32 [%rd3], %r1; bar.sync 0; ld.global.u32 %r10, [%rd5];",
       nullptr, 1, 64},
      {"st.global.u32 [%rd3], %r1; ld.global.u32 %r10, [%rd5];", of_block, 1,
       64},
      {"st.u32 [%rd3], %r1; ld.u32 %r10, [%rd5];", of_block, 1, 64},
  });
  const std::string text = found("st.global.u32 [%rd3], %r1;", 2, 1);
  CHECK_MESSAGE(has(text,
                    "race at allocation #1 (16384 bytes of device memory "
                    "on device 0), byte 0: block (0, 0, 0), thread (0, 0, "
                    "0) writes in PTX line 18, block (1, 0, 0), thread "
                    "(0, 0, 0) writes in PTX line 18: "),
                text);
}

TEST_CASE("races: ld.global.nc of what the kernel writes") {
  constexpr const char* stale = "`ld.global.nc` is only for what";
  check({
      {"ld.global.nc.u32 %r10, [%rd3]; st.global.u32 [%rd3], %r10;", stale, 1,
       1},
      {"st.global.u32 [%rd3], %r1; bar.sync 0; ld.global.nc.u32 %r10, [%rd3];",
       stale},
      {"ld.global.nc.u32 %r10, [%rd1+64]; @%p1 st.global.u32 [%rd1+64], 1;",
       stale, 2, 32},
      {"ld.global.nc.v2.u32 {%r10, %r11}, [%rd8]; st.global.u32 [%rd4], %r11;",
       nullptr, 2, 64},
  });
}

namespace {

/// Each block writes; the last one that is done reads what all wrote.
std::string last_block(const std::string& before, const std::string& counts,
                       const std::string& after) {
  return "st.global.u32 [%rd4], %r1; bar.sync 0; @!%p1 bra L;" + before +
         counts + " %r10, [%rd8], 1; setp.eq.u32 %p3, %r10, 3;" + after +
         "selp.u32 %r11, 1, 0, %p3; st.shared.u32 [%r4], %r11;"
         "L: bar.sync 0; ld.shared.u32 %r11, [%r4];"
         "setp.ne.u32 %p4, %r11, 0; @!%p4 bra E;"
         "ld.global.u32 %r12, [%rd3]; ld.global.u32 %r13, [%rd3+4096];"
         "ld.global.u32 %r14, [%rd3+8192]; ld.global.u32 %r15, [%rd3+12288];"
         "E:";
}

}  // namespace

TEST_CASE("races: blocks are ordered by fences and atomics, with both") {
  const std::string fence = "membar.gl;", block = "membar.cta;";
  const std::string count = "atom.global.add.u32";
  const std::string ordered = "atom.global.acq_rel.gpu.add.u32";
  const std::string half = "atom.global.release.gpu.add.u32";
  const std::string narrow = "atom.global.acq_rel.cta.add.u32";
  auto with = [](const std::string& body) {
    std::string all;
    for (int seed : {0, 1, 2, 3}) {
      all += found(body, 4, 64,
                   ("races=report;seed=" + std::to_string(seed)).c_str());
    }
    return all;
  };
  CHECK(with(last_block(fence, count, fence)) == "");
  CHECK(with(last_block("fence.acq_rel.gpu;", count, "fence.sc.sys;")) == "");
  CHECK(with(last_block("", ordered, "")) == "");
  CHECK(with(last_block("", half, fence)) == "");
  CHECK(has(with(last_block("", count, "")), of_blocks));
  CHECK(has(with(last_block("", count, fence)), of_blocks));
  CHECK(has(with(last_block(fence, count, "")), of_blocks));
  CHECK(has(with(last_block(block, count, block)), of_blocks));
  CHECK(has(with(last_block("", half, "")), of_blocks));
  CHECK(has(with(last_block("", narrow, "")), of_blocks));
}

TEST_CASE("races: a flag that one block waits for") {
  auto wait = [](const char* store, const char* load) {
    return "setp.eq.u32 %p3, %r2, 0; @!%p3 bra C;"
           "st.global.u32 [%rd1], 5;" +
           std::string(store) +
           " [%rd8], 1; bra E;"
           "C:" +
           load +
           " %r10, [%rd8]; setp.eq.u32 %p4, %r10, 0; @%p4 bra C;"
           "ld.global.u32 %r11, [%rd1];E:";
  };
  for (const char* configuration : {"races=report;seed=1", "races=report"}) {
    CHECK(found(wait("st.release.gpu.global.u32", "ld.acquire.gpu.global.u32"),
                2, 1, configuration) == "");
    CHECK(found(wait("membar.gl; st.volatile.global.u32",
                     "ld.acquire.gpu.global.u32"),
                2, 1, configuration) == "");
    CHECK(has(found(wait("st.volatile.global.u32", "ld.acquire.gpu.global.u32"),
                    2, 1, configuration),
              of_blocks));
    CHECK(has(found(wait("st.release.gpu.global.u32", "ld.volatile.global.u32"),
                    2, 1, configuration),
              of_blocks));
  }
}

TEST_CASE("races: cp.async is there after it was waited for, and a barrier") {
  const std::string copy =
      "add.s64 %rd9, %rd8, %rd2; cp.async.ca.shared.global [%r5], [%rd9], 4;"
      "cp.async.commit_group;";
  const std::string wait = "cp.async.wait_group 0;";
  CHECK(found(copy + wait + "bar.sync 0; ld.shared.u32 %r10, [%r8];", 1, 64) ==
        "");
  CHECK(
      has(found(copy + wait + "ld.shared.u32 %r10, [%r8];", 1, 64), of_block));
  CHECK(has(
      found(copy + "bar.sync 0;" + wait + "ld.shared.u32 %r10, [%r8];", 1, 64),
      of_block));
  CHECK(
      has(found(copy + "bar.sync 0; ld.shared.u32 %r10, [%r8];" + wait, 1, 64),
          of_block));
}

TEST_CASE("races: misuse of barriers and masks") {
  check({
      {"setp.lt.u32 %p3, %r1, 32; @%p3 bra L; bar.sync 0; bra E;"
       "L: bar.sync 0; E:",
       "threads of a block wait at different barriers, in PTX lines"},
      {"setp.lt.u32 %p3, %r1, 32; @%p3 bra L; barrier.sync 0; bra E;"
       "L: barrier.sync 0; E:",
       nullptr},
      {"@%p2 bra L; bar.sync 0; bra E; L: bar.sync 0; E:",
       "threads of a block wait at different barriers, in PTX lines", 1, 32},
      {"@%p2 exit; shfl.sync.bfly.b32 %r11, %r1, 1, 31, -1;",
       "a mask names lanes that have ended in PTX line", 1, 32},
      {"@%p2 exit; shfl.sync.bfly.b32 %r11, %r1, 1, 31, 0xffff0000;", nullptr,
       1, 32},
      {"@%p2 exit; bar.sync 0;", nullptr, 1, 32},
      {"selp.b32 %r10, -1, 0xffff0000, %p2; shfl.sync.bfly.b32 %r11, %r1, 1, "
       "31,"
       "%r10;",
       "lanes meet with masks that differ in PTX line", 1, 32},
      // Half of a warp that was never whole.
      {"shfl.sync.bfly.b32 %r11, %r1, 1, 31, -1;", nullptr, 1, 48},
  });
}

TEST_CASE("races: end a kernel, or are not looked for") {
  const std::string racy =
      "st.shared.u32 [%r5], %r1; ld.shared.u32 %r10, [%r8];";
  CHECK(found(racy, 1, 64, "races=off") == "");
  CHECK(has(found(racy, 1, 64, "races=fault", launch_failed), of_block));
}

TEST_CASE("races: kernels as LLVM emits them have none but those meant") {
  Session s("races=report;unwritten=off");
  Module module = s.load(read_text("tests/unit/simcuda/ptx/kernels.ptx"));
  DevicePointer x = s.upload(std::vector<unsigned>(512, 1));
  DevicePointer o = s.allocate<unsigned>(512);
  void* list[] = {&o, &x, nullptr};
  auto run = [&](const char* name) {
    CHECK(s.d.launch_kernel(s.function(module, name), 1, 1, 1, 512, 1, 1, 2048,
                            nullptr, list, nullptr) == success);
    CHECK(s.d.ctx_synchronize() == success);
    return text_of(s.d.findings);
  };
  CHECK(run("dynamic_scan") == "");
  const std::string text = run("racy_scan");
  CHECK(has(text, "kernel `racy_scan`: race at byte "));
  CHECK(has(text, of_block));
  CHECK(has(text, of_warp));
}
