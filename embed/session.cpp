#include "embed/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "embed/options.h"
#include "embed/value.h"
#include "host/session/help.h"
#include "lang/context/environment.h"
#include "lang/ops/print_value.h"
#include "lang/syntax/lexer.h"
#include "lang/syntax/parser.h"
#include "runtime/stack_thread.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::embed {
namespace {

/// The innermost callback that this thread is in.
constinit thread_local const CallbackScope* innermost_callback = nullptr;

constexpr uint32_t all_grants = UNISONO_GRANT_FILES;

void check_options(const UnisonoSessionOptions& options) {
  if (!tuning_problem().empty()) refuse(tuning_problem());
  if ((options.grants & ~all_grants) != 0)
    refuse(fmt::format("unknown grants: {}", options.grants & ~all_grants));
  if (options.depth > lang::Limits::most_depth)
    refuse(fmt::format("`depth` is at most {}", lang::Limits::most_depth));
  if (options.device_bytes < 0) refuse("`device_bytes` is negative");
  if (options.host_bytes < 0) refuse("`host_bytes` is negative");
  if (options.watchdog < -1) refuse("`watchdog` is negative");
  if (options.argument_count > 0 && !options.arguments)
    refuse("`arguments` is null");
}

std::chrono::milliseconds watchdog_of(int64_t milliseconds) {
  if (milliseconds == 0) return std::chrono::milliseconds(60'000);
  return std::chrono::milliseconds(std::max<int64_t>(milliseconds, 0));
}

}  // namespace

CallbackScope::CallbackScope(const Session& session)
    : session_(session), around_(innermost_callback) {
  innermost_callback = this;
}
CallbackScope::~CallbackScope() { innermost_callback = around_; }

bool CallbackScope::is_in(const Session& session) {
  for (const CallbackScope* scope = innermost_callback; scope;
       scope = scope->around_)
    if (&scope->session_ == &session) return true;
  return false;
}

Session::Session(std::shared_ptr<Engine> engine,
                 const UnisonoSessionOptions& options)
    : engine_(std::move(engine)),
      runtime_(
          (check_options(options), engine_->machine(options.device_bytes))) {
  host::SessionOptions inside;
  inside.runtime = runtime_;
  inside.compiler = engine_->compiler();
  inside.reference_only = engine_->reference_only();
  inside.interactive = true;
  inside.watchdog = watchdog_of(options.watchdog);
  inside.files = (options.grants & UNISONO_GRANT_FILES) != 0;
  inside.output = [this](std::string_view text) { print(text); };
  if (options.import)
    inside.import = [this](const std::string& path) { return import(path); };
  for (size_t i = 0; i < options.argument_count; ++i)
    inside.arguments.emplace_back(options.arguments[i] ? options.arguments[i]
                                                       : "");
  session_ = std::make_unique<host::Session>(std::move(inside));
  lang::Limits& limits = session_->machine().limits;
  if (options.depth > 0) limits.depth = static_cast<int>(options.depth);
  limits.host_bytes = options.host_bytes;
}

Session::~Session() = default;

void Session::keep_callbacks(const UnisonoSessionOptions& options) {
  callbacks_.print = options.print;
  callbacks_.import = options.import;
  callbacks_.user = options.user;
  callbacks_.release = options.release;
}

/// Compiled code prints, too, and may run on several threads at once.
void Session::print(std::string_view text) {
  if (!callbacks_.print) return;
  const std::lock_guard lock(print_mutex_);
  UnisonoReply reply;
  const CallbackScope scope(*this);
  callbacks_.print(callbacks_.user, text.data(), text.size(), &reply);
  if (reply.failed)
    throw lang::Failure{lang::diagnostic(lang::Code::host_function_failed,
                                         lang::Span(), "print", reply.failure)};
}

Result<std::string> Session::import(const std::string& path) {
  UnisonoReply reply;
  const CallbackScope scope(*this);
  callbacks_.import(callbacks_.user, path.c_str(), &reply);
  if (reply.failed) return Error{Error::Kind::io, reply.failure};
  return std::move(reply.text);
}

std::unique_ptr<UnisonoError> Session::warnings() const {
  const std::lock_guard lock(warnings_mutex_);
  return warnings_ ? std::make_unique<UnisonoError>(*warnings_) : nullptr;
}

bool is_name(const std::string& text) {
  const lang::SourceFile file("", text);
  lang::Diagnostics ignored;
  const lang::Tokens tokens = lang::lex(file, ignored);
  return ignored.empty() && tokens.tokens.size() == 2 &&
         tokens.tokens[0].kind == lang::TokenKind::Identifier &&
         tokens.tokens[0].begin == 0 && tokens.tokens[0].end == text.size();
}

SessionUse::SessionUse(std::shared_ptr<Session> session,
                       const UnisonoCallOptions* options, IfBusy if_busy)
    : session_(std::move(session)),
      lock_(session_->use_, std::defer_lock),
      stop_(session_->engine().deadlines(), read_options(options)),
      wall_nanoseconds_(read_options(options).wall_nanoseconds) {
  if (CallbackScope::is_in(*session_))
    refuse("a callback must not use the session that calls it", UNISONO_BUSY);
  if (if_busy == IfBusy::wait)
    lock_.lock();
  else if (!lock_.try_lock())
    refuse("another thread uses the session", UNISONO_BUSY);
  lang::Machine& machine = session_->inside().machine();
  machine.stop = stop_.flag();
  machine.limits.steps = read_options(options).steps;
  machine.limits.steps_taken = machine.limits.host_bytes_made = 0;
}

SessionUse::~SessionUse() {
  session_->inside().machine().stop = nullptr;
  session_->inside().diagnostics().truncate(0);
}

void SessionUse::run(const std::function<void()>& body) {
  conclude(session_->walk().run_from_host(body));
}

void SessionUse::run_whole(const std::function<bool()>& body) {
  bool ok = false;
  session_->walk().on_stack([&] { ok = body(); });
  conclude(ok);
}

void SessionUse::conclude(bool ok) {
  lang::Diagnostics& said = session_->inside().diagnostics();
  if (ok) {
    auto warnings = said.empty() ? nullptr : make_error(UNISONO_NO_ERROR, said);
    const std::lock_guard lock(session_->warnings_mutex_);
    session_->warnings_ = std::move(warnings);
    return;
  }
  UnisonoErrorKind kind = kind_of(said);
  if (kind == UNISONO_CANCELLED && stop_.is_late()) {
    lang::Diagnostics late;
    for (lang::Diagnostic d : said.all()) {
      if (d.code == lang::Code::cancelled)
        d = lang::diagnostic(
            lang::Code::limit_reached, d.where,
            fmt::format("{} s", static_cast<double>(wall_nanoseconds_) / 1e9));
      late.add(std::move(d));
    }
    throw Reported(make_error(UNISONO_LIMIT, late));
  }
  if (kind == UNISONO_NO_ERROR)
    refuse("a call failed and said nothing", UNISONO_INTERNAL);
  throw Reported(make_error(kind, said));
}

namespace {

const std::shared_ptr<Session>& session_of(const UnisonoSession* session) {
  if (!session) refuse("the session is null");
  return session->session;
}

std::string text_of(const char* text, size_t length) {
  if (!text && length > 0) refuse("the text is null");
  return text ? std::string(text, length) : std::string();
}

std::string name_of(const char* name) {
  if (!name) refuse("the name is null");
  return name;
}

/// What a function of the host reads, or writes.
class Tensors {
 public:
  explicit Tensors(const std::vector<jit::HostArray>& arrays) {
    shapes_.reserve(arrays.size());
    for (const jit::HostArray& array : arrays) {
      shapes_.push_back(array.type.sizes());
      all_.push_back({const_cast<uint8_t*>(array.bytes.data()),
                      shapes_.back().data(), nullptr,
                      static_cast<int32_t>(shapes_.back().size()),
                      dtype_number(array.type.dtype)});
    }
  }
  const UnisonoTensor* data() const { return all_.data(); }

 private:
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<UnisonoTensor> all_;
};

Status call_function(const Session& session, UnisonoHostFunction function,
                     void* user, const std::vector<jit::HostArray>& arguments,
                     std::vector<jit::HostArray>& results) {
  const Tensors from(arguments), to(results);
  UnisonoReply reply;
  const CallbackScope scope(session);
  function(user, from.data(), to.data(), &reply);
  if (reply.failed)
    return Error{.kind = Error::Kind::host_function, .message = reply.failure};
  // Any byte but 0 is true in the host's memory, and 1 alone in ours.
  for (jit::HostArray& result : results)
    if (result.type.dtype == DType::Bool)
      for (uint8_t& truth : result.bytes) truth = truth != 0;
  return Unit{};
}

int32_t completeness(std::string text) {
  const lang::SourceFile file("", std::move(text));
  lang::Diagnostics ignored;
  // The parser recurses, and the host's stack may be small.
  int32_t found = UNISONO_INVALID;
  const auto parse = [&] {
    try {
      const lang::ParseResult result = lang::parse(file, ignored);
      found = result.ok           ? UNISONO_COMPLETE
              : result.incomplete ? UNISONO_INCOMPLETE
                                  : UNISONO_INVALID;
    } catch (const std::exception&) {
      found = UNISONO_INVALID;  // no memory for it
    }
  };
  constexpr size_t stack = size_t{64} << 20;
  bool started = false;
  {
    const StackThread thread(stack, parse);
    started = thread.started();
  }
  if (!started) refuse("there is no memory for a thread", UNISONO_MEMORY);
  return found;
}

}  // namespace
}  // namespace unisono::embed

using namespace unisono;
using namespace unisono::embed;

void unisono_reply_text(UnisonoReply* reply, const char* text, size_t length) {
  if (!reply || !text) return;
  try {
    reply->text.assign(text, length);
  } catch (const std::exception&) {
    unisono_reply_fail(reply, "no memory", 9);
  }
}

void unisono_reply_fail(UnisonoReply* reply, const char* message,
                        size_t length) {
  if (!reply) return;
  reply->failed = true;
  try {
    reply->failure.assign(message ? message : "", message ? length : 0);
  } catch (const std::exception&) {
    reply->failure.clear();
  }
}

UnisonoError* unisono_session_create(UnisonoEngine* engine,
                                     const UnisonoSessionOptions* options,
                                     UnisonoSession** session) {
  return guarded([&] {
    if (!engine || !session)
      refuse("unisono_session_create: the engine or `session` is null");
    const UnisonoSessionOptions all = read_options(options);
    auto made = std::make_unique<UnisonoSession>();
    made->session = std::make_shared<Session>(engine->engine, all);
    made->session->keep_callbacks(all);
    *session = made.release();
  });
}

void unisono_session_release(UnisonoSession* session) {
  if (!session) return;
  const FloatingPointScope floating_point;
  delete session;
}

UnisonoError* unisono_eval(UnisonoSession* session, const char* source,
                           size_t length, const char* name,
                           const UnisonoCallOptions* options,
                           UnisonoValue** result) {
  return guarded([&] {
    const std::shared_ptr<Session> in = session_of(session);
    std::string text = text_of(source, length);
    SessionUse use(in, options, IfBusy::fail);
    std::optional<lang::Value> last;
    use.run_whole([&] {
      const lang::Program* program =
          in->inside().check(name ? name : "<eval>", std::move(text));
      return program && in->inside().run(*program, result ? &last : nullptr);
    });
    if (result) *result = wrap(in, last.value_or(lang::Value()));
  });
}

UnisonoError* unisono_check(UnisonoSession* session, const char* source,
                            size_t length, const char* name) {
  return guarded([&] {
    const std::shared_ptr<Session> in = session_of(session);
    std::string text = text_of(source, length);
    SessionUse use(in, nullptr, IfBusy::fail);
    use.run_whole([&] {
      return in->inside().check(name ? name : "<eval>", std::move(text)) !=
             nullptr;
    });
  });
}

UnisonoError* unisono_session_warnings(const UnisonoSession* session) {
  if (!session) return nullptr;
  UnisonoError* warnings = nullptr;
  UnisonoError* error =
      guarded([&] { warnings = session->session->warnings().release(); });
  return error ? error : warnings;
}

int32_t unisono_completeness(const char* source, size_t length) {
  int32_t found = UNISONO_INVALID;
  UnisonoError* error =
      guarded([&] { found = completeness(text_of(source, length)); });
  unisono_error_release(error);
  return found;
}

UnisonoError* unisono_session_get(UnisonoSession* session, const char* name,
                                  UnisonoValue** value) {
  return guarded([&] {
    const std::shared_ptr<Session> in = session_of(session);
    const std::string wanted = name_of(name);
    if (!value) refuse("unisono_session_get: `value` is null");
    SessionUse use(in, nullptr, IfBusy::fail);
    std::optional<lang::Value> found;
    use.run([&] {
      found = host::find_value(in->inside(), wanted);
      if (!found)
        in->walk().fail(
            lang::diagnostic(lang::Code::unknown_name, lang::Span(), wanted));
    });
    *value = wrap(in, *found);
  });
}

UnisonoError* unisono_session_set(UnisonoSession* session, const char* name,
                                  const UnisonoValue* value) {
  return guarded([&] {
    const std::shared_ptr<Session> in = session_of(session);
    const std::string wanted = name_of(name);
    if (!value) refuse("unisono_session_set: `value` is null");
    if (!is_name(wanted))
      refuse(fmt::format("`{}` is not a name that a program could define",
                         wanted));
    SessionUse use(in, nullptr, IfBusy::fail);
    lang::Value inside = attach(in, *value, Foreign::copy);
    use.run([&] { in->walk().set_global(wanted, std::move(inside)); });
  });
}

UnisonoError* unisono_define_function(UnisonoSession* session,
                                      const char* declaration, uint32_t flags,
                                      UnisonoHostFunction function, void* user,
                                      UnisonoRelease release) {
  return guarded([&] {
    const std::shared_ptr<Session> in = session_of(session);
    std::string text = name_of(declaration);
    if (!function) refuse("unisono_define_function: `function` is null");
    if (flags & ~uint32_t{UNISONO_FUNCTION_HAS_EFFECTS})
      refuse(fmt::format("unknown flags of a function: {}", flags));
    SessionUse use(in, nullptr, IfBusy::fail);
    const auto owner = std::make_shared<Owner>();
    // Functions live as long as their session.
    const auto call = [in = in.get(), function, user, owner](
                          const std::vector<jit::HostArray>& arguments,
                          std::vector<jit::HostArray>& results) {
      return call_function(*in, function, user, arguments, results);
    };
    use.run_whole([&] {
      return in->inside().define(
          std::move(text), (flags & UNISONO_FUNCTION_HAS_EFFECTS) == 0, call);
    });
    owner->user = user;
    owner->release = release;
  });
}

UnisonoError* unisono_session_names(UnisonoSession* session,
                                    UnisonoValue** names) {
  return guarded([&] {
    const std::shared_ptr<Session> in = session_of(session);
    if (!names) refuse("unisono_session_names: `names` is null");
    SessionUse use(in, nullptr, IfBusy::fail);
    std::vector<std::string> all;
    use.run([&] {
      for (const auto& [name, binding] : in->walk().globals()->names)
        if (!binding.poisoned) all.push_back(name);
    });
    std::ranges::sort(all);
    std::vector<lang::Value> items;
    for (std::string& name : all)
      items.emplace_back(lang::StrValue{std::move(name)});
    *names = wrap(nullptr, lang::make_tuple(std::move(items)));
  });
}

UnisonoError* unisono_session_format(UnisonoSession* session,
                                     const UnisonoValue* value,
                                     UnisonoValue** text) {
  return guarded([&] {
    const std::shared_ptr<Session> in = session_of(session);
    if (!value || !text)
      refuse("unisono_session_format: `value` or `text` is null");
    SessionUse use(in, nullptr, IfBusy::fail);
    const lang::Value inside = attach(in, *value);
    std::string shown;
    use.run([&] {
      shown = lang::to_text(in->walk(), inside, /*placed=*/true, lang::Span());
    });
    *text = wrap(nullptr, lang::StrValue{std::move(shown)});
  });
}
