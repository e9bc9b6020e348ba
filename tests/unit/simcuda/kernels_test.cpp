// Whole kernels as LLVM emits them (ptx/kernels.cu), against plain loops.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/conformance/driver.h"

using namespace driver_test;

namespace {

struct Kernels : Session {
  explicit Kernels(const std::string& configuration = "")
      : Session(configuration.c_str()) {
    module = load(read_text("tests/unit/simcuda/ptx/kernels.ptx"));
  }
  Module module;

  struct Shape {
    unsigned grid_x, grid_y, block_x, block_y, shared = 0;
  };
  template <class... Arguments>
  void run(const char* name, Shape shape, Arguments... arguments) {
    void* list[] = {&arguments..., nullptr};
    INFO(name);
    CHECK(d.launch_kernel(function(module, name), shape.grid_x, shape.grid_y, 1,
                          shape.block_x, shape.block_y, 1, shape.shared,
                          nullptr, list, nullptr) == success);
    Code code = d.ctx_synchronize();
    CHECK_MESSAGE(code == success, text_of(d.findings));
  }
  /// Nothing was found wrong.
  ~Kernels() { CHECK(text_of(d.findings) == ""); }
};

std::vector<float> numbers(size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  // Multiples of 1/8 of moderate size: sums are exact in any order.
  for (float& x : values) x = float(int(random() % 2001) - 1000) / 8;
  return values;
}

std::vector<uint32_t> words(size_t count, uint32_t below, unsigned seed = 2) {
  std::mt19937 random(seed);
  std::vector<uint32_t> values(count);
  for (uint32_t& x : values) x = below ? random() % below : random();
  return values;
}

}  // namespace

TEST_CASE("kernels: elementwise, in steps of one and of four") {
  Kernels s;
  const int64_t n = 10'000;
  auto a = numbers(n), b = numbers(n, 2), want = a;
  for (int64_t i = 0; i < n; ++i) want[i] = a[i] + b[i];
  DevicePointer x = s.upload(a), y = s.upload(b), o = s.allocate<float>(n);
  s.run("add", {7, 1, 96, 1}, o, x, y, n);
  CHECK(s.download<float>(o, n) == want);
  s.d.memset_d8(o, 0, n * 4);
  s.run("add4", {5, 1, 128, 1}, o, x, y, n / 4);
  CHECK(s.download<float>(o, n) == want);
}

TEST_CASE("kernels: reductions and scans of a block") {
  for (int seed = 0; seed < 4; ++seed) {
    Kernels s("seed=" + std::to_string(seed));
    const int64_t n = 4096;
    auto a = numbers(n);
    DevicePointer x = s.upload(a), o = s.allocate<float>(n);
    s.run("block_sums", {4, 1, 256, 1}, o, x, n);
    auto sums = s.download<float>(o, 4);
    CHECK(sums[0] + sums[1] + sums[2] + sums[3] ==
          std::accumulate(a.begin(), a.end(), 0.0f));
    s.run("block_scan", {4, 1, 1024, 1}, o, x);
    auto scan = s.download<float>(o, n);
    size_t wrong = 0;
    for (int block = 0; block < 4; ++block) {
      float total = 0;
      for (int i = block * 1024; i < (block + 1) * 1024; ++i) {
        total += a[i];
        wrong += scan[i] != total;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("kernels: a missing barrier gives a wrong answer under some seed") {
  int wrong = 0;
  for (int seed = 0; seed < 8; ++seed) {
    Kernels s("unwritten=off;races=off;seed=" + std::to_string(seed));
    const unsigned n = 512;
    auto a = words(n, 100);
    std::vector<uint32_t> want(n);
    std::partial_sum(a.begin(), a.end(), want.begin());
    DevicePointer x = s.upload(a), o = s.allocate<uint32_t>(n);
    s.run("dynamic_scan", {1, 1, n, 1, n * 4}, o, x);
    CHECK(s.download<uint32_t>(o, n) == want);
    s.run("racy_scan", {1, 1, n, 1, n * 4}, o, x);
    wrong += s.download<uint32_t>(o, n) != want;
  }
  CHECK(wrong > 0);
}

TEST_CASE("kernels: matrix product and transpose through shared memory") {
  Kernels s;
  const int n = 64;
  auto a = numbers(n * n), b = numbers(n * n, 2);
  std::vector<float> want(n * n), turned(n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k)
        sum = std::fma(a[i * n + k], b[k * n + j], sum);
      want[i * n + j] = sum;
      turned[j * n + i] = a[i * n + j];
    }
  }
  DevicePointer x = s.upload(a), y = s.upload(b), o = s.allocate<float>(n * n);
  s.run("matmul", {n / 16, n / 16, 16, 16}, o, x, y, n);
  CHECK(s.download<float>(o, n * n) == want);
  s.run("transpose", {n / 32, n / 32, 32, 32}, o, x, n, n);
  CHECK(s.download<float>(o, n * n) == turned);
}

TEST_CASE("kernels: histogram by atomics, bitonic sort, random bits") {
  Kernels s;
  auto a = words(10'000, 0);
  std::vector<int> want(256, 0);
  for (uint32_t x : a) ++want[x & 255];
  DevicePointer x = s.upload(a), o = s.upload(std::vector<int>(256, 0));
  s.run("histogram", {8, 1, 256, 1}, o, x, int64_t(a.size()));
  CHECK(s.download<int>(o, 256) == want);

  auto values = numbers(2048);
  DevicePointer v = s.upload(values);
  for (unsigned k = 2; k <= 2048; k *= 2)
    for (unsigned j = k / 2; j; j /= 2)
      s.run("bitonic", {8, 1, 256, 1}, v, j, k);
  std::sort(values.begin(), values.end());
  CHECK(s.download<float>(v, 2048) == values);

  DevicePointer r = s.allocate<uint32_t>(100);
  s.run("philox", {1, 1, 128, 1}, r, 1u, 2u, int64_t{100});
  auto random = s.download<uint32_t>(r, 100);
  std::vector<uint32_t> expected(100);
  for (uint32_t i = 0; i < 100; ++i) {
    uint32_t c[4] = {i, 0, 0, 0}, key[2] = {1, 2};
    for (int round = 0; round < 10; ++round) {
      uint64_t p0 = uint64_t{0xD2511F53} * c[0];
      uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
      uint32_t next[4] = {uint32_t(p1 >> 32) ^ c[1] ^ key[0], uint32_t(p1),
                          uint32_t(p0 >> 32) ^ c[3] ^ key[1], uint32_t(p0)};
      std::copy_n(next, 4, c);
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    expected[i] = c[0] ^ c[1] ^ c[2] ^ c[3];
  }
  CHECK(random == expected);
}

TEST_CASE("kernels: lanes that diverge, meet again") {
  Kernels s;
  const int64_t n = 1000;
  DevicePointer o = s.allocate<uint32_t>(n);
  s.run("collatz", {4, 1, 250, 1}, o, n);
  auto got = s.download<uint32_t>(o, n);
  size_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) {
    uint64_t x = uint64_t(i) + 1;
    uint32_t steps = 0;
    for (; x != 1; ++steps) x = x & 1 ? 3 * x + 1 : x / 2;
    wrong += got[size_t(i)] != steps;
  }
  CHECK(wrong == 0);

  auto a = words(n, 8), before = words(n, 1000, 5);
  DevicePointer x = s.upload(a), y = s.upload(before);
  s.run("choices", {2, 1, 512, 1}, y, x, n);
  auto chosen = s.download<int>(y, n);
  for (size_t i = 0; i < size_t(n); ++i) {
    int v = int(before[i]);
    const int want[] = {5, v * 3, v / 7, v ^ 9, v << 2, -v, 1, 1};
    wrong += chosen[i] != want[a[i]];
  }
  CHECK(wrong == 0);
}

TEST_CASE("kernels: local arrays and calls") {
  Kernels s;
  auto a = words(256 * 16, 1000);
  DevicePointer x = s.upload(a), o = s.allocate<int>(256);
  s.run("local_array", {1, 1, 256, 1}, o, x, 3);
  auto got = s.download<int>(o, 256);
  size_t wrong = 0;
  for (int lane = 0; lane < 256; ++lane) {
    int t[16];
    for (int j = 0; j < 16; ++j) t[j] = int(a[size_t(lane * 16 + j)]);
    for (int j = 0; j < 100; ++j) {
      t[(j * 7 + 3) & 15] =
          int(unsigned(t[(j * 7 + 3) & 15]) + unsigned(t[j & 15]));
    }
    wrong += got[size_t(lane)] != t[3];
  }
  CHECK(wrong == 0);
  const int64_t n = 300;
  auto f = numbers(n);
  DevicePointer y = s.upload(f), p = s.allocate<float>(n);
  s.run("calls", {3, 1, 128, 1}, p, y, n);
  auto powers = s.download<float>(p, n);
  for (int64_t i = 0; i < n; ++i) {
    float r = 1;
    for (int k = 0; k < (i & 7); ++k) r = r * f[size_t(i)];
    wrong += powers[size_t(i)] != r + f[size_t(i)] * f[size_t(i)];
  }
  CHECK(wrong == 0);
}

TEST_CASE("kernels: votes, matches, shuffles") {
  Kernels s;
  auto a = words(32, 100);
  DevicePointer x = s.upload(a), o = s.allocate<uint32_t>(256);
  s.run("warp_operations", {1, 1, 32, 1}, o, x);
  auto got = s.download<uint32_t>(o, 256);
  uint32_t odd = 0, sum = 0, most = 0;
  bool seven = false;
  for (int k = 0; k < 32; ++k) {
    odd |= (a[k] & 1) << k;
    sum += a[k];
    most = std::max(most, a[k]);
    seven |= a[k] == 7;
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    INFO("lane ", lane);
    const uint32_t* out = &got[lane * 8];
    uint32_t same = 0;
    for (uint32_t k = 0; k < 32; ++k)
      same |= uint32_t(a[k] % 3 == a[lane] % 3) << k;
    CHECK(out[0] == odd);
    CHECK(out[1] == seven);
    CHECK(out[2] == 1);
    CHECK(out[3] == same);
    CHECK(out[4] == sum);
    CHECK(out[5] == most);
    CHECK(out[6] == (lane < 16 ? odd & 0xffff : ~odd & 0xffff0000));
    CHECK(out[7] == a[(lane + 5) & 31]);
  }
}

TEST_CASE("kernels: mma, ldmatrix and cp.async") {
  Kernels s;
  std::vector<uint32_t> a(128), b(64);  // pairs of bf16
  auto small = words(384, 17);
  auto brain = [](int x) { return std::bit_cast<uint32_t>(float(x)) >> 16; };
  auto element = [&](size_t i) { return int(small[i]) - 8; };
  for (size_t i = 0; i < 128; ++i)
    a[i] = brain(element(2 * i)) | brain(element(2 * i + 1)) << 16;
  for (size_t i = 0; i < 64; ++i)
    b[i] = brain(element(256 + 2 * i)) | brain(element(257 + 2 * i)) << 16;
  std::vector<float> want(128);
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      int sum = 0;
      for (size_t k = 0; k < 16; ++k)
        sum += element(i * 16 + k) * element(256 + j * 16 + k);
      want[i * 8 + j] = float(sum);
    }
  }
  DevicePointer x = s.upload(a), y = s.upload(b), o = s.allocate<float>(128);
  s.run("tensor_core", {1, 1, 32, 1}, o, x, y);
  CHECK(s.download<float>(o, 128) == want);
  s.d.memset_d8(o, 0, 512);
  s.run("tensor_core_staged", {1, 1, 32, 1}, o, x, y);
  CHECK(s.download<float>(o, 128) == want);
}

TEST_CASE("kernels: a lane may wait for another of its own warp") {
  Kernels s("fuel=10M");
  DevicePointer o = s.upload(std::vector<uint32_t>{0});
  DevicePointer mutex = s.upload(std::vector<uint32_t>{0});
  s.run("lock", {2, 1, 64, 1}, o, mutex);
  CHECK(s.download<uint32_t>(o, 1)[0] == 128);
}
