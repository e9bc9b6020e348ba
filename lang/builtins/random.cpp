// Random numbers: keys, bits, and the distributions that follow from bits by a
// formula. docs/random.md has the formulas.
#include "lang/builtins/random.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "jit/ir/kinds.h"
#include "lang/context/call_of.h"
#include "lang/context/literals.h"
#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"
#include "lang/ops/text.h"
#include "lang/source/foreign_names.h"

namespace unisono::lang {
namespace {

/// An integer everywhere.
ArrayValue whole(Walk& walk, uint64_t value, const ir::Type& type, Span where) {
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(type.dtype)));
  std::memcpy(bytes.data(), &value, bytes.size());
  return broadcast_to(
      walk, walk.constant_array({type.dtype, {}}, std::move(bytes), where),
      type.shape, where);
}

/// `op` of an integer array and a number.
ArrayValue apply_int(Walk& walk, ir::Op op, const ArrayValue& x, uint64_t y,
                     Span where) {
  return apply(walk, op, x, whole(walk, y, x->type, where), where);
}

ArrayValue upper_word(Walk& walk, const ArrayValue& both, Span where) {
  return cast_to(walk, apply_int(walk, ir::Op::shift_right, both, 32, where),
                 DType::U32, where);
}
ArrayValue lower_word(Walk& walk, const ArrayValue& both, Span where) {
  return cast_to(walk, both, DType::U32, where);
}

/// u64 as pairs of u32 along a new last axis: keys.
ArrayValue as_keys(Walk& walk, const ArrayValue& both, Span where) {
  const int last = both->type.rank();
  return concat(walk,
                {insert_axis(walk, upper_word(walk, both, where), last, where),
                 insert_axis(walk, lower_word(walk, both, where), last, where)},
                last, where);
}

/// 0, 1, 2, ... in row-major order: an element's number in its draw.
ArrayValue counters(Walk& walk, const ir::Shape& shape, Span where) {
  if (shape.empty()) return whole(walk, 0, {DType::U64, {}}, where);
  const ir::Shape flat = {ir::element_count(shape)};
  return reshape(walk, iota(walk, {DType::U64, flat}, 0, where), shape, where);
}

ArrayValue blocks(Walk& walk, const ArrayValue& key, const ArrayValue& counter,
                  Span where) {
  return apply(walk, ir::Op::threefry,
               broadcast_to(walk, key, counter->type.shape, where), counter,
               where);
}

// ---- arguments -------------------------------------------------------------

[[noreturn]] void no_key(Argument argument, const std::string& help) {
  argument.call().walk.fail(diagnostic(Code::wrong_argument, argument.where(),
                                       describe_argument(argument),
                                       "a key, which is a `u32[2]`",
                                       type_name(argument.value()))
                                .set_help(help));
}

void check_key(Argument argument) {
  const Value& value = argument.value();
  const std::string_view name = argument.call().builtin.name;
  if (value.is<TypeValue>())
    no_key(argument,
           fmt::format("the key comes first: `{}(key(42), ...)`", name));
  const ArrayCell* array = value.array();
  const bool is_key = array && !array->weak &&
                      array->type.dtype == DType::U32 &&
                      same_sizes(array->type.shape, {ir::Dim(2)});
  if (is_key) return;
  const bool is_seed =
      value.is<IntValue>() || (array && array->type.rank() == 0);
  if (is_seed)
    no_key(argument, fmt::format("a key is made of a number once: `{}(key({}), "
                                 "...)`",
                                 name, argument.where().text()));
  const bool are_keys = array && array->type.dtype == DType::U32 &&
                        array->type.rank() > 1 &&
                        array->type.shape.back() == ir::Dim(2);
  if (are_keys)
    no_key(argument, fmt::format("these are several: take one of them, as "
                                 "`keys[0]`, or draw with each: `vmap(fn(key) "
                                 "=> {}(key, ...))(keys)`",
                                 name));
  no_key(argument,
         "keys are made by `key(42)`, and of a key by `split_key` "
         "and `fold_in`");
}

/// The type that is drawn, of `usual` elements where only sizes are given.
/// `admits` tells its element types, in words `what`.
template <class Admits>
ir::Type drawn_type(Argument argument, DType usual, Admits admits,
                    std::string_view what, std::string_view help) {
  if (!argument.written()) return {usual, {}};  // one
  Walk& walk = argument.call().walk;
  const Value& value = argument.value();
  if (const auto* type = value.get_if<TypeValue>()) {
    if (admits(type->type.dtype)) return type->type;
    walk.fail(diagnostic(Code::element_class, argument.where(),
                         argument.call().builtin.name, what,
                         type->type.to_string())
                  .set_help(std::string(help)));
  }
  if (value.is<IntValue>() || value.tuple() || integer_scalar(value))
    return {usual, shape_argument(argument)};
  const std::string example = fmt::format("{}[3]", name(usual));
  Diagnostic d = diagnostic(
      Code::wrong_argument, argument.where(), describe_argument(argument),
      fmt::format("the type to draw, as `{}`", example), type_name(value));
  if (const auto* text = value.get_if<StrValue>();
      text && text->value && !foreign_name_help(*text->value).empty())
    d.set_help(std::string(foreign_name_help(*text->value)));
  else if (const ArrayCell* array = value.array(); array && array->weak)
    d.set_help(fmt::format("the type comes second: `{}(key, {}, ...)`",
                           argument.call().builtin.name, example));
  else if (array)
    d.set_help(fmt::format("the type of an array is `typeof({})`",
                           argument.where().text()));
  walk.fail(std::move(d));
}

ir::Type float_type(Argument argument, std::string_view help) {
  return drawn_type(
      argument, DType::F32, [](DType d) { return is_floating(d); }, "floats",
      help);
}
constexpr std::string_view draw_integers =
    "integers are drawn by `randint(key, i32[3], low, high)`, bits by "
    "`bits(key, u32[3])`";

/// A parameter of a distribution at the drawn type, or `otherwise`.
ArrayValue parameter(Argument argument, double otherwise,
                     const ir::Type& type) {
  BuiltinCall& call = argument.call();
  const ArrayValue value =
      argument.given()
          ? to_dtype(call.walk, argument, WeakDType{type.dtype},
                     describe_argument(argument))
          : call.walk.constant(otherwise, type.dtype, false, call.where);
  return broadcast_to(call.walk, value, type.shape, argument.where());
}

/// The number that was written, if one was.
std::optional<double> known(Argument argument, double otherwise) {
  return argument.given() ? literal_of(argument.value())
                          : std::optional(otherwise);
}

/// Fails where the two are known and `low` is above `high`, or equal to it and
/// that is not `equal_too`.
void check_order(Argument low, double low_otherwise, Argument high,
                 double high_otherwise, bool equal_too) {
  const auto a = known(low, low_otherwise), b = known(high, high_otherwise);
  if (!a || !b || *a < *b || (equal_too && *a == *b)) return;
  Argument at = high.given() ? high : low;
  at.call().walk.fail(
      diagnostic(Code::wrong_argument, at.where(), describe_argument(high),
                 fmt::format("{} `low`, which is {}",
                             equal_too ? "at least" : "above", *a),
                 fmt::format("{}", *b)));
}

}  // namespace

// ---- keys ------------------------------------------------------------------

ArrayValue key_argument(Argument argument) {
  check_key(argument);
  Walk& walk = argument.call().walk;
  const Span where = argument.where();
  const ArrayValue key = array_argument(argument);
  const auto word = [&](int64_t i) {
    const ArrayValue one = slice_axis(walk, key, 0, i, 1, where);
    return cast_to(walk, remove_axes(walk, one, {0}, where), DType::U64, where);
  };
  return apply(walk, ir::Op::bit_or,
               apply_int(walk, ir::Op::shift_left, word(0), 32, where), word(1),
               where);
}

std::pair<ArrayValue, ArrayValue> split_in_two(Walk& walk,
                                               const ArrayValue& key,
                                               Span where) {
  const auto child = [&](uint64_t i) {
    return blocks(walk, key, whole(walk, i, {DType::U64, {}}, where), where);
  };
  return {child(0), child(1)};
}

Value builtin_key(CallOf<"key">& call) {
  Walk& walk = call.walk;
  const Argument seed = call["seed"];
  if (seed.value().is<BoolValue>()) wrong_argument(seed, "an integer");
  const ArrayValue x = operand_argument(seed);
  if (!is_integer(x->type.dtype))
    walk.fail(diagnostic(Code::wrong_argument, seed.where(),
                         describe_argument(seed), "an integer",
                         type_name(seed.value()))
                  .set_help(is_floating(x->type.dtype)
                                ? "an integer of 64 bits is a seed: `key(42)`"
                                : "count with `i32(x)`"));
  if (x->type.rank() > 0)
    walk.fail(diagnostic(Code::wrong_argument, seed.where(),
                         describe_argument(seed), "one integer",
                         type_name(seed.value()))
                  .set_help(fmt::format("for a key of each: `vmap(key)({})`",
                                        seed.where().text())));
  // Of the sign of narrower ones there are copies.
  const bool is_u64 = x->type.dtype == DType::U64;
  const ArrayValue wide =
      is_u64 ? cast_to(walk, x, DType::U64, seed.where())
             : cast_to(walk, cast_to(walk, x, DType::I64, seed.where()),
                       DType::U64, seed.where());
  return as_keys(walk, wide, call.where);
}

Value builtin_split_key(CallOf<"split_key">& call) {
  const ArrayValue key = key_argument(call["key"]);
  const ir::Shape shape =
      call["n"].given() ? shape_argument(call["n"]) : ir::Shape{2};
  return as_keys(call.walk, random_words(call.walk, key, shape, call.where),
                 call.where);
}

Value builtin_fold_in(CallOf<"fold_in">& call) {
  Walk& walk = call.walk;
  const ArrayValue key = key_argument(call["key"]);
  const Argument i = call["i"];
  const ArrayValue number = operand_argument(i);
  if (!is_integer(number->type.dtype) || number->type.rank() > 0)
    walk.fail(diagnostic(Code::wrong_argument, i.where(), describe_argument(i),
                         "one integer", type_name(i.value()))
                  .set_help(is_integer(number->type.dtype)
                                ? fmt::format("for each of them: `vmap(fn(i) "
                                              "=> fold_in({}, i))({})`",
                                              call["key"].where().text(),
                                              i.where().text())
                                : "a key for each turn of a loop is "
                                  "`fold_in(key, i)`"));
  const bool is_u64 = number->type.dtype == DType::U64;
  const ArrayValue low = cast_to(
      walk, cast_to(walk, number, is_u64 ? DType::U64 : DType::I64, i.where()),
      DType::U32, i.where());
  return as_keys(
      walk,
      blocks(walk, key, cast_to(walk, low, DType::U64, i.where()), call.where),
      call.where);
}

// ---- bits ------------------------------------------------------------------

ArrayValue random_words(Walk& walk, const ArrayValue& key,
                        const ir::Shape& shape, Span where) {
  return blocks(walk, key, counters(walk, shape, where), where);
}

ArrayValue random_bits(Walk& walk, const ArrayValue& key, const ir::Type& type,
                       Span where) {
  ArrayValue words = random_words(walk, key, type.shape, where);
  if (type.dtype == DType::U64) return words;
  const ArrayValue bits =
      apply(walk, ir::Op::bit_xor, upper_word(walk, words, where),
            lower_word(walk, words, where), where);
  return cast_to(walk, bits, type.dtype, where);
}

Value builtin_bits(CallOf<"bits">& call) {
  const ArrayValue key = key_argument(call["key"]);
  const ir::Type type = drawn_type(
      call["type"], DType::U32, [](DType d) { return is_unsigned(d); },
      "unsigned integers",
      "other integers are drawn by `randint(key, i32[3], low, high)`, floats "
      "by `uniform(key, f32[3])`");
  return random_bits(call.walk, key, type, call.where);
}

// ---- floats ----------------------------------------------------------------

namespace {

/// Which bits are drawn for a float type, and how many of them stay: as many as
/// its fraction has.
struct Fraction {
  DType bits;
  int drawn, kept;
};
Fraction fraction_of(DType dtype) {
  if (dtype == DType::F64) return {DType::U64, 64, 52};
  if (dtype == DType::F16) return {DType::U16, 16, 10};
  if (dtype == DType::BF16) return {DType::U8, 8, 7};
  return {DType::U32, 32, 23};
}

/// The least normal number; bf16 has f32's.
double least_normal(DType dtype) {
  if (dtype == DType::F64) return 0x1p-1022;
  return dtype == DType::F16 ? 0x1p-14 : 0x1p-126;
}

/// u * (high - low) + low, at least low, with u from 0 to 1.
ArrayValue between(Walk& walk, const ArrayValue& u, const ArrayValue& low,
                   const ArrayValue& high, Span where) {
  const ArrayValue span = apply(walk, ir::Op::sub, high, low, where);
  const ArrayValue x = apply(
      walk, ir::Op::add, apply(walk, ir::Op::mul, u, span, where), low, where);
  return apply(walk, ir::Op::maximum, x, low, where);
}

ArrayValue apply_one(Walk& walk, ir::Op op, const ArrayValue& x, Span where) {
  return walk.add(op, {x}, ir::NoAttrs{}, where);
}

}  // namespace

ArrayValue random_fractions(Walk& walk, const ArrayValue& key,
                            const ir::Type& type, Span where) {
  const Fraction f = fraction_of(type.dtype);
  const ArrayValue bits = random_bits(walk, key, {f.bits, type.shape}, where);
  const ArrayValue top =
      apply_int(walk, ir::Op::shift_right, bits,
                static_cast<uint64_t>(f.drawn - f.kept), where);
  return apply(walk, ir::Op::mul, cast_to(walk, top, type.dtype, where),
               std::ldexp(1.0, -f.kept), where);
}

Value builtin_uniform(CallOf<"uniform">& call) {
  const ArrayValue key = key_argument(call["key"]);
  const ir::Type type = float_type(call["type"], draw_integers);
  const Argument low = call["low"], high = call["high"];
  const ArrayValue u = random_fractions(call.walk, key, type, call.where);
  if (!low.given() && !high.given()) return u;
  check_order(low, 0, high, 1, true);
  return between(call.walk, u, parameter(low, 0, type),
                 parameter(high, 1, type), call.where);
}

Value builtin_normal(CallOf<"normal">& call) {
  Walk& walk = call.walk;
  const Span where = call.where;
  const ArrayValue key = key_argument(call["key"]);
  const ir::Type type = float_type(call["type"], draw_integers);
  // Between -1, which is not drawn, as erf_inv is infinite there, and 1.
  const double after = -1 + std::ldexp(0.5, -fraction_of(type.dtype).kept);
  const ArrayValue u = random_fractions(walk, key, type, where);
  const ArrayValue x = apply(
      walk, ir::Op::add, apply(walk, ir::Op::mul, u, 2, where), after, where);
  return apply(walk, ir::Op::mul, apply_one(walk, ir::Op::erf_inv, x, where),
               std::sqrt(2.0), where);
}

Value builtin_exponential(CallOf<"exponential">& call) {
  Walk& walk = call.walk;
  const Span where = call.where;
  const ArrayValue key = key_argument(call["key"]);
  const ir::Type type = float_type(call["type"], draw_integers);
  const ArrayValue u = random_fractions(walk, key, type, where);
  const ArrayValue down = apply_one(walk, ir::Op::neg, u, where);
  return apply_one(walk, ir::Op::neg,
                   apply_one(walk, ir::Op::log1p, down, where), where);
}

ArrayValue random_gumbel(Walk& walk, const ArrayValue& key,
                         const ir::Type& type, Span where) {
  const auto number = [&](double value) {
    return broadcast_to(walk, walk.constant(value, type.dtype, false, where),
                        type.shape, where);
  };
  const ArrayValue u =
      between(walk, random_fractions(walk, key, type, where),
              number(least_normal(type.dtype)), number(1), where);
  const auto minus_log = [&](const ArrayValue& x) {
    return apply_one(walk, ir::Op::neg, apply_one(walk, ir::Op::log, x, where),
                     where);
  };
  return minus_log(minus_log(u));
}

Value builtin_gumbel(CallOf<"gumbel">& call) {
  const ArrayValue key = key_argument(call["key"]);
  return random_gumbel(call.walk, key, float_type(call["type"], draw_integers),
                       call.where);
}

Value builtin_bernoulli(CallOf<"bernoulli">& call) {
  Walk& walk = call.walk;
  const ArrayValue key = key_argument(call["key"]);
  const ir::Type type = drawn_type(
      call["type"], DType::Bool, [](DType d) { return is_bool(d); }, "`bool`",
      "write `bool` and cast what is drawn: `f32(bernoulli(key, bool[3]))`");
  const Argument p = call["p"];
  if (const auto written = known(p, 0.5);
      written && !(*written >= 0 && *written <= 1))
    walk.fail(diagnostic(Code::wrong_argument, p.where(), describe_argument(p),
                         "a probability, from 0 to 1",
                         fmt::format("{}", *written)));
  const ir::Type floats = {DType::F32, type.shape};
  return apply(walk, ir::Op::lt,
               random_fractions(walk, key, floats, call.where),
               parameter(p, 0.5, floats), call.where);
}

// ---- integers --------------------------------------------------------------

namespace {

int bits_of(DType dtype) { return static_cast<int>(8 * byte_size(dtype)); }

/// The unsigned type of the same width.
DType unsigned_of(DType dtype) {
  const int bits = bits_of(dtype);
  return bits == 8    ? DType::U8
         : bits == 16 ? DType::U16
         : bits == 32 ? DType::U32
                      : DType::U64;
}

/// How `randint` reduces random words to a range.
struct Range {
  /// As many numbers as there are, of the unsigned type; null if all are in it.
  ArrayValue size;
  /// What the upper word counts for: 2^width mod size.
  ArrayValue carry;
};

/// (upper * carry + lower) mod size, of two words of two keys.
ArrayValue reduced(Walk& walk, const ArrayValue& key, const ir::Type& type,
                   const Range& range, Span where) {
  const auto [first, second] = split_in_two(walk, key, where);
  ArrayValue lower = random_bits(walk, second, type, where);
  if (!range.size) return lower;
  const auto mod = [&](const ArrayValue& x) {
    return apply(walk, ir::Op::mod, x, range.size, where);
  };
  const ArrayValue upper = random_bits(walk, first, type, where);
  return mod(apply(walk, ir::Op::add,
                   apply(walk, ir::Op::mul, mod(upper), range.carry, where),
                   mod(lower), where));
}

/// The low bits that an unsigned type has.
uint64_t wrapped(uint64_t value, DType dtype) {
  return value & (~uint64_t{0} >> (64 - bits_of(dtype)));
}

/// Of a size that is known; 0 stands for all numbers of the type.
Range known_range(Walk& walk, uint64_t size, const ir::Type& type, Span where) {
  if (size == 0) return {};
  const uint64_t half = (uint64_t{1} << (bits_of(type.dtype) / 2)) % size;
  return {whole(walk, size, type, where),
          whole(walk, wrapped(half * half, type.dtype) % size, type, where)};
}

/// Of sizes that are computed.
Range computed_range(Walk& walk, const ArrayValue& size, Span where) {
  const ir::Type& type = size->type;
  // Never 0, as compiled code sees.
  const ArrayValue divisor =
      apply(walk, ir::Op::maximum, size, whole(walk, 1, type, where), where);
  const auto mod = [&](const ArrayValue& x) {
    return apply(walk, ir::Op::mod, x, divisor, where);
  };
  const ArrayValue half =
      mod(whole(walk, uint64_t{1} << (bits_of(type.dtype) / 2), type, where));
  return {divisor, mod(apply(walk, ir::Op::mul, half, half, where))};
}

/// A bound that is known when the program is compiled.
std::optional<int64_t> known_bound(Argument bound) {
  if (const auto* i = bound.value().get_if<IntValue>())
    return i->value.is_constant() && !i->value.overflowed()
               ? std::optional(i->value.value())
               : std::nullopt;
  const ArrayCell* array = bound.value().array();
  return array && array->weak && array->constant ? known_integer(*array)
                                                 : std::nullopt;
}

/// A bound as an array of `dtype`; the drawn type must hold all of its own.
ArrayValue computed_bound(Argument bound, DType dtype, DType drawn) {
  BuiltinCall& call = bound.call();
  const ArrayValue x = operand_argument(bound);
  if (!is_integer(x->type.dtype))
    wrong_argument(bound, "an integer or an array of integers");
  if (!x->weak &&
      promote(WeakDType{x->type.dtype}, WeakDType{drawn}).dtype != drawn)
    call.walk.fail(
        diagnostic(Code::wrong_argument, bound.where(),
                   describe_argument(bound),
                   fmt::format("integers that {} holds", name(drawn)),
                   x->type.to_string())
            .set_help(fmt::format("cast it, `{}({})`, or draw {}", name(drawn),
                                  bound.where().text(), name(x->type.dtype))));
  return to_dtype(call.walk, bound, WeakDType{dtype}, describe_argument(bound));
}

/// Fails unless the type holds a bound that is known. The end may be one above
/// the greatest number, which wraps, if `may_wrap`.
void check_bound(Argument bound, int64_t value, DType dtype, bool may_wrap) {
  const uint64_t greatest =
      ~uint64_t{0} >> (64 - bits_of(dtype) + (is_signed(dtype) ? 1 : 0));
  const int64_t least =
      is_signed(dtype) ? -static_cast<int64_t>(greatest) - 1 : 0;
  const uint64_t most =
      may_wrap && bits_of(dtype) < 64 ? greatest + 1 : greatest;
  if (value >= least && (value < 0 || static_cast<uint64_t>(value) <= most))
    return;
  bound.call().walk.fail(
      diagnostic(Code::literal_range, bound.where(), value, name(dtype),
                 integer_range(dtype))
          .set_help("draw a wider type, as `i64[3]`, or a narrower range"));
}

/// The numbers from `low` to `high`, which a `drawn` type holds, and `low`,
/// both of `type`, which is at least as wide.
std::pair<Range, ArrayValue> range_argument(Argument low, Argument high,
                                            const ir::Type& type, DType drawn,
                                            Span where) {
  Walk& walk = low.call().walk;
  const DType words = unsigned_of(type.dtype);
  const auto first = known_bound(low), end = known_bound(high);
  if (first) check_bound(low, *first, drawn, false);
  if (end)
    check_bound(high, *end, drawn, first.has_value() || drawn != type.dtype);
  const auto number = [&](int64_t value, const ir::Shape& shape) {
    return whole(walk, static_cast<uint64_t>(value), {type.dtype, shape},
                 where);
  };
  if (first && end) {
    check_order(low, 0, high, 0, /*equal_too=*/false);
    const uint64_t size =
        static_cast<uint64_t>(*end) - static_cast<uint64_t>(*first);
    return {known_range(walk, wrapped(size, words), {words, type.shape}, where),
            number(*first, type.shape)};
  }
  ArrayValue start =
      first ? number(*first, {}) : computed_bound(low, type.dtype, drawn);
  ArrayValue stop =
      end ? number(*end, {}) : computed_bound(high, type.dtype, drawn);
  // Of scalars what all elements share is computed once.
  const bool scalars = start->type.rank() == 0 && stop->type.rank() == 0;
  if (!scalars) {
    start = broadcast_to(walk, start, type.shape, low.where());
    stop = broadcast_to(walk, stop, type.shape, high.where());
  }
  require(walk, apply(walk, ir::Op::lt, start, stop, where),
          "`low` of `randint` must be below `high`", where);
  const ArrayValue size =
      cast_to(walk, apply(walk, ir::Op::sub, stop, start, where), words, where);
  Range range = computed_range(walk, size, where);
  for (ArrayValue* part : {&range.size, &range.carry, &start})
    *part = broadcast_to(walk, *part, type.shape, where);
  return {range, start};
}

}  // namespace

ArrayValue random_positions(Walk& walk, const ArrayValue& key,
                            const ir::Type& type, const ir::Dim& count,
                            Span where) {
  const ir::Type words = {unsigned_of(type.dtype), type.shape};
  // Of a symbol the result has the type that it has of any size.
  const uint64_t size =
      count.is_constant() ? static_cast<uint64_t>(count.value()) : 1;
  const Range range = known_range(walk, size, words, where);
  return cast_to(walk, reduced(walk, key, words, range, where), type.dtype,
                 where);
}

Value builtin_randint(CallOf<"randint">& call) {
  Walk& walk = call.walk;
  const Span where = call.where;
  const ArrayValue key = key_argument(call["key"]);
  const ir::Type type = drawn_type(
      call["type"], DType::I32, [](DType d) { return is_integer(d); },
      "integers",
      "floats are drawn by `uniform(key, f32[3])`, bools by `bernoulli(key, "
      "bool[3])`");
  // Words of 8 and 16 bits would favour some numbers by much.
  const DType wide = bits_of(type.dtype) < 32 ? DType::I32 : type.dtype;
  const auto [range, start] = range_argument(
      call["low"], call["high"], {wide, type.shape}, type.dtype, where);
  const ArrayValue offset =
      reduced(walk, key, {unsigned_of(wide), type.shape}, range, where);
  const ArrayValue out = apply(walk, ir::Op::add, start,
                               cast_to(walk, offset, wide, where), where);
  return cast_to(walk, out, type.dtype, where);
}

}  // namespace unisono::lang
