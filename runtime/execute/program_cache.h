#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/execute/execution.h"
#include "runtime/execute/flat_program.h"
#include "runtime/execute/program.h"

namespace unisono {

/// What runs of one program leave for the next. Thread-safe.
class ProgramCache : public std::enable_shared_from_this<ProgramCache> {
 public:
  /// An execution of `program` for one run on devices that work as `device`
  /// does, in all runs; give it back afterwards.
  std::unique_ptr<Execution> take_execution(Runtime& runtime,
                                            const Program& program,
                                            Device& device);
  void give_back(std::unique_ptr<Execution> execution);

  /// The program's constants in `device`'s memory.
  using Constants = std::shared_ptr<const std::vector<std::shared_ptr<Buffer>>>;
  Result<Constants> constants(Runtime& runtime, const Program& program,
                              Device& device);
  /// Frees what is on `device`.
  void forget(const Device& device);

 private:
  std::mutex mutex_;
  std::unique_ptr<const FlatProgram> flat_;
  std::vector<std::unique_ptr<Execution>> idle_;
  std::unordered_map<const Device*, Constants> constants_;
};

}  // namespace unisono
