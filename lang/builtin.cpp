#include "lang/builtin.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "jit/ir/graph.h"
#include "lang/arguments.h"
#include "lang/builtins_elementwise.h"
#include "lang/builtins_reduce.h"

namespace unisono::lang {

#define BUILTIN(name, function, signature, help) Value function(BuiltinCall&);
#include "lang/builtins.def"

namespace {

// The elementwise operations, reductions and scans of the IR have one builtin
// for each row of their table.
constexpr Builtin rows[] = {
#define UNARY(name, types, scalar, domain, help) \
  {#name, "x", &elementwise_unary<ir::Op::name>, help},
#define PREDICATE(name, types, scalar, help) \
  {#name, "x", &elementwise_unary<ir::Op::name>, help},
#define BINARY(name, types, scalar, domain, help) \
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
#include "lang/builtins.def"
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
#include "lang/builtins.def"
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

Value call_builtin(Evaluator& evaluator, const Builtin& builtin,
                   std::vector<CallArgument> positional,
                   std::vector<std::pair<std::string, CallArgument>> named,
                   Span where) {
  const Row& row = table().rows_[&builtin - rows];
  MatchedArguments matched = match_arguments(
      evaluator, builtin.name, row.parameters, builtin.signature,
      std::move(positional), std::move(named), where, Span());
  BuiltinCall call{evaluator, builtin, where, std::move(matched.arguments),
                   std::move(matched.rest)};
  return builtin.function(call);
}

}  // namespace unisono::lang
