#include "jit/emit/emit.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <cstddef>

#include "jit/emit/nest.h"
#include "jit/kernel/choice.h"
#include "jit/kernel/row_sums.h"
#include "runtime/execute/program.h"

namespace unisono::jit {
namespace {

llvm::Value* field(llvm::IRBuilder<>& b, llvm::Value* base, size_t offset,
                   llvm::Type* type) {
  llvm::Value* at = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset);
  return b.CreateLoad(type, at);
}

void open_frame(Frame& frame) {
  llvm::IRBuilder<>& b = frame.builder;
  llvm::Value* buffers = frame.function->getArg(0);
  llvm::Value* context = frame.function->getArg(3);
  frame.error = field(b, context, offsetof(KernelContext, error), b.getPtrTy());
  frame.flags = stop_flags(b, context);
  frame.position = field(b, context, offsetof(KernelContext, device_position),
                         b.getInt32Ty());
  for (size_t i = 0; i < frame.kernel.arguments.size(); ++i)
    frame.arguments.push_back(
        field(b, buffers, i * sizeof(void*), b.getPtrTy()));
}

}  // namespace

void add_attributes(llvm::Function& function) {
  function.setDoesNotThrow();
  // A frame of its own lets vectors be spilled to aligned places.
  function.addFnAttr("frame-pointer", "all");
}

llvm::Function* add_kernel_function(llvm::Module& module,
                                    const std::string& name) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer, i64, i64, pointer}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                          name, module);
  add_attributes(*function);
  return function;
}

StopFlags stop_flags(llvm::IRBuilder<>& b, llvm::Value* context) {
  return {
      field(b, context, offsetof(KernelContext, stop), b.getPtrTy()),
      field(b, context, offsetof(KernelContext, cancel), b.getPtrTy()),
  };
}

void poll(llvm::IRBuilder<>& b, const StopFlags& flags,
          llvm::BasicBlock* leave) {
  auto loaded = [&](llvm::Value* at) {
    auto* load = b.CreateAlignedLoad(b.getInt8Ty(), at, llvm::Align(1));
    load->setAtomic(llvm::AtomicOrdering::Monotonic);
    return load;
  };
  llvm::Value* set = b.CreateOr(loaded(flags.stop), loaded(flags.cancel));
  auto* go_on = llvm::BasicBlock::Create(b.getContext(), "go_on",
                                         b.GetInsertBlock()->getParent());
  b.CreateCondBr(b.CreateICmpEQ(set, b.getInt8(0)), go_on, leave);
  b.SetInsertPoint(go_on);
}

EmittedKernel emit_kernel(llvm::Module& module, const std::string& name,
                          const Kernel& kernel, const Machine& machine) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type* i64 = b.getInt64Ty();
  llvm::Function* function = add_kernel_function(module, name);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));

  Frame frame{module, function, b, kernel, machine};
  frame.leave = llvm::BasicBlock::Create(context, "leave");
  open_frame(frame);
  EmittedKernel result{.name = name};
  bool streaming = false;
  std::vector<Nest> nests;
  const auto both = rows_and_sums(kernel, machine);
  if (both) {
    NestEmitter rows(frame, both->rows, both->rows_plan);
    NestEmitter sums(frame, both->sums, both->sums_plan);
    sums.add_after(rows);
    sums.emit(function->getArg(1), function->getArg(2));
    result.grain = both->sums_plan.grain;
    result.units = both->sums_plan.units;
  }
  for (const Nest& nest : both ? std::vector<Nest>() : kernel.nests) {
    Nest merged = nest;
    merge_axes(merged);
    choose_vector_axis(merged, kernel, machine);
    // The loop along the last axis goes over what a choice differs in.
    const int last = static_cast<int>(merged.extents.size()) - 1;
    const bool across = last >= 0 && tile_axis(merged, 1) >= 0;
    for (Nest& chosen : cut_choices(std::move(merged), across ? -1 : last)) {
      merge_axes(chosen);
      for (Nest& part : cut_tiles(std::move(chosen), kernel, machine))
        nests.push_back(std::move(part));
    }
  }
  for (const Nest& nest : nests) {
    const Schedule plan = schedule(nest, kernel, machine);
    llvm::Value *begin = function->getArg(1), *end = function->getArg(2);
    if (nests.size() > 1) {
      // This nest's units are numbered from `result.units` on.
      llvm::Value* first = llvm::ConstantInt::get(i64, result.units);
      llvm::Value* last =
          llvm::ConstantInt::get(i64, result.units + plan.units);
      begin = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, begin, first);
      end = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, last);
      begin = b.CreateSub(begin, first);
      end = b.CreateSub(end, first);
    }
    NestEmitter(frame, nest, plan).emit(begin, end);
    frame.checks += static_cast<uint32_t>(nest.exprs.size()) + 1;
    result.grain = std::max(result.units ? result.grain : 1, plan.grain);
    result.units += plan.units;
    streaming = streaming || plan.streaming;
  }
  b.CreateBr(frame.leave);
  frame.leave->insertInto(function);
  b.SetInsertPoint(frame.leave);
  // Stores that bypass the cache are seen by others only after a fence.
  if (streaming) b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  b.CreateRetVoid();
  return result;
}

}  // namespace unisono::jit
