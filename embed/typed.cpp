// Functions that are compiled once and called often.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "embed/options.h"
#include "embed/session.h"
#include "embed/value.h"
#include "lang/maps/typed_function.h"

struct UnisonoTyped : unisono::embed::Counted<UnisonoTyped> {
  std::shared_ptr<unisono::embed::Session> session;
  unisono::lang::TypedFunction function;
  /// By argument: the input of the executable.
  std::vector<size_t> inputs;
  /// By input: the elements of an array that is always the same; null for an
  /// argument. Only where it runs in place.
  std::vector<const void*> fixed;
  /// The device on which it runs in place; null if it needs more than that.
  unisono::Device* device = nullptr;
};

namespace unisono::embed {
namespace {

constexpr size_t usual_inputs = 16;

/// One CPU, and a program: then a call needs no session.
Device* device_in_place(const lang::Executable& executable) {
  if (!executable.program || executable.devices.size() != 1 ||
      !executable.program->overwritten.empty() ||
      executable.devices[0]->queue())
    return nullptr;
  return executable.devices[0];
}

void run_in_place(const UnisonoTyped& typed, const void* const* arguments,
                  void* const* results, const RunOptions& options) {
  const size_t count = typed.fixed.size();
  std::array<const void*, usual_inputs> few;
  std::vector<const void*> many(count > usual_inputs ? count : 0);
  const void** inputs = many.empty() ? few.data() : many.data();
  std::memcpy(inputs, typed.fixed.data(), count * sizeof(void*));
  for (size_t i = 0; i < typed.inputs.size(); ++i)
    inputs[typed.inputs[i]] = arguments[i];
  Status done = unisono::run_in_place(typed.session->runtime(),
                                      *typed.function.executable.program,
                                      *typed.device, inputs, results, options);
  if (done) return;
  Error error = done.error();
  error.device = error.member = -1;  // there is one of each
  if (CallbackScope::is_in(*typed.session))
    refuse(error.message, error.kind == Error::Kind::cancelled
                              ? UNISONO_CANCELLED
                              : UNISONO_RUNTIME);
  // The session knows the place in the program.
  SessionUse use(typed.session, nullptr, IfBusy::wait);
  use.run([&] { typed.session->walk().fail(error, lang::Span()); });
}

/// Several devices, or GPUs, or no compiler.
void run_on_devices(const UnisonoTyped& typed, const void* const* arguments,
                    void* const* results, const UnisonoCallOptions* options) {
  Session& session = *typed.session;
  SessionUse use(typed.session, options, IfBusy::wait);
  const lang::Executable& executable = typed.function.executable;
  use.run([&] {
    lang::Walk& walk = session.walk();
    const auto checked = [&](auto result) {
      if (!result) walk.fail(result.error(), lang::Span());
      return std::move(*result);
    };
    std::vector<unisono::Array> inputs;
    for (size_t i = 0, next = 0; i < executable.inputs.size(); ++i) {
      if (typed.function.fixed[i]) {
        inputs.push_back(*typed.function.fixed[i]);
        continue;
      }
      const ArrayLayout& input = executable.inputs[i];
      Device& first = *session.runtime().devices()[0];
      const unisono::Array array = checked(
          array_from_host(first, input.dtype, input.shape, arguments[next++]));
      inputs.push_back(checked(reshard(array, input.sharding)));
    }
    const auto outputs = checked(lang::run(walk, executable, inputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<uint8_t> bytes = checked(array_to_host(outputs[i]));
      if (!bytes.empty()) std::memcpy(results[i], bytes.data(), bytes.size());
    }
  });
}

/// With a stop, or a deadline.
UnisonoError* call_within(const UnisonoTyped& typed,
                          const void* const* arguments, void* const* results,
                          const UnisonoCallOptions* options) {
  return guarded([&] {
    if (!typed.device)
      return run_on_devices(typed, arguments, results, options);
    const UnisonoCallOptions all = read_options(options);
    const CallStop stop(typed.session->engine().deadlines(), all);
    RunOptions run;
    run.stop = stop.flag();
    try {
      embed::run_in_place(typed, arguments, results, run);
    } catch (const Reported& reported) {
      if (reported.error->kind != UNISONO_CANCELLED || !stop.is_late()) throw;
      refuse(
          fmt::format("{} s", static_cast<double>(all.wall_nanoseconds) / 1e9),
          UNISONO_LIMIT);
    }
  });
}

void write_type(const ArrayLayout& placed, UnisonoTensor* tensor) {
  *tensor = {nullptr, placed.shape.data(), nullptr,
             static_cast<int32_t>(placed.shape.size()),
             dtype_number(placed.dtype)};
}

}  // namespace
}  // namespace unisono::embed

using namespace unisono;
using namespace unisono::embed;

UnisonoError* unisono_typed_create(const UnisonoValue* function,
                                   const UnisonoValue* const* examples,
                                   size_t count, UnisonoTyped** typed) {
  return guarded([&] {
    if (!typed || (count > 0 && !examples))
      refuse("unisono_typed_create: `typed` or `examples` is null");
    auto made = std::make_unique<UnisonoTyped>();
    made->session = session_of_call(function, examples, count);
    Session& session = *made->session;
    SessionUse use(made->session, nullptr, IfBusy::wait);
    std::vector<lang::Value> arguments;
    for (size_t i = 0; i < count; ++i) {
      if (!examples[i]) refuse("unisono_typed_create: an example is null");
      arguments.push_back(attach(made->session, *examples[i]));
    }
    use.run([&] {
      made->function = lang::compile_typed(session.walk(), function->value,
                                           arguments, lang::Span());
    });
    const lang::Executable& executable = made->function.executable;
    made->device = device_in_place(executable);
    for (size_t i = 0; i < made->function.fixed.size(); ++i) {
      const auto& fixed = made->function.fixed[i];
      if (!fixed) made->inputs.push_back(i);
      made->fixed.push_back(fixed && made->device ? fixed->blocks()[0]->data()
                                                  : nullptr);
    }
    *typed = made.release();
  });
}

UnisonoTyped* unisono_typed_retain(UnisonoTyped* typed) {
  return retain(typed);
}
void unisono_typed_release(UnisonoTyped* typed) { release(typed); }

size_t unisono_typed_argument_count(const UnisonoTyped* typed) {
  return typed ? typed->inputs.size() : 0;
}
size_t unisono_typed_result_count(const UnisonoTyped* typed) {
  return typed ? typed->function.executable.outputs.size() : 0;
}

int unisono_typed_argument(const UnisonoTyped* typed, size_t index,
                           UnisonoTensor* tensor) {
  if (index >= unisono_typed_argument_count(typed) || !tensor) return 0;
  write_type(typed->function.executable.inputs[typed->inputs[index]], tensor);
  return 1;
}

int unisono_typed_result(const UnisonoTyped* typed, size_t index,
                         UnisonoTensor* tensor) {
  if (index >= unisono_typed_result_count(typed) || !tensor) return 0;
  write_type(*typed->function.executable.outputs[index], tensor);
  return 1;
}

UnisonoError* unisono_typed_call(const UnisonoTyped* typed,
                                 const void* const* arguments,
                                 void* const* results,
                                 const UnisonoCallOptions* options) {
  const bool is_plain = typed && arguments && results && !options;
  if (!is_plain || !typed->device) {
    if (typed && (arguments || typed->inputs.empty()) &&
        (results || typed->function.executable.outputs.empty()))
      return call_within(*typed, arguments, results, options);
    return guarded([] { refuse("unisono_typed_call: a parameter is null"); });
  }
  try {
    const VectorStateScope floating_point;
    unisono::embed::run_in_place(*typed, arguments, results, {});
    return nullptr;
  } catch (...) {
    return caught_error();
  }
}
