#include "host/lsp/server/checker.h"

#include <exception>
#include <utility>

namespace unisono::host::lsp {

void Checker::work() {
  while (true) {
    std::optional<Job> job = jobs_.pop(std::nullopt);
    if (!job->request) return;
    std::shared_ptr<const Checked> checked;
    try {
      if (auto result = check(*job->request, &stop_))
        checked = std::make_shared<const Checked>(std::move(*result));
    } catch (const std::exception&) {
      // No memory: the text stays without messages.
    }
    events_.push(CheckDone{job->uri, job->version, std::move(checked)});
  }
}

}  // namespace unisono::host::lsp
