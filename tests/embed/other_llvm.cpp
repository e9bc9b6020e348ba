// A host with another LLVM in the same process: both generate code and run it,
// in turns, before and after each other.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <unisono.hpp>

// Of llvm-c/*.h, so that the library alone is needed.
extern "C" {
struct LLVMOpaque;
using Ref = LLVMOpaque*;
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMLinkInMCJIT();
Ref LLVMModuleCreateWithName(const char*);
Ref LLVMInt32Type();
Ref LLVMFunctionType(Ref, Ref*, unsigned, int);
Ref LLVMAddFunction(Ref, const char*, Ref);
Ref LLVMAppendBasicBlock(Ref, const char*);
Ref LLVMCreateBuilder();
void LLVMPositionBuilderAtEnd(Ref, Ref);
Ref LLVMGetParam(Ref, unsigned);
Ref LLVMBuildMul(Ref, Ref, Ref, const char*);
Ref LLVMBuildRet(Ref, Ref);
int LLVMCreateExecutionEngineForModule(Ref*, Ref, char**);
uint64_t LLVMGetFunctionAddress(Ref, const char*);
}

namespace {

int square_by_llvm(int x) {
  const Ref module = LLVMModuleCreateWithName("host");
  Ref i32 = LLVMInt32Type();
  const Ref function =
      LLVMAddFunction(module, "square", LLVMFunctionType(i32, &i32, 1, 0));
  const Ref builder = LLVMCreateBuilder();
  LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlock(function, "entry"));
  const Ref parameter = LLVMGetParam(function, 0);
  LLVMBuildRet(builder, LLVMBuildMul(builder, parameter, parameter, ""));
  Ref engine = nullptr;
  char* message = nullptr;
  if (LLVMCreateExecutionEngineForModule(&engine, module, &message)) return -1;
  return reinterpret_cast<int (*)(int)>(
      LLVMGetFunctionAddress(engine, "square"))(x);
}

}  // namespace

int main() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMLinkInMCJIT();
  std::printf("%d\n", square_by_llvm(3));
  unisono::Engine engine;
  auto session = engine.session();
  session.eval("def cube(x: i32) -> i32 { x * x * x }").value();
  const auto cube = session.function("cube")->typed<int32_t(int32_t)>().value();
  std::printf("%d\n", cube(3).value());
  std::printf("%d\n", square_by_llvm(4));
  std::printf("%d\n", cube(4).value());
  return 0;
}
