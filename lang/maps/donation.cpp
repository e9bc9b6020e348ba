#include "lang/maps/donation.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/context/walk.h"
#include "lang/ops/builtin_arguments.h"

namespace unisono::lang {
namespace {

[[noreturn]] void bad_donate(Argument donate, std::string why) {
  donate.call().walk.fail(
      diagnostic(Code::bad_donate, donate.where(), std::move(why))
          .set_help("list positions or names: `donate=(0,)`, "
                    "`donate=\"x\"`"));
}

/// An int or text that only a call tells, while a definition is checked.
[[noreturn]] void not_known(Argument donate, const IntValue* position) {
  Diagnostic error = diagnostic(Code::argument_not_known, donate.where(),
                                describe_argument(donate));
  if (position) error.about(position->value);
  donate.call().walk.fail(std::move(error));
}

/// All parameters, those by position first.
std::vector<DonatedParameter> all_parameters(const FunctionValue& function) {
  std::vector<DonatedParameter> out;
  int position = 0;
  for (const ParameterInfo& parameter : parameters_of(function)) {
    const int own = parameter.keyword_only ? -1 : position++;
    out.push_back({own, parameter.name});
  }
  return out;
}

std::string root_of(const std::string& path) {
  return path.substr(0, path.find('.'));
}

}  // namespace

std::vector<DonatedParameter> read_donate(Argument donate,
                                          const FunctionValue& inner) {
  const Value& given = donate.value();
  const std::vector<Value> items =
      given.tuple() ? given.tuple()->items : std::vector<Value>{given};
  const std::vector<DonatedParameter> parameters = all_parameters(inner);
  std::vector<DonatedParameter> donated;
  for (const Value& item : items) {
    const auto* position = item.get_if<IntValue>();
    const auto* name = item.get_if<StrValue>();
    if (!position && !name)
      bad_donate(donate, fmt::format("it lists {}", type_name(item)));
    if (position ? !position->value.is_constant() : !name->value)
      not_known(donate, position);
    const std::string text =
        position ? position->value.to_string() : *name->value;
    const auto found = std::ranges::find_if(
        parameters, [&](const DonatedParameter& parameter) {
          return position ? position->value == ir::Dim(parameter.position)
                          : parameter.name == text;
        });
    if (found == parameters.end() || (position && found->position < 0)) {
      bad_donate(donate,
                 fmt::format("`{}` has no parameter {}", inner.name, text));
    }
    donated.push_back(*found);
  }
  return donated;
}

std::vector<bool> donated_inputs(const MapCallee& callee,
                                 const BoundCall& call) {
  std::vector<bool> donated;
  for (const MapInput& input : call.inputs) {
    donated.push_back(std::ranges::any_of(
        callee.map.donated, [&](const DonatedParameter& parameter) {
          return input.position >= 0
                     ? input.position == parameter.position
                     : parameter.position < 0 &&
                           root_of(input.path) == parameter.name;
        }));
  }
  return donated;
}

void give_away(Walk& walk, const FunctionValue& function,
               const std::vector<PassedArray>& passed,
               const std::vector<bool>& donated) {
  for (size_t i = 0; i < donated.size(); ++i) {
    if (!donated[i]) continue;
    for (size_t j = 0; j < passed.size(); ++j) {
      if (j == i || passed[j].value != passed[i].value) continue;
      const size_t later = std::max(i, j), earlier = std::min(i, j);
      auto error =
          diagnostic(Code::donated_twice, passed[later].where, function.name);
      const std::string &one = passed[earlier].path,
                        &other = passed[later].path;
      if (passed[earlier].where == passed[later].where && !one.empty())
        error.set_label(fmt::format("`{}` and `{}` are one array", one, other));
      else
        error.add_note(passed[earlier].where, "the same array");
      error.set_help("pass a copy, or leave it out of `donate`");
      walk.fail(std::move(error));
    }
  }
  for (size_t i = 0; i < donated.size(); ++i) {
    if (!donated[i]) continue;
    walk.donate(passed[i].value, {passed[i].where, function.name});
  }
}

}  // namespace unisono::lang
