#pragma once
// Paired timings: ours and the peer in turn, so that a ratio holds when the
// machine's speed drifts.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/session/session.h"

namespace bench {

/// One line of the table. Times in seconds; `peer` 0 means there is none.
struct Row {
  std::string group, name;
  double ours = 0, peer = 0;
  double ratio = 0, best_ratio = 0;  // peer / ours: median, and of the minima
  double target = 0;                 // ratio to reach, or seconds if at_most
  bool at_most = false;
  std::string note = {};
};

/// The threads that do a peer's work. They are woken before it is timed, and
/// asleep again before ours is: main.cpp sees to it that they soon sleep.
enum class Team : uint8_t { one_thread, own_threads, openmp, openblas };

/// Medians of both in seconds; the median of the ratios peer / ours pair by
/// pair, and the ratio of the least times.
struct Paired {
  double ours = 0, peer = 0, ratio = 0, best_ratio = 0;
};
/// Times both in turn, at least 7 times each. Work of less than a millisecond
/// is repeated within each timing.
Paired time_pair(const std::function<void()>& ours,
                 const std::function<void()>& peer, Team team,
                 double budget_seconds = 2);
/// Seconds that `work` takes; seconds of processors if the environment has
/// BENCH_PROCESSOR_TIME (main.cpp).
double seconds(const std::function<void()>& work);
/// Median and least seconds of one call, of at least 7 runs (each of `inner`
/// calls).
struct Times {
  double median = 0, least = 0;
};
Times time_one(const std::function<void()>& work, double budget_seconds = 1,
               int inner = 1);

/// A program in a session of its own: runs it, then calls its functions.
class Script {
 public:
  Script(const std::string& text, int devices);
  /// The value of a global name.
  unisono::lang::Value operator[](const std::string& name);
  /// Calls a function and waits for the result's arrays.
  unisono::lang::Value call(const unisono::lang::Value& function,
                            const std::vector<unisono::lang::Value>& arguments);
  /// Runs `body`, in which calls are as quick as in a program.
  void on_stack(const std::function<void()>& body);
  /// Elements of a global or a result on the host.
  std::vector<float> floats(const unisono::lang::Value& value);
  unisono::host::Session& session() { return *session_; }

 private:
  std::unique_ptr<unisono::host::Session> session_;
};

/// Collects the rows that were asked for: those whose group or name has one of
/// the filters in it, or all if there are no filters.
class Table {
 public:
  explicit Table(std::vector<std::string> filters)
      : filters_(std::move(filters)) {}
  bool wanted(std::string_view group, std::string_view name) const;
  /// Adds a row, and prints it to standard error.
  void add(Row row);
  const std::vector<Row>& rows() const { return rows_; }
  std::string markdown() const;

 private:
  std::vector<std::string> filters_;
  std::vector<Row> rows_;
};

/// The path of a program that was built beside this one.
std::string beside_this(const std::string& name);
/// Ends the process with a message.
void fail(const std::string& message);
/// "4.2 ms"
std::string shown(double seconds);

// The groups; each adds its rows.
void elementwise(Table& table);
void reductions(Table& table);
void normalise(Table& table);
void matrix_products(Table& table);
void factors(Table& table);
void vector_products(Table& table);
void stencils(Table& table);
void primitives(Table& table);
void updates(Table& table);
void loops(Table& table);
void nested_loops(Table& table);
void networks(Table& table);
void random_numbers(Table& table);
void fourier(Table& table);
void system_costs(Table& table);
void sessions(Table& table);
void embedding(Table& table);
void scripts(Table& table);
void collectives(Table& table);

}  // namespace bench
