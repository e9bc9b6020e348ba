#pragma once
// The inputs of a notebook's kernel, for clients that ask.
#include <memory>
#include <string>
#include <vector>
#include <xeus/xhistory_manager.hpp>

namespace unisono::host {

/// In memory: a notebook is its own record, and what it holds does not mix with
/// the history of the terminal. Not thread-safe.
class KernelHistory final : public xeus::xhistory_manager {
 public:
  void add(int number, const std::string& input);

 private:
  using Json = nlohmann::json;
  struct Input {
    int number;
    std::string text;
  };

  void configure_impl() override {}
  /// xeus calls it with the number that the request has, where there is none:
  /// see `add`.
  void store_inputs_impl(int, int, const std::string&,
                         const std::string&) override {}
  Json get_tail_impl(int count, bool raw, bool output) const override;
  Json get_range_impl(int session, int start, int stop, bool raw,
                      bool output) const override;
  Json search_impl(const std::string& pattern, bool raw, bool output, int count,
                   bool unique) const override;

  std::vector<Input> inputs_;
};

}  // namespace unisono::host
