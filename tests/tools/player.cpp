// Plays programs for tests/run (tests/player.py), one after the other in this
// process and with one compiler: each writes what `unisono` with the same words
// writes, and ends with its status.
//
// A line of standard input is one program, as JSON: its `words`, the `folder`
// that it runs in, variables of its `environment`, and the files `out` and
// `err` for its output. The answer is a line with its exit status and the
// seconds of processors that it took.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/main.h"
#include "host/session/interrupt.h"

namespace {

/// Lets a standard stream be another file, which is made if it `is_written`.
bool redirect(int stream, const std::string& path, bool is_written) {
  const int flags = is_written ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
  const int file = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool done = dup2(file, stream) == stream;
  close(file);
  return done;
}

/// Variables of one program.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& all) {
    for (const auto& [name, value] : all) {
      const char* before = std::getenv(name.c_str());
      before_[name] =
          before ? std::optional<std::string>(before) : std::nullopt;
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_)
      if (value)
        setenv(name.c_str(), value->c_str(), 1);
      else
        unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

/// Lets the simulated driver, if the program used it, tell what it found.
void end_simulation(const std::string& driver) {
  void* library = dlopen(driver.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!library) return;
  if (auto* end = reinterpret_cast<void (*)()>(dlsym(library, "simcuda_end")))
    end();
  dlclose(library);
}

double seconds_used() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

int play(const nlohmann::json& program,
         const std::shared_ptr<unisono::jit::Compiler>& compiler,
         const std::string& driver) {
  const std::string folder = program.at("folder");
  if (chdir(folder.c_str()) != 0 ||
      !redirect(STDIN_FILENO, "/dev/null", false) ||
      !redirect(STDOUT_FILENO, program.at("out"), true) ||
      !redirect(STDERR_FILENO, program.at("err"), true))
    return 127;
  const Variables variables(program.at("environment"));
  std::vector<std::string> words = program.at("words");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int status = unisono::host::command_line(static_cast<int>(words.size()),
                                                 pointers.data(), "", compiler);
  end_simulation(driver);
  std::fflush(stdout);
  // As in a process that begins.
  std::clearerr(stdin);
  std::clearerr(stdout);
  unisono::host::forget_interrupt();
  std::signal(SIGINT, SIG_DFL);
  return status;
}

}  // namespace

/// The argument is the simulated driver's path.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const int programs = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  FILE* lines = fdopen(programs, "r");
  const auto compiler = std::make_shared<unisono::jit::Compiler>();
  char* line = nullptr;
  size_t size = 0;
  while (getline(&line, &size, lines) > 0) {
    const double before = seconds_used();
    const int status = play(nlohmann::json::parse(line), compiler, argv[1]);
    const std::string answer =
        fmt::format("{} {:.6f}\n", status, seconds_used() - before);
    if (write(answers, answer.data(), answer.size()) < 0) return 1;
  }
  std::free(line);
  return 0;
}
