// What a session on a terminal costs: from the start to the prompt, and from
// Enter to the next prompt. Python's is the peer, which computes a float where
// ours computes an array, as it has none.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness.h"

namespace bench {
namespace {

/// A program on a pseudo-terminal.
class Typed {
 public:
  Typed(const std::vector<std::string>& words, std::string prompt)
      : prompt_(std::move(prompt)) {
    std::vector<char*> arguments;
    for (const std::string& word : words)
      arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    winsize size = {24, 80, 0, 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ != 0) return;
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    setenv("UNISONO_HISTORY", "off", 1);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  ~Typed() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(terminal_);
  }
  Typed(const Typed&) = delete;
  Typed& operator=(const Typed&) = delete;

  void await_prompt() {
    for (std::string seen; !ends_with_prompt(seen);) {
      pollfd source = {terminal_, POLLIN, 0};
      std::array<char, 4096> bytes;
      const ssize_t count = poll(&source, 1, 20'000) > 0
                                ? read(terminal_, bytes.data(), bytes.size())
                                : 0;
      if (count <= 0) fail("a session shows no prompt");
      seen.append(bytes.data(), static_cast<size_t>(count));
    }
  }
  /// Types a line, and waits for what follows its answer.
  void answer(const std::string& line) {
    const std::string text = line + "\r";
    if (write(terminal_, text.data(), text.size()) < 0)
      fail("a session takes no input");
    await_prompt();
  }

 private:
  /// What an editor draws behind the prompt are controls alone.
  bool ends_with_prompt(std::string_view seen) const {
    const size_t found = seen.rfind(prompt_);
    if (found == seen.npos) return false;
    const std::string_view rest = seen.substr(found + prompt_.size());
    for (size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] == '\r') continue;
      if (rest[i] != '\x1b') return false;
      while (++i < rest.size() && (rest[i] == '[' || rest[i] == '?' ||
                                   ('0' <= rest[i] && rest[i] <= '9')))
        continue;
    }
    return true;
  }

  std::string prompt_;
  pid_t child_ = 0;
  int terminal_ = -1;
};

void add_pair(Table& table, const std::string& name, const Paired& times,
              double target) {
  table.add({.group = "session",
             .name = name,
             .ours = times.ours,
             .peer = times.peer,
             .ratio = times.ratio,
             .best_ratio = times.best_ratio,
             .target = target,
             .at_most = true,
             .note = "peer: python3 -i"});
}

}  // namespace

void sessions(Table& table) {
  const std::vector<std::string> ours{beside_this("unisono")};
  const std::vector<std::string> python{"python3", "-q", "-i"};
  const std::string start = "prompt after start";
  if (table.wanted("session", start))
    add_pair(table, start,
             time_pair([&] { Typed(ours, "]> ").await_prompt(); },
                       [&] { Typed(python, ">>> ").await_prompt(); },
                       Team::own_threads),
             10e-3);
  const std::string small = "expression of small arrays";
  if (!table.wanted("session", small)) return;
  Typed session(ours, "]> "), peer(python, ">>> ");
  session.await_prompt();
  peer.await_prompt();
  session.answer("let x = arange(8, f32)");
  peer.answer("x = 8.0");
  add_pair(table, small,
           time_pair([&] { session.answer("sum(x * 2.0 + 1.0)"); },
                     [&] { peer.answer("x * 2.0 + 1.0"); }, Team::own_threads),
           1e-3);
}

}  // namespace bench
