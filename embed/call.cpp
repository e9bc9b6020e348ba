// Calls of functions.
#include <utility>
#include <vector>

#include "embed/options.h"
#include "embed/session.h"
#include "embed/value.h"

using namespace unisono;
using namespace unisono::embed;

std::shared_ptr<Session> unisono::embed::session_of_call(
    const UnisonoValue* function, const UnisonoValue* const* arguments,
    size_t count) {
  if (!function) refuse("the function is null");
  if (unisono_value_kind(function) != UNISONO_VALUE_FUNCTION)
    refuse("a function was expected, not " + lang::type_name(function->value));
  std::shared_ptr<Session> session = function->session;
  for (size_t i = 0; i < count && !session; ++i)
    if (arguments[i]) session = arguments[i]->session;
  if (!session) session = function->home;
  if (!session)
    refuse(
        "neither the function nor an argument belongs to a session in which it "
        "could be called");
  return session;
}

UnisonoError* unisono_call(const UnisonoValue* function,
                           const UnisonoValue* const* arguments, size_t count,
                           const char* const* names,
                           const UnisonoValue* const* named, size_t named_count,
                           const UnisonoCallOptions* options,
                           UnisonoValue** result) {
  return guarded([&] {
    if ((count > 0 && !arguments) || (named_count > 0 && (!names || !named)))
      refuse("unisono_call: the arguments are null");
    const std::shared_ptr<Session> session =
        session_of_call(function, arguments, count);
    SessionUse use(session, options, IfBusy::wait);
    std::vector<lang::Value> positional;
    std::vector<std::pair<std::string, lang::Value>> by_name;
    for (size_t i = 0; i < count; ++i) {
      if (!arguments[i]) refuse("unisono_call: an argument is null");
      positional.push_back(attach(session, *arguments[i]));
    }
    for (size_t i = 0; i < named_count; ++i) {
      if (!names[i] || !named[i]) refuse("unisono_call: an argument is null");
      by_name.emplace_back(names[i], attach(session, *named[i]));
    }
    std::optional<lang::Value> value;
    use.run_whole([&] {
      value =
          session->walk().call_from_host(function->value, positional, by_name);
      return value.has_value();
    });
    if (result) *result = wrap(session, *value);
  });
}
