// Damaged PTX: an error, or a kernel that the simulator stops or lets run;
// never a crash.
#include <random>

#include "tests/conformance/driver.h"

using namespace driver_test;

namespace {

/// The places of words, so that damage is likely to be still readable.
std::vector<std::pair<size_t, size_t>> words_of(const std::string& text) {
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t at = 0; at < text.size();) {
    size_t begin = text.find_first_not_of(" \t\n,;[](){}", at);
    if (begin == std::string::npos) break;
    size_t end = text.find_first_of(" \t\n,;[](){}", begin);
    if (end == std::string::npos) end = text.size();
    words.emplace_back(begin, end - begin);
    at = end;
  }
  return words;
}

std::string damage(const std::string& text, std::mt19937& random) {
  std::string result = text;
  for (unsigned n = 1 + random() % 3; n > 0; --n) {
    auto words = words_of(result);
    auto one = words[random() % words.size()];
    auto other = words[random() % words.size()];
    std::string piece = result.substr(other.first, other.second);
    switch (random() % 6) {
      case 0: result.erase(one.first, one.second); break;
      case 1: result.insert(one.first, piece + " "); break;
      case 2:
      case 3: result.replace(one.first, one.second, piece); break;
      case 4:
        result[random() % result.size()] = static_cast<char>(random() % 128);
        break;
      case 5: result.resize(random() % result.size()); break;
    }
    if (result.empty()) return " ";
  }
  // A 0 ends the text.
  return result.c_str();
}

}  // namespace

TEST_CASE("modules: damaged PTX is an error, or runs to some end") {
  const std::string whole = read_text("tests/unit/simcuda/ptx/kernels.ptx");
  // One kernel at a time: a head, then what lies between two entries.
  const size_t first = whole.find(".visible .entry");
  const std::string head =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".extern .shared .align 4 .b8 values[];\n";
  std::vector<std::string> kernels;
  for (size_t at = first; at != std::string::npos;) {
    size_t next = whole.find(".visible .entry", at + 1);
    kernels.push_back(whole.substr(at, next - at));
    at = next;
  }
  REQUIRE(kernels.size() > 10);
  const char* seed = std::getenv("UNISONO_SEED");  // for longer searches
  std::mt19937 random(seed ? unsigned(std::atoi(seed)) : 20261121);
  int loaded = 0, refused = 0, ran = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string& kernel = kernels[random() % kernels.size()];
    size_t name_at = std::strlen(".visible .entry ");
    std::string name = kernel.substr(name_at, kernel.find('(') - name_at);
    Session s("fuel=20K;threads=1;unwritten=off;leaks=off");
    std::string text = head + damage(kernel, random);
    Module module = nullptr;
    Code code = s.d.module_load_data(&module, text.c_str());
    if (code != success) {
      ++refused;
      continue;
    }
    ++loaded;
    Function f = nullptr;
    if (s.d.module_get_function(&f, module, name.c_str()) != success) continue;
    DevicePointer p = s.allocate<char>(1 << 16);
    CHECK(s.d.memset_d8(p, 1, 1 << 16) == success);
    uint64_t value = p, small = 3;
    std::vector<void*> arguments(16, &value);
    arguments[3] = arguments[4] = &small;
    if (s.d.launch_kernel(f, 2, 1, 1, 64, 1, 1, 1024, nullptr, arguments.data(),
                          nullptr) == success) {
      ran += s.d.ctx_synchronize() == success;
    }
  }
  CHECK(loaded > 100);
  CHECK(refused > 100);
  CHECK(ran > 10);
}
