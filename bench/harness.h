#pragma once
// Paired timings: ours and the peer in turn, so that a ratio holds when the
// machine's speed drifts.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/session.h"

namespace bench {

/// One line of the table. Times in seconds; `peer` 0 means there is none.
struct Row {
  std::string group, name;
  double ours = 0, peer = 0;
  double target = 0;  // ratio peer / ours to reach, or seconds if at_most
  bool at_most = false;
  std::string note;
};

/// Median times of both, and the median of the ratios peer / ours pair by
/// pair is what the table prints. Warms both up once.
struct Paired {
  double ours = 0, peer = 0, ratio = 0;
};
Paired time_pair(const std::function<void()>& ours,
                 const std::function<void()>& peer, double budget_seconds = 2);
/// Median seconds of one call, of at least 7 runs (each of `inner` calls).
double time_one(const std::function<void()>& work, double budget_seconds = 1,
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
  /// Elements of a global or a result on the host.
  std::vector<float> floats(const unisono::lang::Value& value);
  unisono::host::Session& session() { return *session_; }

 private:
  std::unique_ptr<unisono::host::Session> session_;
};

/// What the rows collect in; `wanted` says whether a row was asked for.
class Table {
 public:
  explicit Table(std::vector<std::string> filters)
      : filters_(std::move(filters)) {}
  bool wanted(std::string_view group, std::string_view name) const;
  void add(Row row);
  const std::vector<Row>& rows() const { return rows_; }
  std::string markdown() const;

 private:
  std::vector<std::string> filters_;
  std::vector<Row> rows_;
};

void fail(const std::string& message);

// The groups; each adds its rows.
void elementwise(Table& table);
void reductions(Table& table);
void matrix_products(Table& table);
void primitives(Table& table);
void system_costs(Table& table);

}  // namespace bench
