// Entry points, and statements.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <map>
#include <new>
#include <numeric>
#include <span>
#include <thread>
#include <tuple>
#include <utility>

#include "lang/context/line_times.h"
#include "lang/context/processes.h"
#include "lang/maps/map_spec.h"
#include "lang/maps/maps.h"
#include "lang/ops/print_value.h"
#include "lang/resolve/resolution.h"
#include "lang/sizes/known_sizes.h"
#include "lang/source/stdlib.h"
#include "lang/syntax/lexer.h"
#include "lang/walk/types.h"
#include "lang/walk/walker.h"
#include "runtime/recycling.h"
#include "runtime/stack_thread.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

/// A walk recurses as deep as the program does: calls nest up to a limit, and
/// so do expressions. `enter` gives an error before this is used up.
constexpr size_t stack_bytes = size_t{256} << 20;
constexpr size_t stack_reserve = size_t{24} << 20;
/// A check or trace walks each expression once for each turn of an unrolled
/// loop and for each call with new types: this is some seconds of it.
constexpr uint64_t max_steps = 3'000'000;
/// Expressions that are walked to see whether a loop can go on as code: a body
/// that calls itself has no end.
constexpr uint64_t attempt_steps = 20'000;

Diagnostic no_host_memory(Span where) {
  return diagnostic(Code::out_of_memory, where,
                    "there is not enough memory on the host for this");
}

/// Where a program begins.
Span beginning(const Program& program) {
  return program.statements.empty() ? Span() : program.statements[0]->span;
}

/// Where the stack is. The address of a variable may be elsewhere: with
/// AddressSanitizer variables lie on the heap.
const char* stack_now() {
  return static_cast<const char*>(__builtin_frame_address(0));
}

/// Runs `body`, which does not throw, on a stack of its own, with the address
/// it must not go below.
void on_large_stack(const std::function<void(const char* limit)>& body) {
  {
    const StackThread thread(stack_bytes, [&] {
      body(stack_now() - (stack_bytes - stack_reserve));
    });
    if (thread.started()) return;
  }
  // No memory for it: on half of the stack there is.
  void* end = nullptr;
  size_t bytes = 0;
  pthread_attr_t attributes;
  CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
  pthread_attr_getstack(&attributes, &end, &bytes);
  pthread_attr_destroy(&attributes);
  body(static_cast<const char*>(end) + bytes / 2);
}

/// The type of a tree with very many leaves is no help.
std::string short_type_name(const Value& value) {
  constexpr size_t most = 200;
  std::string out = type_name(value);
  if (out.size() > most) out = out.substr(0, most) + "...";
  return out;
}

std::string parameters_text(const CallFrame& frame) {
  std::string out;
  for (const Param& param : frame.syntax->params) {
    if (param.pattern.kind != Pattern::Kind::name) continue;
    const std::string& name = param.pattern.name.text;
    const auto found = frame.environment->names.find(name);
    if (found == frame.environment->names.end()) continue;
    if (!out.empty()) out += ", ";
    const Value& value = found->second.value;
    const auto* i = value.get_if<IntValue>();
    out += i && i->value.is_constant()
               ? fmt::format("{} = {}", name, i->value.to_string())
               : fmt::format("{} is {}", name, short_type_name(value));
  }
  return out;
}

std::string call_note(const CallFrame& frame) {
  const std::string parameters = parameters_text(frame);
  return fmt::format("in this call of `{}`{}{}", frame.function->name,
                     parameters.empty() ? "" : ": ", parameters);
}

void add_call_notes(Diagnostic& diagnostic, std::span<const CallFrame> frames) {
  size_t added = 0;
  for (size_t i = frames.size(); i-- > 0 && added < max_call_notes;) {
    const CallFrame& frame = frames[i];
    if (frame.is_definition) {
      for (const auto& [name, dtype] : frame.generics)
        diagnostic.add_fact(fmt::format("`{}` is checked with {} = {}",
                                        frame.function->name, name,
                                        unisono::name(dtype)));
      continue;
    }
    if (frame.where == diagnostic.where) continue;
    diagnostic.add_note(frame.where, call_note(frame));
    ++added;
  }
}

}  // namespace

std::vector<LeftRun::Call> Walker::calls_around() const {
  std::vector<LeftRun::Call> out;
  for (const CallFrame& frame : s_.frames)
    out.push_back({frame.where, call_note(frame)});
  return out;
}

Diagnostic internal_error(Span where, std::string_view what) {
  return diagnostic(Code::internal_error, where, what)
      .set_help("please report it with the program");
}

// ---- entry points ----------------------------------------------------------

Walk::Walk(Machine& machine, SourceMap& sources, Diagnostics& diagnostics)
    : machine_(machine),
      sources_(sources),
      diagnostics_(diagnostics),
      pending_(std::make_shared<GraphScope>()),
      state_(std::make_unique<State>()) {}

Walk::~Walk() {
  // Names hold functions, and functions hold names.
  for (const auto* environments :
       {&state_->function_environments, &state_->module_environments})
    for (const auto& weak : *environments)
      if (Env env = weak.lock()) env->names.clear();
  if (state_->globals) state_->globals->names.clear();
  if (state_->globals && state_->globals->parent != state_->prelude)
    state_->globals->parent->names.clear();
}

void Walk::on_stack(const std::function<void()>& body, Span where) {
  State& state = *state_;
  if (state.stack_owner == std::this_thread::get_id()) return body();
  on_large_stack([&](const char* limit) {
    const StopScope stop(machine_.stop);
    Saved<const char*> new_limit(state.stack_limit, limit);
    Saved<std::thread::id> owner(state.stack_owner, std::this_thread::get_id());
    try {
      if (!state.globals) Walker(*this).load_prelude();
      body();
    } catch (...) {
      Failure failure = Walker(*this).caught(where);
      Walker(*this).abandon_run();
      if (!failure.diagnostic.where) failure.diagnostic.where = where;
      if (!failure.reported) diagnostics_.add(std::move(failure.diagnostic));
    }
  });
}

bool Walk::check(const Program& program, std::optional<Value>* last) {
  bool ok = false;
  on_stack(
      [&] {
        Walker walker(*this);
        state_->types.clear();
        ok = walker.check_program(program, last);
      },
      beginning(program));
  return ok;
}

bool Walk::run(const Program& program, std::optional<Value>* last) {
  bool ok = false;
  on_stack(
      [&] {
        Walker walker(*this);
        ok = walker.run_program(program, last);
      },
      beginning(program));
  return ok;
}

bool Walk::run_block(const Program& program, const ToolStmt& block) {
  bool ok = false;
  on_stack(
      [&] {
        Walker walker(*this);
        ok = walker.run_block(program, block);
      },
      block.span);
  return ok;
}

bool Walk::print(const Value& value) {
  bool ok = false;
  on_stack([&] {
    Walker walker(*this);
    try {
      const std::string text = to_text(*this, value, /*placed=*/true, Span());
      settle(*this, Span());
      machine_.output(text + "\n");
      ok = true;
    } catch (...) {
      const Failure failure = walker.caught(Span());
      if (!failure.reported) walker.report(failure.diagnostic);
    }
  });
  return ok;
}

Walk::State::State() = default;
Walk::State::~State() = default;

const Env& Walk::globals() const { return state_->globals; }

Environment& Walk::results() {
  State& state = *state_;
  if (state.globals->parent == state.prelude) {
    state.globals->parent = std::make_shared<Environment>();
    state.globals->parent->parent = state.prelude;
  }
  return *state.globals->parent;
}

void Walk::forget_files() { Walker(*this).forget_modules(/*failed=*/false); }

const Value* Walk::global(const std::string& name) {
  if (!state_->globals) return nullptr;
  const auto found = state_->globals->names.find(name);
  return found == state_->globals->names.end() ? nullptr : &found->second.value;
}

void Walk::set_global(const std::string& name, Value value) {
  on_stack([&] {
    Walker(*this).define(state_->globals, name, std::move(value), false,
                         Span());
  });
}

bool Walk::run_from_host(const std::function<void()>& body) {
  bool ok = false;
  on_stack([&] { ok = Walker(*this).run_from_host(body); });
  return ok;
}

std::optional<Value> Walk::call_from_host(
    const Value& function, const std::vector<Value>& arguments,
    const std::vector<std::pair<std::string, Value>>& named) {
  std::optional<Value> result;
  const bool ok = run_from_host([&] {
    std::vector<CallArgument> positional;
    for (const Value& value : arguments) positional.push_back({value, Span()});
    Walker::Named by_name;
    for (const auto& [name, value] : named)
      by_name.emplace_back(name, CallArgument{value, Span()});
    result = Walker(*this).call_value({function, Span()}, std::move(positional),
                                      std::move(by_name), Span());
    flush(Span());
  });
  return ok ? result : std::nullopt;
}

std::string Walk::dump_types() const {
  // A name in a function has a type for each way in which that is called.
  std::map<uint32_t, std::vector<std::string>> lines;
  for (const TypeRecord& record : state_->types) {
    std::string line = fmt::format("{}: {}: {}\n", to_string(record.where),
                                   record.name, record.type);
    auto& here = lines[record.where.begin];
    if (std::find(here.begin(), here.end(), line) == here.end())
      here.push_back(std::move(line));
  }
  std::string out;
  for (const auto& [begin, here] : lines)
    for (const std::string& line : here) out += line;
  return out;
}

namespace {

/// Names that are afterwards what they were. They are not copied instead, since
/// functions of earlier programs find what a later one defines.
class NamesScope {
 public:
  explicit NamesScope(Env env) : env_(std::move(env)), before_(*env_) {}
  ~NamesScope() {
    env_->names = std::move(before_.names);
    ++env_->version;
  }
  NamesScope(const NamesScope&) = delete;
  NamesScope& operator=(const NamesScope&) = delete;
  const Environment& before() const { return before_; }

 private:
  Env env_;
  Environment before_;
};

}  // namespace

bool Walker::check_program(const Program& program, std::optional<Value>* last) {
  ContextScope context(walk_);
  context->mode = Mode::check;
  Saved main(s_.main_program, &program);
  s_.main_file = program.file;
  s_.memo.clear();
  forget_sizes(walk_);
  walk_.reported.clear();
  s_.found.clear();
  s_.failed.reset();
  s_.gave_up = s_.stopped = false;
  s_.too_many_errors = {};
  s_.steps = 0;
  s_.donated.clear();
  if (walk_.interactive) forget_modules(/*failed=*/true);
  // Modules that do not parse report at once.
  const size_t errors_before = walk_.diagnostics_.error_count();
  const Env names = s_.globals;
  const NamesScope scope(names);
  const size_t functions = s_.function_environments.size();
  try {
    Value value = statements(program.statements, names, false, last != nullptr);
    const bool has_value =
        last && !program.statements.empty() &&
        program.statements.back()->kind == StmtKind::ExprStmt;
    if (has_value) *last = std::move(value);
  } catch (...) {
    const Failure failure = caught(beginning(program));
    if (!failure.reported && !failure.open) report(failure.diagnostic);
    s_.frames.clear();
    s_.journals.clear();
  }
  resolve_names(program, names);
  if (walk_.interactive && s_.found.empty())
    check_users(program, scope.before());
  s_.definitions.clear();
  s_.waiting.clear();
  s_.memo.clear();
  s_.donated.clear();
  forget_functions(functions);
  // Those of modules first, which may be why there are others; then in the
  // order of the program, though definitions are checked late.
  std::vector<size_t> order(s_.found.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto position = [&](size_t i) {
    const Span& where = s_.found[i].where;
    return std::tuple(where.file == program.file, where.begin, i);
  };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return position(a) < position(b); });
  bool ok = true;
  for (size_t i : order) {
    ok &= s_.found[i].severity != Severity::error;
    walk_.diagnostics_.add(std::move(s_.found[i]));
  }
  s_.found.clear();
  if (s_.too_many_errors)
    walk_.diagnostics_.report(Code::too_many_errors, s_.too_many_errors);
  return ok && walk_.diagnostics_.error_count() == errors_before;
}

void Walker::abandon_run() {
  walk_.pending_ = std::make_shared<GraphScope>();
  s_.frames.clear();
  s_.journals.clear();
  s_.under_way.clear();  // which waits for them
  s_.call_depth = 0;
}

bool Walker::run_from_host(const std::function<void()>& body) {
  const Saved<Mode> mode(walk_.context_.mode, Mode::run);
  walk_.reported.clear();
  s_.stopped = false;
  s_.steps = 0;
  try {
    body();
    wait_for_runs(walk_, Span());
    return true;
  } catch (...) {
    const Failure failure = caught(Span());
    if (!failure.reported) report(failure.diagnostic);
    abandon_run();
    return false;
  }
}

LineTimes* line_times(Walk& walk) { return Walker(walk).state().line_times; }

void set_line_times(Walk& walk, LineTimes* times) {
  Walker(walk).state().line_times = times;
}

namespace {

/// For a tool that is told of ranges; without one, nothing.
std::vector<uint32_t> place_of(Walker& walker, const Stmt& stmt) {
  Walk& walk = walker.walk();
  if (!ranges_of(walk) || walk.mode() == Mode::check) return {};
  return {walk.source_id(stmt.span)};
}

/// The statement's, but what the library does is the time of who calls it.
LineTime time_of(Walker& walker, const Stmt& stmt) {
  Walk& walk = walker.walk();
  LineTimes* times =
      walk.mode() == Mode::check ? nullptr : walker.state().line_times;
  const bool own = times && !is_in_stdlib(stmt.span);
  return {times, LineTimes::Part::walk, own ? walk.source_id(stmt.span) : 0};
}

}  // namespace

bool Walker::run_program(const Program& program, std::optional<Value>* last) {
  ContextScope context(walk_);
  context->mode = Mode::run;
  Saved main(s_.main_program, &program);
  s_.main_file = program.file;
  walk_.reported.clear();
  s_.stopped = false;
  s_.steps = 0;
  s_.host_loops = 0;
  if (walk_.interactive) s_.undo = std::make_unique<Undo>(s_.globals);
  try {
    for (const StmtPtr& stmt : program.statements) {
      const bool wanted = last && &stmt == &program.statements.back();
      const LineTime time = time_of(*this, *stmt);
      const Range range(ranges_of(walk_), place_of(*this, *stmt));
      try {
        std::optional<Value> value = statement(*stmt, s_.globals, wanted);
        if (wanted) *last = value;
        value.reset();
        walk_.flush(stmt->span);
      } catch (...) {
        throw caught(stmt->span);
      }
    }
    wait_for_runs(walk_, Span());
    s_.undo = nullptr;
    return true;
  } catch (...) {
    const Failure failure = caught(beginning(program));
    if (!failure.reported) report(failure.diagnostic);
    abandon_run();
    if (const auto undo = std::move(s_.undo)) undo->take_back();
    return false;
  }
}

bool Walker::run_block(const Program& program, const ToolStmt& tool) {
  ContextScope context(walk_);
  context->mode = Mode::run;
  Saved main(s_.main_program, &program);
  s_.main_file = program.file;
  walk_.reported.clear();
  s_.stopped = false;
  s_.steps = 0;
  try {
    const JournalScope undone(*this);
    block(*tool.body, s_.globals, true, false);
    walk_.flush(tool.span);
    wait_for_runs(walk_, tool.span);
    return true;
  } catch (...) {
    const Failure failure = caught(tool.span);
    if (!failure.reported) report(failure.diagnostic);
    abandon_run();
    return false;
  }
}

Failure Walker::caught(Span where) {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure;  // which may be thrown on
  } catch (const std::bad_alloc&) {
    return {no_host_memory(where)};
  } catch (const Stopped&) {
    return stopped(where);
  } catch (const std::exception& exception) {
    return {internal_error(where, exception.what())};
  } catch (...) {
    return {internal_error(where, "an exception of a type unknown here")};
  }
}

void Walker::report(Diagnostic diagnostic) {
  if (s_.attempt || report_earlier(diagnostic)) return;
  std::span<const CallFrame> frames = s_.frames;
  if (checking() && diagnostic.code != Code::cancelled) {
    // An assertion that has failed is why, in its own call.
    const auto failed = std::ranges::find_if(
        frames,
        [](const CallFrame& frame) { return frame.failed.has_value(); });
    if (s_.failed) {
      diagnostic = *s_.failed;
      frames = {};
    } else if (failed != frames.end()) {
      diagnostic = *failed->failed;
      frames = {frames.begin(), failed + 1};
    }
  }
  if (is_in_stdlib(diagnostic.where)) {
    // The user's call is what is wrong; the library shows how.
    for (size_t i = frames.size(); i-- > 0;) {
      if (is_in_stdlib(frames[i].where)) continue;
      diagnostic.add_note(diagnostic.where, "found here");
      diagnostic.where = frames[i].where;
      break;
    }
  }
  const Span at = diagnostic.where;
  if (!walk_.reported.emplace(diagnostic.code, at.file, at.begin, at.end)
           .second)
    return;
  // A type error inside a map is about what one member sees.
  if (!walk_.context().mapped_axes.empty() &&
      info(diagnostic.code).number.starts_with("U03"))
    explain_members(walk_.context().mapped_axes.back(), diagnostic);
  if (checking() && s_.found.size() >= max_errors &&
      diagnostic.code != Code::cancelled) {
    if (!s_.gave_up) s_.too_many_errors = at;
    s_.gave_up = true;
    return;
  }
  add_call_notes(diagnostic, frames);
  for (size_t i = frames.size(); i-- > 0 && !s_.definitions.empty();) {
    const CallFrame& frame = frames[i];
    const auto* closure = std::get_if<Closure>(&frame.function->what);
    if (frame.is_definition || !closure) continue;
    const auto definition =
        s_.definitions.find({frame.syntax, closure->environment.get()});
    if (definition == s_.definitions.end() || !definition->second.open)
      continue;
    const Diagnostic& question = *definition->second.open;
    const std::string_view text = question.where.text();
    diagnostic.add_fact(fmt::format(
        "`{}` is checked at its calls, since `{}` on line {} must be known",
        frame.function->name, text.substr(0, text.find('\n')),
        question.where.file->place(question.where.begin).line));
    break;
  }
  if (checking())
    s_.found.push_back(std::move(diagnostic));
  else
    walk_.diagnostics_.add(std::move(diagnostic));
}

void Walker::enter(Span where) {
  poll(where);
  const bool compile_only = walk_.machine_.compile_only;
  const bool counts = walk_.mode() != Mode::run || compile_only;
  s_.steps = counts ? s_.steps + 1 : 0;
  if (s_.attempt && s_.steps > attempt_steps)
    throw Failure{
        diagnostic(Code::too_many_steps, where, "compiling", attempt_steps),
        true};
  if (s_.steps > max_steps) {
    s_.gave_up = true;
    walk_.fail(diagnostic(Code::too_many_steps, where,
                          checking() ? "checking" : "compiling", max_steps)
                   .set_help("loop over a `range`, which is not unrolled"));
  }
  Limits& limits = walk_.machine_.limits;
  if (walk_.mode() == Mode::run && limits.steps > 0 &&
      ++limits.steps_taken > limits.steps)
    walk_.fail(diagnostic(Code::limit_reached, where,
                          fmt::format("{} steps", limits.steps)));
  if (s_.call_depth > limits.depth ||
      (s_.stack_limit && stack_now() < s_.stack_limit)) {
    s_.gave_up = true;  // else each call on the way tries its next statement
    walk_.fail(
        diagnostic(Code::recursion_too_deep, where, limits.depth)
            .set_help(walk_.in_compiled_code()
                          ? "in `jit`, maps and comprehensions an `if` on an "
                            "array's element walks both branches, so the "
                            "recursion does not end: write `while`, or call it "
                            "in a loop of the host, `for i in range(n) { x[i] "
                            "= f(i) }`"
                          : "a recursion needs a case that ends it, known when "
                            "the program is compiled or on the host"));
  }
}

void Walker::poll(Span where) {
  if (stop_requested()) throw stopped(where);
  // While it is tried to make code of a loop, the walk is what goes on.
  if (walk_.machine_.disturb && !s_.attempt) (*walk_.machine_.disturb)();
}

Failure Walker::stopped(Span where) {
  s_.gave_up = true;  // else the check goes on with the next statement
  const bool said = std::exchange(s_.stopped, true);
  return Failure{diagnostic(Code::cancelled, where), said};
}

// ---- statements ------------------------------------------------------------

namespace {

/// Whether something in it is still to be computed (run mode).
bool is_pending(const Value& value) {
  bool pending = false;
  for_each_leaf(value, [&](const Value& leaf) {
    const ArrayCell* array = leaf.array();
    pending |= array && !array->array && !array->constant;
  });
  return pending;
}

}  // namespace

Value Walker::statements(const std::vector<StmtPtr>& list, const Env& env,
                         bool flush_each, bool wanted) {
  const size_t waiting = s_.waiting.size();
  std::optional<Value> last;
  std::optional<Diagnostic> question;
  bool failed = false;
  for (const StmtPtr& stmt : list) {
    if (checking() && s_.gave_up) {
      failed = true;
      break;
    }
    const LineTime time = time_of(*this, *stmt);
    const Range range(checking() ? nullptr : ranges_of(walk_),
                      place_of(*this, *stmt));
    try {
      const bool use = wanted && &stmt == &list.back();
      last = statement(*stmt, env, use);
      // A value that nobody uses is computed, too: who reads the clock around
      // a call means the call.
      if (flush_each ||
          (!use && last && walk_.mode() == Mode::run && is_pending(*last)))
        walk_.flush(stmt->span);
      if (!use) last.reset();
    } catch (const Failure& failure) {
      if (!checking() || is_own_result(failure)) throw;
      const bool open = is_open(failure);
      if (!failure.reported && !open) report(failure.diagnostic);
      poison_names(*stmt, env, open);
      failed |= !open;
      if (!open) continue;
      poison_assigned(*stmt, env);
      if (!question) question = failure.diagnostic;
    }
  }
  if (checking()) failed |= !check_waiting_definitions(waiting);
  if (failed) throw Failure{diagnostic(Code::cancelled, Span()), true};
  if (question) throw Failure{*question, false, true};
  return last ? *last : Value();
}

Value Walker::block(const Expr& body, const Env& env, bool flush_each,
                    bool wanted) {
  if (const If* branches = as<If>(body)) return if_expr(*branches, env, wanted);
  const Block* block = as<Block>(body);
  if (!block) return expr(body, env);
  return statements(block->statements, inner(env), flush_each, wanted);
}

Env Walker::inner(const Env& env) {
  auto out = make_recycled<Environment>();
  out->parent = env;
  out->call = env->call;
  return out;
}

void Walker::poison_names(const Stmt& stmt, const Env& env, bool open) {
  if (const auto* let = as<LetStmt>(stmt)) poison(let->pattern, env, open);
  auto name = [&](const Name& n) {
    Pattern pattern;
    pattern.name = n;
    pattern.span = n.span;
    poison(pattern, env, open);
  };
  if (const auto* def = as<DefStmt>(stmt)) name(def->name);
  if (const auto* type = as<TypeStmt>(stmt)) name(type->name);
  if (const auto* axis = as<AxisStmt>(stmt))
    for (const Name& n : axis->names) name(n);
  if (const auto* import = as<ImportStmt>(stmt)) name(module_name(*import));
  // `x = 3` without a `let` is one error, not one for each later `x`.
  auto target = [&](auto& self, const Expr& e) -> void {
    if (const auto* all = as<Tuple>(e))
      for (const ExprPtr& each : all->items) self(self, *each);
    const auto* one = as<NameExpr>(e);
    if (one && !env->find(one->text).first) name({one->text, one->span});
  };
  if (const auto* assign = as<AssignStmt>(stmt))
    target(target, *assign->target);
}

void Walker::poison_assigned(const Stmt& stmt, const Env& env) {
  for (const Carry& carry : carries_of(stmt, env)) {
    Binding& binding = carry.environment->names.at(carry.name);
    binding.poisoned = binding.open = true;
    ++carry.environment->version;
  }
}

std::optional<Value> Walker::statement(const Stmt& stmt, const Env& env,
                                       bool wanted) {
  try {
    return walk_statement(stmt, env, wanted);
  } catch (...) {
    throw caught(stmt.span);
  }
}

std::optional<Value> Walker::walk_statement(const Stmt& stmt, const Env& env,
                                            bool wanted) {
  switch (stmt.kind) {
    case StmtKind::LetStmt:
      let_stmt(static_cast<const LetStmt&>(stmt), env);
      return std::nullopt;
    case StmtKind::AssignStmt:
      assign_stmt(static_cast<const AssignStmt&>(stmt), env);
      return std::nullopt;
    case StmtKind::ExprStmt: {
      const Expr& e = *static_cast<const ExprStmt&>(stmt).expr;
      if (e.kind == ExprKind::If || e.kind == ExprKind::Block)
        return block(e, env, false, wanted);
      return expr(e, env);
    }
    case StmtKind::DefStmt:
      def_stmt(static_cast<const DefStmt&>(stmt), env);
      return std::nullopt;
    case StmtKind::TypeStmt: {
      const auto& type = static_cast<const TypeStmt&>(stmt);
      if (checking())
        TypeMatcher(*this, env, TypeMatcher::Names::known).check_sizes(type);
      define(env, type.name.text, TypeAliasValue{&type, env}, false,
             type.name.span);
      return std::nullopt;
    }
    case StmtKind::AxisStmt:
      axis_stmt(static_cast<const AxisStmt&>(stmt), env);
      return std::nullopt;
    case StmtKind::ImportStmt:
      import(static_cast<const ImportStmt&>(stmt), env);
      return std::nullopt;
    case StmtKind::ForStmt:
      for_stmt(static_cast<const ForStmt&>(stmt), env);
      return std::nullopt;
    case StmtKind::WhileStmt:
      while_stmt(static_cast<const WhileStmt&>(stmt), env);
      return std::nullopt;
    case StmtKind::JumpStmt:
      jump_stmt(static_cast<const JumpStmt&>(stmt), env);
      return std::nullopt;
    case StmtKind::ToolStmt:
      if (checking())
        block(*static_cast<const ToolStmt&>(stmt).body, env, false, false);
      return std::nullopt;
  }
  __builtin_unreachable();
}

Value Walker::match_declared(const Expr& type, const Value& value,
                             const Env& env, Span where,
                             const std::string& what) {
  TypeMatcher matcher(*this, env, TypeMatcher::Names::known);
  Value matched = matcher.match(type, value, where, what);
  matcher.finish();
  return matched;
}

void Walker::let_stmt(const LetStmt& let, const Env& env) {
  if (!let.value) return declare_hidden(let.pattern.name.text, env, let.span);
  Value value;
  if (const Array* array = as<Array>(*let.value); array && let.type)
    value = array_literal(*array, env, wanted_dtype(*let.type, env));
  else
    value = expr(*let.value, env);
  if (let.type)
    value = match_declared(*let.type, value, env, let.value->span,
                           fmt::format("`{}`", let.pattern.span.text()));
  bind_pattern(
      let.pattern, value, env, let.is_var, let.value->span,
      let.pattern.kind == Pattern::Kind::name ? let.type.get() : nullptr);
}

}  // namespace unisono::lang
