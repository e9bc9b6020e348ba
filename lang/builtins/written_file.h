#pragma once
// What builtins that name files share: paths, errors, and how one is written.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "lang/context/builtin.h"
#include "runtime/result.h"

namespace unisono::lang {

/// An error at `where` if the program may not use files; `function` would.
void require_files(Walk& walk, std::string_view function, Span where);

/// A path with one of these endings (".npy"); nothing where it is not known
/// yet. Else the program ends with an error at the argument, which is parameter
/// `path` or `file` of `function`.
std::optional<std::string> path_argument(
    Walk& walk, const CallArgument& path, std::string_view parameter,
    std::string_view function, std::initializer_list<std::string_view> endings);

/// The same for a path with any ending.
std::optional<std::string> any_path_argument(Walk& walk,
                                             const CallArgument& path,
                                             std::string_view parameter,
                                             std::string_view function);

/// An error if the call stands in compiled code, which has no files; `help`
/// says what to do instead.
void refuse_in_compiled_code(const BuiltinCall& call, std::string_view help);

/// While checking: ends the program with the error that what `path` holds is
/// not known; `type` is an example of what the program may say about it.
[[noreturn]] void fail_unknown_file(const BuiltinCall& call,
                                    const CallArgument& path,
                                    std::string_view type);

/// Ends the program with the error that a file was not read.
[[noreturn]] void cannot_read(Walk& walk, const std::string& path,
                              const Error& error, Span where);

/// Ends the program with the error that a file was not written.
[[noreturn]] void cannot_write(Walk& walk, const std::string& path,
                               const Error& error, Span where);

/// Replaces a file by one with these bytes, or ends the program with an error
/// at `where`.
void write_file(Walk& walk, const std::string& path, std::string_view bytes,
                Span where);

/// Removes the unfinished files that killed processes have left in the folder
/// of `path`; looks into each folder once.
void sweep_beside(Walk& walk, const std::string& path);

}  // namespace unisono::lang
