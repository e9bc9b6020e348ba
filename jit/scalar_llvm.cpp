#include "jit/scalar_llvm.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/xxhash.h>

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

llvm::Type* shaped(EmitContext& context, llvm::Type* element) {
  if (context.lanes == 0) return element;
  return llvm::FixedVectorType::get(element, context.lanes);
}

llvm::Constant* splat(EmitContext& context, llvm::Constant* element) {
  if (context.lanes == 0) return element;
  return llvm::ConstantVector::getSplat(
      llvm::ElementCount::getFixed(context.lanes), element);
}

llvm::Value* any_lane(EmitContext& context, llvm::Value* mask) {
  return context.lanes == 0 ? mask : context.builder.CreateOrReduce(mask);
}

/// The module's constant array with these elements.
static llvm::GlobalVariable* table_global(
    llvm::Module& module, llvm::ArrayRef<llvm::Constant*> table) {
  auto* type = llvm::ArrayType::get(table[0]->getType(), table.size());
  llvm::Constant* contents = llvm::ConstantArray::get(type, table);
  std::string text;
  llvm::raw_string_ostream(text) << *contents;
  std::string name =
      "unisono.table." + llvm::utohexstr(llvm::xxh3_64bits(text));
  if (auto* existing = module.getNamedGlobal(name)) return existing;
  auto* global = new llvm::GlobalVariable(module, type, /*isConstant=*/true,
                                          llvm::GlobalValue::InternalLinkage,
                                          contents, name);
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  global->setAlignment(llvm::Align(64));
  return global;
}

llvm::Value* emit_lookup(EmitContext& context,
                         llvm::ArrayRef<llvm::Constant*> table,
                         llvm::Value* index) {
  llvm::IRBuilderBase& b = context.builder;
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  llvm::Type* element = table[0]->getType();
  llvm::Value* place = b.CreateGEP(element, table_global(module, table), index);
  llvm::Align align(element->getScalarSizeInBits() / 8);
  if (context.lanes == 0) return b.CreateAlignedLoad(element, place, align);
  return b.CreateMaskedGather(shaped(context, element), place, align);
}

/// `count` elements of `vector` from `first` on; poison past its end.
static llvm::Value* part(llvm::IRBuilderBase& b, llvm::Value* vector,
                         unsigned first, unsigned count) {
  llvm::SmallVector<int> elements;
  for (unsigned i = 0; i < count; ++i) elements.push_back(first + i);
  return b.CreateShuffleVector(vector, elements);
}

llvm::Value* emit_native_scale(EmitContext& context, llvm::Value* p,
                               llvm::Value* n) {
  if (!context.native_scale || context.lanes == 0) return nullptr;
  llvm::IRBuilderBase& b = context.builder;
  const bool single = p->getType()->getScalarType()->isFloatTy();
  const unsigned bits = context.lanes * (single ? 32 : 64);
  using llvm::Intrinsic::ID;
  constexpr ID single_ids[] = {llvm::Intrinsic::x86_avx512_mask_scalef_ps_128,
                               llvm::Intrinsic::x86_avx512_mask_scalef_ps_256,
                               llvm::Intrinsic::x86_avx512_mask_scalef_ps_512};
  constexpr ID double_ids[] = {llvm::Intrinsic::x86_avx512_mask_scalef_pd_128,
                               llvm::Intrinsic::x86_avx512_mask_scalef_pd_256,
                               llvm::Intrinsic::x86_avx512_mask_scalef_pd_512};
  if (bits > 512) {
    // In halves.
    if (context.lanes % 2 != 0) return nullptr;
    const unsigned half = context.lanes / 2;
    EmitContext inner{b, half, context.native_half, true};
    llvm::Value* low =
        emit_native_scale(inner, part(b, p, 0, half), part(b, n, 0, half));
    if (low == nullptr) return nullptr;
    llvm::Value* high = emit_native_scale(inner, part(b, p, half, half),
                                          part(b, n, half, half));
    llvm::SmallVector<int> all;
    for (unsigned i = 0; i < context.lanes; ++i) all.push_back(i);
    return b.CreateShuffleVector(low, high, all);
  }
  if (bits != 128 && bits != 256 && bits != 512) return nullptr;
  const int size = bits / 256;  // 0, 1, 2
  llvm::Type* mask_type = b.getIntNTy(context.lanes < 8 ? 8 : context.lanes);
  llvm::SmallVector<llvm::Value*, 5> operands = {
      p, n, llvm::Constant::getNullValue(p->getType()),
      llvm::Constant::getAllOnesValue(mask_type)};
  if (bits == 512) operands.push_back(b.getInt32(4));  // current rounding
  return b.CreateIntrinsic(single ? single_ids[size] : double_ids[size], {},
                           operands);
}

/// The module's internal function for rare results, made by `body` at its first
/// use; the types of arguments and results are part of its name.
static llvm::Function* rare_function(
    EmitContext& context, std::string_view name, const ValueList& results,
    const ValueList& arguments,
    llvm::function_ref<ValueList(EmitContext&, const ValueList&)> body) {
  llvm::Function& caller = *context.builder.GetInsertBlock()->getParent();
  llvm::Module& module = *caller.getParent();
  llvm::LLVMContext& llvm_context = module.getContext();
  std::string full_name = "unisono.";
  llvm::raw_string_ostream full(full_name);
  full << llvm::StringRef(name);
  llvm::SmallVector<llvm::Type*> parameter_types, result_types;
  for (llvm::Value* v : arguments) {
    parameter_types.push_back(v->getType());
    full << "." << *v->getType();
  }
  for (llvm::Value* v : results) result_types.push_back(v->getType());
  if (auto* existing = module.getFunction(full_name)) return existing;

  auto* result_type = llvm::StructType::get(llvm_context, result_types);
  auto* function = llvm::Function::Create(
      llvm::FunctionType::get(result_type, parameter_types, false),
      llvm::Function::InternalLinkage, full_name, module);
  // The caller's target, hence its registers for vectors.
  llvm::AttributeSet attributes = caller.getAttributes().getFnAttrs();
  for (const llvm::Attribute& attribute : attributes) {
    if (attribute.isStringAttribute()) function->addFnAttr(attribute);
  }
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::Cold);
  function->addFnAttr(llvm::Attribute::NoUnwind);

  llvm::IRBuilder<> builder(
      llvm::BasicBlock::Create(llvm_context, "", function));
  EmitContext inner{builder, context.lanes, context.native_half,
                    context.native_scale};
  ValueList values;
  for (llvm::Argument& argument : function->args()) values.push_back(&argument);
  ValueList computed = body(inner, values);
  CHECK(inner.faults.empty());
  llvm::Value* all = llvm::PoisonValue::get(result_type);
  for (unsigned i = 0; i < computed.size(); ++i) {
    all = builder.CreateInsertValue(all, computed[i], i);
  }
  builder.CreateRet(all);
  return function;
}

/// A new block of the current function, after the current one.
static llvm::BasicBlock* next_block(llvm::IRBuilderBase& builder,
                                    const char* name) {
  llvm::BasicBlock* here = builder.GetInsertBlock();
  CHECK(builder.GetInsertPoint() == here->end());
  return llvm::BasicBlock::Create(here->getContext(), name, here->getParent(),
                                  here->getNextNode());
}

ValueList emit_rare(
    EmitContext& context, std::string_view name, llvm::Value* mask,
    ValueList usual, ValueList arguments,
    llvm::function_ref<ValueList(EmitContext&, const ValueList&)> body) {
  llvm::IRBuilderBase& b = context.builder;
  llvm::Function* function =
      rare_function(context, name, usual, arguments, body);
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::BasicBlock* join = next_block(b, "join");
  llvm::BasicBlock* rare = next_block(b, "rare");
  llvm::MDBuilder metadata(b.getContext());
  b.CreateCondBr(any_lane(context, mask), rare, join,
                 metadata.createUnlikelyBranchWeights());

  b.SetInsertPoint(rare);
  llvm::CallInst* call = b.CreateCall(function, arguments);
  ValueList chosen;
  for (unsigned i = 0; i < usual.size(); ++i) {
    chosen.push_back(
        b.CreateSelect(mask, b.CreateExtractValue(call, i), usual[i]));
  }
  b.CreateBr(join);

  b.SetInsertPoint(join);
  ValueList results;
  for (unsigned i = 0; i < usual.size(); ++i) {
    llvm::PHINode* phi = b.CreatePHI(usual[i]->getType(), 2);
    phi->addIncoming(usual[i], before);
    phi->addIncoming(chosen[i], rare);
    results.push_back(phi);
  }
  return results;
}

ValueList emit_iterate(EmitContext& context, ValueList state,
                       llvm::function_ref<llvm::Value*(const ValueList&)> more,
                       llvm::function_ref<ValueList(const ValueList&)> step) {
  llvm::IRBuilderBase& b = context.builder;
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::BasicBlock* done = next_block(b, "done");
  llvm::BasicBlock* body = next_block(b, "step");
  llvm::BasicBlock* head = next_block(b, "while");
  b.CreateBr(head);

  b.SetInsertPoint(head);
  ValueList current;
  llvm::SmallVector<llvm::PHINode*, 4> phis;
  for (llvm::Value* initial : state) {
    phis.push_back(b.CreatePHI(initial->getType(), 2));
    phis.back()->addIncoming(initial, before);
    current.push_back(phis.back());
  }
  llvm::Value* mask = more(current);
  b.CreateCondBr(any_lane(context, mask), body, done);

  b.SetInsertPoint(body);
  ValueList next = step(current);
  for (unsigned i = 0; i < next.size(); ++i) {
    llvm::Value* kept = b.CreateSelect(mask, next[i], current[i]);
    phis[i]->addIncoming(kept, b.GetInsertBlock());
  }
  b.CreateBr(head);

  b.SetInsertPoint(done);
  return current;
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
