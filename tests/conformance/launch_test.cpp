#include "tests/conformance/driver.h"

using namespace driver_test;

namespace {
// o[i] = a[i] * b + i for i < n
const char* kernel = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry axpi(.param .u64 o, .param .u64 a, .param .f32 b, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [o];
  ld.param.u64 %rd2, [a];
  ld.param.f32 %f1, [b];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra $end;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  cvt.rn.f32.u32 %f3, %r5;
  fma.rn.f32 %f4, %f2, %f1, %f3;
  add.s64 %rd5, %rd1, %rd3;
  st.global.f32 [%rd5], %f4;
$end:
  ret;
}
)";
}  // namespace

TEST_CASE("launch: a kernel reads its arguments and memory") {
  Session s;
  Module module = s.load(kernel);
  Function f = s.function(module, "axpi");
  const unsigned n = 1000;
  std::vector<float> a(n), want(n);
  for (unsigned i = 0; i < n; ++i) {
    a[i] = float(i) * 0.5f;
    want[i] = a[i] * 3 + float(i);
  }
  DevicePointer in = s.upload(a), out = s.allocate<float>(n);
  CHECK(s.launch(f, 8, 128, nullptr, out, in, 3.0f, n) == success);
  CHECK(s.d.ctx_synchronize() == success);
  CHECK(s.download<float>(out, n) == want);
  CHECK(s.d.mem_free(in) == success);
  CHECK(s.d.mem_free(out) == success);
  CHECK(s.d.module_unload(module) == success);
}

TEST_CASE("launch: limits are checked") {
  Session s;
  Module module = s.load(kernel);
  Function f = s.function(module, "axpi");
  DevicePointer p = s.allocate<float>(4);
  CHECK(s.launch(f, 0, 128, nullptr, p, p, 3.0f, 4u) == invalid_value);
  CHECK(s.launch(f, 1, 2048, nullptr, p, p, 3.0f, 4u) == invalid_value);
  // The manual names both.
  const Code too_much = s.d.launch_kernel(f, 1, 1, 1, 1, 1, 1, 1 << 24, nullptr,
                                          nullptr, nullptr);
  CHECK((too_much == invalid_value || too_much == launch_out_of_resources));
  Function none = nullptr;
  CHECK(s.d.module_get_function(&none, module, "other") == not_found);
  CHECK(s.d.mem_free(p) == success);
}
