#pragma once
// Small kernels for tests of drivers, as PTX that every GPU from sm_70 takes.

namespace driver_test {

inline const char* const kernels_ptx = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 counter = 7;

// o[i] = value, after turning `rounds` times in a loop
.visible .entry fill(.param .u64 o, .param .u32 value, .param .u32 n,
                     .param .u32 rounds)
{
  .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [o];
  ld.param.u32 %r1, [value];
  ld.param.u32 %r2, [n];
  ld.param.u32 %r6, [rounds];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r3, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r3, %r2;
  @%p1 bra $done;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
$again:
  setp.eq.u32 %p2, %r6, 0;
  @%p2 bra $store;
  sub.u32 %r6, %r6, 1;
  bra.uni $again;
$store:
  st.global.u32 [%rd3], %r1;
$done:
  ret;
}

// o[i] += a[i]
.visible .entry accumulate(.param .u64 o, .param .u64 a, .param .u32 n)
{
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [o];
  ld.param.u64 %rd2, [a];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r3, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r3, %r2;
  @%p1 bra $done;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r6, [%rd4];
  ld.global.u32 %r7, [%rd5];
  add.u32 %r6, %r6, %r7;
  st.global.u32 [%rd4], %r6;
$done:
  ret;
}

// Half of the block waits at one barrier, half at another.
.visible .entry two_barriers()
{
  .reg .pred %p<2>; .reg .b32 %r<2>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bra $other;
  bar.sync 0;
  ret;
$other:
  bar.sync 1;
  ret;
}

// Until the flag is set.
.visible .entry wait_flag(.param .u64 flag, .param .u64 o)
{
  .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [flag];
  ld.param.u64 %rd2, [o];
$again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra $again;
  st.global.u32 [%rd2], %r1;
  ret;
}

.visible .entry trapper() { trap; ret; }

.visible .entry for_ever()
{
$again:
  bra.uni $again;
  ret;
}

// The last block to come sets o to the number of blocks: atomics, fences.
.visible .entry count_blocks(.param .u64 n, .param .u64 o)
{
  .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [n];
  ld.param.u64 %rd2, [o];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $done;
  membar.gl;
  atom.global.add.u32 %r2, [%rd1], 1;
  mov.u32 %r3, %nctaid.x;
  sub.u32 %r4, %r3, 1;
  setp.ne.u32 %p2, %r2, %r4;
  @%p2 bra $done;
  st.global.u32 [%rd2], %r3;
$done:
  ret;
}

// All blocks wait for each other: resident together, or never done.
.visible .entry meet_blocks(.param .u64 n, .param .u64 o)
{
  .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [n];
  ld.param.u64 %rd2, [o];
  mov.u32 %r3, %nctaid.x;
  atom.global.add.u32 %r2, [%rd1], 1;
$again:
  ld.volatile.global.u32 %r4, [%rd1];
  setp.lt.u32 %p1, %r4, %r3;
  @%p1 bra $again;
  st.volatile.global.u32 [%rd2], %r4;
  ret;
}
)";

}  // namespace driver_test
