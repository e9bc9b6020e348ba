// Calls of functions that run as threaded code (function_code.h).
#include "lang/walk/function_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <exception>
#include <utility>

#include "lang/context/line_times.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/elements.h"
#include "lang/ops/operators.h"
#include "lang/ops/print_value.h"
#include "runtime/check.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

using Form = HostKind::Form;
using Literal = HostKind::Literal;
using Site = FunctionCode::Site;
using jit::bytecode::ElementView;

constexpr size_t most_parameters = 16;

Value value_of(Walk& walk, const HostKind& kind, uint64_t bits, Span where) {
  switch (kind.form) {
    case Form::integer: return IntValue{static_cast<int64_t>(bits)};
    case Form::either:
    case Form::boolean: return BoolValue{static_cast<uint8_t>(bits) != 0};
    case Form::number:
    case Form::scalar: break;
    case Form::whole:
    case Form::array:
    case Form::text:
    case Form::texts:
    case Form::ints:
    case Form::own: CHECK(false);  // CodeRun knows them
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(kind.dtype)));
  std::memcpy(bytes.data(), &bits, bytes.size());  // little endian
  if (kind.is(Form::scalar))
    return walk.on_first_device(kind.dtype, bytes.data(), where);
  const ArrayValue number =
      walk.constant_array({kind.dtype, {}}, std::move(bytes), where);
  number->weak = true;
  number->literal = kind.literal == Literal::yes;
  return number;
}

}  // namespace

std::optional<HostKind> host_kind(const Value& value) {
  if (const auto* i = value.get_if<IntValue>())
    return i->value.is_constant() && !i->value.overflowed()
               ? std::optional(HostKind::integer())
               : std::nullopt;
  if (const auto* b = value.get_if<BoolValue>())
    return b->value ? std::optional(HostKind::boolean()) : std::nullopt;
  const ArrayCell* cell = value.array();
  if (!cell || cell->type.rank() != 0 || cell->donated || cell->int_argument ||
      !cell->call_numbers.empty())
    return std::nullopt;
  if (!cell->weak) {
    if (!cell->constant && !readable_elements(*cell)) return std::nullopt;
    return HostKind::scalar(cell->type.dtype);
  }
  if (cell->type.dtype == DType::U64) return std::nullopt;
  // What a loop as code has left a variable with.
  if (!cell->constant && (cell->literal || !readable_elements(*cell)))
    return std::nullopt;
  return HostKind::number(cell->type.dtype,
                          cell->literal ? Literal::yes : Literal::no);
}

std::optional<uint64_t> host_bits(const Value& value, const HostKind& kind) {
  const auto own = host_kind(value);
  const bool same =
      own && (*own == kind || (own->is(kind.form) && own->dtype == kind.dtype &&
                               kind.literal == Literal::unknown));
  if (!same) return std::nullopt;
  if (const auto* i = value.get_if<IntValue>())
    return static_cast<uint64_t>(i->value.value());
  if (const auto* b = value.get_if<BoolValue>()) return *b->value;
  const ArrayCell& cell = *value.array();
  const uint8_t* element =
      cell.constant ? cell.constant->data() : readable_elements(cell);
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(cell.type.bytes()));
  return bits;
}

std::optional<HostKind> array_kind(const Value& value) {
  if (auto kind = host_kind(value)) return kind;
  if (auto kind = held_kind(value)) return kind;
  const ArrayCell* cell = value.array();
  if (!cell || cell->type.rank() == 0 || cell->weak || cell->donated)
    return std::nullopt;
  return HostKind::array(cell->type.dtype, cell->type.rank());
}

bool FunctionArray::look_at(Walk& walk, const Value& value,
                            const HostKind& kind, Span where) {
  if (array_kind(value) != kind) return false;
  const auto* array = value.get_if<ArrayValue>();
  if (!array) return false;
  data = readable_elements(**array);
  if (!data) {
    walk.force(*array, where);
    data = readable_elements(**array);
  }
  shape = (*array)->type.sizes();
  sizes = shape.data();
  return data || (*array)->type.elements() == 0;
}

bool FunctionCode::is_valid(Walk& walk, Span where) const {
  return std::ranges::all_of(outer, [&](const Outer& each) {
    const Env env = each.environment.lock();
    const Binding* binding = env ? env->find(each.name).first : nullptr;
    if (!binding || binding->poisoned) return false;
    if (each.number)
      return host_bits(binding->value, each.number->first) ==
             each.number->second;
    if (each.held) {
      if (held_kind(binding->value) != each.kind) return false;
      const Held now = held_of(binding->value);
      return now.items == each.held->items && now.text == each.held->text;
    }
    if (each.array)
      return each.array->look_at(walk, binding->value, each.kind, where);
    if (each.type) {
      const auto* type = binding->value.get_if<TypeValue>();
      return type && type->type.shape.empty() && type->type.dtype == *each.type;
    }
    const auto* function =
        binding->value.get_if<std::shared_ptr<const FunctionValue>>();
    return function && *function == each.function.lock();
  });
}

bool Walker::CodeRun::set_argument(const Value& value, const HostKind& kind,
                                   uint64_t* registers, size_t place) {
  if (kind.is_held()) {
    held[place] = held_of(value);
    return true;
  }
  if (!kind.is(Form::array)) {
    const auto bits = host_bits(value, kind);
    if (bits) registers[place] = *bits;
    return bits.has_value();
  }
  auto& [array, kept] = arrays_.emplace_back(FunctionArray(), value);
  if (!array.look_at(walker_.walk_, value, kind, where_)) return false;
  registers[place] = std::bit_cast<uint64_t>(static_cast<ElementView*>(&array));
  return true;
}

/// The bits of a value of this kind, which is computed first if it is not yet.
uint64_t Walker::CodeRun::bits_of(const Value& value, const HostKind& kind,
                                  Span where) const {
  if (const auto bits = host_bits(value, kind)) return *bits;
  const ArrayValue array = *value.get_if<ArrayValue>();
  CHECK(array->type == ir::Type(kind.dtype, {}));
  const auto bytes = walker_.walk_.host_bytes(array, where);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

void Walker::CodeRun::store(const Value& value, const HostKind& kind,
                            uint64_t* window, uint32_t place, Span where) {
  if (kind.is(Form::own)) {
    FunctionArray array;
    const HostKind as_array = HostKind::array(kind.dtype, kind.rank);
    CHECK(array.look_at(walker_.walk_, value, as_array, where));
    ArrayValue cell = copied(kind.dtype, array.shape, array.data, where);
    auto* elements = const_cast<uint8_t*>(readable_elements(*cell));
    auto own = own_array(std::move(cell), elements, array.shape);
    window[place] =
        std::bit_cast<uint64_t>(static_cast<const ElementView*>(own.get()));
    at(window, place).array = std::move(own);
  } else if (kind.is_held()) {
    at(window, place) = held_of(value);
  } else {
    window[place] = bits_of(value, kind, where);
  }
}

/// An array that was made here, as it is now.
Value Walker::CodeRun::shown(const HostOperand& operand, const uint64_t* window,
                             Span where) const {
  const OwnArray& own =
      *held[static_cast<size_t>(window - first) + operand.place].array;
  return copied(operand.kind.dtype, own.shape, own.elements, where);
}

ArrayValue Walker::CodeRun::copied(DType dtype,
                                   const std::vector<int64_t>& shape,
                                   const uint8_t* elements, Span where) const {
  Walk& walk = walker_.walk_;
  auto array = array_from_host(home_device(walk.machine().runtime->devices()),
                               dtype, shape, elements);
  if (!array) walk.fail(array.error(), where);
  return walk.from_array(std::move(*array));
}

Value Walker::CodeRun::value(const HostKind& kind, uint64_t bits,
                             Span where) const {
  if (!kind.is(Form::array)) return value_of(walker_.walk_, kind, bits, where);
  const auto is_it = [&](const ElementView& array) {
    return std::bit_cast<uint64_t>(&array) == bits;
  };
  for (const auto& [array, kept] : arrays_)
    if (is_it(array)) return kept;
  for (const FunctionCode::Outer& each : code_.outer)
    if (each.array && is_it(*each.array))
      return each.environment.lock()->find(each.name).first->value;
  CHECK(false);
}

std::optional<uint64_t> Walker::CodeRun::run(uint64_t* registers) {
  first = registers;
  const jit::Step* step = code_.steps.data();
  for (uint64_t* at = registers;;) {
    step->function(step, at, this);
    if (!failed) return registers[0];
    step = std::exchange(failed, nullptr);
    const size_t place = step - code_.steps.data();
    if (!thrown_) {
      // A step for which there is no site has an element at fault.
      if (place != 0 && !code_.sites.contains(place)) return std::nullopt;
      walk_step_at(step, window);
    }
    if (thrown_) std::rethrow_exception(thrown_);
    at = window;
    ++step;
  }
}

bool Walker::CodeRun::walk_site(CallRun& run, const jit::Step* step,
                                uint64_t* window) {
  return static_cast<CodeRun&>(run).walk_step_at(step, window);
}

/// Without frames: if there is an error, the walk tells it with them.
bool Walker::CodeRun::evaluate_site(TextRun& run, const jit::Step* step,
                                    uint64_t* window) {
  auto& own = static_cast<CodeRun&>(run);
  const auto found = own.code_.sites.find(step - own.code_.steps.data());
  if (found == own.code_.sites.end()) return false;
  const Site& site = found->second;
  // What goes wrong here, a stop too, goes wrong again in frames, and is told.
  const Saved<bool> stopped(own.walker_.s_.stopped);
  try {
    own.store(own.walk_value(site, window, step), site.result, window,
              step->out, site.where);
    return true;
  } catch (...) {
    return false;
  }
}

/// The names that a function's body has at its beginning.
Env Walker::CodeRun::names_of(const FunctionCode::Compiled& function,
                              const uint64_t* window) const {
  const auto& closure = std::get<Closure>(function.function.lock()->what);
  const Env env = inner(closure.environment);
  env->call = ++walker_.s_.last_call;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Pattern& pattern = function.syntax->params[i].pattern;
    if (pattern.kind != Pattern::Kind::name) continue;
    walker_.define(
        env, pattern.name.text,
        value({function.params[i], false, 0, static_cast<uint32_t>(i)}, window,
              pattern.span),
        false, pattern.span);
  }
  return env;
}

/// The calls under way, as the walk would have them.
void Walker::CodeRun::push_frames() {
  const uint64_t* window = first;
  for (size_t i = 0; i < depth; ++i) {
    const jit::Step* call = calls[i];
    const size_t place = call - code_.steps.data();
    const Site* site = place == 0 ? nullptr : &code_.sites.at(place);
    const FunctionCode::Compiled& function =
        code_.functions[site ? site->callee : 0];
    window += call->out;
    if (!site && code_.environment) continue;  // a loop is no call
    walker_.s_.frames.push_back({function.function.lock().get(),
                                 function.syntax,
                                 names_of(function, window),
                                 site ? site->where : where_,
                                 false,
                                 {}});
  }
}

Value Walker::CodeRun::walk_value(const Site& site, uint64_t* window,
                                  const jit::Step* step) {
  Walk& walk = walker_.walk_;
  const auto operand = [&](const HostOperand& given, Span where) {
    return CallArgument{value(given, window, where), where};
  };
  switch (site.what) {
    case Site::What::binary: {
      const auto& e = static_cast<const Binary&>(*site.expr);
      return binary(walk, e.op, operand(site.a, e.left->span),
                    operand(site.b, e.right->span), e.op_span, e.span);
    }
    case Site::What::unary: {
      const auto& e = static_cast<const Unary&>(*site.expr);
      return unary(walk, e.op, operand(site.a, e.operand->span), e.span);
    }
    case Site::What::abs:
      return call_builtin(walk, *find_builtin("abs"),
                          {operand(site.a, site.where)}, {}, site.where);
    case Site::What::convert:
      return convert(walk, operand(site.a, site.arguments[0]),
                     {site.result.dtype, {}}, site.where);
    case Site::What::builtin: {
      std::vector<CallArgument> arguments;
      for (size_t i = 0; i < site.operands.size(); ++i)
        arguments.push_back(operand(site.operands[i], site.arguments[i]));
      return lang::call_builtin(walk, *site.function, std::move(arguments), {},
                                site.where);
    }
    case Site::What::part: {
      const auto& e = static_cast<const Index&>(*site.expr);
      const Expr& written = *e.items[0];
      IndexItem item;
      item.where = written.span;
      if (const auto* bounds = as<Slice>(written)) {
        item.kind = IndexItem::Kind::slice;
        size_t next = 0;
        const auto set = [&](std::optional<CallArgument>& bound,
                             const ExprPtr& given) {
          if (given) bound = operand(site.operands[next++], given->span);
        };
        set(item.start, bounds->start);
        set(item.stop, bounds->stop);
        set(item.step, bounds->step);
      } else {
        item.value = operand(site.b, written.span).value;
      }
      return index(walk, operand(site.a, e.object->span).value,
                   {std::move(item)}, e.span);
    }
    case Site::What::piece: {
      TextBuilder out(walk);
      out.value(operand(site.a, site.where).value, site.text->spec, site.where);
      return out.finish();
    }
    case Site::What::call: {
      const FunctionCode::Compiled& callee = code_.functions[site.callee];
      if (stopped) throw walker_.stopped(site.where);
      std::vector<CallArgument> arguments;
      for (size_t i = 0; i < callee.params.size(); ++i)
        arguments.push_back({value({callee.params[i], false, 0,
                                    step->out + static_cast<uint32_t>(i)},
                                   window, site.arguments[i]),
                             site.arguments[i]});
      return walker_.call(callee.function.lock(), std::move(arguments), {},
                          site.where);
    }
    case Site::What::turn: throw walker_.stopped(site.where);
    case Site::What::rest: walk_rest(site, window); return {};
    case Site::What::statement: {
      // What the statement calls reads variables where they were defined.
      for (const FunctionCode::Local& each : code_.variables)
        if (each.value.changes)
          code_.environment->find(each.name).first->value =
              value(each.value, first, each.where);
      const Env names = inner(scope());
      for (const FunctionCode::Local& local : site.locals)
        walker_.define(names, local.name,
                       value(local.value, window, local.where), false,
                       local.where);
      walker_.statement(*site.statement, names, false);
      return {};
    }
  }
  __builtin_unreachable();
}

/// The turns that a loop has left; its variables are then in their registers.
void Walker::CodeRun::walk_rest(const Site& site, uint64_t* window) {
  const Env names = inner(scope());
  for (const FunctionCode::Local& local : site.locals)
    walker_.define(names, local.name, value(local.value, window, local.where),
                   local.value.changes, local.where, local.type);
  if (site.statement->kind == StmtKind::ForStmt) {
    const KnownRange range{site.result.dtype, window[site.a.place],
                           window[site.b.place],
                           static_cast<uint64_t>(site.by)};
    const auto& loop = static_cast<const ForStmt&>(*site.statement);
    walker_.counted_for(loop, range, nullptr,
                        walker_.loop_scope(loop.left, names, loop.span));
  } else {
    walker_.statement(*site.statement, names, false);
  }
  for (const FunctionCode::Local& local : site.locals) {
    const Binding& binding = names->names.at(local.name);
    // A name is its last one's.
    if (!local.value.changes || binding.where != local.where) continue;
    store(binding.value, local.value.kind, window, local.value.place,
          local.where);
  }
}

bool Walker::CodeRun::walk_step_at(const jit::Step* step, uint64_t* window_at) {
  Walk::State& s = walker_.s_;
  const size_t frames = s.frames.size();
  const Saved<int> call_depth(s.call_depth,
                              s.call_depth + static_cast<int>(depth) - 1);
  try {
    if (step == code_.steps.data()) throw walker_.stopped(where_);
    push_frames();
    const Site& site = code_.sites.at(step - code_.steps.data());
    const Value result = walk_value(site, window_at, step);
    s.frames.resize(frames);
    if (site.what == Site::What::statement || site.what == Site::What::rest ||
        site.only_fails)
      return true;
    store(result, site.result, window_at, step->out, site.where);
    return true;
  } catch (...) {
    // The innermost frame reports it.
    try {
      if (s.frames.size() > frames) walker_.leave_frame();
      throw;
    } catch (...) {
      thrown_ = std::current_exception();
    }
    s.frames.resize(frames);
    return false;
  }
}

// ---- calls -----------------------------------------------------------------

bool Walker::may_run_code() const {
  const Machine& machine = walk_.machine();
  return walk_.mode() == Mode::run && !s_.attempt && !s_.walks_again &&
         !machine.reference_only && !machine.compile_only &&
         machine.limits.steps == 0;
}

namespace {

/// Whether a parameter of this type takes the value as it is.
bool takes(Walker& walker, const Expr& type, const Value& value) {
  if (!value.is<BoolValue>()) return walker.is_plainly(type, value);
  const auto& plain = walker.state().plain_types;
  const auto found = plain.find(&type);
  return found != plain.end() &&
         found->second.kind == PlainType::Kind::scalar &&
         is_bool(found->second.dtype);
}

/// The kinds of a call's arguments, if the function takes them as they are.
bool kinds_of(Walker& walker, const Function& syntax,
              const std::vector<CallArgument>& arguments,
              std::vector<HostKind>& kinds) {
  if (arguments.size() != syntax.params.size() ||
      arguments.size() > most_parameters)
    return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& value = arguments[i].value;
    const Expr* type = syntax.params[i].type.get();
    const auto kind =
        type && !value.is<StrValue>() ? host_kind(value) : array_kind(value);
    if (!kind || (type && !takes(walker, *type, value))) return false;
    kinds.push_back(*kind);
  }
  return true;
}

}  // namespace

namespace {

std::string walked_because(const NotCode& not_code) {
  if (not_code.why.empty())
    return "the function is walked at each call: it is called for too many "
           "kinds of arguments, or defined again and again";
  return fmt::format("the function is walked at each call: {} ({})",
                     not_code.why, to_string(not_code.where));
}

}  // namespace

std::unique_ptr<FunctionCodes::Memory> FunctionCodes::take(
    const FunctionCode& code, size_t depth) {
  std::unique_ptr<Memory> out;
  if (memory.empty()) {
    out = std::make_unique<Memory>();
  } else {
    out = std::move(memory.back());
    memory.pop_back();
  }
  // One window more for what a call prepares.
  const size_t registers = (depth + 1) * code.most_registers;
  if (out->registers.size() < registers) out->registers.resize(registers);
  if (out->calls.size() < depth) out->calls.resize(depth);
  return out;
}

std::optional<Value> Walker::call_code(
    const std::shared_ptr<const FunctionValue>& function,
    const std::vector<CallArgument>& arguments, Span where, bool& again) {
  const auto& closure = std::get<Closure>(function->what);
  const Function& syntax = *syntax_of(closure).function;
  if (!s_.function_codes) s_.function_codes = std::make_shared<FunctionCodes>();
  FunctionCodes& codes = *s_.function_codes;
  FunctionCodes::Entry& entry = codes.entries[&syntax];
  if (entry.failures >= tuning().most_code_failures ||
      ++entry.calls <= tuning().calls_before_code ||
      s_.call_depth > walk_.machine().limits.depth)
    return std::nullopt;
  std::vector<HostKind> kinds;
  if (!kinds_of(*this, syntax, arguments, kinds)) return std::nullopt;

  const auto fits = [&](const std::shared_ptr<const FunctionCode>& code) {
    const FunctionCode::Compiled& root = code->functions[0];
    return root.params == kinds && root.function.lock() == function;
  };
  auto found = std::ranges::find_if(entry.variants, fits);
  if (found != entry.variants.end() && !(*found)->is_valid(walk_, where)) {
    ++entry.failures;
    entry.variants.erase(found);
    found = entry.variants.end();
  }
  if (found == entry.variants.end()) {
    NotCode why;
    auto code = compile_function(*this, function, kinds, why);
    // One that is defined again and again may cost more than it gives.
    ++entry.compilations;
    const bool rare =
        entry.compilations > tuning().compilations_free &&
        entry.calls < tuning().calls_a_compilation * entry.compilations;
    if (!code || rare) {
      entry.failures = tuning().most_code_failures;
      if (s_.line_times)
        s_.line_times->note(walk_.source_id(syntax_of(closure).name),
                            walked_because(why));
      return std::nullopt;
    }
    if (entry.variants.size() == tuning().most_code_variants)
      entry.variants.erase(entry.variants.begin());
    entry.variants.push_back(std::move(code));
    found = entry.variants.end() - 1;
  }
  const std::shared_ptr<const FunctionCode> code = *found;

  const auto depth =
      static_cast<size_t>(walk_.machine().limits.depth - s_.call_depth) + 1;
  std::unique_ptr<FunctionCodes::Memory> memory = codes.take(*code, depth);
  CodeRun run(*this, *code, where);
  uint64_t* registers = memory->registers.data();
  run.held = std::move(memory->held);
  if (code->holds) run.held.resize(code->functions[0].registers);
  for (size_t i = 0; i < kinds.size(); ++i)
    if (!run.set_argument(arguments[i].value, kinds[i], registers, i))
      return std::nullopt;
  run.calls = std::span(memory->calls).first(depth);
  std::optional<uint64_t> bits;
  const FunctionCode::Compiled& root = code->functions[0];
  {
    LineTimes* times = s_.line_times;
    const LineTime time(times, LineTimes::Part::code,
                        times ? walk_.source_id(syntax_of(closure).name) : 0);
    bits = run.run(registers);
  }
  std::optional<Value> result;
  if (bits) {
    result = run.result(*root.result, registers, 0, where);
  } else {
    ++entry.failures;
    again = true;
  }
  run.held.clear();
  memory->held = std::move(run.held);
  codes.memory.push_back(std::move(memory));
  return result;
}

}  // namespace unisono::lang
