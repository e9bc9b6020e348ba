#pragma once
// The algebra of scalar.h over LLVM values: scalars, or fixed vectors of which
// every lane is one element. What is emitted is plain IR without fast-math
// flags, in the order in which the expression is written.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "jit/emit/element_llvm.h"
#include "jit/scalar/scalar.h"
#include "runtime/check.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

// ---- untyped helpers (scalar_llvm.cpp) -------------------------------------

/// `element`, or a vector of it as wide as the context's values.
llvm::Type* shaped(EmitContext& context, llvm::Type* element);
/// A constant in every lane.
llvm::Constant* splat(EmitContext& context, llvm::Constant* element);
/// True (an i1) if `mask` holds in any lane.
llvm::Value* any_lane(EmitContext& context, llvm::Value* mask);
/// table[index], from a constant of the module.
llvm::Value* emit_lookup(EmitContext& context,
                         llvm::ArrayRef<llvm::Constant*> table,
                         llvm::Value* index);

/// The exponent of x and its mantissa in [3/4, 3/2) by the target's own
/// instructions; nothing where it has none for values of this shape. A zero or
/// an infinity has an infinite exponent, a negative x a mantissa of NaN.
std::optional<std::array<llvm::Value*, 2>> emit_native_split(
    EmitContext& context, llvm::Value* x);
/// p * 2^n for a whole n by the target's own instructions; null where it has
/// none for values of this shape. `shifted` has n in its low bits (exp.h).
llvm::Value* emit_native_scale(EmitContext& context, llvm::Value* p,
                               llvm::Value* n, llvm::Value* shifted);
/// table's row at `place` (row_place, exp.h).
std::array<llvm::Value*, 8> emit_lookup_row(EmitContext& context,
                                            const RowTable& table,
                                            llvm::Value* place);

/// GPUs' instructions for what others select: see clamp, at_most, at_least and
/// row_place in jit/scalar/exp.h; null for other targets.
llvm::Value* emit_native_clamp(EmitContext& context, llvm::Value* x,
                               llvm::Value* low, llvm::Value* high);
llvm::Value* emit_native_at_most(EmitContext& context, llvm::Value* x,
                                 llvm::Value* most);
llvm::Value* emit_native_at_least(EmitContext& context, llvm::Value* x,
                                  llvm::Value* least);
/// x * y + z within [0, 1]; 0 where x is NaN.
llvm::Value* emit_native_fraction(EmitContext& context, llvm::Value* x,
                                  llvm::Value* y, llvm::Value* z);
llvm::Value* emit_copysign(EmitContext& context, llvm::Value* magnitude,
                           llvm::Value* sign);

using ValueList = llvm::SmallVector<llvm::Value*, 4>;

/// A rare function as C++ for code in this process: computes the lanes whose
/// byte of the mask is set. `place` holds the mask, each argument and each
/// result, one after the other in slots of `rare_slot(lanes)` bytes.
using RareHelper = void (*)(uint8_t* place, int64_t lanes);
/// Room for the widest elements, a multiple of the alignment of slots.
constexpr int64_t rare_slot_alignment = 64;
constexpr int64_t rare_slot(int64_t lanes) {
  return (lanes * 8 + rare_slot_alignment - 1) / rare_slot_alignment *
         rare_slot_alignment;
}

/// Branches to the rare function `name` if `mask` holds in any lane, and
/// selects its results in the lanes where it holds. The function is `helper` if
/// the code runs in this process, else one of the module, made by `body` (in a
/// context of its own) at its first use.
ValueList emit_rare(
    EmitContext& context, std::string_view name, llvm::Value* mask,
    ValueList usual, const ValueList& arguments,
    llvm::function_ref<ValueList(EmitContext&, const ValueList&)> body,
    RareHelper helper);
/// A loop that runs while `more` holds in any lane; lanes where it does not
/// hold keep their state.
ValueList emit_iterate(EmitContext& context, const ValueList& state,
                       llvm::function_ref<llvm::Value*(const ValueList&)> more,
                       llvm::function_ref<ValueList(const ValueList&)> step);

template <class T>
llvm::Type* element_type(EmitContext& context) {
  llvm::IRBuilderBase& b = context.builder;
  if constexpr (std::same_as<T, bool>)
    return b.getInt1Ty();
  else if constexpr (std::same_as<T, float>)
    return b.getFloatTy();
  else if constexpr (std::same_as<T, double>)
    return b.getDoubleTy();
  else
    return b.getIntNTy(8 * sizeof(T));
}

template <class T>
llvm::Constant* element_constant(EmitContext& context, T value) {
  llvm::Type* type = element_type<T>(context);
  if constexpr (FloatElement<T>) {
    return llvm::ConstantFP::get(context.builder.getContext(),
                                 llvm::APFloat(value));
  } else {
    return llvm::ConstantInt::get(type, static_cast<uint64_t>(value),
                                  std::is_signed_v<T>);
  }
}

// ---- the values ------------------------------------------------------------

/// Elements of type T: an LLVM value, or a constant that becomes one where it
/// meets another value.
template <class T>
class Lanes {
 public:
  using Element = T;
  template <class U>
  using Rebind = Lanes<U>;
  using Mask = Lanes<bool>;

  Lanes(std::same_as<T> auto constant) : constant_(constant) {}
  template <class C>
    requires IntegerElement<T> && IntegerElement<C> && (!std::same_as<C, T>)
  Lanes(C constant) : constant_(static_cast<T>(constant)) {}
  Lanes(EmitContext& context, llvm::Value* value)
      : context_(&context), value_(value) {}

  /// Null for a constant.
  EmitContext* context() const { return context_; }
  llvm::Value* in(EmitContext& context) const {
    return value_ ? value_
                  : splat(context, element_constant(context, constant_));
  }

  friend Lanes operator+(Lanes a, Lanes b) {
    return binary(a, b, is_float ? Binary::FAdd : Binary::Add);
  }
  friend Lanes operator-(Lanes a, Lanes b) {
    return binary(a, b, is_float ? Binary::FSub : Binary::Sub);
  }
  friend Lanes operator*(Lanes a, Lanes b) {
    return binary(a, b, is_float ? Binary::FMul : Binary::Mul);
  }
  friend Lanes operator/(Lanes a, Lanes b)
    requires FloatElement<T>
  {
    return binary(a, b, Binary::FDiv);
  }
  friend Lanes operator-(Lanes a) {
    EmitContext& c = *a.context_;
    return {c, is_float ? c.builder.CreateFNeg(a.value_)
                        : c.builder.CreateNeg(a.value_)};
  }
  friend Lanes operator~(Lanes a)
    requires std::integral<T>
  {
    return {*a.context_, a.context_->builder.CreateNot(a.value_)};
  }
  friend Lanes operator&(Lanes a, Lanes b)
    requires std::integral<T>
  {
    return binary(a, b, Binary::And);
  }
  friend Lanes operator|(Lanes a, Lanes b)
    requires std::integral<T>
  {
    return binary(a, b, Binary::Or);
  }
  friend Lanes operator^(Lanes a, Lanes b)
    requires std::integral<T>
  {
    return binary(a, b, Binary::Xor);
  }
  friend Lanes operator<<(Lanes a, Lanes n)
    requires IntegerElement<T>
  {
    return binary(a, n, Binary::Shl);
  }
  friend Lanes operator>>(Lanes a, Lanes n)
    requires IntegerElement<T>
  {
    return binary(a, n, std::is_signed_v<T> ? Binary::AShr : Binary::LShr);
  }

  friend Mask operator==(Lanes a, Lanes b) {
    return compare(a, b, Predicate::FCMP_OEQ, Predicate::ICMP_EQ);
  }
  friend Mask operator!=(Lanes a, Lanes b) {
    return compare(a, b, Predicate::FCMP_UNE, Predicate::ICMP_NE);
  }
  friend Mask operator<(Lanes a, Lanes b) {
    return compare(a, b, Predicate::FCMP_OLT, Predicate::ICMP_ULT);
  }
  friend Mask operator<=(Lanes a, Lanes b) {
    return compare(a, b, Predicate::FCMP_OLE, Predicate::ICMP_ULE);
  }
  friend Mask operator>(Lanes a, Lanes b) {
    return compare(a, b, Predicate::FCMP_OGT, Predicate::ICMP_UGT);
  }
  friend Mask operator>=(Lanes a, Lanes b) {
    return compare(a, b, Predicate::FCMP_OGE, Predicate::ICMP_UGE);
  }

  friend Lanes select(std::type_identity_t<Mask> mask, Lanes a, Lanes b) {
    EmitContext& c = *mask.context();
    return {c, c.builder.CreateSelect(mask.in(c), a.in(c), b.in(c))};
  }

  friend Lanes fma(Lanes x, Lanes y, Lanes z)
    requires FloatElement<T>
  {
    EmitContext& c = meet(meet_or_null(x, y), z);
    return intrinsic(c, llvm::Intrinsic::fma, {x.in(c), y.in(c), z.in(c)});
  }
  friend Lanes sqrt(Lanes a)
    requires FloatElement<T>
  {
    return unary(a, llvm::Intrinsic::sqrt);
  }
  friend Lanes rint(Lanes a)
    requires FloatElement<T>
  {
    return unary(a, llvm::Intrinsic::roundeven);
  }
  friend Lanes floor(Lanes a)
    requires FloatElement<T>
  {
    return unary(a, llvm::Intrinsic::floor);
  }
  friend Lanes ceil(Lanes a)
    requires FloatElement<T>
  {
    return unary(a, llvm::Intrinsic::ceil);
  }
  friend Lanes trunc(Lanes a)
    requires FloatElement<T>
  {
    return unary(a, llvm::Intrinsic::trunc);
  }
  friend Lanes abs(Lanes a)
    requires FloatElement<T>
  {
    return unary(a, llvm::Intrinsic::fabs);
  }
  friend Lanes copysign(Lanes magnitude, Lanes sign)
    requires FloatElement<T>
  {
    EmitContext& c = meet(magnitude.context_, sign);
    return {c, emit_copysign(c, magnitude.in(c), sign.in(c))};
  }

  /// See scale, clamp, at_most, at_least and row_place in jit/scalar/exp.h.
  friend std::optional<Lanes> native_scale(Lanes p, Lanes n, Lanes shifted)
    requires FloatElement<T>
  {
    EmitContext& c = *p.context_;
    return if_any(c, emit_native_scale(c, p.value_, n.in(c), shifted.in(c)));
  }
  friend std::optional<Lanes> native_clamp(Lanes x, T low, T high)
    requires FloatElement<T>
  {
    EmitContext& c = *x.context_;
    return if_any(
        c, emit_native_clamp(c, x.value_, Lanes(low).in(c), Lanes(high).in(c)));
  }
  friend std::optional<Lanes> native_at_most(Lanes x, T most)
    requires FloatElement<T>
  {
    EmitContext& c = *x.context_;
    return if_any(c, emit_native_at_most(c, x.value_, Lanes(most).in(c)));
  }
  friend std::optional<Lanes> native_at_least(Lanes x, Lanes least)
    requires FloatElement<T>
  {
    EmitContext& c = *x.context_;
    return if_any(c, emit_native_at_least(c, x.value_, least.in(c)));
  }
  friend std::optional<Lanes> native_fraction(Lanes x, T y, T z)
    requires FloatElement<T>
  {
    EmitContext& c = *x.context_;
    return if_any(
        c, emit_native_fraction(c, x.value_, Lanes(y).in(c), Lanes(z).in(c)));
  }

  /// See log_parts in jit/scalar/log.h.
  friend std::optional<std::array<Lanes, 2>> native_split(Lanes x)
    requires FloatElement<T>
  {
    EmitContext& c = *x.context_;
    auto parts = emit_native_split(c, x.value_);
    if (!parts) return std::nullopt;
    return std::array{Lanes(c, (*parts)[0]), Lanes(c, (*parts)[1])};
  }

  friend Lanes quotient(Lanes a, Lanes b)
    requires IntegerElement<T>
  {
    return binary(a, b, std::is_signed_v<T> ? Binary::SDiv : Binary::UDiv);
  }
  friend Lanes remainder(Lanes a, Lanes b)
    requires IntegerElement<T>
  {
    return binary(a, b, std::is_signed_v<T> ? Binary::SRem : Binary::URem);
  }

  friend void raise(std::type_identity_t<Mask> mask, Fault fault, Lanes operand)
    requires IntegerElement<T>
  {
    EmitContext& c = *mask.context();
    llvm::Value* value = c.builder.CreateIntCast(
        operand.in(c), shaped(c, c.builder.getInt64Ty()), std::is_signed_v<T>);
    c.faults.push_back({fault, mask.in(c), value});
  }

 private:
  using Binary = llvm::Instruction::BinaryOps;
  using Predicate = llvm::CmpInst::Predicate;
  static constexpr bool is_float = FloatElement<T>;

  static std::optional<Lanes> if_any(EmitContext& c, llvm::Value* value) {
    if (value == nullptr) return std::nullopt;
    return Lanes(c, value);
  }
  static EmitContext* meet_or_null(Lanes a, Lanes b) {
    return a.context_ ? a.context_ : b.context_;
  }
  static EmitContext& meet(EmitContext* c, Lanes b) {
    c = c ? c : b.context_;
    CHECK(c != nullptr);
    return *c;
  }
  static Lanes binary(Lanes a, Lanes b, Binary operation) {
    EmitContext& c = meet(a.context_, b);
    return {c, c.builder.CreateBinOp(operation, a.in(c), b.in(c))};
  }
  static Mask compare(Lanes a, Lanes b, Predicate on_floats,
                      Predicate on_integers) {
    EmitContext& c = meet(a.context_, b);
    Predicate p = is_float ? on_floats : on_integers;
    if (std::is_signed_v<T>)
      p = llvm::ICmpInst::isUnsigned(p) ? llvm::ICmpInst::getSignedPredicate(p)
                                        : p;
    return {c, c.builder.CreateCmp(p, a.in(c), b.in(c))};
  }
  static Lanes intrinsic(EmitContext& c, llvm::Intrinsic::ID id,
                         llvm::ArrayRef<llvm::Value*> operands) {
    return {c, c.builder.CreateIntrinsic(id, {shaped(c, element_type<T>(c))},
                                         operands)};
  }
  static Lanes unary(Lanes a, llvm::Intrinsic::ID id) {
    return intrinsic(*a.context_, id, {a.value_});
  }

  EmitContext* context_ = nullptr;
  llvm::Value* value_ = nullptr;
  T constant_{};
};

template <class U, class T>
Lanes<U> convert(Lanes<T> a) {
  static_assert(!std::same_as<U, bool> && !std::same_as<T, bool>);
  EmitContext& c = *a.context();
  llvm::IRBuilderBase& b = c.builder;
  llvm::Type* type = shaped(c, element_type<U>(c));
  llvm::Value* v = a.in(c);
  if constexpr (FloatElement<T> && FloatElement<U>) {
    return {c, b.CreateFPCast(v, type)};
  } else if constexpr (FloatElement<T>) {
    return {c, std::is_signed_v<U> ? b.CreateFPToSI(v, type)
                                   : b.CreateFPToUI(v, type)};
  } else if constexpr (FloatElement<U>) {
    return {c, std::is_signed_v<T> ? b.CreateSIToFP(v, type)
                                   : b.CreateUIToFP(v, type)};
  } else {
    return {c, b.CreateIntCast(v, type, std::is_signed_v<T>)};
  }
}

template <class U, class T>
Lanes<U> bit_cast(Lanes<T> a) {
  EmitContext& c = *a.context();
  return {c, c.builder.CreateBitCast(a.in(c), shaped(c, element_type<U>(c)))};
}

template <class T, size_t N>
Lanes<T> lookup(const std::array<T, N>& table, Lanes<int32_t> index) {
  EmitContext& c = *index.context();
  llvm::SmallVector<llvm::Constant*> elements;
  for (T element : table) elements.push_back(element_constant(c, element));
  return {c, emit_lookup(c, elements, index.in(c))};
}

inline std::array<Lanes<float>, 8> lookup_row(const RowTable& table,
                                              Lanes<float> place) {
  EmitContext& c = *place.context();
  const auto row = emit_lookup_row(c, table, place.in(c));
  return [&]<size_t... k>(std::index_sequence<k...>) {
    return std::array{Lanes<float>(c, row[k])...};
  }(std::make_index_sequence<8>());
}

/// Conversions between tuples of values and lists of LLVM values.
template <class... V>
ValueList to_list(EmitContext& context, const std::tuple<V...>& values) {
  return std::apply(
      [&](const auto&... v) { return ValueList{v.in(context)...}; }, values);
}
template <class Tuple>
Tuple from_list(EmitContext& context, const ValueList& values) {
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return Tuple{std::tuple_element_t<i, Tuple>(context, values[i])...};
  }(std::make_index_sequence<std::tuple_size_v<Tuple>>());
}

template <class F, class... Results, class... T>
void rare_helper(uint8_t* place, int64_t lanes, std::tuple<Results...>*,
                 std::tuple<Lanes<T>...>*) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    if (place[lane] == 0) continue;
    unsigned slot = 0;
    auto element = [&]<class U>(U*) {
      return reinterpret_cast<U*>(place + ++slot * rare_slot(lanes)) + lane;
    };
    // Braces: from left to right.
    std::tuple<Scalar<T>...> x{
        Scalar<T>(*element(static_cast<T*>(nullptr)))...};
    auto results = std::apply(F{}, x);
    std::apply(
        [&](auto... result) {
          ((*element(static_cast<typename decltype(result)::Element*>(
                nullptr)) = result.value()),
           ...);
        },
        results);
  }
}

template <class F, class... V, class... T>
std::tuple<V...> rare(Lanes<bool> mask, std::tuple<V...> usual, Lanes<T>... x) {
  EmitContext& c = *mask.context();
  auto body = [](EmitContext& inner, const ValueList& arguments) {
    auto values = from_list<std::tuple<Lanes<T>...>>(inner, arguments);
    return to_list(inner, std::apply(F{}, values));
  };
  RareHelper helper = [](uint8_t* place, int64_t lanes) {
    rare_helper<F>(place, lanes, static_cast<std::tuple<V...>*>(nullptr),
                   static_cast<std::tuple<Lanes<T>...>*>(nullptr));
  };
  return from_list<std::tuple<V...>>(
      c, emit_rare(c, F::name, mask.in(c), to_list(c, usual),
                   to_list(c, std::tuple(x...)), body, helper));
}

template <class... T, class More, class Step>
std::tuple<Lanes<T>...> iterate(std::tuple<Lanes<T>...> state, More more,
                                Step step) {
  using State = std::tuple<Lanes<T>...>;
  EmitContext* c = nullptr;
  std::apply([&](auto... v) { ((c = c ? c : v.context()), ...); }, state);
  CHECK(c != nullptr);
  return from_list<State>(*c, emit_iterate(
                                  *c, to_list(*c, state),
                                  [&](const ValueList& values) {
                                    auto s = from_list<State>(*c, values);
                                    return more(s).in(*c);
                                  },
                                  [&](const ValueList& values) {
                                    auto s = from_list<State>(*c, values);
                                    return to_list(*c, State(step(s)));
                                  }));
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
