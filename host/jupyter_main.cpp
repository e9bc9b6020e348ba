// The kernel's executable: Jupyter starts it, as kernel.json says.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <string>

#include "host/commands.h"
#include "host/notebook/kernel.h"
#include "host/process.h"
#include "host/session/devices.h"

namespace {

using namespace unisono::host;

int run(int argc, char** argv) {
  CLI::App app(
      "The kernel of Jupyter notebooks in Unisono. Jupyter starts it, "
      "after `unisono jupyter install`.",
      "unisono-jupyter");
  CommandOptions options;
  std::string connection_file;
  app.set_version_flag("--version", "unisono-jupyter " UNISONO_VERSION);
  app.add_option("-f", connection_file, "the connection file, by Jupyter")
      ->required()
      ->type_name("FILE");
  app.add_option("--devices", options.devices,
                 "as of `unisono`: cpu:8, cuda, sim:2; without it, cpu:1")
      ->type_name("DEVICES");
  CLI11_PARSE(app, argc, argv);
  if (const auto request = parse_devices(options.devices); !request)
    return wrong_usage(request.error().message);
  return run_kernel({.shell = shell_options(options),
                     .connection_file = connection_file,
                     .version = UNISONO_VERSION});
}

}  // namespace

int main(int argc, char** argv) {
  int status = 1;
  prepare_process();
  on_enough_stack([&] {
    try {
      status = run(argc, argv);
    } catch (const std::exception& exception) {
      tell(fmt::format("error: {}\n", exception.what()));
    }
  });
  return status;
}
