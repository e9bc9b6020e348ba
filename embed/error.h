#pragma once
// Errors of the C interface: what a call has to say, taken out of its session.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embed/unisono.h"
#include "lang/source/diagnostics.h"

struct UnisonoError {
  struct Place {
    bool known = false;
    std::string file;
    int32_t line = 0, column = 0, end_line = 0, end_column = 0;
    uint32_t begin = 0, end = 0;
  };
  struct Note {
    Place where;
    std::string text;
  };
  struct Message {
    std::string code;
    UnisonoSeverity severity = UNISONO_SEVERITY_ERROR;
    std::string text;
    Place where;
    std::string label;
    std::vector<Note> notes;
    std::vector<std::string> facts;
    std::string help;
  };
  UnisonoErrorKind kind = UNISONO_INTERNAL;
  std::vector<Message> messages = {};
  std::string text = {}, coloured = {}, json = {};
  /// It is one for all times, as there was no memory for another.
  bool is_shared = false;
};

namespace unisono::embed {

/// Thrown in embed/: the error that a function of the interface ends with.
struct Refused {
  UnisonoErrorKind kind = UNISONO_MISUSE;
  std::string message;
};
[[noreturn]] inline void refuse(std::string message,
                                UnisonoErrorKind kind = UNISONO_MISUSE) {
  throw Refused{kind, std::move(message)};
}
/// The same, made already.
struct Reported {
  explicit Reported(std::unique_ptr<UnisonoError> made)
      : error(std::move(made)) {}
  std::unique_ptr<UnisonoError> error;
};

/// What kind of error these messages are; UNISONO_NO_ERROR if none is one.
UnisonoErrorKind kind_of(const lang::Diagnostics& diagnostics);

std::unique_ptr<UnisonoError> make_error(UnisonoErrorKind kind,
                                         const lang::Diagnostics& diagnostics);

/// The exception that is being handled, as an error that the caller owns.
UnisonoError* caught_error() noexcept;

}  // namespace unisono::embed
