// Loops on the host that take many turns go on as code: what is left of one is
// traced, as in a compiled function, from the values that its variables have
// now, and runs as threaded code (jit/bytecode), or, when that has taken a
// while, as machine code. All give the same bits, so nobody can tell, but by
// the clock. What cannot be traced stays with the walk, and so does a turn with
// an error in it, which the walk tells best.
#include "lang/walk/host_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "jit/reference/nodes.h"
#include "lang/context/line_times.h"
#include "lang/context/processes.h"
#include "lang/context/traced_text.h"
#include "lang/derivatives/derivatives.h"
#include "lang/maps/executable.h"
#include "lang/ops/elements.h"
#include "lang/ops/print_value.h"
#include "lang/ops/text.h"
#include "lang/source/utf8.h"
#include "lang/syntax/jumps.h"
#include "lang/walk/function_code.h"
#include "runtime/cluster/cluster_device.h"
#include "runtime/files/file_device.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {
namespace {

/// A function that is called in itself so often has no end that is known.
constexpr int64_t most_nested_calls = 4;

int64_t nodes_of(const ir::Graph& graph) {
  auto count = static_cast<int64_t>(graph.nodes.size());
  for (const ir::Node& node : graph.nodes) {
    if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
      count += nodes_of(*a->body);
    if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
      count += nodes_of(*a->then_graph) + nodes_of(*a->else_graph);
  }
  return count;
}

/// Whether a loop stands in the body of one of the graph's loops.
bool has_inner_loop(const ir::Graph& graph, bool inside = false) {
  return std::ranges::any_of(graph.nodes, [&](const ir::Node& node) {
    if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
      return inside || has_inner_loop(*a->body, true);
    const auto* a = std::get_if<ir::IfAttrs>(&node.attrs);
    return a && (has_inner_loop(*a->then_graph, inside) ||
                 has_inner_loop(*a->else_graph, inside));
  });
}

/// How many products of two elements each element of a `dot` is.
int64_t chain_length(const ir::Graph& graph, const ir::Node& node) {
  int64_t length = 1;
  const ir::Type& type = graph.type(node.inputs[0]);
  for (const int axis : ir::attrs<ir::DotAttrs>(node).contract_a)
    length *= type.shape[axis].value();
  return length;
}

/// The bytes that the graph's largest operation reads and writes, but for
/// elements of an array; of products as many as there are multiplications.
int64_t largest_work(const ir::Graph& graph) {
  int64_t most = 0;
  for (const ir::Node& node : graph.nodes) {
    int64_t work = 0;
    const auto add_operands = [&](size_t begin) {
      for (size_t i = begin; i < node.inputs.size(); ++i)
        work += graph.type(node.inputs[i]).bytes();
    };
    switch (ir::kind(node.op)) {
      case ir::Kind::control:
        if (const auto* a = std::get_if<ir::IfAttrs>(&node.attrs))
          work = std::max(largest_work(*a->then_graph),
                          largest_work(*a->else_graph));
        if (const auto* a = std::get_if<ir::LoopAttrs>(&node.attrs))
          work = std::max(a->is_counted() ? 0 : largest_work(*a->condition),
                          largest_work(*a->body));
        break;
      case ir::Kind::index:
        add_operands(1);
        if (node.op == ir::Op::gather) work += node.type.bytes();
        break;
      case ir::Kind::source:
        if (node.op == ir::Op::iota) work = node.type.bytes();
        break;
      case ir::Kind::dot:
        work = node.type.elements() * chain_length(graph, node);
        break;
      case ir::Kind::move:
        work = node.type.bytes();
        if (node.op != ir::Op::slice) add_operands(0);
        break;
      case ir::Kind::map:
      case ir::Kind::reduce:
      case ir::Kind::argreduce:
      case ir::Kind::scan:
      case ir::Kind::sort:
      case ir::Kind::collective:
      case ir::Kind::host:
        work = node.type.bytes();
        add_operands(0);
        break;
    }
    most = std::max(most, work);
  }
  return most;
}

bool is_spread(const unisono::Array& array) {
  return array.sharding().is_split() && array.sharding().devices.size() > 1;
}

}  // namespace

void Walker::forbid_as_code(const FunctionValue& function, Span where) const {
  bool forbidden = false;
  if (const auto* made = std::get_if<Transformed>(&function.what))
    forbidden = made->kind != Transformed::Kind::vmap;
  if (const auto* made = std::get_if<Differentiated>(&function.what))
    forbidden = is_derivative(*made);
  if (const auto* closure = std::get_if<Closure>(&function.what)) {
    const Function* syntax = syntax_of(*closure).function;
    forbidden = std::ranges::count(s_.frames, syntax, &CallFrame::syntax) >=
                most_nested_calls;
  }
  if (forbidden)
    throw Failure{diagnostic(Code::host_value_in_compiled_code, where,
                             std::string_view("this call")),
                  true};
}

std::optional<Walker::LoopCode> Walker::trace_loop(
    const std::function<void()>& walk_loop, std::string& why) {
  LoopCode code;
  std::shared_ptr<GraphScope> scope;
  {
    // What goes wrong here goes wrong again, and is told, when it is walked.
    const Saved<bool> attempt(s_.attempt, true), gave_up(s_.gave_up),
        stopped(s_.stopped);
    const Saved<uint64_t> steps(s_.steps, 0);
    JournalScope journal(*this);
    try {
      scope = walk_.trace(walk_loop);
    } catch (const Failure& failure) {
      const Diagnostic& reason = failure.diagnostic;
      why = reason.message;
      if (reason.where) why += fmt::format(" ({})", to_string(reason.where));
      return std::nullopt;
    }
    code.changes = journal.finish();
  }
  for (const Assigned& change : code.changes)
    for_each_leaf(change.after, [&](const Value& leaf) {
      const auto* array = leaf.get_if<ArrayValue>();
      if (array && (*array)->node >= 0 && !(*array)->array &&
          !(*array)->constant &&
          std::ranges::find(code.outputs, *array) == code.outputs.end())
        code.outputs.push_back(*array);
    });
  // With what nobody reads: an endless loop does not end, and who reads the
  // clock around a loop means the loop.
  code.graph = std::make_shared<const ir::Graph>(scope->finish(code.outputs));
  for (const ArrayValue& capture : scope->captures()) {
    if (capture->array && is_in_file(*capture->array) && !cluster_of(walk_)) {
      why = "it reads an array that was left in its file";
      return std::nullopt;
    }
    bring_home(walk_, *capture, Span());
    if (!capture->array || is_spread(*capture->array)) {
      why = "it reads an array that lies on several devices";
      return std::nullopt;
    }
    code.inputs.push_back(*capture->array);
  }
  // As small as what the walk computes without a graph (small_work.h): more is
  // not slow for being walked, and compiled code does it better.
  const int64_t most = walk_.machine().compile_threshold / 4;
  if (largest_work(*code.graph) >= most) {
    why = fmt::format(
        "an operation in it has {} bytes and more to read and write, and is "
        "computed by itself",
        most);
    return std::nullopt;
  }
  return code;
}

void Walker::assign_results(const LoopCode& code,
                            std::vector<unisono::Array> results) {
  std::vector<ArrayValue> arrays;
  for (size_t i = 0; i < results.size(); ++i) {
    arrays.push_back(walk_.from_array(std::move(results[i])));
    arrays.back()->weak = code.outputs[i]->weak;
  }
  for (const Assigned& change : code.changes) {
    Value value = map_leaves(change.after, [&](const Value& leaf) -> Value {
      const auto* array = leaf.get_if<ArrayValue>();
      if (!array) return leaf;
      const auto output = std::ranges::find(code.outputs, *array);
      if (output == code.outputs.end()) return leaf;
      return arrays[output - code.outputs.begin()];
    });
    assign(change.environment, change.name, std::move(value), change.where);
  }
}

// ---- a loop that runs ------------------------------------------------------

Walker::HostLoop::HostLoop(Walker& walker, const Stmt& loop, int64_t all,
                           const ProgressValue* shown, const Env& env)
    : walker_(walker), loop_(loop), all_(all), shown_(shown), env_(env) {
  Walk::State& s = walker_.s_;
  if (s.host_loops++ == 0) s.asked_since = false;
  const bool first =
      shown_ ? s.asked_loops++ == 0 : s.host_loops == 1 && s.frames.empty();
  tells_ = first && walker_.walk_.mode() == Mode::run &&
           walker_.walk_.machine().progress;
  if (shown_) s.asked_since = true;
}

Walker::HostLoop::~HostLoop() {
  --walker_.s_.host_loops;
  if (shown_) --walker_.s_.asked_loops;
}

void Walker::HostLoop::tell(int64_t turns, int64_t all, bool noted) const {
  // There is one line to show: who asks for it has it.
  if (!tells_ || (!shown_ && walker_.s_.asked_since)) return;
  const std::function<std::string()> text = [&] { return note(); };
  walker_.walk_.machine().progress({.turns = turns,
                                    .all = all,
                                    .asked = shown_ != nullptr,
                                    .note = noted && shown_ ? &text : nullptr});
}

/// "loss 0.0312  accuracy 0.97": those of the names that hold a number.
std::string Walker::HostLoop::note() const {
  std::string out;
  for (const std::string& name : *shown_->show) {
    const Binding* binding = env_->find(name).first;
    if (!binding || binding->poisoned) continue;
    const Value& value = binding->value;
    const ArrayCell* array = value.array();
    const bool number = array && array->type.rank() == 0 && !array->donated;
    if (!number && !value.is<IntValue>()) continue;
    const bool real = array && is_floating(array->type.dtype);
    TextBuilder text(walker_.walk_);
    text.text(fmt::format("{}{} ", out.empty() ? "" : "  ", name));
    text.value(value, real ? ".4g" : "", loop_.span);
    out += *text.finish().value;
  }
  return out;
}

bool Walker::HostLoop::is_hot() const {
  const bool counted = all_ >= 0;
  if (failing_ ||
      turns_ < (counted ? tuning().loop_turns_before
                        : tuning().while_turns_before) ||
      (counted && all_ - turns_ < tuning().least_turns_left))
    return false;
  const Machine& machine = walker_.walk_.machine();
  if (machine.reference_only || machine.compile_only ||
      machine.limits.steps > 0)
    return false;
  const auto failures = walker_.s_.not_code.find(&loop_);
  return failures == walker_.s_.not_code.end() ||
         failures->second < tuning().most_loop_failures;
}

/// What the loop puts behind texts that its variables hold is an effect of the
/// code, as prints are.
void Walker::HostLoop::make_texts_grow() {
  grown_.clear();
  for (const Carry& carry : walker_.carries_of(loop_, env_)) {
    const auto* text = carry.value.get_if<StrValue>();
    if (!text || !text->value) continue;
    grown_.emplace_back();
    walker_.assign(carry.environment, carry.name,
                   growing_text(static_cast<int64_t>(grown_.size())));
  }
}

/// Those texts after a run of the code.
void Walker::HostLoop::append_grown(const LoopCode& code) {
  for (const Assigned& change : code.changes) {
    const auto* text = change.after.get_if<StrValue>();
    const int64_t number = text ? growing_number(*text) : 0;
    if (number == 0) continue;
    StrValue longer = *change.before.get_if<StrValue>();
    const std::string& more = grown_[static_cast<size_t>(number - 1)];
    if (!more.empty()) longer.value.append(more);
    walker_.assign(change.environment, change.name, std::move(longer),
                   change.where);
  }
}

/// Runs it from the values that the arrays have now.
Result<std::vector<unisono::Array>> Walker::HostLoop::run_code(
    const LoopCode& code, const jit::Bytecode& bytecode,
    jit::Bytecode::Turns& turns, const std::function<bool()>& looks) {
  Machine& machine = walker_.walk_.machine();
  CopyCounter counter{.recorder = machine.recorder};
  std::vector<std::vector<uint8_t>> copies;
  std::vector<jit::reference::Value> inputs;
  for (const unisono::Array& array : code.inputs) {
    const uint8_t* data = nullptr;
    // Memory of a CPU is the host's.
    if (is_host_memory(*array.sharding().devices[0])) {
      data = static_cast<const uint8_t*>(array.blocks()[0]->data());
    } else {
      wait_for_runs(walker_.walk_, Span());
      copies.push_back(TRY(array_to_host(array, &counter)));
      data = copies.back().data();
    }
    inputs.push_back(jit::reference::Value::view(data, array.bytes()));
  }
  jit::ReferenceOptions options;
  options.checked = machine.checked;
  for (std::string& text : grown_) text.clear();
  std::vector<size_t> room(grown_.size(), max_text_bytes);
  for (const Assigned& change : code.changes) {
    const auto* text = change.after.get_if<StrValue>();
    const int64_t number = text ? growing_number(*text) : 0;
    if (number != 0)
      room[static_cast<size_t>(number - 1)] -=
          change.before.get_if<StrValue>()->value->size();
  }
  options.host_call = [&, call = host_caller(machine, nullptr)](
                          const ir::Node& node, int64_t member,
                          const std::vector<jit::HostArray>& operands,
                          std::vector<jit::HostArray>& made) -> Status {
    const auto& attrs = ir::attrs<ir::HostCallAttrs>(node);
    if (!attrs.function.empty() || attrs.number == 0)
      return call(node, member, operands, made);
    const auto number = static_cast<size_t>(attrs.number - 1);
    std::string& text = grown_[number];
    text += render_host_call(attrs, operands);
    if (text.size() > room[number])
      return Error{Error::Kind::check_failed, "this text is too long"};
    return Unit{};
  };
  options.stop = looks;
  auto outcome = TRY(bytecode.run_values(std::move(inputs), options, &turns));
  std::vector<unisono::Array> results;
  for (size_t i = 0; i < outcome.values.size(); ++i) {
    const ir::Type& type = code.outputs[i]->type;
    const jit::reference::Value value =
        jit::reference::dense(outcome.values[i], type);
    if (!value.ok()) return jit::reference::out_of_memory(type);
    results.push_back(
        TRY(array_from_host(home_device(machine.runtime->devices()), type.dtype,
                            type.sizes(), value.data())));
  }
  return results;
}

std::optional<uint64_t> Walker::HostLoop::run(
    const std::function<void(int64_t)>& walk_rest,
    const std::optional<KnownRange>& range) {
  using Clock = std::chrono::steady_clock;
  using namespace std::chrono_literals;
  Walk& walk = walker_.walk_;
  walk.flush(loop_.span);
  std::string why;
  // One that could not be traced before cannot be now.
  const auto& codes = walker_.s_.function_codes;
  if (codes && codes->loops.contains(&loop_) && run_as_function(range, why))
    return std::nullopt;
  const std::optional<LoopCode> code = walker_.trace_loop(
      [&] {
        make_texts_grow();
        walk_rest(0);
      },
      why);
  walker_.poll(loop_.span);  // if that is why there is none
  std::shared_ptr<const jit::Bytecode> bytecode;
  if (code)
    bytecode = jit::Bytecode::lower(code->graph, walk.machine().checked);
  LineTimes* times = walker_.s_.line_times;
  const uint32_t place = times ? walk.source_id(loop_.span) : 0;
  if (!bytecode) {
    if (!code && !failing_ && run_as_function(range, why)) return std::nullopt;
    ++walker_.s_.not_code[&loop_];
    if (code) why = "it has an operation that loops as code do not know";
    if (times)
      times->note(place, "the loop is walked, not run as code: " + why);
    return 0;
  }
  // A loop that gives nothing is left out of machine code, even an endless one.
  // A GPU is no place for one thread.
  const bool may_be_compiled =
      bytecode->is_steps_alone() && !code->outputs.empty() && !compiled_ &&
      home_device(walk.machine().runtime->devices()).kind() ==
          DeviceKind::cpu &&
      std::ranges::all_of(code->inputs, [&](const unisono::Array& input) {
        return is_host_memory(*input.sharding().devices[0]);  // time differs
      });
  const auto start = Clock::now();
  const std::chrono::microseconds long_run(tuning().long_run_microseconds);
  const std::chrono::microseconds turns_least(
      has_inner_loop(*code->graph) &&
              nodes_of(*code->graph) > tuning().least_large_loop
          ? tuning().long_turn_microseconds
          : 0);
  jit::Bytecode::Turns turns;
  int64_t lines = 0, printed_in = -1;  // lines of the last turn that printed
  auto& output = walk.machine().output;
  std::optional<Result<std::vector<unisono::Array>>> results;
  {
    const auto print = output;
    const Printing printing(output, [&](std::string_view text) {
      if (std::exchange(printed_in, turns.taken) != turns.taken) lines = 0;
      lines += std::ranges::count(text, '\n');
      print(text);
    });
    Recording recording(walk.machine().recorder, Recorder::Kind::loop,
                        Recorder::host);
    const LineTime time(times, LineTimes::Part::code, place);
    results = run_code(*code, *bytecode, turns, [&] {
      tell(turns_ + turns.taken, all_, false);
      const auto time = Clock::now() - start;
      if (may_be_compiled &&
          time > std::max<Clock::duration>(long_run, turns_least * turns.taken))
        turns.most = turns.taken + 1;
      return false;
    });
    if (recording) {
      recording.event().source = walk.source_id(loop_.span);
      recording.event().turns = turns.taken;
    }
    if (printed_in != turns.taken) lines = 0;
  }
  if (!*results) {
    const Error& error = results->error();
    if (error.kind == Error::Kind::cancelled ||
        error.kind == Error::Kind::out_of_memory || bytecode->calls_host())
      walk.fail(error, loop_.span);
    go_to_error(*code, *bytecode, turns.taken, lines);
    turns_ += turns.taken;
    return turns.taken;
  }
  walker_.assign_results(*code, std::move(**results));
  append_grown(*code);
  turns_ += turns.taken;
  if (turns.taken < turns.most || turns_ == all_) return std::nullopt;
  compiled_ = true;
  if (run_compiled([&] { walk_rest(turns.taken); })) return std::nullopt;
  return turns.taken;
}

/// The rest of a loop that cannot be traced, as functions are compiled. False,
/// and nothing has happened, if that is not possible either.
bool Walker::HostLoop::run_as_function(const std::optional<KnownRange>& range,
                                       std::string& why) {
  const auto* unknown = as<WhileStmt>(loop_);
  if (!range && (!unknown || unknown->most)) return false;
  std::string reason;
  std::vector<Carry> variables = walker_.carries_of(loop_, env_);
  // What jumps are told by is no variable of code, which jumps.
  std::erase_if(variables, [](const Carry& c) { return is_hidden(c.name); });
  const auto turns = walker_.run_loop_code(
      {&loop_, range, env_, std::move(variables)},
      [&](int64_t taken) { tell(turns_ + taken, all_, false); }, failing_,
      reason);
  if (!turns) {
    why += "; and not as functions are: " + reason;
    return false;
  }
  turns_ += *turns;
  return true;
}

/// The rest of a loop that takes long as machine code. False, and nothing has
/// happened, if there is an error in it: threaded code will tell where.
bool Walker::HostLoop::run_compiled(const std::function<void()>& walk_loop) {
  Walk& walk = walker_.walk_;
  std::string why;
  const std::optional<LoopCode> code = walker_.trace_loop(walk_loop, why);
  walker_.poll(loop_.span);
  if (!code) return false;
  std::vector<unisono::Array> results;
  try {
    results = walk.compute(*code->graph, code->inputs, loop_.span);
  } catch (const Failure&) {
    if (stop_requested()) throw;
    return false;
  }
  walker_.assign_results(*code, std::move(results));
  return true;
}

/// The walk tells best what is wrong. The turns before the one with the error
/// are taken again, without their prints; then that one is walked, and prints
/// what it had not printed yet.
void Walker::HostLoop::go_to_error(const LoopCode& code,
                                   const jit::Bytecode& bytecode, int64_t turn,
                                   int64_t lines) {
  failing_ = true;
  auto& output = walker_.walk_.machine().output;
  if (turn > 0) {
    const Printing silent(output, [](std::string_view) {});
    jit::Bytecode::Turns turns{.most = turn};
    auto before = run_code(code, bytecode, turns, nullptr);
    if (!before) walker_.walk_.fail(before.error(), loop_.span);
    walker_.assign_results(code, std::move(*before));
    append_grown(code);
  }
  printing_ = std::make_unique<Printing>(
      output, [print = output, lines](std::string_view text) mutable {
        for (; lines > 0 && !text.empty(); --lines)
          text.remove_prefix(text.find('\n') + 1);
        if (!text.empty()) print(text);
      });
}

// ---- over the characters of a text -----------------------------------------

namespace {
/// The numbers of the characters; nothing where one is none.
std::optional<std::vector<uint32_t>> numbers_of(
    std::span<const std::string_view> characters) {
  std::vector<uint32_t> out;
  out.reserve(characters.size());
  for (const std::string_view c : characters) {
    const CodePoint point = decode_utf8(c, 0);
    if (point.length == 0) return std::nullopt;
    out.push_back(point.value);
  }
  return out;
}

ArrayValue on_home(Walk& walk, const std::vector<uint32_t>& numbers) {
  auto [out, elements] = unset_array(
      walk, DType::U32, {ir::Dim(static_cast<int64_t>(numbers.size()))});
  if (out)
    std::memcpy(elements, numbers.data(), numbers.size() * sizeof(uint32_t));
  return out;
}
}  // namespace

/// A `for` over the characters of a text on the host. As code it runs over
/// their numbers.
void Walker::text_for(const ForStmt& s, const Text& text,
                      const ProgressValue* shown, const Env& env) {
  // The body may assign the variable that has it.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const Text held = text;
  const auto all = characters(*held);
  const auto count = static_cast<int64_t>(all.size());
  HostLoop loop(*this, s, count, shown, env);
  std::optional<ArrayValue> numbers;  // null: there are none
  const bool on_cpu =
      home_device(walk_.machine().runtime->devices()).kind() == DeviceKind::cpu;
  for (int64_t i = 0; i < count && !is_left(s, env); ++i) {
    if (on_cpu && loop.is_hot()) {
      if (!numbers) {
        const auto points = numbers_of(all);
        numbers = points ? on_home(walk_, *points) : nullptr;
      }
      if (*numbers) {
        const auto taken = loop.run([&](int64_t more) {
          compiled_for(s, *numbers, env, i + more, [&](const Value& number) {
            const ArrayValue& point = *number.get_if<ArrayValue>();
            return held.is_ascii() ? ascii_character_of(point)
                                   : character_of(point);
          });
        });
        if (!taken) break;
        i += static_cast<int64_t>(*taken);
      }
    }
    loop.turn();
    turn(s.pattern, StrValue{character(all[i])}, *s.body, env, true);
  }
  loop.end();
}

}  // namespace unisono::lang
