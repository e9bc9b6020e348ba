#pragma once
// Runs one instruction on many values: each case becomes a kernel of one
// module that loads its operands, executes the instruction, and stores.
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"

namespace opcode_test {

using namespace driver_test;

/// Operands by letter: h 16, r 32, d 64 bits as b16 ... b64; p a predicate;
/// f f32, g f64 registers. `pattern` is `result operands`, as "r rr".
struct Case {
  std::string instruction;  // `add.s32`, or a text with {0} {1} ... in it
  std::string pattern;
  std::vector<std::vector<uint64_t>> inputs;  // [lane][operand]
  std::vector<uint64_t> expected;             // [lane]
  double ulp = 0;  // of f32 or f64 results; 0: all bits
};

inline int bytes_of(char letter) {
  return letter == 'h' ? 2 : letter == 'd' || letter == 'g' ? 8 : 4;
}
inline const char* register_type(char letter) {
  switch (letter) {
    case 'h': return ".b16";
    case 'd': return ".b64";
    case 'g': return ".f64";
    case 'f': return ".f32";
    case 'p': return ".pred";
    default: return ".b32";
  }
}

inline std::string kernel_text(const Case& c, size_t number) {
  std::string text = ".visible .entry k" + std::to_string(number) +
                     "(.param .u64 o, .param .u64 a)\n{\n"
                     ".reg .b64 %rd<9>; .reg .b32 %r<3>; .reg .pred %q;\n"
                     "ld.param.u64 %rd1, [o]; ld.param.u64 %rd2, [a];\n"
                     "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 8;\n"
                     "mul.wide.u32 %rd4, %r1, 32;\n"
                     "add.s64 %rd5, %rd1, %rd3; add.s64 %rd6, %rd2, %rd4;\n";
  auto name = [](size_t i) { return "%v" + std::to_string(i); };
  std::string all = c.pattern.substr(0, 1) + c.pattern.substr(2);
  for (size_t i = 0; i < all.size(); ++i) {
    text +=
        std::string(".reg ") + register_type(all[i]) + " " + name(i) + ";\n";
    if (i == 0) continue;
    std::string at = "[%rd6+" + std::to_string(8 * (i - 1)) + "]";
    if (all[i] == 'p') {
      text += "ld.global.u32 %r2, " + at + "; setp.ne.s32 " + name(i) +
              ", %r2, 0;\n";
    } else {
      text += "ld.global.b" + std::to_string(8 * bytes_of(all[i])) + " " +
              name(i) + ", " + at + ";\n";
    }
  }
  if (c.instruction.find('{') == std::string::npos) {
    text += c.instruction + " ";
    for (size_t i = 0; i < all.size(); ++i) text += (i ? ", " : "") + name(i);
    text += ";\n";
  } else {
    std::string line = c.instruction;
    for (size_t i = 0; i < all.size(); ++i) {
      std::string mark = "{" + std::to_string(i) + "}";
      for (size_t at; (at = line.find(mark)) != std::string::npos;)
        line.replace(at, mark.size(), name(i));
    }
    text += line + "\n";
  }
  if (all[0] == 'p') {
    text += "selp.u32 %r2, 1, 0, %v0; st.global.u32 [%rd5], %r2;\n";
  } else {
    text += "st.global.b" + std::to_string(8 * bytes_of(all[0])) +
            " [%rd5], %v0;\n";
  }
  return text + "ret;\n}\n";
}

inline double distance(uint64_t a, uint64_t b, char letter) {
  if (letter == 'f') {
    float x = std::bit_cast<float>(uint32_t(a));
    float y = std::bit_cast<float>(uint32_t(b));
    if (x != x || y != y) return (x != x) == (y != y) ? 0 : 1e30;
    return std::abs(double(int32_t(a)) - double(int32_t(b)));
  }
  return std::abs(double(int64_t(a)) - double(int64_t(b)));
}

/// `target` "sm_90".
inline void run(const std::vector<Case>& cases, const char* target = "sm_90",
                const char* configuration = "devices=1;cc=9.0") {
  std::string text =
      std::string(".version 8.0\n.target ") + target + "\n.address_size 64\n";
  for (size_t i = 0; i < cases.size(); ++i) text += kernel_text(cases[i], i);
  if (const char* path = std::getenv("UNISONO_KEEP_PTX"))
    std::ofstream(path, std::ios::app) << text << "//---\n";
  Session s(configuration);
  Module module = s.load(text);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    INFO(c.instruction);
    const size_t lanes = c.expected.size();
    REQUIRE(c.inputs.size() == lanes);
    std::vector<uint64_t> in(4 * lanes, 0), out(lanes, 0);
    for (size_t lane = 0; lane < lanes; ++lane)
      for (size_t k = 0; k < c.inputs[lane].size(); ++k)
        in[4 * lane + k] = c.inputs[lane][k];
    DevicePointer a = s.upload(in), o = s.upload(out);
    Function f = s.function(module, ("k" + std::to_string(i)).c_str());
    REQUIRE(s.launch(f, 1, unsigned(lanes), nullptr, o, a) == success);
    REQUIRE(s.d.ctx_synchronize() == success);
    out = s.download<uint64_t>(o, lanes);
    for (size_t lane = 0; lane < lanes; ++lane) {
      INFO("lane ", lane, ": ", c.inputs[lane].empty() ? 0 : c.inputs[lane][0],
           " ", c.inputs[lane].size() < 2 ? 0 : c.inputs[lane][1]);
      if (c.ulp > 0)
        CHECK(distance(out[lane], c.expected[lane], c.pattern[0]) <= c.ulp);
      else
        CHECK(out[lane] == c.expected[lane]);
    }
    s.d.mem_free(a);
    s.d.mem_free(o);
  }
}

inline uint64_t bits(float x) { return std::bit_cast<uint32_t>(x); }
inline uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }

/// A case whose expected values a function gives.
template <class F>
Case computed(std::string instruction, std::string pattern,
              std::vector<std::vector<uint64_t>> inputs, F&& f,
              double ulp = 0) {
  Case c{
      std::move(instruction), std::move(pattern), std::move(inputs), {}, ulp};
  for (const auto& lane : c.inputs) c.expected.push_back(f(lane));
  return c;
}

}  // namespace opcode_test
