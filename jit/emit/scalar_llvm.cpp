#include "jit/emit/scalar_llvm.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/xxhash.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <numeric>

#include "jit/emit/rare_symbol.h"

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
  // On GPUs an address names its kind of memory: this is the global one.
  const bool grid = llvm::Triple(module.getTargetTriple()).isNVPTX();
  auto* global = new llvm::GlobalVariable(
      module, type, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
      contents, name, nullptr, llvm::GlobalValue::NotThreadLocal, grid ? 1 : 0);
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

namespace {

constexpr unsigned table_rows = 8, table_columns = 8;

llvm::Constant* table_element(EmitContext& context, const RowTable& table,
                              unsigned row, unsigned column) {
  return element_constant(context,
                          table[row % table_rows][column % table_columns]);
}

/// A GPU's way: halves of rows side by side, so that lanes that take the same
/// half, of whichever rows, meet each bank once. Shifted, the bits of a place
/// are the distance from the last row (row_place).
std::array<llvm::Value*, table_columns> load_row(EmitContext& context,
                                                 const RowTable& table,
                                                 llvm::Value* bits) {
  llvm::IRBuilderBase& b = context.builder;
  constexpr unsigned half = table_columns / 2, half_bytes = 4 * half;
  llvm::SmallVector<llvm::Constant*> elements;
  for (unsigned column = 0; column < table_columns; column += half)
    for (unsigned row = 0; row < table_rows; ++row)
      for (unsigned k = 0; k < half; ++k)
        elements.push_back(table_element(context, table, row, column + k));
  llvm::GlobalVariable* global =
      table_global(*b.GetInsertBlock()->getModule(), elements);
  llvm::Value* offset = b.CreateShl(bits, 4);
  llvm::Value* start = b.CreateConstInBoundsGEP1_64(
      b.getInt8Ty(), context.in_shared(global), (table_rows - 1) * half_bytes);
  start =
      b.CreateGEP(b.getInt8Ty(), start, b.CreateSExt(offset, b.getInt64Ty()));
  std::array<llvm::Value*, table_columns> row;
  for (unsigned h = 0; h < table_columns / half; ++h) {
    llvm::Value* loaded = b.CreateAlignedLoad(
        llvm::FixedVectorType::get(b.getFloatTy(), half),
        b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), start,
                                     h * table_rows * half_bytes),
        llvm::Align(half_bytes));
    for (unsigned k = 0; k < half; ++k)
      row[h * half + k] = b.CreateExtractElement(loaded, uint64_t{k});
  }
  return row;
}

/// Of `column`, whose eight elements are repeated to as many as there are
/// lanes, the elements that the low three bits of the lanes of `bits` name, by
/// one instruction.
llvm::Value* choose_from_eight(llvm::IRBuilderBase& b,
                               llvm::ArrayRef<llvm::Constant*> column,
                               llvm::Value* bits, unsigned lanes) {
  llvm::Value* from = llvm::ConstantVector::get(column);
  if (lanes == 16)
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                             {from, bits});
  if (lanes == 8)
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {},
                             {from, bits});
  // AArch64 takes bytes, of which the numbers are counted out.
  auto* bytes = llvm::FixedVectorType::get(b.getInt8Ty(), 16);
  auto half = [&](size_t begin) {
    return b.CreateBitCast(llvm::ConstantVector::get(column.slice(begin, 4)),
                           bytes);
  };
  auto splat = [&](uint32_t number) {
    return b.CreateVectorSplat(lanes, b.getInt32(number));
  };
  llvm::Value* first =
      b.CreateMul(b.CreateAnd(bits, splat(7)), splat(0x04040404));
  llvm::Value* all = b.CreateAdd(first, splat(0x03020100));
  return b.CreateBitCast(
      b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_tbl2, {bytes},
                        {half(0), half(4), b.CreateBitCast(all, bytes)}),
      bits->getType()->getWithNewType(b.getFloatTy()));
}

/// The same for vectors of any width, by parts of `context.row_lanes`.
std::array<llvm::Value*, table_columns> choose_rows(EmitContext& context,
                                                    const RowTable& table,
                                                    llvm::Value* bits) {
  llvm::IRBuilderBase& b = context.builder;
  const unsigned lanes = context.lanes;
  // AVX-512 has AVX2's instruction, too.
  const unsigned part =
      lanes <= 8 ? std::min(context.row_lanes, 8u) : context.row_lanes;
  const unsigned whole = std::max(lanes, part);
  llvm::SmallVector<int> all(whole);
  std::iota(all.begin(), all.end(), 0);
  for (int& lane : all)
    if (lane >= static_cast<int>(lanes)) lane = -1;
  if (whole > lanes) bits = b.CreateShuffleVector(bits, all);
  std::iota(all.begin(), all.end(), 0);
  std::array<llvm::Value*, table_columns> row;
  for (unsigned column = 0; column < table_columns; ++column) {
    llvm::SmallVector<llvm::Constant*> elements;
    for (unsigned i = 0; i < std::max(part, table_rows); ++i)
      elements.push_back(
          table_element(context, table, i + table_rows - 1, column));
    llvm::SmallVector<llvm::Value*> parts;
    for (unsigned begin = 0; begin < whole; begin += part) {
      llvm::Value* own =
          b.CreateShuffleVector(bits, llvm::ArrayRef(all).slice(begin, part));
      parts.push_back(choose_from_eight(b, elements, own, part));
    }
    llvm::Value* joined = llvm::concatenateVectors(b, parts);
    if (whole > lanes)
      joined =
          b.CreateShuffleVector(joined, llvm::ArrayRef(all).take_front(lanes));
    row[column] = joined;
  }
  return row;
}

}  // namespace

std::array<llvm::Value*, 8> emit_lookup_row(EmitContext& context,
                                            const RowTable& table,
                                            llvm::Value* place) {
  llvm::IRBuilderBase& b = context.builder;
  llvm::Value* bits = b.CreateBitCast(place, shaped(context, b.getInt32Ty()));
  if (context.grid) return load_row(context, table, bits);
  if (context.lanes != 0 && context.row_lanes != 0)
    return choose_rows(context, table, bits);
  llvm::SmallVector<llvm::Constant*> elements;
  for (unsigned i = 0; i < table_rows; ++i)
    for (unsigned column = 0; column < table_columns; ++column)
      elements.push_back(
          table_element(context, table, i + table_rows - 1, column));
  auto number = [&](uint32_t n) { return splat(context, b.getInt32(n)); };
  llvm::Value* first = b.CreateMul(b.CreateAnd(bits, number(table_rows - 1)),
                                   number(table_columns));
  std::array<llvm::Value*, 8> row;
  for (unsigned column = 0; column < table_columns; ++column)
    row[column] =
        emit_lookup(context, elements, b.CreateAdd(first, number(column)));
  return row;
}

/// The AVX-512 forms of one operation: for floats and doubles in vectors of
/// 128, 256 and 512 bits.
struct VectorForms {
  llvm::Intrinsic::ID single[3], twice[3];
};
#define FORMS(name)                                         \
  {                                                         \
    {llvm::Intrinsic::x86_avx512_mask_##name##_ps_128,      \
     llvm::Intrinsic::x86_avx512_mask_##name##_ps_256,      \
     llvm::Intrinsic::x86_avx512_mask_##name##_ps_512},     \
    {                                                       \
      llvm::Intrinsic::x86_avx512_mask_##name##_pd_128,     \
          llvm::Intrinsic::x86_avx512_mask_##name##_pd_256, \
          llvm::Intrinsic::x86_avx512_mask_##name##_pd_512  \
    }                                                       \
  }
constexpr VectorForms scale_forms = FORMS(scalef);
constexpr VectorForms exponent_forms = FORMS(getexp);
constexpr VectorForms mantissa_forms = FORMS(getmant);
#undef FORMS

static unsigned vector_bits(llvm::Value* vector) {
  return vector->getType()->getPrimitiveSizeInBits().getFixedValue();
}

/// `operands` (vectors but for immediate ones) through the form that fits, in
/// halves where they are wider than 512 bits; null where none fits.
static llvm::Value* emit_form(llvm::IRBuilderBase& b, const VectorForms& forms,
                              llvm::ArrayRef<llvm::Value*> operands) {
  auto* type = llvm::cast<llvm::FixedVectorType>(operands[0]->getType());
  const unsigned lanes = type->getNumElements();
  const unsigned bits = vector_bits(operands[0]);
  if (bits > 512 && lanes % 2 == 0) {
    llvm::SmallVector<int> all(lanes);
    std::iota(all.begin(), all.end(), 0);
    llvm::Value* halves[2];
    for (unsigned h = 0; h < 2; ++h) {
      llvm::ArrayRef<int> mine =
          llvm::ArrayRef(all).slice(h * (lanes / 2), lanes / 2);
      llvm::SmallVector<llvm::Value*, 3> parts;
      for (llvm::Value* v : operands) {
        parts.push_back(
            v->getType()->isVectorTy() ? b.CreateShuffleVector(v, mine) : v);
      }
      halves[h] = emit_form(b, forms, parts);
      if (halves[h] == nullptr) return nullptr;
    }
    return b.CreateShuffleVector(halves[0], halves[1], all);
  }
  if (bits != 128 && bits != 256 && bits != 512) return nullptr;
  const bool single = type->getElementType()->isFloatTy();
  llvm::SmallVector<llvm::Value*, 6> all(operands);
  all.push_back(llvm::Constant::getNullValue(type));
  all.push_back(
      llvm::Constant::getAllOnesValue(b.getIntNTy(std::max(lanes, 8u))));
  if (bits == 512) all.push_back(b.getInt32(4));  // the current rounding
  const auto& ids = single ? forms.single : forms.twice;
  return b.CreateIntrinsic(ids[bits / 256], {}, all);
}

/// Two powers of 2, of half the exponent each: the first product is exact, and
/// the second is rounded, where it is subnormal, too.
static llvm::Value* emit_scale_in_halves(EmitContext& context, llvm::Value* p,
                                         llvm::Value* shifted) {
  llvm::IRBuilderBase& b = context.builder;
  llvm::Type* number = b.getFloatTy();
  // What lies above n goes away as the exponent moves to its place.
  llvm::Value* bits = b.CreateBitCast(shifted, b.getInt32Ty());
  llvm::Value* half = b.CreateLShr(bits, 1);
  auto power = [&](llvm::Value* exponent) {
    return b.CreateBitCast(
        b.CreateAdd(b.CreateShl(exponent, 23), b.getInt32(0x3f800000)), number);
  };
  return b.CreateFMul(b.CreateFMul(p, power(half)),
                      power(b.CreateSub(bits, half)));
}

llvm::Value* emit_native_scale(EmitContext& context, llvm::Value* p,
                               llvm::Value* n, llvm::Value* shifted) {
  if (context.grid && p->getType()->isFloatTy())
    return emit_scale_in_halves(context, p, shifted);
  if (!context.native_exponents || context.lanes == 0) return nullptr;
  return emit_form(context.builder, scale_forms, {p, n});
}

llvm::Value* emit_native_clamp(EmitContext& context, llvm::Value* x,
                               llvm::Value* low, llvm::Value* high) {
  if (!context.grid || !x->getType()->isFloatTy()) return nullptr;
  llvm::IRBuilderBase& b = context.builder;
  return b.CreateBinaryIntrinsic(
      llvm::Intrinsic::minimum,
      b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, low), high);
}

llvm::Value* emit_native_at_most(EmitContext& context, llvm::Value* x,
                                 llvm::Value* most) {
  if (!context.grid || !x->getType()->isFloatTy()) return nullptr;
  return context.builder.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, x,
                                               most);
}

llvm::Value* emit_native_at_least(EmitContext& context, llvm::Value* x,
                                  llvm::Value* least) {
  if (!context.grid) return nullptr;
  return context.builder.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, x,
                                               least);
}

llvm::Value* emit_native_fraction(EmitContext& context, llvm::Value* x,
                                  llvm::Value* y, llvm::Value* z) {
  if (!context.grid) return nullptr;
  llvm::IRBuilderBase& b = context.builder;
  // One instruction in machine code.
  return b.CreateIntrinsic(
      llvm::Intrinsic::nvvm_saturate_f, {},
      {b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z})});
}

// LLVM writes a GPU's copysign as five instructions.
llvm::Value* emit_copysign(EmitContext& context, llvm::Value* magnitude,
                           llvm::Value* sign) {
  llvm::IRBuilderBase& b = context.builder;
  if (!context.grid || !magnitude->getType()->isFloatTy())
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  auto bits = [&](llvm::Value* x, uint32_t which) {
    return b.CreateAnd(b.CreateBitCast(x, b.getInt32Ty()), b.getInt32(which));
  };
  return b.CreateBitCast(
      b.CreateOr(bits(magnitude, 0x7fffffff), bits(sign, 0x80000000)),
      b.getFloatTy());
}

std::optional<std::array<llvm::Value*, 2>> emit_native_split(
    EmitContext& context, llvm::Value* x) {
  if (!context.native_exponents || context.lanes == 0) return std::nullopt;
  llvm::IRBuilderBase& b = context.builder;
  // [3/4, 3/2), and NaN for negative x.
  llvm::Value* mantissa = emit_form(b, mantissa_forms, {x, b.getInt32(0b1011)});
  if (mantissa == nullptr) return std::nullopt;
  // Exponents count for mantissas in [1, 2).
  llvm::Value* exponent = emit_form(b, exponent_forms, {x});
  llvm::Value* below_one = emit_form(b, exponent_forms, {mantissa});
  return std::array{b.CreateFSub(exponent, below_one), mantissa};
}

/// A new block of the current function, after the current one.
static llvm::BasicBlock* next_block(llvm::IRBuilderBase& builder,
                                    const char* name) {
  llvm::BasicBlock* here = builder.GetInsertBlock();
  CHECK(builder.GetInsertPoint() == here->end());
  return llvm::BasicBlock::Create(here->getContext(), name, here->getParent(),
                                  here->getNextNode());
}

/// A new internal function like `caller`: for its target, hence with its
/// registers for vectors.
static llvm::Function* cold_function(llvm::Function& caller,
                                     llvm::FunctionType* type,
                                     llvm::StringRef name) {
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage,
                                          name, *caller.getParent());
  for (const llvm::Attribute& a : caller.getAttributes().getFnAttrs())
    if (a.isStringAttribute()) function->addFnAttr(a);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::Cold);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  return function;
}

/// Fills a function of (mask, arguments...) that computes one lane after the
/// other, those where the mask holds: rare code is compiled once, as scalars.
static void emit_lane_loop(
    EmitContext& context, llvm::Function* function,
    llvm::function_ref<ValueList(EmitContext&, const ValueList&)> body) {
  llvm::IRBuilderBase& b = context.builder;
  auto* result_type = llvm::cast<llvm::StructType>(function->getReturnType());
  llvm::Type* byte = b.getInt8Ty();
  auto in_memory = [&](llvm::Type* type) { return b.CreateAlloca(type); };
  llvm::Value* mask = function->getArg(0);
  llvm::Value* flags =
      in_memory(llvm::FixedVectorType::get(byte, context.lanes));
  b.CreateStore(b.CreateZExt(mask, shaped(context, byte)), flags);
  ValueList inputs, outputs;
  for (llvm::Argument& argument : llvm::drop_begin(function->args())) {
    inputs.push_back(in_memory(argument.getType()));
    b.CreateStore(&argument, inputs.back());
  }
  for (llvm::Type* type : result_type->elements()) {
    outputs.push_back(in_memory(type));
    b.CreateStore(llvm::Constant::getNullValue(type), outputs.back());
  }
  llvm::BasicBlock* entry = b.GetInsertBlock();
  llvm::BasicBlock* done = next_block(b, "done");
  llvm::BasicBlock* skip = next_block(b, "next");
  llvm::BasicBlock* work = next_block(b, "lane");
  llvm::BasicBlock* head = next_block(b, "loop");
  b.CreateBr(head);

  b.SetInsertPoint(head);
  llvm::PHINode* lane = b.CreatePHI(b.getInt64Ty(), 2);
  lane->addIncoming(b.getInt64(0), entry);
  llvm::Value* flag = b.CreateLoad(byte, b.CreateGEP(byte, flags, lane));
  b.CreateCondBr(b.CreateIsNotNull(flag), work, skip);

  b.SetInsertPoint(work);
  ValueList scalars;
  for (unsigned i = 0; i < inputs.size(); ++i) {
    llvm::Type* type = function->getArg(i + 1)->getType()->getScalarType();
    scalars.push_back(b.CreateLoad(type, b.CreateGEP(type, inputs[i], lane)));
  }
  EmitContext one{b, 0, context.native_half, context.native_exponents,
                  context.in_process};
  ValueList computed = body(one, scalars);
  CHECK(one.faults.empty());
  for (unsigned i = 0; i < outputs.size(); ++i) {
    b.CreateStore(computed[i],
                  b.CreateGEP(computed[i]->getType(), outputs[i], lane));
  }
  b.CreateBr(skip);

  b.SetInsertPoint(skip);
  llvm::Value* next = b.CreateAdd(lane, b.getInt64(1));
  lane->addIncoming(next, skip);
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(context.lanes)), head, done);

  b.SetInsertPoint(done);
  llvm::Value* all = llvm::PoisonValue::get(result_type);
  for (unsigned i = 0; i < outputs.size(); ++i) {
    all = b.CreateInsertValue(
        all, b.CreateLoad(result_type->getElementType(i), outputs[i]), i);
  }
  b.CreateRet(all);
}

/// The module's internal function for rare results, made by `body` at its first
/// use; the types of arguments and results are part of its name.
static llvm::Function* rare_function(
    EmitContext& context, std::string_view name, llvm::Value* mask,
    const ValueList& results, const ValueList& arguments,
    llvm::function_ref<ValueList(EmitContext&, const ValueList&)> body) {
  llvm::Function& caller = *context.builder.GetInsertBlock()->getParent();
  llvm::LLVMContext& llvm_context = caller.getContext();
  std::string full_name = "unisono.";
  llvm::raw_string_ostream full(full_name);
  full << llvm::StringRef(name);
  llvm::SmallVector<llvm::Type*> parameter_types, result_types;
  parameter_types.push_back(mask->getType());
  for (llvm::Value* v : arguments) {
    parameter_types.push_back(v->getType());
    full << "." << *v->getType();
  }
  for (llvm::Value* v : results) result_types.push_back(v->getType());
  if (auto* existing = caller.getParent()->getFunction(full_name))
    return existing;
  auto* result_type = llvm::StructType::get(llvm_context, result_types);
  llvm::Function* function = cold_function(
      caller, llvm::FunctionType::get(result_type, parameter_types, false),
      full_name);
  llvm::IRBuilder<> builder(
      llvm::BasicBlock::Create(llvm_context, "", function));
  EmitContext inner{builder, context.lanes, context.native_half,
                    context.native_exponents, context.in_process};
  if (context.lanes != 0) {
    emit_lane_loop(inner, function, body);
    return function;
  }
  ValueList values;
  for (llvm::Argument& argument : llvm::drop_begin(function->args()))
    values.push_back(&argument);
  ValueList computed = body(inner, values);
  CHECK(inner.faults.empty());
  builder.CreateAggregateRet(computed.data(), computed.size());
  return function;
}

/// The results of the module's function.
static ValueList call_module(
    EmitContext& context, std::string_view name, llvm::Value* mask,
    const ValueList& usual, const ValueList& arguments,
    llvm::function_ref<ValueList(EmitContext&, const ValueList&)> body) {
  llvm::IRBuilderBase& b = context.builder;
  llvm::Function* function =
      rare_function(context, name, mask, usual, arguments, body);
  ValueList all = {mask};
  all.append(arguments);
  llvm::CallInst* call = b.CreateCall(function, all);
  ValueList results;
  for (unsigned i = 0; i < usual.size(); ++i)
    results.push_back(b.CreateExtractValue(call, i));
  return results;
}

/// The results of this process's function.
static ValueList call_helper(EmitContext& context, RareHelper helper,
                             llvm::Value* mask, const ValueList& usual,
                             const ValueList& arguments) {
  llvm::IRBuilderBase& b = context.builder;
  llvm::Type* byte = b.getInt8Ty();
  llvm::Function* caller = b.GetInsertBlock()->getParent();
  const unsigned lanes = std::max(context.lanes, 1u);
  const auto slot_bytes = static_cast<uint64_t>(rare_slot(lanes));
  const llvm::Align alignment(rare_slot_alignment);
  const uint64_t slots = 1 + arguments.size() + usual.size();
  llvm::IRBuilder<> at_entry(&caller->getEntryBlock(),
                             caller->getEntryBlock().begin());
  llvm::AllocaInst* place =
      at_entry.CreateAlloca(llvm::ArrayType::get(byte, slots * slot_bytes));
  place->setAlignment(alignment);
  auto slot = [&](uint64_t i) {
    return b.CreateConstGEP1_64(byte, place, i * slot_bytes);
  };
  // A vector of LLVM's is aligned by its size, which may be more.
  b.CreateAlignedStore(b.CreateZExt(mask, shaped(context, byte)), slot(0),
                       alignment);
  uint64_t next = 1;
  for (llvm::Value* argument : arguments)
    b.CreateAlignedStore(argument, slot(next++), alignment);
  llvm::Type* pointer = b.getPtrTy();
  auto* type =
      llvm::FunctionType::get(b.getVoidTy(), {pointer, b.getInt64Ty()}, false);
  b.CreateCall(caller->getParent()->getOrInsertFunction(
                   symbol_of(reinterpret_cast<const void*>(helper)), type),
               {place, b.getInt64(lanes)});
  ValueList results;
  for (llvm::Value* like : usual) {
    results.push_back(
        b.CreateAlignedLoad(like->getType(), slot(next++), alignment));
  }
  return results;
}

ValueList emit_rare(
    EmitContext& context, std::string_view name, llvm::Value* mask,
    ValueList usual, const ValueList& arguments,
    llvm::function_ref<ValueList(EmitContext&, const ValueList&)> body,
    RareHelper helper) {
  llvm::IRBuilderBase& b = context.builder;
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::BasicBlock* join = next_block(b, "join");
  llvm::BasicBlock* rare = next_block(b, "rare");
  llvm::MDBuilder metadata(b.getContext());
  b.CreateCondBr(any_lane(context, mask), rare, join,
                 metadata.createUnlikelyBranchWeights());

  b.SetInsertPoint(rare);
  CHECK(!context.inline_rare || context.lanes == 0);
  ValueList chosen =
      context.inline_rare ? body(context, arguments)
      : context.in_process
          ? call_helper(context, helper, mask, usual, arguments)
          : call_module(context, name, mask, usual, arguments, body);
  for (unsigned i = 0; i < usual.size(); ++i)
    chosen[i] = b.CreateSelect(mask, chosen[i], usual[i]);
  rare = b.GetInsertBlock();
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

ValueList emit_iterate(EmitContext& context, const ValueList& state,
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
