#pragma once
// One text of one file, read: what answers need that no check is needed for.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/lsp/names.h"
#include "host/lsp/text.h"
#include "lang/source/diagnostics.h"
#include "lang/source/source.h"
#include "lang/syntax/ast.h"
#include "lang/syntax/lexer.h"

namespace unisono::host::lsp {

/// Immutable; nodes, spans and names point into it. Where the text has errors,
/// the statements that could be read.
class Syntax {
 public:
  Syntax(std::string path, std::string text);

  const std::string& path() const { return file_->path(); }
  const Text& text() const { return text_; }
  const lang::Program& program() const { return *program_; }
  const std::vector<lang::Token>& tokens() const { return tokens_; }
  const Names& names() const { return *names_; }
  bool ok() const { return ok_; }
  /// Of the parser.
  const lang::Diagnostics& diagnostics() const { return diagnostics_; }
  /// Files that it imports: paths with its own folder before them.
  std::vector<std::string> imported_files() const;
  /// The path of the file that an import means.
  std::string path_of(const lang::ImportStmt& import) const;

 private:
  Text text_;
  lang::SourceMap sources_;
  const lang::SourceFile* file_;
  lang::Diagnostics diagnostics_;
  std::unique_ptr<lang::Program> program_;
  std::vector<lang::Token> tokens_;
  std::unique_ptr<Names> names_;
  bool ok_ = false;
};

/// A parameter as a signature shows it: the bytes [begin, end) of its label.
struct SignatureParameter {
  std::string name;  // empty: it cannot be given by name
  uint32_t begin = 0, end = 0;
  bool keyword_only = false;
  bool rest = false;  // takes all further arguments
};
struct Signature {
  std::string label;  // "f(x: f32[n], *, k=1) -> f32[n]"
  std::vector<SignatureParameter> parameters;
};
Signature signature_of(std::string_view name, const lang::Function& function);
/// Of a builtin: parameters as in builtins.def.
Signature signature_of(std::string_view name, std::string_view parameters);

/// Text of a program on one line, with single spaces.
std::string one_line(std::string_view text);
/// Splits at commas outside of brackets and strings.
std::vector<std::string_view> split_at_commas(std::string_view text);

}  // namespace unisono::host::lsp
