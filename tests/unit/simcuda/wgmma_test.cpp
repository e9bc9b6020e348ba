// wgmma: products of what lies in shared memory, in every layout that the
// library uses, and what a kernel may not do while they are under way.
#include <bit>
#include <cmath>

#include "tests/conformance/driver.h"

using namespace driver_test;

namespace {

constexpr int rows = 64, columns = 16, deep = 64, matrix_bytes = 8192;

/// Where element (row, k) lies in its matrix.
size_t place(int row, int k, bool turned) {
  const auto line = static_cast<size_t>(turned ? k : row),
             along = static_cast<size_t>(turned ? row : k);
  return line * 128 + ((along / 8) ^ (line % 8)) * 16 + along % 8 * 2;
}

struct Body {
  std::string target = "sm_90a";
  bool a_turned = false, b_turned = false;
  const char* show = "fence.proxy.async.shared::cta;";
  const char* meet = "bar.sync 0;";
  const char* begin = "wgmma.fence.sync.aligned;";
  const char* meanwhile = "";
};

std::string kernel(const Body& body) {
  std::string text = ".version 8.0\n.target " + body.target + R"(
.address_size 64
.visible .entry k(.param .u64 o, .param .u64 x)
{
.reg .b32 %r<12>; .reg .b64 %rd<12>; .reg .pred %p<3>; .reg .f32 %f<8>;
.shared .align 1024 .b8 s[16384];
ld.param.u64 %rd1, [o]; ld.param.u64 %rd2, [x];
mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 2;
mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;
add.u32 %r4, %r2, %r3; mov.u32 %r5, 0;
L: ld.global.b32 %r6, [%rd4]; st.shared.b32 [%r4], %r6;
add.s64 %rd4, %rd4, 512; add.u32 %r4, %r4, 512; add.u32 %r5, %r5, 1;
setp.lt.u32 %p1, %r5, 32; @%p1 bra L;
)";
  text += body.show;
  text += body.meet;
  text += R"(
shr.u32 %r7, %r2, 4; cvt.u64.u32 %rd5, %r7;
or.b64 %rd5, %rd5, 0x4000004002000000; add.s64 %rd6, %rd5, 512;
setp.eq.u32 %p2, 0, 0;
)";
  const std::string sums = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}";
  for (int r = 0; r < 8; ++r)
    text += "mov.f32 %f" + std::to_string(r) + ", 0f3F800000; ";
  text += body.begin;
  for (int k = 0; k < deep; k += 16) {
    auto step = [&](bool turned) {
      return std::to_string(k == 0 ? 0 : turned ? 128 : 2);
    };
    text += "\nadd.s64 %rd5, %rd5, " + step(body.a_turned) +
            "; add.s64 %rd6, %rd6, " + step(body.b_turned) +
            ";\nwgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " + sums +
            ", %rd5, %rd6, %p2, 1, 1, " + std::to_string(body.a_turned) + ", " +
            std::to_string(body.b_turned) + ";";
  }
  text += "\nwgmma.commit_group.sync.aligned;\n";
  text += body.meanwhile;
  text += R"(
wgmma.wait_group.sync.aligned 0;
mul.wide.u32 %rd7, %r1, 32; add.s64 %rd7, %rd7, %rd1;
)";
  for (int r = 0; r < 8; ++r)
    text += "st.global.f32 [%rd7+" + std::to_string(4 * r) + "], %f" +
            std::to_string(r) + "; ";
  return text + "\nret;\n}\n";
}

int element_a(int row, int k) { return (row * 7 + k * 3) % 17 - 8; }
int element_b(int column, int k) { return (column * 5 + k) % 13 - 6; }

/// Both matrices as they lie in shared memory.
std::vector<uint16_t> image(const Body& body) {
  std::vector<uint16_t> out(2 * matrix_bytes / 2);
  auto put = [&](size_t at, int value) {
    out[at / 2] = static_cast<uint16_t>(
        std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
  };
  for (int k = 0; k < deep; ++k) {
    for (int row = 0; row < rows; ++row)
      put(place(row, k, body.a_turned), element_a(row, k));
    for (int column = 0; column < columns; ++column)
      put(matrix_bytes + place(column, k, body.b_turned), element_b(column, k));
  }
  return out;
}

struct Outcome {
  Code code = success;
  std::string findings;
  std::vector<float> sums;  // [thread][register], then one of each thread
};

Outcome run(const Body& body, const char* configuration = "races=report") {
  Session s(configuration);
  Function f = s.function(s.load(kernel(body)), "k");
  DevicePointer x = s.upload(image(body));
  DevicePointer o = s.upload(std::vector<float>(128 * 9));
  void* list[] = {&o, &x, nullptr};
  CHECK(s.d.launch_kernel(f, 1, 1, 1, 128, 1, 1, 0, nullptr, list, nullptr) ==
        success);
  Outcome out;
  out.code = s.d.ctx_synchronize();
  out.findings = text_of(s.d.findings);
  if (out.code == success) out.sums = s.download<float>(o, 128 * 9);
  return out;
}

bool is_right(const std::vector<float>& sums) {
  int wrong = 0;
  size_t at = 0;
  for (int thread = 0; thread < 128; ++thread)
    for (int r = 0; r < 8; ++r) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + r / 2 % 2 * 8,
                column = r / 4 * 8 + thread % 4 * 2 + r % 2;
      int sum = 1;
      for (int k = 0; k < deep; ++k)
        sum += element_a(row, k) * element_b(column, k);
      wrong += sums[at++] != static_cast<float>(sum);
    }
  return wrong == 0;
}

}  // namespace

TEST_CASE("wgmma: matrices in all layouts") {
  for (bool a_turned : {false, true})
    for (bool b_turned : {false, true}) {
      INFO(a_turned, " ", b_turned);
      const Outcome out = run({.a_turned = a_turned, .b_turned = b_turned});
      CHECK(out.findings == "");
      REQUIRE(out.code == success);
      CHECK(is_right(out.sums));
    }
}

TEST_CASE("wgmma: what is misused is found") {
  const std::pair<Body, const char*> cases[] = {
      {{.show = ""}, "without `fence.proxy.async` after it"},
      {{.begin = ""}, "no `wgmma.fence` comes before"},
      {{.meanwhile = "mov.u32 %r8, 7; add.u32 %r9, %r2, %r3; "
                     "st.shared.b32 [%r9], %r8;"},
       "was written before it was waited for"},
  };
  for (const auto& [body, finding] : cases) {
    const Outcome out = run(body, "races=off");
    INFO(out.findings);
    CHECK(out.code != success);
    CHECK(out.findings.find(finding) != std::string::npos);
  }
  // Without a barrier each thread has shown its own writes, and no other's.
  for (const char* configuration :
       {"races=report", "races=report;seed=3", "races=report;seed=6"})
    CHECK(run({.meet = ""}, configuration).findings != "");
  // Sums that are read too early are none.
  const Outcome early =
      run({.meanwhile = "mul.wide.u32 %rd9, %r1, 4; add.s64 %rd9, %rd9, %rd1; "
                        "st.global.f32 [%rd9+4096], %f3;"});
  REQUIRE(early.code == success);
  CHECK(is_right(early.sums));
  for (size_t thread = 0; thread < 128; ++thread)
    CHECK(std::isnan(early.sums[1024 + thread]));
}

TEST_CASE("wgmma: is of sm_90a alone") {
  Session s;
  Module module = nullptr;
  CHECK(s.d.module_load_data(&module, kernel({.target = "sm_90"}).c_str()) !=
        success);
}
