#pragma once
// A session of the C interface: host::Session, used by one call at a time.
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "embed/counted.h"
#include "embed/engine.h"
#include "embed/stop.h"
#include "embed/unisono.h"
#include "host/session/session.h"

/// What a callback says: see unisono_reply_text.
struct UnisonoReply {
  std::string text, failure;
  bool failed = false;
};

namespace unisono::embed {

/// The host's callbacks, and the data that they want.
struct Callbacks {
  UnisonoPrint print = nullptr;
  UnisonoImport import = nullptr;
  void* user = nullptr;
  UnisonoRelease release = nullptr;
  ~Callbacks() {
    if (release) release(user);
  }
};

/// Kept by the values that belong to it.
class Session {
 public:
  Session(std::shared_ptr<Engine> engine, const UnisonoSessionOptions& options);
  Session(const Session&) = delete;
  ~Session();
  /// From now on `release` of the options will be called.
  void keep_callbacks(const UnisonoSessionOptions& options);

  Engine& engine() const { return *engine_; }
  Runtime& runtime() const { return *runtime_; }
  host::Session& inside() { return *session_; }
  lang::Walk& walk() { return session_->walk(); }
  std::unique_ptr<UnisonoError> warnings() const;

 private:
  friend class SessionUse;
  void print(std::string_view text);
  Result<std::string> import(const std::string& path);

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Runtime> runtime_;
  Callbacks callbacks_;
  std::mutex print_mutex_;
  std::unique_ptr<host::Session> session_;
  std::mutex use_;
  mutable std::mutex warnings_mutex_;
  std::unique_ptr<UnisonoError> warnings_;
};

/// Whether a program could define this name, or have a field of it.
bool is_name(const std::string& text);

/// What a call of a busy session does.
enum class IfBusy { fail, wait };

/// A call that uses a session. Refused if that is in use, and the call is not
/// to wait, or comes from a callback of the session.
class SessionUse {
 public:
  SessionUse(std::shared_ptr<Session> session,
             const UnisonoCallOptions* options, IfBusy if_busy);
  ~SessionUse();
  SessionUse(const SessionUse&) = delete;
  SessionUse& operator=(const SessionUse&) = delete;

  /// Runs `body` as Walk::run_from_host does. Throws what the session reports
  /// if that fails; else its warnings are the session's.
  void run(const std::function<void()>& body);
  /// The same; `body` says by itself whether it failed, and reports that.
  void run_whole(const std::function<bool()>& body);

 private:
  void conclude(bool ok);

  const std::shared_ptr<Session> session_;
  std::unique_lock<std::mutex> lock_;
  CallStop stop_;
  int64_t wall_nanoseconds_;
};

/// While it lives, this thread is in a callback of the session.
class CallbackScope {
 public:
  explicit CallbackScope(const Session& session);
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  /// Whether this thread is in a callback of the session, or in one of another
  /// session that one of it led to.
  static bool is_in(const Session& session);

 private:
  const Session& session_;
  const CallbackScope* const around_;
};

}  // namespace unisono::embed

struct UnisonoSession {
  std::shared_ptr<unisono::embed::Session> session;
};
