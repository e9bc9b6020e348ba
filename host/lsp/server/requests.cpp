#include "host/lsp/server/requests.h"

#include <algorithm>
#include <map>
#include <utility>

#include "host/lsp/answers.h"
#include "host/lsp/server/parameters.h"

namespace unisono::host::lsp {
namespace {

uint32_t offset_of(const View& view, const Json& params) {
  return view.offset(position_of(field(params, "position")));
}

/// The bytes of `range`, in order.
std::pair<uint32_t, uint32_t> bytes_of(const View& view, const Json& params) {
  const Range range = range_of(field(params, "range"));
  return std::minmax({view.offset(range.start), view.offset(range.end)});
}

Json value_or_refuse(Result<Json> result) {
  if (!result) throw Refusal{ErrorCode::request_failed, result.error().message};
  return std::move(*result);
}

template <Json answer(View&, uint32_t)>
Json at_position(const Asked& asked) {
  View view = asked.documents.view(asked.params);
  return answer(view, offset_of(view, asked.params));
}

template <Json answer(View&)>
Json of_document(const Asked& asked) {
  View view = asked.documents.view(asked.params);
  return answer(view);
}

template <Json answer(View&, uint32_t, uint32_t)>
Json of_range(const Asked& asked) {
  View view = asked.documents.view(asked.params);
  const auto [begin, end] = bytes_of(view, asked.params);
  return answer(view, begin, end);
}

Json on_references(const Asked& asked) {
  View view = asked.documents.view(asked.params);
  const Json with = said(asked.params, {"context", "includeDeclaration"});
  return references(view, offset_of(view, asked.params), with != false);
}

Json on_prepare_rename(const Asked& asked) {
  View view = asked.documents.view(asked.params);
  return value_or_refuse(prepare_rename(view, offset_of(view, asked.params)));
}

Json on_rename(const Asked& asked) {
  View view = asked.documents.view(asked.params);
  return value_or_refuse(rename(view, offset_of(view, asked.params),
                                text_field(asked.params, "newName"),
                                asked.cancelled, asked.documents.devices()));
}

/// Only quick fixes are there, which a client may have no wish for.
Json on_code_action(const Asked& asked) {
  View view = asked.documents.view(asked.params);
  const auto [begin, end] = bytes_of(view, asked.params);
  const Json only = said(asked.params, {"context", "only"});
  const bool wanted =
      !only.is_array() || lists(only, "quickfix") || lists(only, "");
  return wanted ? quick_fixes(view, begin, end) : Json::array();
}

Json on_workspace_symbol(const Asked& asked) {
  return workspace_symbols(asked.documents.files(), asked.documents.client(),
                           asked.folders, text_field(asked.params, "query"),
                           asked.cancelled);
}

}  // namespace

const Request* find_request(const std::string& method) {
  static const std::map<std::string, Request, std::less<>> known = {
      {"textDocument/hover", {&at_position<hover>, true}},
      {"textDocument/inlayHint", {&of_range<inlay_hints>, true}},
      {"textDocument/definition", {&at_position<definition>}},
      {"textDocument/references", {&on_references}},
      {"textDocument/documentHighlight", {&at_position<highlights>}},
      {"textDocument/prepareRename", {&on_prepare_rename}},
      {"textDocument/rename", {&on_rename}},
      {"textDocument/completion", {&at_position<completions>}},
      {"textDocument/signatureHelp", {&at_position<signature_help>}},
      {"textDocument/documentSymbol", {&of_document<symbols>}},
      {"textDocument/foldingRange", {&of_document<folds>}},
      {"textDocument/formatting", {&of_document<format_edits>}},
      {"textDocument/rangeFormatting", {&of_range<format_edits>}},
      {"textDocument/codeAction", {&on_code_action, true}},
      {"textDocument/semanticTokens/full", {&of_document<semantic_tokens>}},
      {"workspace/symbol", {&on_workspace_symbol}},
  };
  const auto found = known.find(method);
  return found == known.end() ? nullptr : &found->second;
}

Json request_capabilities() {
  return {
      {"hoverProvider", true},
      {"definitionProvider", true},
      {"referencesProvider", true},
      {"documentHighlightProvider", true},
      {"renameProvider", {{"prepareProvider", true}}},
      {"completionProvider", {{"triggerCharacters", Json::array({"."})}}},
      {"signatureHelpProvider",
       {{"triggerCharacters", Json::array({"(", ","})},
        {"retriggerCharacters", Json::array({"=", ")"})}}},
      {"documentFormattingProvider", true},
      {"documentRangeFormattingProvider", true},
      {"codeActionProvider", {{"codeActionKinds", Json::array({"quickfix"})}}},
      {"documentSymbolProvider", true},
      {"workspaceSymbolProvider", true},
      {"foldingRangeProvider", true},
      {"inlayHintProvider", true},
      {"semanticTokensProvider",
       {{"legend", semantic_legend()}, {"full", true}}}};
}

}  // namespace unisono::host::lsp
