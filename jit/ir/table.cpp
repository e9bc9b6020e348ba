#include "jit/ir/table.h"

#include <algorithm>

#include "runtime/check.h"

namespace unisono::ir {
namespace {

template <class T, class... All>
consteval size_t place_in(const std::variant<All...>*) {
  size_t place = 0;
  (void)((std::is_same_v<T, All> || (++place, false)) || ...);
  return place;
}
template <class T>
constexpr size_t place_of = place_in<T>(static_cast<const Attrs*>(nullptr));

constexpr std::pair<double, double> any_domain = {-4, 4};
constexpr int any = any_operands;

constexpr Row rows[] = {
#define MAP(name, types, cost, check, operands, domain, help) \
  {Op::name,                                                  \
   #name,                                                     \
   Kind::map,                                                 \
   TypeClass::types,                                          \
   Cost::cost,                                                \
   Check::check,                                              \
   operands,                                                  \
   place_of<NoAttrs>,                                         \
   std::nullopt,                                              \
   std::nullopt,                                              \
   std::pair<double, double>                                  \
       domain,                                                \
   help},
#define UNARY(name, types, scalar, factor, cost, domain, help) \
  MAP(name, types, cost, none, 1, domain, help)
#define BINARY(name, types, scalar, by_x, by_y, cost, check, domain, help) \
  MAP(name, types, cost, check, 2, domain, help)
#define PREDICATE(name, types, scalar, help) \
  MAP(name, types, cheap, none, 1, (-4, 4), help)
#define COMPARE(name, types, scalar, help) \
  MAP(name, types, cheap, none, 2, (-4, 4), help)
#define LINE(name, kind, attributes, types, combine, identity, help) \
  {Op::name,    #name,                                               \
   Kind::kind,  TypeClass::types,                                    \
   Cost::cheap, Check::none,                                         \
   1,           place_of<attributes>,                                \
   Op::combine, Identity::identity,                                  \
   any_domain,  help},
#define REDUCE(name, ...) LINE(name, reduce, ReduceAttrs, __VA_ARGS__)
#define SCAN(name, ...) LINE(name, scan, ScanAttrs, __VA_ARGS__)
#define OTHER(name, kind, types, operands, check, attributes, help) \
  {Op::name,     #name,        Kind::kind, TypeClass::types,        \
   Cost::cheap,  Check::check, operands,   place_of<attributes>,    \
   std::nullopt, std::nullopt, any_domain, help},
#include "jit/ir/ops.def"
#undef MAP
#undef LINE
};

consteval bool in_order() {
  for (size_t i = 0; i < std::size(rows); ++i)
    if (static_cast<size_t>(rows[i].op) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

const Row& row(Op op) { return rows[static_cast<size_t>(op)]; }

Alone alone(Collective op) {
  switch (op) {
#define COLLECTIVE(name, operands, alone, help) \
  case Collective::name: return Alone::alone;
#define POSITION COLLECTIVE
#include "jit/ir/ops.def"
  }
  __builtin_unreachable();
}

std::span<const Row> all_rows() { return rows; }

std::string_view name(Op op) { return row(op).name; }

std::optional<Op> op_from_name(std::string_view text) {
  const auto* found = std::ranges::find(rows, text, &Row::name);
  if (found == std::end(rows)) return std::nullopt;
  return found->op;
}

Kind kind(Op op) { return row(op).kind; }

Move move_of(Op op) {
  CHECK(kind(op) == Kind::move);
  return static_cast<Move>(op);
}

Collective collective_of(Op op) {
  CHECK(kind(op) == Kind::collective);
  return static_cast<Collective>(op);
}

}  // namespace unisono::ir
