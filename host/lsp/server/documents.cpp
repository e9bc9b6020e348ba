#include "host/lsp/server/documents.h"

#include <algorithm>
#include <utility>

#include "host/lsp/answers.h"
#include "host/lsp/server/parameters.h"

namespace unisono::host::lsp {

using namespace std::chrono_literals;

namespace {

/// A check begins when there was no change for so long, or when the first that
/// it will see is so old.
constexpr auto quiet_time = 40ms, longest_wait = 400ms;

}  // namespace

void Documents::did_open(const Json& params) {
  const Json& item = field(params, "textDocument");
  const std::string uri = text_field(item, "uri");
  // Most editors count from 0 or 1; who gives none has no need of it.
  const Json version = item.value("version", Json(0));
  Document& document =
      files_.open(uri, version.is_number_integer() ? version.get<int64_t>() : 0,
                  text_field(item, "text"));
  changed(document);
}

void Documents::did_change(const Json& params) {
  Document& document = of(params);
  const Json version = said(params, {"textDocument", "version"});
  const Json& changes = field(params, "contentChanges");
  if (!changes.is_array())
    throw Refusal{ErrorCode::invalid_params, "`contentChanges` is no list"};
  for (const Json& change : changes) {
    const std::string text = text_field(change, "text");
    if (change.contains("range") && !change["range"].is_null())
      document.text.replace(range_of(change["range"]), text, client_.encoding);
    else
      document.text = Text(text);
  }
  document.version = version.is_number_integer() ? version.get<int64_t>()
                                                 : document.version + 1;
  document.syntax = nullptr;
  document.checked_version.reset();
  changed(document);
}

void Documents::did_close(const Json& params) {
  const Document& document = of(params);
  const std::string uri = document.uri, key = document.key;
  files_.close(uri);
  files_.forget_disk();
  changed_.erase(uri);
  publish(uri, std::nullopt, {});
  check_importers(key);
}

void Documents::files_changed(const Json&) {
  files_.forget_disk();
  for (Document* document : files_.all())
    if (!files_.syntax(*document)->imported_files().empty()) recheck(*document);
}

Document& Documents::of(const Json& params) {
  const std::string uri = text_field(field(params, "textDocument"), "uri");
  Document* document = files_.find(uri);
  if (!document)
    throw Refusal{ErrorCode::invalid_params,
                  fmt::format("`{}` is not open", uri)};
  return *document;
}

void Documents::changed(Document& document) {
  recheck(document);
  if (checking_ == document.uri) checker_.stop();
  imports_may_change_ = true;
}

void Documents::recheck(Document& document) {
  const auto now = Clock::now();
  if (changed_.empty()) first_change_ = now;
  last_change_ = now;
  changed_.insert(document.uri);
}

Documents::Clock::time_point Documents::check_time() const {
  return std::min(last_change_ + quiet_time, first_change_ + longest_wait);
}

std::optional<Documents::Clock::time_point> Documents::next_check() const {
  if (checking_ || changed_.empty()) return std::nullopt;
  return check_time();
}

/// Other open documents that use a file are checked, too.
void Documents::check_importers(const std::string& key) {
  for (Document* other : files_.all()) {
    if (other->key == key || changed_.contains(other->uri)) continue;
    if (files_.imports(*files_.syntax(*other), key)) recheck(*other);
  }
}

void Documents::start_check() {
  if (checking_ || changed_.empty() || Clock::now() < check_time()) return;
  if (std::exchange(imports_may_change_, false)) {
    const std::set<std::string> own = changed_;
    for (const std::string& uri : own)
      if (const Document* document = files_.find(uri))
        check_importers(document->key);
  }
  const std::string uri = *changed_.begin();
  changed_.erase(uri);
  Document* document = files_.find(uri);
  if (!document) return;
  const auto problem = attempt([&] {
    const auto syntax = files_.syntax(*document);
    checker_.start(
        uri, document->version,
        {syntax, files_.modules(*syntax), devices_, client_.encoding});
    checking_ = uri;
  });
  if (problem) document->checked_version = document->version;
}

void Documents::check_done(const CheckDone& done, bool publishes) {
  checking_.reset();
  Document* document = files_.find(done.uri);
  if (!document) return;
  if (!done.checked) {
    // A newer text stopped it, or the types of this one are not to be had.
    if (!changed_.contains(done.uri))
      document->checked_version = document->version;
    return;
  }
  if (done.checked->syntax->ok()) document->typed = done.checked;
  if (document->version != done.version || !publishes) return;
  document->checked = done.checked;
  if (!changed_.contains(done.uri)) document->checked_version = done.version;
  publish(done.uri, done.version, done.checked->messages);
  if (client_.hint_refresh)
    connection_.ask("workspace/inlayHint/refresh", nullptr);
}

void Documents::publish(const std::string& uri, std::optional<int64_t> version,
                        const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const Message& m : messages)
    list.push_back(diagnostic(files_, client_, m));
  Json params = {{"uri", uri}, {"diagnostics", std::move(list)}};
  if (version) params["version"] = *version;
  connection_.notify("textDocument/publishDiagnostics", std::move(params));
}

}  // namespace unisono::host::lsp
