// The frame of a kernel for a grid: its parameters, which nest a block does,
// what threads say to one another, and how a failed check is reported.
#include "jit/emit/grid.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <filesystem>

#include "jit/emit/grid_nest.h"
#include "jit/kernel/choice.h"
#include "runtime/check.h"

namespace unisono::jit {

using llvm::BasicBlock;
using llvm::Value;
using llvm::Intrinsic::ID;

GridEmitter::GridEmitter(GridFrame& grid, const Nest& nest,
                         const GridSchedule& schedule)
    : NestEmitter(grid.frame, nest, schedule.plan),
      grid_(grid),
      schedule_(schedule),
      in_shared_([this](auto* table) { return in_shared(table); }),
      first_check_(grid.checks.size()),
      rows_(nest.exprs.size()) {}

EmitContext GridEmitter::context(unsigned lanes) {
  EmitContext context = NestEmitter::context(lanes);
  context.grid = context.native_half = context.native_sixteen = true;
  context.in_process = false;
  context.inline_rare = true;
  context.in_shared = in_shared_;
  return context;
}

/// The block's copy of a table, for which there is room once: erf's is the only
/// one.
Value* GridEmitter::in_shared(llvm::GlobalVariable* table) {
  if (!grid_.table) {
    llvm::Type* type = table->getValueType();
    grid_.table = table;
    grid_.shared_table = new llvm::GlobalVariable(
        frame_.module, type, false, llvm::GlobalValue::InternalLinkage,
        llvm::UndefValue::get(type), frame_.function->getName() + "_table",
        nullptr, llvm::GlobalValue::NotThreadLocal, shared_space);
    grid_.shared_table->setAlignment(llvm::Align(128));
  }
  CHECK(table == grid_.table);
  uses_table_ = true;
  return grid_.shared_table;
}

/// Has the block's threads copy the table, before an instruction at the start
/// of a nest, where all of them come.
void GridEmitter::fill_table(llvm::Instruction* first) {
  BasicBlock* end = b_.GetInsertBlock();
  b_.SetInsertPoint(first);
  constexpr unsigned piece = 16;  // bytes
  Value* copies = b_.CreateICmpULT(grid_.thread, i32(grid_table_bytes / piece));
  llvm::Instruction* copy =
      llvm::SplitBlockAndInsertIfThen(copies, first, /*Unreachable=*/false);
  b_.SetInsertPoint(copy);
  llvm::Type* type =
      llvm::FixedVectorType::get(b_.getInt32Ty(), piece / sizeof(int32_t));
  Value* thread = wide(grid_.thread);
  b_.CreateAlignedStore(
      b_.CreateAlignedLoad(type, b_.CreateGEP(type, grid_.table, thread),
                           llvm::Align(piece)),
      b_.CreateGEP(type, grid_.shared_table, thread), llvm::Align(piece));
  b_.SetInsertPoint(first);
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
  // The block was split: where all was in one, it goes on in its second part.
  b_.SetInsertPoint(end == start_ ? first->getParent() : end);
}

void GridEmitter::locate(const Expr& expr) { grid_.lines->at(b_, expr.source); }

void GridEmitter::emit_block(Value* block) {
  start_ = b_.GetInsertBlock();
  emit_units(block);
  if (uses_table_)
    fill_table(loaded_ ? loaded_->getNextNode() : &*start_->begin());
}

void GridEmitter::emit_units(Value* block) {
  auto unit_of = [&](int64_t units, Value* own) {
    return b_.CreateAdd(b_.CreateMul(block, index_constant(units)), wide(own));
  };
  Value* unit = block;
  if (nest_.scan && nest_.scan->part == Scan::Part::linked)
    unit = take_ticket();
  if (schedule_.turns > 1) return emit_turns(block);
  if (schedule_.workers == Workers::thread)
    unit = unit_of(grid_threads, grid_.thread);
  if (schedule_.workers == Workers::warp)
    unit = unit_of(block_warps, grid_.warp);
  const int64_t units = plan_.units * schedule_.repeats;
  repeat_ = index_constant(0);
  when(b_.CreateICmpSLT(unit, index_constant(units)), [&] {
    if (schedule_.repeats > 1) {
      Value* size = index_constant(plan_.units);
      repeat_ = b_.CreateUDiv(unit, size);
      unit = b_.CreateURem(unit, size);
    }
    emit_unit(unit);
    for (Row& row : rows_) forget_row(row);
  });
}

/// Several units of a thread, one after another, of a map along one axis: they
/// lie a constant apart, so that one address is enough for all of them, and
/// constants stay in registers.
void GridEmitter::emit_turns(Value* block) {
  Value* unit = wide(b_.CreateAdd(
      b_.CreateMul(narrow(block), i32(grid_threads * schedule_.turns)),
      grid_.thread));
  for (int64_t turn = 0; turn < schedule_.turns; ++turn) {
    turn_start_ = turn * grid_threads * plan_.block;
    emit_unit(unit);
  }
}

// ---- control ---------------------------------------------------------------

void GridEmitter::when(Value* condition, const std::function<void()>& body) {
  choose(condition, {}, [&] {
    body();
    return std::vector<Value*>();
  });
}

std::vector<Value*> GridEmitter::choose(
    Value* condition, const std::vector<Value*>& otherwise,
    const std::function<std::vector<Value*>()>& body, bool rarely) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return known->isOne() ? body() : otherwise;
  llvm::LLVMContext& context = b_.getContext();
  BasicBlock* before = b_.GetInsertBlock();
  auto* inside = BasicBlock::Create(context, "inside", frame_.function);
  auto* after = BasicBlock::Create(context, "after", frame_.function);
  llvm::MDNode* weights =
      rarely ? llvm::MDBuilder(context).createUnlikelyBranchWeights() : nullptr;
  b_.CreateCondBr(condition, inside, after, weights);
  b_.SetInsertPoint(inside);
  std::vector<Value*> chosen = body();
  BasicBlock* end = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  for (size_t i = 0; i < chosen.size(); ++i) {
    llvm::PHINode* phi = b_.CreatePHI(chosen[i]->getType(), 2);
    phi->addIncoming(otherwise[i], before);
    phi->addIncoming(chosen[i], end);
    chosen[i] = phi;
  }
  return chosen;
}

std::vector<Value*> GridEmitter::counted_loop(
    Value* count, const std::vector<Value*>& state,
    const std::function<std::vector<Value*>(Value*, llvm::ArrayRef<Value*>)>&
        step) {
  return choose(b_.CreateICmpSGT(count, index_constant(0)), state,
                [&] { return carried_loop(count, state, step); });
}

// ---- threads ---------------------------------------------------------------

Value* GridEmitter::i32(int64_t value) {
  return b_.getInt32(static_cast<uint32_t>(value));
}
Value* GridEmitter::wide(Value* value) {
  return b_.CreateZExt(value, b_.getInt64Ty());
}
Value* GridEmitter::narrow(Value* value) {
  return b_.CreateTrunc(value, b_.getInt32Ty());
}

int GridEmitter::workers() const {
  switch (schedule_.workers) {
    case Workers::thread: return 1;
    case Workers::warp: return warp_threads;
    case Workers::block: return grid_threads;
  }
  __builtin_unreachable();
}

Value* GridEmitter::worker() {
  switch (schedule_.workers) {
    case Workers::thread: return index_constant(0);
    case Workers::warp: return wide(grid_.lane);
    case Workers::block: return wide(grid_.thread);
  }
  __builtin_unreachable();
}

Value* GridEmitter::is_leader() {
  return b_.CreateICmpEQ(worker(), index_constant(0));
}

void GridEmitter::synchronise() {
  if (schedule_.workers == Workers::warp)
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {}, {i32(-1)});
  if (schedule_.workers == Workers::block)
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

namespace {

ID shuffle_intrinsic(int how) {
  constexpr ID ids[] = {llvm::Intrinsic::nvvm_shfl_sync_down_i32,
                        llvm::Intrinsic::nvvm_shfl_sync_idx_i32};
  return ids[how];
}

}  // namespace

/// The value of another thread of the warp, within parts of `width` threads.
Value* GridEmitter::shuffle(Shuffle how, Value* value, Value* by, int width) {
  llvm::Type* type = value->getType();
  const unsigned bits = type->getPrimitiveSizeInBits();
  llvm::Type* whole = b_.getIntNTy(bits);
  Value* plain = b_.CreateBitCast(value, whole);
  const int64_t clamp = (warp_threads - width) << 8 | (warp_threads - 1);
  auto word = [&](Value* part) {
    return b_.CreateIntrinsic(shuffle_intrinsic(static_cast<int>(how)), {},
                              {i32(-1), part, by, i32(clamp)});
  };
  if (bits == 64) {
    Value* low = word(narrow(plain));
    Value* high = word(narrow(b_.CreateLShr(plain, uint64_t{32})));
    plain = b_.CreateOr(wide(low), b_.CreateShl(wide(high), uint64_t{32}));
  } else {
    CHECK(bits <= 32);
    Value* got = word(b_.CreateZExt(plain, b_.getInt32Ty()));
    plain = b_.CreateTrunc(got, whole);
  }
  return b_.CreateBitCast(plain, type);
}

std::vector<Value*> GridEmitter::shuffle_all(Shuffle how,
                                             const std::vector<Value*>& values,
                                             int64_t by) {
  std::vector<Value*> out;
  for (Value* value : values) out.push_back(shuffle(how, value, i32(by)));
  return out;
}

namespace {

int64_t stored_bytes(llvm::Type* type) {
  return std::max<int64_t>(type->getPrimitiveSizeInBits() / 8, 1);
}

}  // namespace

Value* GridEmitter::shared_array(llvm::Type* type, int64_t count,
                                 int64_t& used) {
  used = (used + 15) / 16 * 16;
  Value* array = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), grid_.shared,
                                               static_cast<uint64_t>(used));
  used += count * stored_bytes(type);
  CHECK(used <= grid_shared_bytes);
  grid_.shared_bytes = std::max(grid_.shared_bytes, used);
  return array;
}

void GridEmitter::put_shared(Value* array, Value* index, Value* value) {
  llvm::Type* type = value->getType();
  if (type->isIntegerTy(1)) {
    type = b_.getInt8Ty();
    value = b_.CreateZExt(value, type);
  }
  b_.CreateAlignedStore(value, b_.CreateGEP(type, array, index),
                        llvm::Align(static_cast<uint64_t>(stored_bytes(type))));
}

Value* GridEmitter::get_shared(Value* array, llvm::Type* type, Value* index) {
  llvm::Type* stored = type->isIntegerTy(1) ? b_.getInt8Ty() : type;
  Value* value = b_.CreateAlignedLoad(
      stored, b_.CreateGEP(stored, array, index),
      llvm::Align(static_cast<uint64_t>(stored_bytes(stored))));
  return stored == type ? value : b_.CreateIsNotNull(value);
}

// ---- checked errors --------------------------------------------------------

/// See GridError: all threads that fail take part, and who comes first is of no
/// account.
void GridEmitter::report(int32_t code, Value* where, Value* value,
                         int64_t bound, const Check& check, Point& point) {
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(where))
    if (constant->isNullValue()) return;
  const std::pair<size_t, int> name{check.rank, check_number_++};
  auto known = std::find(seen_checks_.begin(), seen_checks_.end(), name);
  const size_t number =
      first_check_ + static_cast<size_t>(known - seen_checks_.begin());
  if (known == seen_checks_.end()) {
    seen_checks_.push_back(name);
    grid_.checks.push_back({code, check.source, bound});
    CHECK(grid_.checks.size() <= size_t{1} << grid_check_bits);
  }
  llvm::LLVMContext& context = b_.getContext();
  auto* bad = BasicBlock::Create(context, "fault", frame_.function);
  auto* ours = BasicBlock::Create(context, "ours", frame_.function);
  auto* good = BasicBlock::Create(context, "checked", frame_.function);
  b_.CreateCondBr(where, bad, good,
                  llvm::MDBuilder(context).createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(bad);
  Value* old = b_.CreateExtractValue(
      b_.CreateAtomicCmpXchg(
          frame_.error, b_.getInt64(0), grid_.launch, llvm::MaybeAlign(8),
          llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Monotonic),
      0);
  b_.CreateCondBr(b_.CreateOr(b_.CreateICmpEQ(old, b_.getInt64(0)),
                              b_.CreateICmpEQ(old, grid_.launch)),
                  ours, good);
  b_.SetInsertPoint(ours);
  Value* key = b_.CreateShl(error_key(number, check, point), uint64_t{8});
  for (unsigned part = 0; part < std::size(GridError{}.parts); ++part) {
    Value* bits = b_.CreateAnd(b_.CreateLShr(value, uint64_t{8} * part),
                               b_.getInt64(0xff));
    Value* at = b_.CreateConstInBoundsGEP1_64(
        b_.getInt8Ty(), frame_.error,
        offsetof(GridError, parts) + part * sizeof(uint64_t));
    b_.CreateAtomicRMW(llvm::AtomicRMWInst::UMin, at, b_.CreateOr(key, bits),
                       llvm::MaybeAlign(8), llvm::AtomicOrdering::Monotonic);
  }
  b_.CreateBr(good);
  b_.SetInsertPoint(good);
}

/// (member, number of the check, element) in 56 bits.
Value* GridEmitter::error_key(size_t number, const Check& check, Point& point) {
  Value* element = index_constant(0);
  for (size_t a = 0; a < nest_.extents.size(); ++a) {
    element = b_.CreateMul(element, index_constant(nest_.extents[a]));
    if (point.index[a]) element = b_.CreateAdd(element, point.index[a]);
  }
  const int member_bits = 56 - grid_check_bits - grid_.element_bits;
  Value* member = b_.CreateBinaryIntrinsic(
      llvm::Intrinsic::umin, member_at(check.member, nullptr, point),
      index_constant((int64_t{1} << member_bits) - 1));
  Value* key =
      b_.CreateOr(b_.CreateShl(member, static_cast<uint64_t>(grid_check_bits)),
                  b_.getInt64(number));
  return b_.CreateOr(
      b_.CreateShl(key, static_cast<uint64_t>(grid_.element_bits)), element);
}

// ---- lines -----------------------------------------------------------------

llvm::DIFile* GridLines::file(const std::string& path) {
  const std::filesystem::path whole(path);
  return llvm::DIFile::get(module_.getContext(), whole.filename().string(),
                           whole.parent_path().string());
}

GridLines::GridLines(llvm::Function& function, const Kernel& kernel,
                     const SourceLines& lines)
    : module_(*function.getParent()), lines_(lines) {
  if (!lines) return;
  SourceLine first;
  for (const Nest& nest : kernel.nests)
    for (const Expr& expr : nest.exprs)
      if (!first.line && expr.source) first = lines(expr.source);
  if (!first.line) return;
  llvm::DIBuilder builder(module_);
  llvm::DIFile* where = file(first.file);
  if (module_.debug_compile_units().empty()) {
    module_.addModuleFlag(llvm::Module::Warning, "Debug Info Version",
                          llvm::DEBUG_METADATA_VERSION);
    // Directives alone: no sections of DWARF.
    builder.createCompileUnit(
        llvm::dwarf::DW_LANG_C99, where, "unisono", true, "", 0, "",
        llvm::DICompileUnit::DebugEmissionKind::DebugDirectivesOnly);
  }
  auto* unit = *module_.debug_compile_units_begin();
  const auto line = static_cast<unsigned>(first.line);
  auto* type = llvm::DISubroutineType::get(module_.getContext(),
                                           llvm::DINode::FlagZero, 0, nullptr);
  kernel_ = llvm::DISubprogram::getDistinct(
      module_.getContext(), where, function.getName(), function.getName(),
      where, line, type, line, nullptr, 0, 0, llvm::DINode::FlagZero,
      llvm::DISubprogram::SPFlagDefinition, unit);
  function.setSubprogram(kernel_);
  known_[0] = llvm::DILocation::get(
      module_.getContext(), line, static_cast<unsigned>(first.column), kernel_);
}

void GridLines::at(llvm::IRBuilder<>& builder, uint32_t place) {
  if (!kernel_) return;
  const auto [at, is_new] = known_.try_emplace(place);
  if (is_new) {
    const SourceLine found = lines_(place);
    llvm::DIScope* scope = kernel_;
    if (found.line && file(found.file) != kernel_->getFile())
      scope = llvm::DILexicalBlockFile::get(module_.getContext(), kernel_,
                                            file(found.file), 0);
    at->second =
        found.line
            ? llvm::DebugLoc(llvm::DILocation::get(
                  module_.getContext(), static_cast<unsigned>(found.line),
                  static_cast<unsigned>(found.column), scope))
            : known_[0];
  }
  builder.SetCurrentDebugLocation(at->second);
}

// ---- the kernel ------------------------------------------------------------

namespace {

/// A function with the parameters that GridLaunch tells.
llvm::Function* kernel_function(llvm::Module& module, const std::string& name,
                                size_t arguments) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type* pointer = llvm::PointerType::get(context, global_space);
  std::vector<llvm::Type*> parameters(arguments, pointer);
  parameters.insert(parameters.end(),
                    {pointer, b.getInt64Ty(), b.getInt32Ty()});
  auto* function = llvm::Function::Create(
      llvm::FunctionType::get(b.getVoidTy(), parameters, false),
      llvm::Function::ExternalLinkage, name, module);
  function->setDoesNotThrow();
  auto annotate = [&](const char* key, uint32_t value) {
    module.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(
            context, {llvm::ConstantAsMetadata::get(function),
                      llvm::MDString::get(context, key),
                      llvm::ConstantAsMetadata::get(b.getInt32(value))}));
  };
  annotate("kernel", 1);
  annotate("maxntidx", grid_threads);
  b.SetInsertPoint(BasicBlock::Create(context, "entry", function));
  return function;
}

void open_frame(GridFrame& grid) {
  Frame& frame = grid.frame;
  llvm::IRBuilder<>& b = frame.builder;
  const auto arguments = static_cast<unsigned>(frame.kernel.arguments.size());
  for (unsigned i = 0; i < arguments; ++i)
    frame.arguments.push_back(frame.function->getArg(i));
  frame.error = frame.function->getArg(arguments);
  grid.launch = frame.function->getArg(arguments + 1);
  frame.position = frame.function->getArg(arguments + 2);
  auto* thread =
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
  thread->setMetadata(
      llvm::LLVMContext::MD_range,
      llvm::MDBuilder(b.getContext())
          .createRange(llvm::APInt(32, 0), llvm::APInt(32, grid_threads)));
  grid.thread = thread;
  grid.lane = b.CreateAnd(grid.thread, b.getInt32(warp_threads - 1));
  grid.warp = b.CreateUDiv(grid.thread, b.getInt32(warp_threads));
  auto* bytes = llvm::ArrayType::get(b.getInt8Ty(), 0);
  grid.shared = new llvm::GlobalVariable(
      frame.module, bytes, false, llvm::GlobalValue::InternalLinkage, nullptr,
      "shared", nullptr, llvm::GlobalValue::NotThreadLocal, shared_space);
}

/// Gives the shared memory the size that came out.
void close_frame(GridFrame& grid) {
  if (grid.shared_bytes > 0) {
    auto* type = llvm::ArrayType::get(grid.frame.builder.getInt8Ty(),
                                      static_cast<uint64_t>(grid.shared_bytes));
    auto* sized = new llvm::GlobalVariable(
        grid.frame.module, type, false, llvm::GlobalValue::InternalLinkage,
        llvm::UndefValue::get(type), grid.frame.function->getName() + "_shared",
        nullptr, llvm::GlobalValue::NotThreadLocal, shared_space);
    sized->setAlignment(llvm::Align(16));
    grid.shared->replaceAllUsesWith(sized);
  }
  grid.shared->eraseFromParent();
}

}  // namespace

EmittedGrid emit_grid(llvm::Module& module, const std::string& name,
                      const Kernel& kernel, const SourceLines& source) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Function* function =
      kernel_function(module, name, kernel.arguments.size());
  llvm::IRBuilder<> b(&function->getEntryBlock());
  const Machine machine = grid_machine();
  GridFrame grid{Frame{module, function, b, kernel, machine}};
  GridLines lines(*function, kernel, source);
  grid.lines = &lines;
  lines.at(b, 0);
  for (const Nest& nest : kernel.nests)
    grid.element_bits = std::max(
        grid.element_bits, static_cast<int>(std::bit_width(
                               static_cast<uint64_t>(nest.points() - 1))));
  CHECK(grid.element_bits + grid_check_bits < 56);
  open_frame(grid);
  EmittedGrid result{.name = name, .blocks = 0, .threads = grid_threads};
  Value* block = b.CreateZExt(
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {}),
      b.getInt64Ty());
  auto* leave = BasicBlock::Create(context, "leave");
  std::vector<Nest> nests;
  for (const Nest& nest : kernel.nests)
    for (Nest& part : cut_choices(nest, -1)) {
      merge_axes(part);
      for (Nest& piece : cut_edges(std::move(part), kernel))
        nests.push_back(std::move(piece));
    }
  for (size_t n = 0; n < nests.size(); ++n) {
    Nest nest = std::move(nests[n]);
    merge_axes(nest);
    const GridSchedule schedule = grid_schedule(nest, kernel);
    // This nest's blocks are numbered from `result.blocks` on.
    Value* own =
        b.CreateSub(block, b.getInt64(static_cast<uint64_t>(result.blocks)));
    result.blocks += schedule.blocks;
    auto* inside = BasicBlock::Create(context, "nest", function);
    auto* next = n + 1 < nests.size()
                     ? BasicBlock::Create(context, "next", function)
                     : leave;
    b.CreateCondBr(b.CreateICmpULT(
                       own, b.getInt64(static_cast<uint64_t>(schedule.blocks))),
                   inside, next);
    b.SetInsertPoint(inside);
    GridEmitter(grid, nest, schedule).emit_block(own);
    b.CreateBr(leave);
    b.SetInsertPoint(next);
    lines.at(b, 0);
  }
  leave->insertInto(function);
  b.SetInsertPoint(leave);
  b.CreateRetVoid();
  close_frame(grid);
  result.checks = std::move(grid.checks);
  result.element_bits = grid.element_bits;
  return result;
}

}  // namespace unisono::jit
