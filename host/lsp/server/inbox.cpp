#include "host/lsp/server/inbox.h"

#include <exception>
#include <string_view>

#include "host/lsp/server/connection.h"

namespace unisono::host::lsp {
namespace {

/// Copies of JSON recurse: no message that we know is nested so deep.
bool is_too_deep(std::string_view json) {
  constexpr int most = 200;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i)
    if (quoted && json[i] == '\\')
      ++i;
    else if (json[i] == '"')
      quoted = !quoted;
    else if (!quoted && (json[i] == '[' || json[i] == '{') && ++depth > most)
      return true;
    else if (!quoted && (json[i] == ']' || json[i] == '}'))
      --depth;
  return false;
}

Event read_message(const std::string& body, Pending& pending) {
  if (is_too_deep(body)) return WrongMessage{"the message is nested too deep"};
  FromClient event;
  event.message = Json::parse(body, nullptr, false);
  const Json& message = event.message;
  if (message.is_discarded()) return WrongMessage{"the message is no JSON"};
  const Json id = said(message, {"id"});
  if (is_id(id) && message.contains("method"))
    event.cancelled = pending.add(id);
  if (said(message, {"method"}) == "$/cancelRequest") {
    const Json cancelled = said(message, {"params", "id"});
    if (is_id(cancelled)) pending.cancel(cancelled);
  }
  return event;
}

}  // namespace

Json said(const Json& params, std::initializer_list<const char*> path) {
  const Json* at = &params;
  for (const char* name : path) {
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &(*at)[name];
  }
  return *at;
}

void read_messages(int input, Inbox& inbox) {
  using Kind = MessageReader::Incoming::Kind;
  MessageReader reader(input);
  while (true) {
    try {
      const MessageReader::Incoming incoming = reader.next();
      if (incoming.kind == Kind::end) break;
      if (incoming.kind == Kind::message)
        inbox.events.push(read_message(incoming.body, inbox.pending));
      else
        inbox.events.push(
            WrongMessage{"the header has no length that can be read"});
    } catch (const std::exception&) {
      inbox.events.push(WrongMessage{"there is not enough memory for it"});
    }
  }
  inbox.events.push(EndOfInput{});
}

}  // namespace unisono::host::lsp
