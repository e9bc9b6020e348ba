#pragma once
// The stages that `unisono inspect` shows.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/session/session.h"

namespace unisono::host {

/// What `inspect` shows, and how.
struct InspectOptions {
  std::string emit = "ir", after;
  /// The value of the last statement is computed, though nothing uses it.
  bool keep_value = false;
  /// Not 0: kernels, llvm and asm are shown as for GPUs of this compute
  /// capability, as nvvm and ptx always are.
  int capability = 0;
  /// What stands in for the types of parameters.
  std::vector<lang::GivenType> types;
  /// Which of several graphs: a number from 1 on, or a function's name.
  std::optional<std::string> graph;
  /// A folder, which gets a file for each graph.
  std::optional<std::string> folder;
};

/// The stages' names, in the order in which they follow one another.
std::vector<std::string_view> stage_names();
/// Whether a stage has this name.
bool is_stage(std::string_view emit);

/// Shows one stage of what a program becomes: tokens, ast, types, or, for each
/// graph that is compiled, ir (after pass `after`), kernels, llvm, asm, nvvm or
/// ptx. The session either runs nothing (SessionOptions::compile_only), or
/// really runs the program. The code of a graph is a module by itself, which
/// the tools of its language read; titles are comments there. `output` gets the
/// text in pieces. False when the program had errors.
bool inspect(Session& session, std::string path, std::string text,
             const InspectOptions& options,
             const std::function<void(std::string_view)>& output);
/// The same of a program that was checked, for stages from ir on. What it
/// prints is not thrown away here.
bool inspect_program(Session& session, const lang::Program& program,
                     const InspectOptions& options,
                     const std::function<void(std::string_view)>& output);

}  // namespace unisono::host
