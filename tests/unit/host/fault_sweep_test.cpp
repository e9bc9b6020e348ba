// What becomes of a program when call k of the GPU's driver fails, for every k,
// once and for ever: a typed error with a place, nothing that stays behind in
// the driver, and a session that goes on. UNISONO_SWEEP=full also takes every
// k of sessions that begin anew.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/recorder.h"
#include "runtime/tuning/tuning.h"
#include "tests/unit/host/fault_programs.h"
#include "tests/unit/host/simulation.h"
#include "tests/unit/moved.h"

namespace unisono::host::testing {
namespace {

bool is_of_devices(lang::Code code) {
  return code == lang::Code::out_of_memory || code == lang::Code::device_lost ||
         code == lang::Code::compile_failed;
}

class Sweep {
 public:
  explicit Sweep(const FaultProgram& program, Recorder* recorder = nullptr)
      : program_(program), recorder_(recorder) {
    Machine cpus;
    REQUIRE(cpus.run(program.definitions).ok);
    const Outcome outcome = cpus.run(program.body);
    INFO(outcome.messages);
    REQUIRE(outcome.ok);
    expected_ = with_names(outcome.output);
  }

  Sweep(const Sweep&) = delete;

  /// One session in which call after call fails, of each `step` one.
  void warm(const char* code, bool sticky, bool loses, uint64_t step = 1) {
    open();
    const uint64_t before = calls();
    good();
    const uint64_t count = calls() - before;
    for (uint64_t k = 1; k <= count; k += step) {
      const std::string fault = "fail=*:" + std::to_string(k) + ":" + code +
                                (sticky ? ":sticky" : "");
      INFO(program_.name, ": ", fault);
      plan(fault);
      const Outcome outcome = machine_->run(program_.body);
      const std::string call(failed_call());
      INFO("in ", call, "\n", outcome.messages);
      plan("");
      judge(outcome);
      ++cases;
      if (!loses) {
        good();
      } else if (!machine_->run(program_.body).ok) {
        lost();
        close();
        open();
      }
    }
    close();
  }

  /// Sessions that begin anew, with a failing call anywhere in their life.
  void cold(const char* code, bool sticky, uint64_t most) {
    open();
    close();
    const uint64_t count = lifetime_;
    const uint64_t step = std::max<uint64_t>(1, count / most);
    for (uint64_t k = 1 + step / 2; k <= count; k += step) {
      const std::string fault = "fail=*:" + std::to_string(k) + ":" + code +
                                (sticky ? ":sticky" : "");
      INFO(program_.name, ", from the beginning: ", fault);
      ++cases;
      auto devices = gpus(fault);
      if (!devices) {
        CHECK(!devices.error().message.empty());
      } else {
        machine_ = std::make_unique<Machine>(std::move(*devices));
        Outcome outcome = machine_->run(program_.definitions);
        if (outcome.ok) outcome = machine_->run(program_.body);
        INFO(outcome.messages);
        judge(outcome);
        CHECK(machine_->run("print(1 + 2)").output == "3\n");
      }
      close();
    }
  }

  /// Work that fails on the device itself, which is told later.
  void operations() {
    for (int device = 0; device < 3; ++device)
      for (uint64_t k = 1;; ++k) {
        const std::string fault = "fault=" + std::to_string(device) + ":" +
                                  std::to_string(k) + ":illegal_address";
        INFO(program_.name, ": ", fault);
        open();
        plan(fault);
        const Outcome outcome = machine_->run(program_.body);
        plan("");
        INFO(outcome.messages);
        judge(outcome);
        const bool struck = !machine_->run(program_.body).ok;
        ++cases;
        if (struck) lost();
        close();
        if (!struck) break;
      }
  }

  int cases = 0;

 private:
  static std::string with_names(std::string text) {
    for (size_t at; (at = text.find("cpu:")) != text.npos;)
      text.replace(at, 4, "sim:");
    return text;
  }

  Result<std::vector<std::unique_ptr<Device>>> gpus(const std::string& fault) {
    return simulated_gpus("devices=3;memory=1G;peers=" +
                          std::string(program_.peers) + ";" + fault);
  }
  void open() {
    auto devices = gpus("");
    REQUIRE(devices);
    machine_ = std::make_unique<Machine>(std::move(*devices), recorder_);
    REQUIRE(machine_->run(program_.definitions).ok);
    good();
  }
  /// Whatever has failed, all was given back, or the driver refused it.
  void close() {
    machine_.reset();
    lifetime_ = calls();
    const std::string call(failed_call());
    INFO("last failed: ", call);
    plan("");
    CHECK(report("simcuda_leaks") == "");
    // Devices that read a lost one's memory are lost, too. Nobody writes what
    // it should have: no kernel reads that, and the host does not believe it.
    const std::string findings = report("simcuda_findings");
    const bool lost = findings.find("planned fault") != findings.npos;
    for (std::string_view line : lines(findings)) {
      const bool follows = line.find(": error ") != line.npos ||
                           line.starts_with("a copy to the host reads");
      CHECK_MESSAGE((lost && follows), line);
    }
    end_contexts();  // one that could not be released would stay for ever
  }
  void good() {
    const Outcome outcome = machine_->run(program_.body);
    INFO(outcome.messages);
    CHECK(outcome.ok);
    CHECK(outcome.output == expected_);
  }
  /// The result, or an error that says what and where.
  void judge(const Outcome& outcome) {
    if (outcome.ok) {
      CHECK(outcome.output == expected_);
      return;
    }
    CHECK(is_of_devices(outcome.code));
    CHECK(outcome.has_place());
    CHECK(outcome.messages.find("sim:") != std::string::npos);
  }
  void lost() {
    const Outcome again = machine_->run(program_.body);
    INFO(again.messages);
    CHECK(again.code == lang::Code::device_lost);
    CHECK(machine_->run("print(1 + 2)").output == "3\n");
  }

  const FaultProgram& program_;
  Recorder* const recorder_;
  /// Two turns of a loop are captured at once.
  const Moved captures_{[](Tuning& own) {
    own.gpu_much_work_at_once = 1;
    own.gpu_most_captured_work = 8;
  }};
  std::string expected_;
  std::unique_ptr<Machine> machine_;
  uint64_t lifetime_ = 0;
};

bool full() {
  const char* sweep = std::getenv("UNISONO_SWEEP");
  return sweep && std::string_view(sweep) == "full";
}

TEST_CASE("each call of the driver fails, in a session that goes on") {
  Folder folder;
  const uint64_t step = full() ? 1 : 4;
  int cases = 0;
  for (const FaultProgram& program : fault_programs) {
    Sweep sweep(program);
    sweep.warm("out_of_memory", false, false, full() ? 1 : 2);
    sweep.warm("not_supported", false, false, step);
    sweep.warm("out_of_memory", true, false, step);
    sweep.warm("illegal_address", false, true, step);
    cases += sweep.cases;
  }
  MESSAGE(cases << " cases");
}

TEST_CASE("calls of the driver fail while a recorder is told of times") {
  Folder folder;
  Recorder recorder(true);
  Sweep sweep(fault_programs[5], &recorder);
  sweep.warm("not_supported", false, false, full() ? 1 : 7);
  sweep.warm("illegal_address", false, true, full() ? 1 : 31);
  for (const Recorder::Event& event : recorder.events())
    REQUIRE(event.end >= event.start);
  CHECK(recorder.total(Recorder::Kind::kernel, 0).count > 0);
  MESSAGE(sweep.cases << " cases");
}

TEST_CASE("a recorder is told the same if times are waited for one by one") {
  const FaultProgram& program = fault_programs[5];
  std::vector<int64_t> counts;
  for (const size_t most : {tuning().most_timed_events, size_t{1}}) {
    const Moved moved([&](Tuning& own) { own.most_timed_events = most; });
    Recorder recorder(true);
    auto devices = simulated_gpus("devices=3;memory=1G");
    REQUIRE(devices);
    Machine machine(std::move(*devices), &recorder);
    REQUIRE(machine.run(program.definitions).ok);
    REQUIRE(machine.run(program.body).ok);
    for (int device = 0; device < 3; ++device)
      for (const auto kind : {Recorder::Kind::kernel, Recorder::Kind::wait,
                              Recorder::Kind::collective}) {
        counts.push_back(recorder.total(kind, device).count);
        CHECK(counts.back() > 0);
      }
  }
  REQUIRE(counts.size() == 18);
  CHECK(std::equal(counts.begin(), counts.begin() + 9, counts.begin() + 9));
}

TEST_CASE("each call of the driver fails, from the beginning") {
  Folder folder;
  const uint64_t most = full() ? ~uint64_t{0} : 20;
  int cases = 0;
  for (const FaultProgram& program : fault_programs) {
    Sweep sweep(program);
    sweep.cold("out_of_memory", false, most);
    sweep.cold("not_supported", true, most);
    sweep.cold("launch_failed", false, most);
    cases += sweep.cases;
  }
  MESSAGE(cases << " cases");
}

TEST_CASE("each operation of a device fails") {
  Folder folder;
  int cases = 0;
  for (const FaultProgram& program : fault_programs) {
    Sweep sweep(program);
    sweep.operations();
    cases += sweep.cases;
  }
  MESSAGE(cases << " cases");
}

}  // namespace
}  // namespace unisono::host::testing
