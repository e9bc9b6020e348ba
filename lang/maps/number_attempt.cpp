#include "lang/maps/number_attempt.h"

namespace unisono::lang {

ArrayValue number_argument(Walk& walk, const Value& number, Span where) {
  return walk.on_first_device(*walk.to_operand(number, where, "an argument"),
                              where);
}

NumberAttempt::NumberAttempt(Walk& walk, const KnownNumbers& known, bool ints,
                             Span where)
    : walk_(walk),
      known_(known.literals),
      ints_(ints),
      where_(where),
      messages_(walk.diagnostics().size()),
      reported_(walk.reported) {}

Value NumberAttempt::next(const Value& argument) {
  return map_leaves(argument, [&](const Value& leaf) -> Value {
    const size_t place = leaves_++;
    const bool is_int = leaf.is<IntValue>();
    const bool literal = leaf.array() && leaf.array()->literal;
    if (is_int ? !ints_ : !literal || known_.contains(place)) return leaf;
    ArrayValue number = number_argument(walk_, leaf, where_);
    auto use = std::make_shared<NumberArgument>();
    number->call_numbers = {use};
    if (is_int) {
      number->int_argument = use;
      any_int_ = true;
    } else {
      literals_.emplace_back(place, use);
    }
    return number;
  });
}

bool NumberAttempt::given_up(const Failure& failure, KnownNumbers& known) {
  if (failure.diagnostic.code == Code::cancelled) return false;
  bool needed = false;
  for (const auto& [place, literal] : literals_) {
    if (!literal->needed) continue;
    known.literals.insert(place);
    needed = true;
  }
  // An array in an int's place makes mistakes of many kinds.
  if (!needed && !any_int_) return false;
  if (!needed) known.ints = true;
  walk_.diagnostics().truncate(messages_);
  walk_.reported = reported_;
  return true;
}

}  // namespace unisono::lang
