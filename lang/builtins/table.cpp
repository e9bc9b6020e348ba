#include "lang/context/builtin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "jit/ir/graph.h"
#include "lang/builtins/elementwise.h"
#include "lang/builtins/reduce.h"
#include "lang/context/arguments.h"
#include "lang/context/walk.h"

namespace unisono::lang {

#define BUILTIN(name, function, signature, help) Value function(BuiltinCall&);
#include "lang/builtins/builtins.def"

namespace {

// The elementwise operations, reductions and scans of the IR have one builtin
// for each row of their table.
constexpr Builtin rows[] = {
#define UNARY(name, types, scalar, cost, domain, help) \
  {#name, "x", &elementwise_unary<ir::Op::name>, help},
#define PREDICATE(name, types, scalar, help) \
  {#name, "x", &elementwise_unary<ir::Op::name>, help},
#define BINARY(name, types, scalar, cost, check, domain, help) \
  {#name, "x, y", &elementwise_binary<ir::Op::name>, help},
#define COMPARE(name, types, scalar, help) \
  {#name, "x, y", &elementwise_binary<ir::Op::name>, help},
#define REDUCE(name, types, combine, identity, help)                   \
  {#name, "x, axis=none, *, keepdims=false", &reduction<ir::Op::name>, \
   help " along axes (all of them without `axis`)"},
#define SCAN(name, types, combine, identity, help)                        \
  {#name, "x, axis=none, *, reverse=false", &running_total<ir::Op::name>, \
   help " along an axis"},
#include "jit/ir/ops.def"
#define BUILTIN(name, function, signature, help) \
  {#name, signature, &function, help},
#include "lang/builtins/builtins.def"
};

struct Row {
  const Builtin* builtin;
  std::vector<Parameter> parameters;
};

/// Rows by name and alias, their signatures parsed once.
struct Table {
  std::vector<Row> rows_;
  std::unordered_map<std::string_view, const Builtin*> by_name;

  Table() {
    for (const Builtin& b : rows) {
      rows_.push_back({&b, parse_signature(b.signature)});
      by_name.insert_or_assign(b.name, &b);  // a row of ours has more
    }
#define BUILTIN_ALIAS(alias, name) by_name.emplace(#alias, by_name.at(#name));
#include "lang/builtins/builtins.def"
  }
};

const Table& table() {
  static const Table table;
  return table;
}

}  // namespace

std::span<const Builtin> builtins() { return rows; }

const Builtin* find_builtin(std::string_view name) {
  const auto found = table().by_name.find(name);
  return found == table().by_name.end() ? nullptr : found->second;
}

namespace {

/// Functions that take several things as one argument: its place, what they
/// are, and the brackets around them.
struct PackedParameter {
  std::string_view function;
  size_t place, least;  // so many of them are a mistake
  std::string_view items;
  bool arrays;
  std::string_view form;
};
constexpr PackedParameter packed_parameters[] = {
    {"zeros", 0, 2, "the sizes", false, "({})"},
    {"ones", 0, 2, "the sizes", false, "({})"},
    {"reshape", 1, 2, "the sizes", false, "({})"},
    {"broadcast_to", 1, 2, "the sizes", false, "({})"},
    {"tile", 1, 2, "the counts", false, "({})"},
    {"transpose", 1, 2, "the axes", false, "({})"},
    {"concat", 0, 2, "the arrays", true, "({})"},
    {"stack", 0, 2, "the arrays", true, "({})"},
    {"max", 0, 3, "the numbers", false, "[{}]"},
    {"min", 0, 3, "the numbers", false, "[{}]"},
};

/// `zeros(3, 4)`, `reshape(x, 2, 3)`, `concat(a, b)`: what belongs together is
/// given one by one.
void forbid_loose_items(Walk& walk, const Builtin& builtin,
                        const std::vector<CallArgument>& positional,
                        Span where) {
  for (const PackedParameter& row : packed_parameters) {
    if (row.function != builtin.name ||
        positional.size() < row.place + row.least)
      continue;
    std::string items;
    for (size_t i = row.place; i < positional.size(); ++i) {
      const Value& item = positional[i].value;
      if (row.arrays ? item.array() == nullptr : !item.is<IntValue>()) return;
      items += items.empty() ? "" : ", ";
      items += positional[i].where.text();
    }
    const std::string before =
        row.place ? std::string(positional[0].where.text()) + ", " : "";
    walk.fail(
        diagnostic(Code::too_many_arguments, where, builtin.name,
                   fmt::format("{} as one argument", row.items),
                   positional.size() - row.place)
            .set_help(fmt::format("write `{}({}{})`", builtin.name, before,
                                  fmt::format(fmt::runtime(row.form), items))));
  }
  if (builtin.name == "where" && positional.size() == 1)
    walk.fail(diagnostic(Code::missing_argument, where, builtin.name,
                         std::string_view("x"))
                  .set_help(fmt::format("the positions of true elements are "
                                        "`nonzero({})`",
                                        positional[0].where.text())));
}

}  // namespace

Value call_builtin(Walk& walk, const Builtin& builtin,
                   std::vector<CallArgument> positional,
                   std::vector<std::pair<std::string, CallArgument>> named,
                   Span where) {
  const Row& row = table().rows_[&builtin - rows];
  if (named.empty()) forbid_loose_items(walk, builtin, positional, where);
  MatchedArguments matched =
      match_arguments(walk, builtin.name, row.parameters, builtin.signature,
                      std::move(positional), std::move(named), where, Span());
  BuiltinCall call{walk, builtin, where, std::move(matched.arguments),
                   std::move(matched.rest)};
  return builtin.function(call);
}

}  // namespace unisono::lang
