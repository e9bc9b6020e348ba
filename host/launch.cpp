#include "host/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "host/commands.h"
#include "host/session/processes.h"
#include "runtime/cluster/socket_transport.h"

namespace unisono::host {
namespace {

using Clock = std::chrono::steady_clock;

/// When one has ended, the others know: so long after it they do not end any
/// more.
constexpr std::chrono::seconds patience{10};

/// As many files may be open as the system allows, while this lives: who starts
/// processes has the sockets of all that are not started yet.
class ManyFiles {
 public:
  ManyFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit most{before_.rlim_max, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
  }
  ~ManyFiles() { end(); }
  ManyFiles(const ManyFiles&) = delete;
  void end() const { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// In the new process. Returns only if the program cannot be started.
void become(const Sockets& sockets, std::vector<char*>& words, pid_t parent) {
  // It goes with who started it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  std::string value;
  for (const int end : sockets.ends()) {
    if (end >= 0) fcntl(end, F_SETFD, 0);
    if (!value.empty()) value += '/';
    value += end < 0 ? "-" : std::to_string(end);
  }
  setenv(launched_variable, value.c_str(), 1);
  execv("/proc/self/exe", words.data());
}

struct Child {
  pid_t id = 0;
  bool ended = false;
  int status = 0;  // as waitpid gives it
};

/// What `launch` ends with: the status of the first that has one.
int status_of(const std::vector<Child>& children) {
  int signalled = -1;
  for (size_t p = 0; p < children.size(); ++p) {
    const int status = children[p].status;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (signalled < 0) signalled = static_cast<int>(p);
  }
  tell(fmt::format("error: process {} was ended by signal {} ({})\n", signalled,
                   WTERMSIG(children[signalled].status),
                   strsignal(WTERMSIG(children[signalled].status))));
  return 1;
}

void await(std::vector<Child>& children) {
  size_t left = children.size();
  Clock::time_point known{};  // since one has ended by itself
  bool one_ended = false;
  while (left > 0) {
    int status = 0;
    const pid_t id = waitpid(-1, &status, one_ended ? WNOHANG : 0);
    if (id < 0 && errno != EINTR) return;
    if (id > 0) {
      for (Child& child : children) {
        if (child.id != id) continue;
        child.ended = true;
        child.status = status;
        --left;
      }
      if (WIFEXITED(status) && !one_ended) {
        one_ended = true;
        known = Clock::now();
      }
      continue;
    }
    if (one_ended && Clock::now() - known > patience)
      for (const Child& child : children)
        if (!child.ended) kill(child.id, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// Starts them, or says what kept it from that and ends those that it has.
std::vector<Child> start(int processes, std::vector<char*>& words) {
  const pid_t parent = getpid();
  const ManyFiles many;
  SocketPairs pairs(processes);
  std::vector<Child> children;
  for (int p = 0; p < processes; ++p) {
    const auto sockets = pairs.next();
    const pid_t id = sockets ? fork() : -1;
    if (id == 0) {
      many.end();
      become(*sockets, words, parent);
      _exit(127);
    }
    if (id < 0) {
      tell(fmt::format(
          "error: cannot start process {}: {}\n", p,
          sockets ? std::strerror(errno) : sockets.error().message));
      for (const Child& child : children) kill(child.id, SIGKILL);
      break;
    }
    children.push_back({id});
  }
  return children;
}

}  // namespace

int launch(int processes, const std::vector<std::string>& words) {
  std::vector<std::string> all = {"unisono", "run"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::vector<Child> children = start(processes, pointers);
  // Ctrl-C is theirs: they end, and so does this.
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  await(children);
  sigaction(SIGINT, &before, nullptr);
  if (static_cast<int>(children.size()) < processes) return 1;
  return status_of(children);
}

}  // namespace unisono::host
