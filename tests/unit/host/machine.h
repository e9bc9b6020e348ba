#pragma once
// A session for sweeps of faults: its output is kept, its errors are forgotten.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/session/session.h"

namespace unisono::host::testing {

struct Outcome {
  bool ok = false;
  std::string output;    // what was printed
  std::string messages;  // else why not
  lang::Code code{};

  bool has_place() const {
    return messages.find("--> case.uni:") != std::string::npos;
  }
};

class Machine {
 public:
  /// On these devices, or else on three CPU devices. The recorder, if there is
  /// one, outlives it.
  explicit Machine(std::vector<std::unique_ptr<Device>> devices = {},
                   Recorder* recorder = nullptr) {
    SessionOptions options;
    options.cpu_devices = 3;
    options.devices = std::move(devices);
    options.recorder = recorder;
    options.output = [this](std::string_view text) { output_ += text; };
    session_ = std::make_unique<Session>(std::move(options));
  }

  Outcome run(const std::string& text) {
    output_.clear();
    Outcome outcome;
    const lang::Program* program = session_->check("case.uni", text);
    outcome.ok = program && session_->run(*program);
    outcome.output = output_;
    lang::Diagnostics& diagnostics = session_->diagnostics();
    if (!diagnostics.empty() && before_messages) before_messages();
    outcome.messages = lang::render(diagnostics);
    if (!diagnostics.empty()) outcome.code = diagnostics.all().front().code;
    diagnostics.truncate(0);
    return outcome;
  }

  /// Called before messages are made into text, which takes memory, too.
  std::function<void()> before_messages = nullptr;

 private:
  std::string output_;
  std::unique_ptr<Session> session_;
};

/// A folder of its own for the files that programs write.
class Folder {
 public:
  Folder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "unisono_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    here_ = name;
    std::filesystem::current_path(here_);
  }
  ~Folder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(here_);
  }
  Folder(const Folder&) = delete;
  int64_t files() const {
    const auto entries = std::filesystem::directory_iterator(here_);
    return std::distance(begin(entries), end(entries));
  }

 private:
  std::filesystem::path before_ = std::filesystem::current_path(), here_;
};

}  // namespace unisono::host::testing
