// Commands that neither read nor run a program.
#include <fmt/format.h>

#include <string>

#include "host/commands.h"
#include "host/lsp/server/server.h"
#include "host/session/devices.h"
#include "lang/source/explain.h"

namespace unisono::host {

int explain_code(const std::string& code) {
  const auto page = lang::explain(code);
  if (!page)
    return wrong_usage(
        fmt::format("there is no message `{}`; codes look like U0412", code));
  write_output(*page);
  return 0;
}

int serve_editor(const CommandOptions& options) {
  const Result<DeviceRequest> request = parse_devices(options.devices);
  if (!request) return wrong_usage(request.error().message);
  if (request->kind != DeviceRequest::Kind::cpu)
    return wrong_usage(
        fmt::format("programs are checked here for cpu:N, which is the same "
                    "for other devices; got `{}`",
                    options.devices));
  return lsp::serve({.devices = request->count});
}

}  // namespace unisono::host
