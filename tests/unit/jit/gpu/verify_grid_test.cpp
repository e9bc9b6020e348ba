// What must never reach LLVM's NVPTX back end, or come out of it: each row of
// the list of hazards that concerns GPUs, refused.
#include "jit/target/verify_grid.h"

#include <doctest/doctest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <string>

#include "jit/target/nvptx.h"

using namespace unisono;
using namespace unisono::jit;

namespace {

/// The error of translating a function with this body, "" if there is none.
std::string refused(const std::string& body, const std::string& outside = "") {
  llvm::LLVMContext context;
  llvm::SMDiagnostic wrong;
  const std::string text =
      outside + "\ndefine void @k(ptr addrspace(1) %p, float %x, i32 %i) {\n" +
      body + "\nret void\n}\n";
  auto module = llvm::parseAssemblyString(text, wrong, context);
  REQUIRE_MESSAGE(module, wrong.getMessage().str() << "\n" << text);
  NvptxTarget target(75);
  target.prepare(*module);
  auto ptx = target.ptx(*module);
  return ptx ? "" : ptx.error().message;
}

bool says(const std::string& error, const char* what) {
  return error.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("what is known is translated") {
  CHECK(
      refused("%y = fadd float %x, 1.0\nstore float %y, ptr addrspace(1) %p") ==
      "");
  CHECK(refused("%y = call float @llvm.fma.f32(float %x, float %x, float %x)\n"
                "store float %y, ptr addrspace(1) %p",
                "declare float @llvm.fma.f32(float, float, float)") == "");
}

TEST_CASE("math that LLVM cannot select, or prints as garbage") {
  for (const char* name : {"sin", "cos", "exp", "log", "exp2", "log2", "tan",
                           "tanh", "canonicalize"}) {
    const std::string f = std::string("@llvm.") + name + ".f32";
    CHECK(says(refused("%y = call float " + f + "(float %x)",
                       "declare float " + f + "(float)"),
               "intrinsic"));
  }
  CHECK(says(refused("%y = call float @llvm.pow.f32(float %x, float %x)",
                     "declare float @llvm.pow.f32(float, float)"),
             "intrinsic"));
  CHECK(says(refused("%y = frem float %x, 3.0"), "not listed"));
}

TEST_CASE("calls, traps and what has no end") {
  CHECK(says(
      refused("%y = call float @sinf(float %x)", "declare float @sinf(float)"),
      "from outside"));
  CHECK(says(refused("call void @llvm.trap()", "declare void @llvm.trap()"),
             "intrinsic"));
  CHECK(says(refused("br label %a\na:\nunreachable\nb:"), "not listed"));
}

TEST_CASE("atomics that lose their order, and floats") {
  CHECK(says(refused("fence seq_cst"), "not listed"));
  CHECK(says(refused("%y = atomicrmw add ptr addrspace(1) %p, i32 1 seq_cst"),
             "ordered"));
  CHECK(says(refused("%y = atomicrmw add ptr addrspace(1) %p, i32 1 acquire"),
             "ordered"));
  CHECK(says(refused("%y = cmpxchg ptr addrspace(1) %p, i32 1, i32 2 acq_rel "
                     "monotonic"),
             "ordered"));
  CHECK(says(
      refused("%y = atomicrmw fadd ptr addrspace(1) %p, float %x monotonic"),
      "floats"));
}

TEST_CASE("arithmetic that is not exact, types and memory of other kinds") {
  CHECK(says(refused("%y = fadd fast float %x, 1.0"), "inexact"));
  CHECK(says(refused("%y = fadd contract float %x, 1.0"), "inexact"));
  CHECK(says(refused("%y = zext i32 %i to i128"), "type"));
  CHECK(says(refused("%v = load <2 x float>, ptr addrspace(1) %p\n"
                     "%y = fadd <2 x float> %v, %v"),
             "vectors"));
  CHECK(says(refused("%q = addrspacecast ptr addrspace(1) %p to ptr\n"),
             "not listed"));
  CHECK(says(refused("%q = inttoptr i64 8 to ptr\nstore i32 1, ptr %q"),
             "not listed"));
}

TEST_CASE("PTX is looked through once more") {
  CHECK(verify_ptx("\tadd.rn.f32 \t%f1, %f2, %f3;"));
  CHECK(verify_ptx("\tld.global.f32 %f1, [mul.f32x];"));
  CHECK(verify_ptx("\trcp.approx.ftz.f32 %f1, %f2;"));
  CHECK(verify_ptx("\trsqrt.approx.ftz.f32 %f1, %f2;"));
  for (const char* text :
       {"\ttrap;", "\tcall.uni f, ();", ".extern .func f", "\tadd.f32 \t%f1;",
        "@%p1 mul.f64 %d;", "\tadd.rn.ftz.f32 %f;", "\tex2.approx.f32 %f;",
        "\trcp.approx.f32 %f;", "\tdiv.full.f32 %f;"})
    CHECK_MESSAGE(!verify_ptx(text), text);
}
