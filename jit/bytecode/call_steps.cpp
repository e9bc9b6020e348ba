#include "jit/bytecode/call_steps.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit::bytecode {
namespace {

CallRun& run_of(StepRun* run) { return *static_cast<CallRun*>(run); }

const Step* at_target(const Step* step) {
  return step + static_cast<int32_t>(step->in[0]);
}

/// Ends the run. Never inlined, so that the steps keep nothing on the stack.
[[gnu::noinline]] void fail(const Step* step, uint64_t* registers,
                            StepRun* run) {
  run->failed = step;
  run_of(run).window = registers;
}

template <bool immediate>
int64_t right_operand(const Step* step, const uint64_t* registers,
                      uint32_t place) {
  return immediate ? step->number : static_cast<int64_t>(registers[place]);
}

// ---- integers --------------------------------------------------------------

/// False where the walk has to say what it is.
template <IntOp op>
bool compute(int64_t a, int64_t b, int64_t& out) {
  if constexpr (op == IntOp::add) return !__builtin_add_overflow(a, b, &out);
  if constexpr (op == IntOp::sub) return !__builtin_sub_overflow(a, b, &out);
  if constexpr (op == IntOp::mul) return !__builtin_mul_overflow(a, b, &out);
  if constexpr (op == IntOp::floor_div || op == IntOp::mod) {
    if (b == 0) return false;
    if (b == -1) {  // the least has no quotient
      out = 0;
      return op == IntOp::mod || !__builtin_sub_overflow(0, a, &out);
    }
    const int64_t quotient = a / b, rest = a % b;
    const bool below = rest != 0 && (rest < 0) != (b < 0);
    out = op == IntOp::floor_div ? quotient - below : rest + (below ? b : 0);
    return true;
  }
  if constexpr (op == IntOp::bit_and) out = a & b;
  if constexpr (op == IntOp::bit_or) out = a | b;
  if constexpr (op == IntOp::bit_xor) out = a ^ b;
  if constexpr (op == IntOp::minimum) out = std::min(a, b);
  if constexpr (op == IntOp::maximum) out = std::max(a, b);
  if constexpr (op == IntOp::shift_right) {
    if (b < 0) return false;
    out = a >> std::min<int64_t>(b, 63);
  }
  if constexpr (op == IntOp::shift_left) {
    if (b < 0 || b > 63) return false;
    out = static_cast<int64_t>(static_cast<uint64_t>(a) << b);
    return (out >> b) == a;
  }
  return true;
}

template <IntOp op, bool immediate>
void int_operation(const Step* step, uint64_t* registers, StepRun* run) {
  const auto a = static_cast<int64_t>(registers[step->in[0]]);
  const int64_t b = right_operand<immediate>(step, registers, step->in[1]);
  int64_t out = 0;
  if (!compute<op>(a, b, out)) [[unlikely]]
    return fail(step, registers, run);
  registers[step->out] = static_cast<uint64_t>(out);
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

template <Compare op>
bool holds(int64_t a, int64_t b) {
  switch (op) {
    case Compare::eq: return a == b;
    case Compare::ne: return a != b;
    case Compare::lt: return a < b;
    case Compare::le: return a <= b;
    case Compare::gt: return a > b;
    case Compare::ge: return a >= b;
  }
  __builtin_unreachable();
}

template <Compare op, bool immediate>
void int_compare(const Step* step, uint64_t* registers, StepRun* run) {
  const auto a = static_cast<int64_t>(registers[step->in[0]]);
  const int64_t b = right_operand<immediate>(step, registers, step->in[1]);
  registers[step->out] = holds<op>(a, b);
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

template <Compare op, bool immediate>
void jump_unless_compare(const Step* step, uint64_t* registers, StepRun* run) {
  const auto a = static_cast<int64_t>(registers[step->in[1]]);
  const int64_t b = right_operand<immediate>(step, registers, step->in[2]);
  const Step* next = holds<op>(a, b) ? step + 1 : at_target(step);
  [[clang::musttail]] return next->function(next, registers, run);
}

/// The function that `make` gives for the constant `op`.
template <class Op, class Make, size_t... i>
StepFunction with_op(Op op, Make make, std::index_sequence<i...>) {
  StepFunction out = nullptr;
  ((static_cast<size_t>(op) == i
        ? void(out = make.template operator()<static_cast<Op>(i)>())
        : void()),
   ...);
  return out;
}

}  // namespace

StepFunction int_step(IntOp op, bool immediate) {
  return with_op(
      op,
      [&]<IntOp o>() -> StepFunction {
        return immediate ? int_operation<o, true> : int_operation<o, false>;
      },
      std::make_index_sequence<static_cast<size_t>(IntOp::maximum) + 1>());
}

StepFunction int_compare_step(Compare op, bool immediate) {
  return with_op(
      op,
      [&]<Compare o>() -> StepFunction {
        return immediate ? int_compare<o, true> : int_compare<o, false>;
      },
      std::make_index_sequence<static_cast<size_t>(Compare::ge) + 1>());
}

StepFunction jump_unless_compare_step(Compare op, bool immediate) {
  return with_op(
      op,
      [&]<Compare o>() -> StepFunction {
        return immediate ? jump_unless_compare<o, true>
                         : jump_unless_compare<o, false>;
      },
      std::make_index_sequence<static_cast<size_t>(Compare::ge) + 1>());
}

void int_negate_step(const Step* step, uint64_t* registers, StepRun* run) {
  int64_t out = 0;
  if (__builtin_sub_overflow(0, static_cast<int64_t>(registers[step->in[0]]),
                             &out)) [[unlikely]]
    return fail(step, registers, run);
  registers[step->out] = static_cast<uint64_t>(out);
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

void int_abs_step(const Step* step, uint64_t* registers, StepRun* run) {
  const auto value = static_cast<int64_t>(registers[step->in[0]]);
  if (value == std::numeric_limits<int64_t>::min()) [[unlikely]]
    return fail(step, registers, run);
  registers[step->out] = static_cast<uint64_t>(value < 0 ? -value : value);
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

void int_divide_step(const Step* step, uint64_t* registers, StepRun* run) {
  const double quotient =
      static_cast<double>(static_cast<int64_t>(registers[step->in[0]])) /
      static_cast<double>(static_cast<int64_t>(registers[step->in[1]]));
  if (!std::isfinite(quotient)) [[unlikely]]
    return fail(step, registers, run);
  registers[step->out] = std::bit_cast<uint64_t>(quotient);
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

// ---- booleans, constants ---------------------------------------------------

void not_step(const Step* step, uint64_t* registers, StepRun* run) {
  registers[step->out] = static_cast<uint8_t>(registers[step->in[0]]) == 0;
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

void differ_step(const Step* step, uint64_t* registers, StepRun* run) {
  registers[step->out] = (static_cast<uint8_t>(registers[step->in[0]]) != 0) !=
                         (static_cast<uint8_t>(registers[step->in[1]]) != 0);
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

void jump_if_step(const Step* step, uint64_t* registers, StepRun* run) {
  const bool taken = static_cast<uint8_t>(registers[step->in[1]]) != 0;
  const Step* next = taken ? at_target(step) : step + 1;
  [[clang::musttail]] return next->function(next, registers, run);
}

void constant_step(const Step* step, uint64_t* registers, StepRun* run) {
  registers[step->out] = static_cast<uint64_t>(step->number);
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

namespace {

/// From here on numbers round to infinity.
template <DType to>
constexpr double infinite_from = to == DType::F16    ? 65520.0
                                 : to == DType::BF16 ? 0x1.ffp+127
                                                     : 0x1.ffffffp+127;

template <DType to>
bool fits(int64_t value) {
  using T = typename ComputeOf<to>::type;
  if constexpr (std::is_same_v<T, bool>) return false;
  if constexpr (to == DType::F16)  // the others hold all
    return std::abs(static_cast<double>(value)) < infinite_from<to>;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return std::in_range<T>(value);
  return true;
}

template <DType to>
bool fits(double value) {
  return to == DType::F64 || !std::isfinite(value) ||
         std::abs(value) < infinite_from<to>;
}

template <DType to, class From>
void require_fit(const Step* step, uint64_t* registers, StepRun* run) {
  if (!fits<to>(std::bit_cast<From>(registers[step->in[0]]))) [[unlikely]]
    return fail(step, registers, run);
  [[clang::musttail]] return step[1].function(step + 1, registers, run);
}

}  // namespace

StepFunction require_fit_step(DType to, bool floating) {
  return with_dtype(to, [&]<DType D>() -> StepFunction {
    return floating ? require_fit<D, double> : require_fit<D, int64_t>;
  });
}

// ---- calls -----------------------------------------------------------------

/// Looks whether the run shall stop; false if it ends.
[[gnu::noinline]] static bool may_go_on(CallRun& run) {
  run.fuel = tuning().calls_between_looks;
  ++run.looks;
  if (run.look) run.look(run);
  run.stopped = stop_requested();
  return !run.stopped;
}

void call_step(const Step* step, uint64_t* registers, StepRun* any) {
  CallRun& run = run_of(any);
  if (run.depth == run.calls.size() || (--run.fuel < 0 && !may_go_on(run)))
      [[unlikely]]
    return fail(step, registers, any);
  run.calls[run.depth++] = step;
  const Step* next = at_target(step);
  [[clang::musttail]] return next->function(next, registers + step->out, any);
}

void return_step(const Step* step, uint64_t* registers, StepRun* any) {
  CallRun& run = run_of(any);
  registers[0] = registers[step->in[0]];
  const Step* call = run.calls[--run.depth];
  [[clang::musttail]] return call[1].function(call + 1, registers - call->out,
                                              any);
}

void return_constant_step(const Step* step, uint64_t* registers, StepRun* any) {
  CallRun& run = run_of(any);
  registers[0] = static_cast<uint64_t>(step->number);
  const Step* call = run.calls[--run.depth];
  [[clang::musttail]] return call[1].function(call + 1, registers - call->out,
                                              any);
}

// ---- elements of arrays ----------------------------------------------------

static const ElementView& view_of(const Step* step, const uint64_t* registers,
                                  int operand) {
  return *reinterpret_cast<const ElementView*>(
      registers[step->in[operand]]);  // NOLINT: a register
}

void element_index_step(const Step* step, uint64_t* registers, StepRun* any) {
  const int64_t size = view_of(step, registers, 1).sizes[step->number];
  auto index = static_cast<int64_t>(registers[step->in[0]]);
  if (index < 0) index += size;
  if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(size)) [[unlikely]]
    return fail(step, registers, any);
  const uint64_t before = step->number == 0 ? 0 : registers[step->in[2]];
  registers[step->out] =
      before * static_cast<uint64_t>(size) + static_cast<uint64_t>(index);
  [[clang::musttail]] return step[1].function(step + 1, registers, any);
}

template <class Bits>
static void load_step(const Step* step, uint64_t* registers, StepRun* any) {
  Bits bits;
  std::memcpy(
      &bits,
      view_of(step, registers, 1).data + registers[step->in[0]] * sizeof(Bits),
      sizeof(Bits));
  registers[step->out] = bits;
  [[clang::musttail]] return step[1].function(step + 1, registers, any);
}

StepFunction load_element_step(int64_t bytes) {
  switch (bytes) {
    case 1: return load_step<uint8_t>;
    case 2: return load_step<uint16_t>;
    case 4: return load_step<uint32_t>;
    case 8: return load_step<uint64_t>;
    default: return nullptr;
  }
}

void size_step(const Step* step, uint64_t* registers, StepRun* any) {
  registers[step->out] =
      static_cast<uint64_t>(view_of(step, registers, 0).sizes[step->number]);
  [[clang::musttail]] return step[1].function(step + 1, registers, any);
}

// ---- loops -----------------------------------------------------------------

void begin_loop_step(const Step* step, uint64_t* registers, StepRun* any) {
  registers[step->out] = static_cast<uint64_t>(run_of(any).looks);
  [[clang::musttail]] return step[1].function(step + 1, registers, any);
}

enum class AfterTurn { again, leave, stop };

/// A loop that has run for so long that the walk does better is left.
static AfterTurn after_turn(const Step* step, const uint64_t* registers,
                            CallRun& run) {
  if (--run.fuel >= 0) [[likely]]
    return AfterTurn::again;
  if (!may_go_on(run)) return AfterTurn::stop;
  const auto began = static_cast<int64_t>(registers[step->in[2]]);
  return run.looks - began >= tuning().looks_of_loop ? AfterTurn::leave
                                                     : AfterTurn::again;
}

void next_turn_step(const Step* step, uint64_t* registers, StepRun* any) {
  const AfterTurn after = after_turn(step, registers, run_of(any));
  if (after == AfterTurn::stop) [[unlikely]]
    return fail(step, registers, any);
  auto counter = static_cast<int64_t>(registers[step->out]);
  const auto stop = static_cast<int64_t>(registers[step->in[1]]);
  const bool more = !__builtin_add_overflow(counter, step->number, &counter) &&
                    (step->number > 0 ? counter < stop : counter > stop);
  registers[step->out] = static_cast<uint64_t>(counter);
  const Step* next = !more                       ? step + 2
                     : after == AfterTurn::leave ? step + 1
                                                 : at_target(step);
  [[clang::musttail]] return next->function(next, registers, any);
}

void repeat_step(const Step* step, uint64_t* registers, StepRun* any) {
  const AfterTurn after = after_turn(step, registers, run_of(any));
  if (after == AfterTurn::stop) [[unlikely]]
    return fail(step, registers, any);
  const Step* next = after == AfterTurn::leave ? step + 1 : at_target(step);
  [[clang::musttail]] return next->function(next, registers, any);
}

// ---- what the walk does ----------------------------------------------------

[[gnu::noinline]] static bool walk(const Step* step, uint64_t* registers,
                                   StepRun* any) {
  CallRun& run = run_of(any);
  return run.walk(run, step, registers);
}

void walk_step(const Step* step, uint64_t* registers, StepRun* any) {
  if (!walk(step, registers, any)) [[unlikely]]
    return fail(step, registers, any);
  [[clang::musttail]] return step[1].function(step + 1, registers, any);
}

}  // namespace unisono::jit::bytecode
