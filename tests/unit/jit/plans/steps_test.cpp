// Random plans are executed, element by element, with an array for each buffer:
// with buffers in their places, with kernels that are joined, and with
// collectives under way, they write the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "jit/arrange/join_kernels.h"
#include "jit/arrange/memory_plan.h"
#include "jit/arrange/overlap.h"
#include "runtime/tuning/tuning.h"
#include "tests/unit/moved.h"

using namespace unisono;
using namespace unisono::jit;

namespace {

using Word = uint64_t;
constexpr int64_t word_bytes = 4;  // what stands for an element of F32

Word mixed(Word a, Word b) {
  Word x = (a ^ (b << 32 | b >> 32)) * 0x9e3779b97f4a7c15u + 1;
  return x ^ x >> 29;
}

/// Executes plans. Loops take `turns`, branches go by what the flag is.
class Executor {
 public:
  static constexpr int turns = 3;

  /// Without slots each buffer has an array of its own.
  Executor(const Plan& plan, const std::vector<Slot>* slots, int64_t bytes,
           int64_t shared_bytes)
      : plan_(plan), slots_(slots) {
    arenas_[0].resize(static_cast<size_t>(bytes / word_bytes));
    arenas_[1].resize(static_cast<size_t>(shared_bytes / word_bytes));
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      own_.emplace_back(static_cast<size_t>(words(static_cast<int>(i))));
      if (plan.buffers[i].home != PlanBuffer::Home::temporary)
        for (int64_t e = 0; e < words(static_cast<int>(i)); ++e)
          word(static_cast<int>(i), e) = mixed(i, static_cast<Word>(e));
    }
  }

  /// All that was, in order.
  std::vector<Word> written;
  /// What may fail, and the collectives before it, in any order.
  std::vector<std::vector<BufferId>> seen = {{}};
  /// A collective whose end stands apart does all there.
  bool late = false;

  void run(const PlanSteps& steps, int turn = 0) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto* sum = std::get_if<CollectiveStep>(&steps[i].what);
      const auto* end = std::get_if<CopyStep>(&steps[i].what);
      if (sum) seen.back().push_back(sum->to);
      if (sum && late && ends_later(*sum, steps, i))
        continue;
      else if (end && end->bytes == 0 && late)
        add_up(end->from, end->to);
      else
        run(steps[i], turn);
    }
  }
  std::vector<Word> values(BufferId buffer) {
    std::vector<Word> out;
    for (int64_t e = 0; e < words(buffer); ++e) out.push_back(word(buffer, e));
    return out;
  }

 private:
  int64_t words(BufferId buffer) const {
    return plan_.buffers[buffer].bytes / word_bytes;
  }
  Word& word(BufferId buffer, int64_t element) {
    auto* place = &own_[static_cast<size_t>(buffer)];
    if (!slots_) return place->at(static_cast<size_t>(element));
    const Slot& slot = (*slots_)[static_cast<size_t>(buffer)];
    switch (slot.home) {
      case Slot::Home::arena:
        place = &arenas_[slot.shared];
        element += slot.offset / word_bytes;
        break;
      case Slot::Home::input: place = &own_[plan_.inputs[slot.index]]; break;
      case Slot::Home::output: place = &own_[plan_.outputs[slot.index]]; break;
      case Slot::Home::constant: break;
    }
    return place->at(static_cast<size_t>(element));
  }
  void set(BufferId buffer, int64_t element, Word value) {
    word(buffer, element) = value;
    written.push_back(value);
  }

  static bool ends_later(const CollectiveStep& sum, const PlanSteps& steps,
                         size_t begin) {
    for (size_t i = begin + 1; i < steps.size(); ++i) {
      const auto* end = std::get_if<CopyStep>(&steps[i].what);
      if (end && end->bytes == 0 && end->from == sum.from && end->to == sum.to)
        return true;
      const auto* other = std::get_if<CollectiveStep>(&steps[i].what);
      if (other && other->from == sum.from && other->to == sum.to) return false;
    }
    return false;
  }
  void add_up(BufferId from, BufferId to) {
    const std::vector<Word> values = this->values(from);
    for (size_t e = 0; e < values.size(); ++e)
      set(to, static_cast<int64_t>(e), mixed(values[e], 5));
  }

  void run(const PlanStep& step, int turn) {
    if (const auto* kernel = std::get_if<Kernel>(&step.what)) {
      run(*kernel);
    } else if (const auto* row = std::get_if<LaunchStep>(&step.what)) {
      const BufferId to = row->arguments[0];
      for (int64_t e = 0; e < words(to); ++e)
        if (e % turns == turn) set(to, e, mixed(77, static_cast<Word>(e)));
    } else if (const auto* copy = std::get_if<CopyStep>(&step.what)) {
      for (int64_t e = 0; e < copy->bytes / word_bytes; ++e)
        set(copy->to, e, word(copy->from, e));
    } else if (const auto* sum = std::get_if<CollectiveStep>(&step.what)) {
      add_up(sum->from, sum->to);
    } else if (const auto* loop = std::get_if<LoopTask>(&step.what)) {
      for (int t = 0; t < turns; ++t) {
        run(*loop->condition, t);
        written.push_back(word(loop->flag, 0));
        run(*loop->body, t);
      }
      run(*loop->condition, turns);
      written.push_back(word(loop->flag, 0));
    } else if (const auto* branch = std::get_if<IfTask>(&step.what)) {
      run(word(branch->flag, 0) % 2 ? *branch->then_steps : *branch->else_steps,
          turn);
    }
  }

  void run(const Kernel& kernel) {
    for (const Nest& nest : kernel.nests) {
      if (std::ranges::any_of(nest.exprs, &Expr::checked)) {
        std::ranges::sort(seen.back());
        seen.push_back({kernel.arguments[nest.stores[0].argument].buffer});
        seen.emplace_back();
      }
      run(nest, kernel);
    }
  }
  /// It has one axis: in loop after loop over its points.
  void run(const Nest& nest, const Kernel& kernel) {
    const auto at = [](const Affine& place, int64_t i) {
      return place.constant + place.factors[0] * i;
    };
    std::vector<Word> results(nest.reductions.size()), values;
    for (int phase = 0; phase < 2; ++phase)
      for (int64_t i = 0; i < nest.extents[0]; ++i) {
        values.assign(nest.exprs.size(), 0);
        for (size_t e = 0; e < nest.exprs.size(); ++e) {
          const Expr& expr = nest.exprs[e];
          if (expr.phase > phase) continue;
          if (expr.kind == Expr::Kind::load)
            values[e] =
                word(kernel.arguments[expr.argument].buffer, at(expr.at, i));
          if (expr.kind == Expr::Kind::reduced)
            values[e] = results[expr.reduction];
          if (expr.kind == Expr::Kind::operation)
            values[e] =
                mixed(values[expr.operands[0]], values[expr.operands[1]]);
        }
        for (const Store& store : nest.stores)
          if (nest.exprs[store.value].phase == phase)
            set(kernel.arguments[store.argument].buffer, at(store.at, i),
                values[store.value]);
        for (size_t r = 0; r < nest.reductions.size(); ++r)
          if (nest.reductions[r].phase == phase)
            results[r] = mixed(results[r], values[nest.reductions[r].operand]);
      }
  }

  const Plan& plan_;
  const std::vector<Slot>* slots_;
  std::vector<std::vector<Word>> own_;
  std::array<std::vector<Word>, 2> arenas_;
};

/// A random plan: what a step reads was written before.
class Maker {
 public:
  explicit Maker(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) {
      const BufferId buffer = added(pick(sizes));
      plan.buffers[buffer].home = PlanBuffer::Home::input;
      plan.buffers[buffer].index = i;
      plan.inputs.push_back(buffer);
      donated.push_back(chance(2));
      ready_.push_back(buffer);
    }
    ready_.push_back(plan.add_constant(std::vector<uint8_t>(64)));
    plan.steps = steps(12, 0);
    for (const BufferId buffer : ready_)
      if (is_temporary(buffer) && chance(4)) plan.outputs.push_back(buffer);
    if (chance(4)) plan.outputs.push_back(plan.inputs[0]);
  }

  Plan plan;
  std::vector<bool> donated;

 private:
  static constexpr std::array<int64_t, 5> sizes = {64, 80, 128, 192, 320};

  bool chance(uint32_t n) { return random_() % n == 0; }
  template <class List>
  typename List::value_type pick(const List& list) {
    return list[random_() % list.size()];
  }
  BufferId added(int64_t bytes) {
    const BufferId buffer = plan.add_buffer(bytes);
    plan.buffers[buffer].shared = chance(5);
    return buffer;
  }
  bool is_temporary(BufferId buffer) const {
    return plan.buffers[buffer].home == PlanBuffer::Home::temporary;
  }
  /// Of the last ones rather, so that others die.
  BufferId source() {
    const size_t recent = std::min<size_t>(ready_.size(), 5);
    return chance(4) ? pick(ready_)
                     : ready_[ready_.size() - 1 - random_() % recent];
  }
  /// A new buffer, or one that has been written.
  BufferId target(int64_t bytes) {
    if (chance(4))
      for (const BufferId old : ready_)
        if (is_temporary(old) && plan.buffers[old].bytes == bytes && chance(2))
          return old;
    return added(bytes);
  }
  void is_ready(BufferId buffer) {
    std::erase(ready_, buffer);
    ready_.push_back(buffer);
  }

  PlanSteps steps(int count, int depth) {
    PlanSteps out;
    for (int i = 0; i < count; ++i) out.push_back(step(depth));
    return out;
  }
  PlanStep step(int depth) {
    const uint32_t kind = random_() % 16;
    if (depth < 2 && kind == 0) return loop(depth);
    if (depth < 2 && kind == 1) return branch(depth);
    const BufferId from = source();
    const int64_t bytes = plan.buffers[from].bytes;
    if (kind < 4) {
      const BufferId to = target(bytes);
      is_ready(to);
      return {CopyStep{from, to, bytes}};
    }
    if (kind < 8) {
      CollectiveStep step{.from = from, .to = target(bytes)};
      step.elements = bytes / word_bytes;
      is_ready(step.to);
      return {std::move(step)};
    }
    return {kind < 13 ? map(from) : row(from)};
  }

  PlanStep loop(int depth) {
    LoopTask task{std::make_unique<PlanSteps>(), std::make_unique<PlanSteps>()};
    *task.condition = steps(1, 2);
    task.flag = added(64);
    task.condition->push_back({CopyStep{plan.inputs[0], task.flag, 64}});
    const std::vector<BufferId> before = ready_;
    *task.body = steps(4, depth + 1);
    if (chance(2)) {  // a stack
      const BufferId stack = added(pick(sizes));
      LaunchStep row;
      row.arguments = {stack};
      task.body->insert(task.body->begin() + random_() % 4, {std::move(row)});
      is_ready(stack);
    }
    return {std::move(task)};
  }
  PlanStep branch(int depth) {
    IfTask task{source(), std::make_unique<PlanSteps>(),
                std::make_unique<PlanSteps>()};
    const std::vector<BufferId> before = ready_;
    *task.then_steps = steps(2, depth + 1);
    ready_ = before;
    *task.else_steps = steps(2, depth + 1);
    ready_ = before;
    // What both write.
    const BufferId result = added(64);
    for (PlanSteps* arm : {task.then_steps.get(), task.else_steps.get()})
      arm->push_back({CopyStep{plan.inputs[chance(2)], result, 64}});
    is_ready(result);
    return {std::move(task)};
  }

  static int argument(Kernel& kernel, BufferId buffer, bool written) {
    kernel.arguments.push_back({buffer, DType::F32, written});
    return static_cast<int>(kernel.arguments.size()) - 1;
  }
  static ExprId load(Nest& nest, int argument, Affine at, int phase = 0) {
    Expr expr{.kind = Expr::Kind::load};
    expr.argument = argument;
    expr.at = std::move(at);
    expr.phase = phase;
    nest.exprs.push_back(expr);
    return static_cast<ExprId>(nest.exprs.size()) - 1;
  }
  static ExprId operation(Nest& nest, ExprId a, ExprId b) {
    Expr expr{.kind = Expr::Kind::operation, .op = ir::Op::add};
    expr.at = {0, {0}};
    expr.operands = {a, b};
    expr.phase = std::max(nest.exprs[a].phase, nest.exprs[b].phase);
    nest.exprs.push_back(expr);
    return static_cast<ExprId>(nest.exprs.size()) - 1;
  }

  /// to[i] = one[i] + other[i], or of an operand the other way round.
  Kernel map(BufferId from) {
    BufferId other = from;
    const int64_t bytes = plan.buffers[from].bytes;
    for (const BufferId buffer : ready_)
      if (plan.buffers[buffer].bytes == bytes && chance(2)) other = buffer;
    const int64_t n = bytes / word_bytes;
    Kernel kernel;
    Nest nest{.extents = {n}, .reduced = {false}, .exprs = {}};
    const int a = argument(kernel, from, false);
    const int b = other == from ? a : argument(kernel, other, false);
    const Affine forth{0, {1}}, back{n - 1, {-1}};
    const ExprId x = load(nest, a, chance(4) ? back : forth);
    const ExprId y = load(nest, b, chance(4) ? back : forth);
    BufferId to = target(bytes);
    if (to == from || to == other) to = added(bytes);
    nest.stores.push_back(
        {argument(kernel, to, true), forth, operation(nest, x, y)});
    nest.exprs.back().checked = chance(6);
    is_ready(to);
    kernel.nests = {std::move(nest)};
    return kernel;
  }

  /// A sum of a row; then sums of it with the row, and what was stored before
  /// is perhaps read once more.
  Kernel row(BufferId from) {
    const int64_t bytes = plan.buffers[from].bytes;
    Kernel kernel;
    Nest nest{.extents = {bytes / word_bytes}, .reduced = {true}, .exprs = {}};
    const Affine at{0, {1}};
    const ExprId x = load(nest, argument(kernel, from, false), at);
    const ExprId early = operation(nest, x, x);
    nest.reductions.push_back({.operand = chance(2) ? x : early});
    Expr total{.kind = Expr::Kind::reduced};
    total.at = {0, {0}};
    total.reduction = 0;
    total.phase = 1;
    nest.exprs.push_back(total);
    const ExprId sum = static_cast<ExprId>(nest.exprs.size()) - 1;
    const uint32_t kind = random_() % 4;  // what is stored
    ExprId again = chance(2) ? x : early;
    if (kind > 0) {
      const BufferId to = added(bytes);
      const int first = argument(kernel, to, true);
      nest.stores.push_back({first, at, early});
      if (kind > 1) again = load(nest, first, at, 1);
      if (kind < 3) is_ready(to);  // else it only passes to the next loop
    }
    const ExprId late = operation(nest, again, sum);
    if (kind == 1 && chance(2)) {
      nest.reductions.push_back({.operand = late, .phase = 1});
    } else {
      const BufferId to = added(bytes);
      nest.stores.push_back({argument(kernel, to, true), at, late});
      is_ready(to);
    }
    kernel.nests = {std::move(nest)};
    return kernel;
  }

  std::mt19937 random_;
  std::vector<BufferId> ready_;
};

bool is_one_place(const Slot& a, const Slot& b) {
  return a.home == b.home && a.shared == b.shared && a.index == b.index &&
         a.offset == b.offset;
}

/// Calls `f(step)` for all steps, those inside others, too.
template <class F>
void for_each_step(PlanSteps& steps, const F& f) {
  for (PlanStep& step : steps) {
    f(step);
    if (auto* loop = std::get_if<LoopTask>(&step.what)) {
      for_each_step(*loop->condition, f);
      for_each_step(*loop->body, f);
    }
    if (auto* branch = std::get_if<IfTask>(&step.what)) {
      for_each_step(*branch->then_steps, f);
      for_each_step(*branch->else_steps, f);
    }
  }
}

}  // namespace

TEST_CASE("buffers that share a place are not alive at once") {
  int64_t of_buffers = 0, of_arenas = 0, inputs = 0, sums = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed)
    for (const bool in_place : {false, true}) {
      Maker made(seed);
      Plan& plan = made.plan;
      const MemoryPlan memory = plan_memory(plan, made.donated, in_place);
      CAPTURE(seed);
      CAPTURE(in_place);

      Executor apart(plan, nullptr, 0, 0);
      Executor placed(plan, &memory.slots, memory.arena_bytes,
                      memory.shared_arena_bytes);
      apart.run(plan.steps);
      placed.run(plan.steps);
      REQUIRE(apart.written == placed.written);
      for (const BufferId output : plan.outputs)
        REQUIRE(apart.values(output) == placed.values(output));
      for (size_t i = 0; i < plan.inputs.size(); ++i)
        if (!made.donated[i])
          REQUIRE(apart.values(plan.inputs[i]) ==
                  placed.values(plan.inputs[i]));
      for (size_t i = 0; i < plan.buffers.size(); ++i)
        CHECK((memory.slots[i].home == Slot::Home::constant) ==
              (plan.buffers[i].home == PlanBuffer::Home::constant));

      mark_overwriting(plan.steps, memory.slots);
      for_each_step(plan.steps, [&](const PlanStep& step) {
        if (const auto* kernel = std::get_if<Kernel>(&step.what)) {
          bool overwrites = false;
          for (const Argument& read : kernel->arguments)
            for (const Argument& to : kernel->arguments)
              if (!read.written && to.written)
                overwrites |= is_one_place(memory.slots[read.buffer],
                                           memory.slots[to.buffer]);
          CHECK(kernel->overwrites == overwrites);
        }
        if (const auto* sum = std::get_if<CollectiveStep>(&step.what)) {
          const bool is_there =
              sum->from != sum->to &&
              is_one_place(memory.slots[sum->from], memory.slots[sum->to]);
          sums += is_there;
          if (!in_place) CHECK(!is_there);
        }
      });
      for (const PlanBuffer& buffer : plan.buffers) of_buffers += buffer.bytes;
      of_arenas += memory.arena_bytes + memory.shared_arena_bytes;
      inputs += static_cast<int64_t>(memory.overwritten.size());
    }
  // How little memory that is, which results do not tell.
  CHECK(of_arenas <= of_buffers * 294 / 1000);
  CHECK(inputs >= 1412);
  CHECK(sums >= 1519);
}

TEST_CASE("steps that are joined, or pass others, compute the same") {
  const Moved moved([](Tuning& some) {  // sizes are small and large
    some.most_joined_points = 24;
    some.gpu_most_joined_leaves = 24;
    some.most_joined_nests = 4;
  });
  int kernels[2] = {}, under_way = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Maker made(seed), other(seed);
    const bool late = seed % 4 < 2, in_place = seed % 3 == 0;
    if (seed % 2) join_reductions(other.plan.steps);
    join_kernels(other.plan.steps, seed % 2);
    overlap_collectives(other.plan);
    for (Maker* maker : {&made, &other})
      for_each_step(maker->plan.steps, [&](const PlanStep& step) {
        kernels[maker == &other] += std::holds_alternative<Kernel>(step.what);
        const auto* end = std::get_if<CopyStep>(&step.what);
        under_way += end && end->bytes == 0;
      });

    const MemoryPlan memory = plan_memory(other.plan, other.donated, in_place);
    Executor plain(made.plan, nullptr, 0, 0), joined(other.plan, nullptr, 0, 0),
        placed(other.plan, &memory.slots, memory.arena_bytes,
               memory.shared_arena_bytes);
    joined.late = placed.late = late;
    plain.run(made.plan.steps);
    joined.run(other.plan.steps);
    placed.run(other.plan.steps);
    CAPTURE(seed);
    std::ranges::sort(plain.seen.back());
    std::ranges::sort(joined.seen.back());
    REQUIRE(plain.seen == joined.seen);
    for (size_t i = 0; i < made.plan.buffers.size(); ++i) {
      const auto buffer = static_cast<BufferId>(i);
      REQUIRE(plain.values(buffer) == joined.values(buffer));
    }
    for (const BufferId output : made.plan.outputs)
      REQUIRE(plain.values(output) == placed.values(output));
  }
  CHECK(kernels[1] <= kernels[0] - 940);
  CHECK(under_way >= 5990);
}
