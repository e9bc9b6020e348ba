#include "lang/context/builtin.h"

#include <fmt/format.h>

#include <unordered_map>

#include "jit/ir/graph.h"
#include "lang/builtins/elementwise.h"
#include "lang/builtins/reduce.h"
#include "lang/context/arguments.h"
#include "lang/context/call_of.h"
#include "lang/context/walk.h"

namespace unisono::lang {

#define BUILTIN(name, function, signature, help) \
  Value function(CallWith<signature_id(signature)>&);
#include "lang/context/builtins.def"

namespace {

/// A row's function, for any call: its arguments are matched to the signature.
template <size_t signature, Value (*function)(CallWith<signature>&)>
Value enter(BuiltinCall call) {
  CallWith<signature> named{std::move(call)};
  return function(named);
}

constexpr Builtin rows[] = {
#define BUILTIN(name, function, signature, help)                    \
  {#name, signature, signature_parameters<signature_id(signature)>, \
   &enter<signature_id(signature), &function>, help},
#define OPERATION(name, function, signature, help) \
  BUILTIN(name, function<ir::Op::name>, signature, help)
#include "lang/context/builtins.def"
};

using RowsByName = std::unordered_map<std::string_view, const Builtin*>;

/// Rows by name and alias.
const RowsByName& rows_by_name() {
  static const RowsByName table = [] {
    RowsByName by_name;
    for (const Builtin& b : rows)
      by_name.insert_or_assign(b.name, &b);  // a row of ours has more
#define BUILTIN_ALIAS(alias, name) by_name.emplace(#alias, by_name.at(#name));
#include "lang/context/builtins.def"
    return by_name;
  }();
  return table;
}

}  // namespace

std::span<const Builtin> builtins() { return rows; }

const Builtin* find_builtin(std::string_view name) {
  const auto found = rows_by_name().find(name);
  return found == rows_by_name().end() ? nullptr : found->second;
}

namespace {

/// Functions that take several things as one argument.
struct PackedParameter {
  std::string_view function;
  size_t place;            // of the parameter
  size_t least;            // so many of them are a mistake
  std::string_view items;  // what they are
  bool arrays;
  std::string_view form;  // with the brackets around them
};
consteval PackedParameter packed(std::string_view function,
                                 std::string_view parameter, size_t least,
                                 std::string_view items, std::string_view form,
                                 bool arrays = false) {
  return {function, parameter_place(signature_of(function), parameter),
          least,    items,
          arrays,   form};
}
constexpr PackedParameter packed_parameters[] = {
    packed("zeros", "type", 2, "the sizes", "({})"),
    packed("ones", "type", 2, "the sizes", "({})"),
    packed("reshape", "shape", 2, "the sizes", "({})"),
    packed("broadcast_to", "shape", 2, "the sizes", "({})"),
    packed("tile", "n", 2, "the counts", "({})"),
    packed("transpose", "axes", 2, "the axes", "({})"),
    packed("concat", "arrays", 2, "the arrays", "({})", true),
    packed("stack", "arrays", 2, "the arrays", "({})", true),
    packed("max", "x", 3, "the numbers", "[{}]"),
    packed("min", "x", 3, "the numbers", "[{}]"),
};

/// `zeros(3, 4)`, `reshape(x, 2, 3)`, `concat(a, b)`: what belongs together is
/// given one by one.
void forbid_loose_items(Walk& walk, const Builtin& builtin,
                        const std::vector<CallArgument>& positional,
                        Span where) {
  for (const PackedParameter& row : packed_parameters) {
    if (positional.size() < row.place + row.least ||
        row.function != builtin.name)
      continue;
    std::string items;
    for (size_t i = row.place; i < positional.size(); ++i) {
      const Value& item = positional[i].value;
      const bool is_array =
          item.array() || positional[i].where.text().starts_with('[');
      if (row.arrays ? !is_array : !item.is<IntValue>()) return;
      items += items.empty() ? "" : ", ";
      items += positional[i].where.text();
    }
    const std::string before =
        row.place > 0 ? std::string(positional[0].where.text()) + ", " : "";
    walk.fail(
        diagnostic(Code::too_many_arguments, where, builtin.name,
                   fmt::format("{} as one argument", row.items),
                   positional.size() - row.place)
            .set_help(fmt::format("write `{}({}{})`", builtin.name, before,
                                  fmt::format(fmt::runtime(row.form), items))));
  }
}

/// `where(c)`, `log(8, 2)`: forms that other libraries have.
void forbid_other_forms(Walk& walk, const Builtin& builtin,
                        const std::vector<CallArgument>& positional,
                        Span where) {
  const auto text = [&](size_t i) { return positional[i].where.text(); };
  if (positional.size() == 2 && builtin.name == "log")
    walk.fail(diagnostic(Code::too_many_arguments, positional[1].where,
                         builtin.name, "one positional argument", 2)
                  .set_help(fmt::format(
                      "the logarithm to another base is `log({0}) / log({1})`, "
                      "or `log2({0})`, `log10({0})`",
                      text(0), text(1))));
  if (positional.size() == 1 && builtin.name == "where")
    walk.fail(diagnostic(Code::missing_argument, where, builtin.name,
                         std::string_view("x"))
                  .set_help(fmt::format("the positions of true elements are "
                                        "`nonzero({})`",
                                        text(0))));
}

}  // namespace

Value call_builtin(Walk& walk, const Builtin& builtin,
                   std::vector<CallArgument> positional,
                   std::vector<std::pair<std::string, CallArgument>> named,
                   Span where) {
  if (named.empty()) {
    forbid_loose_items(walk, builtin, positional, where);
    forbid_other_forms(walk, builtin, positional, where);
  }
  MatchedArguments matched =
      match_arguments(walk, builtin.name, builtin.parameters, builtin.signature,
                      std::move(positional), std::move(named), where, Span());
  return builtin.function({walk, builtin, where, std::move(matched.arguments),
                           std::move(matched.rest)});
}

}  // namespace unisono::lang
