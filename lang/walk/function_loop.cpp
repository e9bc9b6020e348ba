// Loops that become code, and jumps out of them.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "jit/scalar/element.h"
#include "lang/context/line_times.h"
#include "lang/syntax/jumps.h"
#include "lang/walk/function_code.h"

namespace unisono::lang {
namespace {
using Form = HostKind::Form;
}  // namespace

/// A bound of a range, as an int of 64 bits.
HostOperand FunctionCompiler::Body::bound(const Operand& value, DType dtype,
                                          const ForStmt& s) {
  const HostKind kind = HostKind::integer();
  if (value.kind.is(Form::scalar)) {
    if (dtype == DType::I64)
      return {kind, value.known, value.bits, value.place};
    if (value.known)
      return known(kind, static_cast<uint64_t>(static_cast<int64_t>(
                             static_cast<int32_t>(value.bits))));
    const uint32_t place = reserve();
    emit(jit::cast_step(dtype, DType::I64), place, value.place);
    return in(kind, place);
  }
  const auto number = static_cast<int64_t>(value.bits);
  if (dtype == DType::I64) return value;
  if (value.known) {
    if (number != static_cast<int32_t>(number))
      give_up(s.iterable->span, "a range of large numbers");
    return value;
  }
  const size_t step =
      emit(jit::bytecode::require_fit_step(dtype, false), 0, value.place);
  if (value.kind.is(Form::number)) {
    all_.begins_again_ = s.iterable->span;
    return in(kind, value.place);
  }
  Site& failure = unit_.sites[step];  // where the range itself is an error
  failure.where = s.span;
  failure.statement = &s;
  failure.locals = locals_;
  return value;
}

bool FunctionCompiler::Body::is_range(const ForStmt& s) const {
  const auto* made = as<Call>(*s.iterable);
  const auto* callee = made ? as<NameExpr>(*made->callee) : nullptr;
  return callee && callee->text == "range" && !local(callee->text);
}

/// What a `for` counts, if it does.
FunctionCompiler::Body::Bounds FunctionCompiler::Body::range_of(
    const ForStmt& s) {
  const Span where = s.iterable->span;
  const auto* made = as<Call>(*s.iterable);
  const auto* callee = made ? as<NameExpr>(*made->callee) : nullptr;
  if (!callee || local(callee->text)) give_up(where, "it is no `range`");
  const Value value = all_.outer_value(env_, *callee);
  const auto* function = value.get_if<FunctionPtr>();
  const auto* builtin =
      function ? std::get_if<const Builtin*>(&(*function)->what) : nullptr;
  if (!builtin || (*builtin)->name != "range")
    give_up(where, "it is no `range`");
  const size_t given = made->arguments.size();
  if (given < 1 || given > 3) give_up(where, "a range of no or four numbers");
  Bounds out;
  Operand parts[3] = {
      known(HostKind::integer(), 0), {}, known(HostKind::integer(), 1)};
  bool scalars = false;
  for (size_t i = 0; i < given; ++i) {
    const ArgumentExpr& argument = made->arguments[i];
    if (argument.name) give_up(where, "an argument by name");
    const uint32_t place = reserve();
    Operand& part = parts[given == 1 ? 1 : i];
    part = kept(expr(*argument.value, place), place);
    const DType dtype = part.kind.dtype;
    if (part.kind.may_be_number())
      give_up(argument.value->span, "a number that may have no type yet");
    if (part.kind.is(Form::integer) ||
        (part.kind.is(Form::number) && dtype == DType::I64))
      continue;
    if (!part.kind.is(Form::scalar) ||
        (dtype != DType::I32 && dtype != DType::I64) ||
        (scalars && dtype != out.dtype))
      give_up(argument.value->span, "a bound of this type");
    scalars = true;
    out.dtype = dtype;
  }
  const Operand by = bound(parts[2], out.dtype, s);
  if (!by.known || by.bits == 0)
    give_up(where, "a range whose step is not known");
  out.by = static_cast<int64_t>(by.bits);
  out.start = bound(parts[0], out.dtype, s);
  out.stop = bound(parts[1], out.dtype, s);
  return out;
}

/// `turns` emits a loop up to its last step, which goes back, or to the rest:
/// the walk does that, as it makes machine code of loops that run for long.
/// `s` is null if the walk never has to.
template <class Turns>
void FunctionCompiler::Body::loop(const Stmt* s, Span where, uint32_t looks,
                                  Turns&& turns) {
  const bool outer = std::exchange(recursive_, false);
  const bool outer_gives = std::exchange(gives_, false);
  const bool outer_holds = std::exchange(holds_, false);
  const size_t begin = emit(jit::bytecode::begin_loop_step, looks);
  const bool walkable = std::ranges::none_of(
      locals_, [](const Local& each) { return is_unknown(each.value.kind); });
  Site rest;
  rest.what = Site::What::rest;
  rest.where = where;
  rest.statement = s;
  rest.locals = locals_;
  turns(rest);
  Site& turn = unit_.sites[unit_.steps.size() - 1];
  turn.what = Site::What::turn;
  turn.where = where;
  unit_.sites[emit(jit::bytecode::walk_step)] = std::move(rest);
  // It began so late that it is never long: the walk cannot return from the
  // function for it, and makes no machine code of text.
  if (recursive_ || gives_ || holds_ || !walkable || s == unit_.loop) {
    jit::Step& step = unit_.steps[begin];
    step.function = jit::bytecode::constant_step;
    step.number = std::numeric_limits<int64_t>::max() / 2;
  }
  recursive_ |= outer;
  gives_ |= outer_gives;
  holds_ |= outer_holds;
}

void FunctionCompiler::Body::body_of_loop(const Expr& body, Target& end) {
  Target turn;
  loops_.push_back({&end, &turn});
  block(body, Use::nothing, reserve());
  loops_.pop_back();
  bind(turn);
}

/// The turns of the loop that is the unit.
void FunctionCompiler::Body::count_turn(const Stmt& s) {
  if (&s == unit_.loop)
    emit(jit::bytecode::int_step(jit::bytecode::IntOp::add, true), turns_,
         turns_, 0, 0, 1);
}

void FunctionCompiler::Body::for_loop(const ForStmt& s,
                                      const KnownRange* known_range) {
  if (s.pattern.kind == Pattern::Kind::tuple)
    give_up(s.pattern.span, "a pattern");
  if (!known_range && !is_range(s))
    return for_held(s.pattern, *s.iterable, &s,
                    [&](Target& end) { body_of_loop(*s.body, end); });
  const uint32_t before = top_;
  const uint32_t counter = reserve(), stop = reserve(), looks = reserve(),
                 number = reserve();
  const uint32_t bounds_from = top_;
  Bounds bounds;
  if (known_range)
    bounds = {known(HostKind::integer(), known_range->start),
              known(HostKind::integer(), known_range->stop),
              static_cast<int64_t>(known_range->step), known_range->dtype};
  else
    bounds = range_of(s);
  move(bounds.start, counter);
  move(bounds.stop, stop);
  top_ = bounds_from;
  Target end;
  using jit::bytecode::Compare;
  end.jumps.push_back(
      emit(jit::bytecode::jump_unless_compare_step(
               bounds.by > 0 ? Compare::lt : Compare::gt, false),
           0, 0, counter, stop));
  loop(&s, s.span, looks, [&](Site& rest) {
    rest.a = in(HostKind::integer(), counter);
    rest.b = in(HostKind::integer(), stop);
    rest.by = bounds.by;
    rest.result = HostKind::scalar(bounds.dtype);
    const size_t top = unit_.steps.size(), names = locals_.size();
    if (s.pattern.kind == Pattern::Kind::name) {
      if (bounds.dtype == DType::I64)
        emit(jit::bytecode::copy_step, number, counter);
      else
        emit(jit::cast_step(DType::I64, bounds.dtype), number, counter);
      locals_.push_back(
          {s.pattern.name.text, in(rest.result, number), s.pattern.span});
    }
    body_of_loop(*s.body, end);
    locals_.resize(names);
    count_turn(s);
    const size_t back =
        emit(jit::bytecode::next_turn_step, counter, 0, stop, looks, bounds.by);
    unit_.steps[back].in[0] = static_cast<uint32_t>(top - back);
  });
  bind(end);
  top_ = before;
}

/// A `for` over the characters of a text, or the items of a tuple.
void FunctionCompiler::Body::for_held(
    const Pattern& pattern, const Expr& iterable, const Stmt* s,
    const std::function<void(Target& end)>& turn) {
  if (pattern.kind == Pattern::Kind::tuple) give_up(pattern.span, "a pattern");
  const uint32_t before = top_;
  const uint32_t all = reserve(), counter = reserve(), stop = reserve(),
                 looks = reserve(), each = reserve();
  const Operand over = value(iterable, all);
  if (!over.kind.is_held()) give_up(iterable.span, "it is no `range`");
  hold();
  const uint32_t from = placed(over, all);
  if (over.kind.is(Form::text)) {
    emit(text_step(TextStep::characters), all, from, stop);
  } else {
    move(in(over.kind, from), all);
    emit(text_step(TextStep::items_length), stop, all);
  }
  emit(jit::bytecode::constant_step, counter);
  Target end;
  end.jumps.push_back(emit(jit::bytecode::jump_unless_compare_step(
                               jit::bytecode::Compare::lt, false),
                           0, 0, counter, stop));
  loop(s, iterable.span, looks, [&](Site&) {
    hold();
    const size_t top = unit_.steps.size(), names = locals_.size();
    const TextStep next = over.kind.is(Form::text)   ? TextStep::next_character
                          : over.kind.is(Form::ints) ? TextStep::int_item
                                                     : TextStep::text_item;
    emit(text_step(next), each, all, counter);
    const HostKind kind =
        over.kind.is(Form::ints) ? HostKind::integer() : HostKind::text();
    if (pattern.kind == Pattern::Kind::name)
      locals_.push_back({pattern.name.text, in(kind, each), pattern.span});
    turn(end);
    locals_.resize(names);
    const size_t back =
        emit(jit::bytecode::next_turn_step, counter, 0, stop, looks, 1);
    unit_.steps[back].in[0] = static_cast<uint32_t>(top - back);
  });
  bind(end);
  top_ = before;
}

void FunctionCompiler::Body::while_loop(const WhileStmt& s) {
  if (s.most) give_up(s.span, "a loop with a maximum");
  const uint32_t before = top_;
  const uint32_t looks = reserve();
  Target end;
  loop(&s, s.span, looks, [&](Site&) {
    const size_t top = unit_.steps.size();
    // Beside a flag: no turn begins after the loop was left.
    const Expr& holds = s.left.empty()
                            ? *s.condition
                            : *static_cast<const Binary&>(*s.condition).right;
    condition(holds, end);
    body_of_loop(*s.body, end);
    count_turn(s);
    const size_t back = emit(jit::bytecode::repeat_step, 0, 0, 0, looks);
    unit_.steps[back].in[0] = static_cast<uint32_t>(top - back);
  });
  bind(end);
  top_ = before;
}

/// A jump: its flags are for who walks it.
void FunctionCompiler::Body::jump(const JumpStmt& s) {
  switch (s.jump) {
    case JumpStmt::Jump::leave_loop: return jump(*loops_.back().end);
    case JumpStmt::Jump::next_turn: return jump(*loops_.back().turn);
    case JumpStmt::Jump::give: break;
  }
  if (!unit_.compiled.syntax) give_up(s.span, "a `return` leaves the loop");
  if (!s.value) give_up(s.span, "a `return` without a value");
  gives_ = true;
  const uint32_t before = top_;
  give(value(*s.value, reserve()), s.value->span);
  top_ = before;
}

// ---- what is left of a loop -------------------------------------------------

std::optional<int64_t> Walker::run_loop_code(
    const LoopStart& start, const std::function<void(int64_t)>& tell,
    bool& at_fault, std::string& why) {
  if (!may_run_code() || s_.call_depth > walk_.machine().limits.depth) {
    why = "functions are walked here";
    return std::nullopt;
  }
  NotCode not_code;
  const auto code = compile_loop(*this, start, not_code);
  if (!code) {
    why = fmt::format("{} ({})", not_code.why, to_string(not_code.where));
    return std::nullopt;
  }
  if (!s_.function_codes) s_.function_codes = std::make_shared<FunctionCodes>();
  const auto depth =
      static_cast<size_t>(walk_.machine().limits.depth - s_.call_depth) + 1;
  std::unique_ptr<FunctionCodes::Memory> memory =
      s_.function_codes->take(*code, depth);
  uint64_t* registers = memory->registers.data();
  const Span where = start.loop->span;
  Recording recording(walk_.machine().recorder, Recorder::Kind::loop,
                      Recorder::host);
  LineTimes* times = s_.line_times;
  const LineTime time(times, LineTimes::Part::code,
                      times ? walk_.source_id(where) : 0);
  CodeRun run(*this, *code, where);
  run.calls = std::span(memory->calls).first(depth);
  run.tell = tell;
  run.held = std::move(memory->held);
  if (code->holds) run.held.resize(code->functions[0].registers);
  run.first = registers;
  for (size_t i = 0; i < code->variables.size(); ++i)
    run.store(start.variables[i].value, code->variables[i].value.kind,
              registers, code->variables[i].value.place, where);
  if (!run.run(registers)) {
    at_fault = true;
    why = "an element is at fault";
    return std::nullopt;
  }
  for (size_t i = 0; i < code->variables.size(); ++i) {
    const FunctionCode::Local& local = code->variables[i];
    assign(
        start.variables[i].environment, local.name,
        run.result(local.value.kind, registers, local.value.place, local.where),
        where);
  }
  const auto turns = static_cast<int64_t>(registers[code->turns]);
  if (recording) {
    recording.event().source = walk_.source_id(where);
    recording.event().turns = turns;
  }
  run.held.clear();
  memory->held = std::move(run.held);
  s_.function_codes->memory.push_back(std::move(memory));
  s_.function_codes->loops.insert(start.loop);
  return turns;
}

}  // namespace unisono::lang
