#pragma once
// Where the time of a run goes, by place in the program, for `--explain-speed`.
// Where nobody asks there is none of this, and the cost is a null pointer.
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/recorder.h"

namespace unisono::lang {

class Walk;

/// Charges each moment of the thread that walks the program to one place, and
/// to what is done there. Not thread-safe: for that thread alone.
class LineTimes {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Part : uint8_t {
    walk,     // walks or traces the program
    code,     // runs a loop or a function as threaded code
    compile,  // makes a program for the devices
    devices,  // has the devices run one, and waits for them
    copies,   // brings an array to other devices, or to the host
  };
  static constexpr int parts = 5;
  /// By numbers of places in the program, as kernels have them.
  using Places = std::vector<uint32_t>;
  struct Times {
    std::array<std::chrono::nanoseconds, parts> time = {};
    int64_t compilations = 0;
  };

  /// `recorder` is told of the kernels: the time of a run is divided among the
  /// places of what its kernels compute, as the kernels' times are.
  explicit LineTimes(const Recorder& recorder) : recorder_(recorder) {}

  /// From now on, until `end`, this is done at that place; 0: at the one where
  /// something was done before.
  void begin(Part part, uint32_t place);
  void end();
  void count_compilation();
  /// Why something there took the slower way; 0: as above. Once for each text.
  void note(uint32_t place, std::string text);

  const std::map<Places, Times>& times() const { return times_; }
  const std::set<std::pair<uint32_t, std::string>>& notes() const {
    return notes_;
  }

 private:
  struct Doing {
    Part part = Part::walk;
    uint32_t place = 0;
  };
  using KernelTimes = std::map<Places, Recorder::Total>;
  void charge();
  void charge_run(std::chrono::nanoseconds passed);

  const Recorder& recorder_;
  Clock::time_point charged_;  // all before is
  std::vector<Doing> doing_;   // the innermost last
  std::map<Places, Times> times_;
  std::set<std::pair<uint32_t, std::string>> notes_;
  KernelTimes kernels_;  // until the last run
};

/// Who is told, if somebody asks; null else. `times` outlives the walk.
LineTimes* line_times(Walk& walk);
void set_line_times(Walk& walk, LineTimes* times);

/// Something is done as long as this lives.
class LineTime {
 public:
  LineTime(LineTimes* times, LineTimes::Part part, uint32_t place)
      : times_(times) {
    if (times_) times_->begin(part, place);
  }
  ~LineTime() {
    if (times_) times_->end();
  }
  LineTime(const LineTime&) = delete;

 private:
  LineTimes* const times_;
};

}  // namespace unisono::lang
