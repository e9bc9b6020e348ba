// Kernels of the kinds that matter, for the simulator's tests. kernels.ptx is
// what clang 19 makes of them:
//   clang++-19 -x cuda --cuda-device-only -nocudainc -nocudalib -O2 -S
//     --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx83
//     -o kernels.ptx kernels.cu
#define KERNEL __attribute__((global)) extern "C" void
#define SHARED __attribute__((shared))
#define DEVICE __attribute__((device))
using i32 = int;
using u32 = unsigned;
using i64 = long long;
using u64 = unsigned long long;

DEVICE inline u32 tid() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE inline u32 tid_y() { return __nvvm_read_ptx_sreg_tid_y(); }
DEVICE inline u32 bid() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE inline u32 bid_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE inline u32 threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE inline u32 blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
#define EACH(i, n) \
  for (i64 i = i64(bid()) * threads() + tid(); i < n; i += i64(threads()) * blocks())

KERNEL add(float* o, const float* a, const float* b, i64 n) {
  EACH(i, n) o[i] = a[i] + b[i];
}
typedef float float4_ __attribute__((ext_vector_type(4)));
KERNEL add4(float4_* o, const float4_* a, const float4_* b, i64 n) {
  EACH(i, n) o[i] = a[i] + b[i];
}

DEVICE inline float butterfly(float v, int m) {
  return __builtin_bit_cast(float, __nvvm_shfl_sync_bfly_i32(
                                       -1, __builtin_bit_cast(int, v), m, 31));
}
DEVICE inline float from_below(float v, int m) {
  return __builtin_bit_cast(float, __nvvm_shfl_sync_up_i32(
                                       -1, __builtin_bit_cast(int, v), m, 0));
}
KERNEL block_sums(float* o, const float* a, i64 n) {
  SHARED static float warps[32];
  float sum = 0;
  EACH(i, n) sum += a[i];
  for (int m = 16; m; m >>= 1) sum += butterfly(sum, m);
  if ((tid() & 31) == 0) warps[tid() >> 5] = sum;
  __syncthreads();
  if (tid() < 32) {
    sum = tid() < (threads() + 31) / 32 ? warps[tid()] : 0;
    for (int m = 16; m; m >>= 1) sum += butterfly(sum, m);
    if (tid() == 0) o[bid()] = sum;
  }
}
KERNEL block_scan(float* o, const float* a) {
  SHARED static float warps[32];
  i64 i = i64(bid()) * threads() + tid();
  float v = a[i];
  u32 lane = tid() & 31, warp = tid() >> 5;
  for (u32 m = 1; m < 32; m <<= 1) {
    float t = from_below(v, m);
    if (lane >= m) v += t;
  }
  if (lane == 31) warps[warp] = v;
  __syncthreads();
  if (warp == 0) {
    float x = lane < threads() / 32 ? warps[lane] : 0;
    for (u32 m = 1; m < 32; m <<= 1) {
      float t = from_below(x, m);
      if (lane >= m) x += t;
    }
    if (lane < threads() / 32) warps[lane] = x;
  }
  __syncthreads();
  o[i] = warp ? v + warps[warp - 1] : v;
}
KERNEL dynamic_scan(i32* o, const i32* a) {
  extern SHARED i32 values[];
  u32 t = tid();
  values[t] = a[t];
  __syncthreads();
  for (u32 d = 1; d < threads(); d *= 2) {
    i32 x = t >= d ? values[t - d] : 0;
    __syncthreads();
    values[t] += x;
    __syncthreads();
  }
  o[t] = values[t];
}
// As dynamic_scan, but a barrier is missing.
KERNEL racy_scan(i32* o, const i32* a) {
  extern SHARED i32 values[];
  u32 t = tid();
  values[t] = a[t];
  __syncthreads();
  for (u32 d = 1; d < threads(); d *= 2) {
    i32 x = t >= d ? values[t - d] : 0;
    values[t] += x;
    __syncthreads();
  }
  o[t] = values[t];
}
KERNEL matmul(float* c, const float* a, const float* b, i32 n) {
  SHARED static float A[16][17], B[16][17];
  i32 x = tid(), y = tid_y(), row = bid_y() * 16 + y, col = bid() * 16 + x;
  float sum = 0;
  for (i32 k = 0; k < n; k += 16) {
    A[y][x] = a[row * n + k + x];
    B[y][x] = b[(k + y) * n + col];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum = __builtin_fmaf(A[y][j], B[j][x], sum);
    __syncthreads();
  }
  c[row * n + col] = sum;
}
KERNEL transpose(float* o, const float* a, i32 rows, i32 cols) {
  SHARED static float tile[32][33];
  i32 x = bid() * 32 + tid(), y = bid_y() * 32 + tid_y();
  if (x < cols && y < rows) tile[tid_y()][tid()] = a[y * cols + x];
  __syncthreads();
  x = bid_y() * 32 + tid();
  y = bid() * 32 + tid_y();
  if (x < rows && y < cols) o[y * rows + x] = tile[tid()][tid_y()];
}
KERNEL histogram(i32* o, const u32* a, i64 n) {
  SHARED static i32 local[256];
  local[tid() & 255] = 0;
  __syncthreads();
  EACH(i, n) __nvvm_atom_add_gen_i(&local[a[i] & 255], 1);
  __syncthreads();
  __nvvm_atom_add_gen_i(&o[tid() & 255], local[tid() & 255]);
}
KERNEL bitonic(float* a, u32 j, u32 k) {
  u32 i = bid() * threads() + tid(), x = i ^ j;
  if (x > i) {
    float p = a[i], q = a[x];
    if ((i & k) == 0 ? p > q : p < q) {
      a[i] = q;
      a[x] = p;
    }
  }
}
KERNEL philox(u32* o, u32 k0, u32 k1, i64 n) {
  EACH(i, n) {
    u32 c0 = i, c1 = u64(i) >> 32, c2 = 0, c3 = 0, a = k0, b = k1;
    for (int r = 0; r < 10; ++r) {
      u64 p0 = u64(0xD2511F53) * c0, p1 = u64(0xCD9E8D57) * c2;
      c0 = u32(p1 >> 32) ^ c1 ^ a;
      c1 = p1;
      c2 = u32(p0 >> 32) ^ c3 ^ b;
      c3 = p0;
      a += 0x9E3779B9;
      b += 0xBB67AE85;
    }
    o[i] = c0 ^ c1 ^ c2 ^ c3;
  }
}
// Divergence: each lane turns as often as its number tells, then meets.
KERNEL collatz(u32* o, i64 n) {
  EACH(i, n) {
    u64 x = i + 1;
    u32 steps = 0;
    while (x != 1) {
      x = x & 1 ? 3 * x + 1 : x / 2;
      ++steps;
    }
    o[i] = steps;
  }
}
KERNEL choices(i32* o, const i32* a, i64 n) {
  EACH(i, n) {
    i32 r = 0;
    switch (a[i]) {
      case 0: r = 5; break;
      case 1: r = o[i] * 3; break;
      case 2: r = o[i] / 7; break;
      case 3: r = o[i] ^ 9; break;
      case 4: r = o[i] << 2; break;
      case 5: r = -o[i]; break;
      default: r = 1;
    }
    o[i] = r;
  }
}
// A local array with indices that only run time knows.
KERNEL local_array(i32* o, const i32* a, i32 k) {
  i32 t[16];
  for (int j = 0; j < 16; ++j) t[j] = a[tid() * 16 + j];
  for (int j = 0; j < 100; ++j) t[(j * 7 + k) & 15] += t[j & 15];
  o[tid()] = t[k & 15];
}
DEVICE __attribute__((noinline)) float power(float x, int n) {
  float r = 1;
  for (int i = 0; i < n; ++i) r = r * x;
  return r;
}
KERNEL calls(float* o, const float* a, i64 n) {
  EACH(i, n) o[i] = power(a[i], i & 7) + power(a[i], 2);
}
// Votes, matches and reductions of a warp, with all lanes and with some.
KERNEL warp_operations(u32* o, const u32* a) {
  u32 lane = tid();
  u32 x = a[lane];
  u32* out = o + lane * 8;
  out[0] = __nvvm_vote_ballot_sync(~0u, x & 1);
  out[1] = __nvvm_vote_any_sync(~0u, x == 7);
  out[2] = __nvvm_vote_all_sync(~0u, x < 1000);
  out[3] = __nvvm_match_any_sync_i32(~0u, x % 3);
  out[4] = __nvvm_redux_sync_add(x, ~0u);
  out[5] = __nvvm_redux_sync_umax(x, ~0u);
  if (lane < 16) {
    out[6] = __nvvm_vote_ballot_sync(0xffffu, x & 1);
  } else {
    out[6] = __nvvm_vote_ballot_sync(0xffff0000u, !(x & 1));
  }
  out[7] = __nvvm_shfl_sync_idx_i32(~0u, x, (lane + 5) & 31, 31);
}
// C = A · B for 16 × 16 of bf16 and 16 × 8, f32 sums.
KERNEL tensor_core(float* c, const u32* a, const u32* b) {
  u32 lane = tid(), g = lane >> 2, t = lane & 3;
  u32 a0 = a[g * 8 + t], a1 = a[(g + 8) * 8 + t];
  u32 a2 = a[g * 8 + t + 4], a3 = a[(g + 8) * 8 + t + 4];
  u32 b0 = b[g * 8 + t], b1 = b[g * 8 + t + 4];  // B by columns
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[g * 8 + 2 * t] = d0;
  c[g * 8 + 2 * t + 1] = d1;
  c[(g + 8) * 8 + 2 * t] = d2;
  c[(g + 8) * 8 + 2 * t + 1] = d3;
}
// Through cp.async and ldmatrix; the same product.
KERNEL tensor_core_staged(float* c, const u32* a, const u32* b) {
  SHARED static u32 A[128] __attribute__((aligned(16)));
  SHARED static u32 B[64] __attribute__((aligned(16)));
  u32 lane = tid(), g = lane >> 2, t = lane & 3;
  u32 to = (u64)(__attribute__((address_space(3))) u32*)(A + lane * 4);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
               "l"(a + lane * 4)
               : "memory");
  if (lane < 16) {
    u32 at = (u64)(__attribute__((address_space(3))) u32*)(B + lane * 4);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(at),
                 "l"(b + lane * 4)
                 : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  u32 a0, a1, a2, a3;
  u32 row = (lane & 15) * 8 + (lane >> 4) * 4;
  u32 at = (u64)(__attribute__((address_space(3))) u32*)(A + row);
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3)
      : "r"(at)
      : "memory");
  u32 b0 = B[g * 8 + t], b1 = B[g * 8 + t + 4];
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  c[g * 8 + 2 * t] = d0;
  c[g * 8 + 2 * t + 1] = d1;
  c[(g + 8) * 8 + 2 * t] = d2;
  c[(g + 8) * 8 + 2 * t + 1] = d3;
}
// Spins in one lane until another lane of the same warp has gone on.
KERNEL lock(u32* o, u32* mutex) {
  bool done = false;
  while (!done) {
    if (__nvvm_atom_cas_gen_i((i32*)mutex, 0, 1) == 0) {
      *(volatile u32*)o = *(volatile u32*)o + 1;
      __nvvm_membar_gl();
      __nvvm_atom_xchg_gen_i((i32*)mutex, 0);
      done = true;
    }
  }
}
