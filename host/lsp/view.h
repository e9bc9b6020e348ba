#pragma once
// One document as a request sees it.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/lsp/files.h"
#include "host/lsp/library.h"
#include "host/lsp/messages.h"
#include "host/lsp/syntax.h"

namespace unisono::host::lsp {

/// What the client has said that it can do.
struct Client {
  Encoding encoding = Encoding::utf16;
  bool markdown = false;       // in hovers and documentation
  bool label_offsets = false;  // parameters as parts of a signature's label
  bool related = false;        // related places in diagnostics
  bool actions = false;        // code actions with their edits
  bool hint_refresh = false;   // inlay hints again when types are there
  bool watches = false;        // files, when it is asked to
};

/// What a name means, in whatever file: one of the two, or neither.
struct Meaning {
  std::shared_ptr<const Syntax> home;  // of the definition
  const Definition* definition = nullptr;
  const LibraryName* library = nullptr;
};

/// Fields of a record type's text, in order: `(w: f32[d], b: f32)`.
std::vector<std::pair<std::string, std::string>> record_fields(
    std::string_view type);

/// For the time of one answer.
class View {
 public:
  View(Files& files, const Library& library, const Client& client,
       Document& document);

  Files& files() { return files_; }
  const Library& library() const { return library_; }
  const Client& client() const { return client_; }
  Document& document() { return document_; }
  const Syntax& syntax() const { return *syntax_; }
  std::shared_ptr<const Syntax> shared_syntax() const { return syntax_; }

  uint32_t offset(Position position) const {
    return syntax_->text().offset(position, client_.encoding);
  }
  Json range(lang::Span span) const { return range(*syntax_, span); }
  Json range(const Syntax& in, lang::Span span) const;
  Json location(const Syntax& in, lang::Span span);
  /// Markdown, or plain text where the client knows no other.
  Json prose(const std::string& markdown) const;

  Meaning meaning(const Occurrence& occurrence) {
    return meaning(syntax_, occurrence);
  }
  Meaning meaning(const std::shared_ptr<const Syntax>& in,
                  const Occurrence& occurrence);
  /// What a name would mean at a byte of the document, and one of a module.
  Meaning lookup(const std::string& name, uint32_t offset);
  Meaning member(const Meaning& module, const std::string& name);
  /// The names that could stand at a byte: of the document as it is, and where
  /// that does not parse, of the newest that did.
  std::vector<Meaning> visible(uint32_t offset);

  /// The types that a check found for a definition; those that hold for all
  /// calls come first. Empty if none is known.
  std::vector<std::string> types(const Meaning& meaning);
  /// The first of these, else the type that the definition declares.
  std::string type(const Meaning& meaning);
  /// Of an expression of a file, as far as names and fields tell; or nothing.
  std::string type(const std::shared_ptr<const Syntax>& in,
                   const lang::Expr& expr);
  /// Whether a field that is called is one of its record, and no function.
  bool is_record_field(const std::shared_ptr<const Syntax>& in,
                       const Occurrence& field);

 private:
  Meaning local(const std::shared_ptr<const Syntax>& home,
                const Definition& definition) const {
    return {home, &definition, nullptr};
  }
  std::string declared(const Meaning& meaning);

  /// What is known of a file, looked up once.
  struct Known {
    std::string uri;
    std::shared_ptr<const Checked> typed;  // null: no types
    std::optional<Shift> shift;            // to the text with the types
  };
  const Known& known(const Syntax& in);

  Files& files_;
  const Library& library_;
  const Client& client_;
  Document& document_;
  std::shared_ptr<const Syntax> syntax_;
  std::map<const Syntax*, Known> known_;
  std::map<const lang::ImportStmt*, std::shared_ptr<const Syntax>> imported_;
};

}  // namespace unisono::host::lsp
