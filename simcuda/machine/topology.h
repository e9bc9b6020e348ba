#pragma once
// The configuration of a simulation: devices, which of them reach each other,
// the order of work, faults. It is a text of `key=value` pairs, separated by
// newlines or `;`; `#` begins a comment; docs/testing.md lists the keys. A
// value for devices may be a list, one item for each device; the last is used
// for all the rest.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/types.h"
#include "simcuda/machine/block.h"

namespace simcuda {

/// The properties of one simulated device.
struct DeviceModel {
  int capability = 90;  // 10 × major + minor
  uint64_t memory = uint64_t{16} << 30;
  int multiprocessors = 8;
  int slow = 1;  // how many times more rarely its work is chosen

  int shared_per_block() const { return 48 << 10; }
  int shared_per_block_optin() const;
  int shared_per_multiprocessor() const;
  int threads_per_multiprocessor() const;
  int blocks_per_multiprocessor() const;
};

/// One rule of the fault plan.
struct FaultRule {
  enum class Kind : uint8_t {
    call,       // the count-th call of `function`, or of any
    operation,  // the count-th operation that device `device` executes
    bytes,      // an allocation on `device` beyond `count` bytes in all
  };
  Kind kind = Kind::call;
  std::string function;  // empty: any
  int device = -1;       // -1: any
  uint64_t count = 1;
  unisono::cuda::Code code = unisono::cuda::unknown;
  bool sticky = false;  // from then on always
};

struct Configuration {
  int devices = 1;
  std::vector<DeviceModel> models;       // one for each device
  std::vector<std::vector<bool>> peers;  // [from][to]
  uint64_t seed = 0;
  enum class Schedule : uint8_t {
    fifo,  // in the order of the calls
    random,
    newest,  // the last call's work first
    starve,  // some streams only when nothing else is left
    lazy,    // only what somebody waits for
  };
  Schedule schedule = Schedule::fifo;
  /// Whether a thread does what is ready, as a GPU does by itself; else only
  /// who waits for something.
  bool goes_on = false;
  int threads = 0;
  int64_t fuel = int64_t{1} << 34;  // instructions of warps, for a launch
  int driver_version = 12080;
  int ptx_version = 87;
  enum class Unwritten : uint8_t { off, report, fault };
  Unwritten unwritten = Unwritten::report;
  LaunchShape::Races races = LaunchShape::Races::off;
  bool unwritten_shared = false;  // reads of shared memory count, too
  bool reuse = false;  // addresses of stream-ordered memory come back
  bool leaks = true;   // reported at exit
  bool log = false;    // whether calls are kept
  std::string report;  // a file; empty: standard error
  std::string keep;    // a folder for the PTX of all modules; empty: none
  std::vector<FaultRule> faults;
};

/// Changes the configuration as the text says. False: `error` says what is
/// wrong with which key.
bool configure(std::string_view text, Configuration& configuration,
               std::string& error);
/// Makes of each list one value for each device. To be called once, after all
/// texts.
void complete(Configuration& configuration);

/// The code with this name (`out_of_memory`) or number; false: none.
bool code_named(std::string_view text, unisono::cuda::Code& code);
const char* code_name(unisono::cuda::Code code);  // "CUDA_ERROR_..."
const char* code_text(unisono::cuda::Code code);
bool is_sticky(unisono::cuda::Code code);

}  // namespace simcuda
