#pragma once
// What the server answers to each request about a document. A position is in
// bytes of the view's text; `null` is the protocol's word for nothing.
#include <atomic>
#include <string>
#include <vector>

#include "host/lsp/view.h"
#include "runtime/result.h"

namespace unisono::host::lsp {

// ---- hover.cpp
Json hover(View& view, uint32_t offset);
/// Types of `let` and `var` that have none written, within a range of bytes.
Json inlay_hints(View& view, uint32_t begin, uint32_t end);
/// As the language writes it: "def f(x: f32[n]) -> f32[n]", "let y: f32[n]".
std::string headline(View& view, const Meaning& meaning);
/// What its author says of it, as Markdown.
std::string documentation(const Meaning& meaning);

// ---- navigation.cpp
Json definition(View& view, uint32_t offset);
Json references(View& view, uint32_t offset, bool with_definition);
Json highlights(View& view, uint32_t offset);
/// The range of the name and its text. Fails with the reason why what is there
/// cannot be renamed.
Result<Json> prepare_rename(View& view, uint32_t offset);
/// An edit of all files that have the name, after which they mean what they
/// meant: fails with the reason where they would not. Checks the program until
/// it is stopped.
Result<Json> rename(View& view, uint32_t offset, const std::string& name,
                    const std::atomic<bool>* stop, int devices);

// ---- completion.cpp
Json completions(View& view, uint32_t offset);
Json signature_help(View& view, uint32_t offset);

// ---- outline.cpp
Json symbols(View& view);
Json folds(View& view);

// ---- formatting.cpp
/// Edits to the one layout; null where the text has errors.
Json format_edits(View& view);
/// Of the lines that a range of bytes touches, and of those that go with them.
Json format_edits(View& view, uint32_t begin, uint32_t end);

// ---- actions.cpp
Json diagnostic(Files& files, const Client& client, const Message& message);
/// What the messages at a range of bytes say to write instead.
Json quick_fixes(View& view, uint32_t begin, uint32_t end);

// ---- workspace.cpp
/// Names at the top level of the `.uni` files that are open or lie in these
/// folders: those that have the letters of `query` in this order, the nearest
/// to it first. Some of them where there are many, or it is cancelled.
Json workspace_symbols(Files& files, const Client& client,
                       const std::vector<std::string>& folders,
                       const std::string& query,
                       const std::atomic<bool>* cancelled);

// ---- semantic_tokens.cpp
/// The names of what semantic_tokens counts.
Json semantic_legend();
Json semantic_tokens(View& view);

}  // namespace unisono::host::lsp
