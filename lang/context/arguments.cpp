#include "lang/context/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "lang/context/walk.h"
#include "lang/source/foreign_names.h"

namespace unisono::lang {
namespace {

/// The parameter that is spelled almost like `name`; null if there is none.
const Parameter* similar(std::span<const Parameter> parameters,
                         std::string_view name) {
  for (const Parameter& p : parameters) {
    if (p.is_rest) continue;
    const std::string_view other = p.name;
    const bool prefix = name.starts_with(other) || other.starts_with(name);
    if (prefix && std::min(name.size(), other.size()) > 1) return &p;
    if (other.size() != name.size()) continue;
    int differing = 0;
    for (size_t i = 0; i < name.size(); ++i) differing += name[i] != other[i];
    if (differing <= 2 && static_cast<size_t>(differing) < name.size())
      return &p;
  }
  return nullptr;
}

/// One call being matched.
/// The text of an argument in a message, or three dots for a long one.
std::string_view short_text(Span where) {
  const std::string_view text = where.text();
  const bool fits = text.size() <= 32 && text.find('\n') == text.npos;
  return fits ? text : "...";
}

class Matcher {
 public:
  Matcher(Walk& walk, std::string_view function,
          std::span<const Parameter> parameters, std::string_view signature,
          Span where, Span declared)
      : walk_(walk),
        function_(function),
        parameters_(parameters),
        signature_(signature),
        where_(where),
        declared_(declared) {
    out_.arguments.resize(parameters.size());
  }

  void positional(std::vector<CallArgument> arguments) {
    std::vector<size_t> slots;
    bool has_rest = false;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].keyword_only) continue;
      if (parameters_[i].is_rest)
        has_rest = true;
      else if (!has_rest)
        slots.push_back(i);
    }
    for (size_t i = 0; i < arguments.size(); ++i)
      if (i < slots.size())
        out_.arguments[slots[i]] = std::move(arguments[i]);
      else if (has_rest)
        out_.rest.push_back(std::move(arguments[i]));
      else
        too_many(slots.size(), arguments, arguments[i].where);
  }

  void named(std::vector<std::pair<std::string, CallArgument>> arguments) {
    for (auto& [name, argument] : arguments) {
      size_t i = 0;
      while (i < parameters_.size() &&
             (parameters_[i].name != name || parameters_[i].is_rest))
        ++i;
      if (i == parameters_.size()) unknown(name, argument.where);
      if (out_.arguments[i])
        fail(diagnostic(Code::argument_twice, argument.where, name, function_)
                 .add_note(out_.arguments[i]->where, "its first value"));
      out_.arguments[i] = std::move(argument);
    }
  }

  MatchedArguments finish() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& p = parameters_[i];
      if (!out_.arguments[i] && !p.has_default && !p.is_rest)
        fail(diagnostic(Code::missing_argument, where_, function_, p.name)
                 .set_help(p.keyword_only ? fmt::format("write `{} = ...`; {}",
                                                        p.name, usage())
                                          : usage()));
    }
    return std::move(out_);
  }

 private:
  std::string usage() const {
    return fmt::format("it is called as `{}({})`", function_, signature_);
  }

  [[noreturn]] void fail(Diagnostic diagnostic) {
    if (declared_) diagnostic.add_note(declared_, "defined here");
    walk_.fail(std::move(diagnostic));
  }

  [[noreturn]] void too_many(size_t taken,
                             const std::vector<CallArgument>& given,
                             Span where) {
    const std::string limit =
        taken == 0   ? "no positional arguments"
        : taken == 1 ? "one positional argument"
                     : fmt::format("at most {} positional arguments", taken);
    const std::string form = taken > 0 ? other_form(given) : "";
    fail(diagnostic(Code::too_many_arguments, where, function_, limit,
                    given.size())
             .set_help(!form.empty() ? form
                       : makes_function()
                           ? fmt::format("`{0}(f)` is a function, which takes "
                                         "the rest: `{0}(f)(...)`",
                                         function_)
                           : usage()));
  }

  /// Whether it is a builtin like `jvp(f)`, which gives a function.
  bool makes_function() const {
    return !declared_ && !parameters_.empty() && parameters_[0].name == "f" &&
           std::all_of(parameters_.begin() + 1, parameters_.end(),
                       [](const Parameter& p) { return p.has_default; });
  }

  bool has_parameter(std::string_view name) const {
    return std::ranges::any_of(
        parameters_, [&](const Parameter& p) { return p.name == name; });
  }

  /// A help with what stands in the call.
  std::string with_arguments(std::string_view help, Span given) const {
    std::string out;
    for (size_t i = 0; i < help.size(); ++i) {
      if (help[i] != '%') {
        out += help[i];
        continue;
      }
      const char what = help[++i];
      out += what == 'f'              ? function_
             : what == 'v'            ? short_text(given)
             : out_.arguments.empty() ? "x"
             : out_.arguments[0]      ? short_text(out_.arguments[0]->where)
                                      : "x";
    }
    return out;
  }

  /// `cond(t, a, b)` of JAX, `vstack(a, b)`; empty if it is neither.
  std::string other_form(const std::vector<CallArgument>& given) const {
    const auto text = [&](size_t i) { return short_text(given[i].where); };
    if (function_ == "cond" && given.size() == 3)
      return fmt::format(
          "write `if {0} {{ {1} }} else {{ {2} }}`, or `where({0}, {1}, {2})` "
          "element by element",
          text(0), text(1), text(2));
    if (parameters_[0].name != "arrays") return {};
    std::string items;
    for (size_t i = 0; i < given.size(); ++i)
      items += fmt::format("{}{}", i > 0 ? ", " : "", text(i));
    return fmt::format("write `{}(({}))`", function_, items);
  }

  [[noreturn]] void unknown(const std::string& name, Span where) {
    if (const ForeignArgument* theirs = foreign_argument(
            name, [&](std::string_view ours) { return has_parameter(ours); }))
      fail(diagnostic(Code::unknown_argument, where, function_, name)
               .set_help(with_arguments(theirs->help, where)));
    const Parameter* meant = similar(parameters_, name);
    fail(diagnostic(Code::unknown_argument, where, function_, name)
             .set_help(meant ? fmt::format("did you mean `{}`?", meant->name)
                             : usage()));
  }

  Walk& walk_;
  std::string_view function_;
  std::span<const Parameter> parameters_;
  std::string_view signature_;
  Span where_, declared_;
  MatchedArguments out_;
};

}  // namespace

MatchedArguments match_arguments(
    Walk& walk, std::string_view function,
    std::span<const Parameter> parameters, std::string_view signature,
    std::vector<CallArgument> positional,
    std::vector<std::pair<std::string, CallArgument>> named, Span where,
    Span declared) {
  Matcher matcher(walk, function, parameters, signature, where, declared);
  matcher.positional(std::move(positional));
  matcher.named(std::move(named));
  return matcher.finish();
}

}  // namespace unisono::lang
