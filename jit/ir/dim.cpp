#include "jit/ir/dim.h"

#include <algorithm>
#include <compare>
#include <numeric>

#include "runtime/check.h"

// A polynomial is a sum of terms, each a coefficient times powers of atoms. An
// atom is a symbol or a quotient that does not divide evenly. Terms are sorted
// in graded lexicographic order, largest first, and have coefficients that are
// not 0, so that equal polynomials are equal lists.

namespace unisono::ir {
namespace {

// Beyond these a size counts as overflowed: what computes with it stays fast
// and its recursion shallow, whatever the program.
constexpr size_t max_terms = 1000;
constexpr int max_degree = 64;
constexpr int max_depth = 32;

struct Atom {
  uint32_t id = 0;  // of a symbol
  std::string name;
  bool open = false;  // a symbol that only running tells
  bool is_quotient = false;
  Dim dividend, divisor;  // of a quotient
  int depth = 0;          // of quotients in quotients
};

struct Factor {
  std::shared_ptr<const Atom> atom;
  int power = 1;
};

struct Term {
  int64_t coefficient = 0;
  std::vector<Factor> factors;  // ascending atoms
};

using Terms = std::vector<Term>;

}  // namespace

struct Dim::Poly {
  Terms terms;

  static Terms terms_of(const Dim& d) {
    if (d.poly_) return d.poly_->terms;
    if (d.value_ == 0) return {};
    return {Term{d.value_, {}}};
  }
  static Dim overflow() {
    Dim d;
    d.overflowed_ = true;
    return d;
  }
  static Dim from_sorted(Terms terms);
  static const Terms* of(const Dim& d) {
    return d.poly_ ? &d.poly_->terms : nullptr;
  }
};

namespace {

std::strong_ordering order(const Dim& a, const Dim& b);

std::strong_ordering order(const Atom& a, const Atom& b) {
  if (&a == &b) return std::strong_ordering::equal;
  if (auto c = a.is_quotient <=> b.is_quotient; c != 0) return c;
  if (!a.is_quotient) return a.id <=> b.id;
  if (auto c = order(a.dividend, b.dividend); c != 0) return c;
  return order(a.divisor, b.divisor);
}

int degree(const Term& t) {
  int sum = 0;
  for (const Factor& f : t.factors) sum += f.power;
  return sum;
}

/// Graded lexicographic order of the monomials: greater is a higher degree,
/// then a higher power of the first atom that they differ in.
std::strong_ordering compare_monomials(const Term& a, const Term& b) {
  if (auto c = degree(a) <=> degree(b); c != 0) return c;
  const size_t n = std::min(a.factors.size(), b.factors.size());
  for (size_t i = 0; i < n; ++i) {
    auto c = order(*a.factors[i].atom, *b.factors[i].atom);
    if (c != 0) return 0 <=> c;  // has the earlier atom: greater
    c = a.factors[i].power <=> b.factors[i].power;
    if (c != 0) return c;
  }
  return a.factors.size() <=> b.factors.size();
}

std::strong_ordering order(const Terms& a, const Terms& b) {
  const size_t n = std::min(a.size(), b.size());
  for (size_t i = 0; i < n; ++i) {
    if (auto c = compare_monomials(a[i], b[i]); c != 0) return c;
    if (auto c = a[i].coefficient <=> b[i].coefficient; c != 0) return c;
  }
  return a.size() <=> b.size();
}

std::strong_ordering order(const Dim& a, const Dim& b) {
  if (auto c = a.overflowed() <=> b.overflowed(); c != 0) return c;
  if (a.is_constant() && b.is_constant()) return a.value() <=> b.value();
  return order(Dim::Poly::terms_of(a), Dim::Poly::terms_of(b));
}

/// Sorts, adds terms of one monomial, drops zeros. False on overflow.
bool normalise(Terms& terms) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
    return compare_monomials(a, b) > 0;
  });
  Terms out;
  for (Term& t : terms) {
    if (!out.empty() && compare_monomials(out.back(), t) == 0) {
      if (__builtin_add_overflow(out.back().coefficient, t.coefficient,
                                 &out.back().coefficient))
        return false;
      if (out.back().coefficient == 0) out.pop_back();
    } else {
      out.push_back(std::move(t));
    }
  }
  terms = std::move(out);
  return true;
}

Dim from_terms(Terms terms) {
  if (!normalise(terms)) return Dim::Poly::overflow();
  return Dim::Poly::from_sorted(std::move(terms));
}

/// The product of two terms; nothing on overflow.
std::optional<Term> multiply(const Term& a, const Term& b) {
  Term out;
  if (__builtin_mul_overflow(a.coefficient, b.coefficient, &out.coefficient))
    return std::nullopt;
  size_t i = 0, j = 0;
  while (i < a.factors.size() || j < b.factors.size()) {
    const auto c = i == a.factors.size() ? std::strong_ordering::greater
                   : j == b.factors.size()
                       ? std::strong_ordering::less
                       : order(*a.factors[i].atom, *b.factors[j].atom);
    if (c < 0) {
      out.factors.push_back(a.factors[i++]);
    } else if (c > 0) {
      out.factors.push_back(b.factors[j++]);
    } else {
      Factor f = a.factors[i++];
      f.power += b.factors[j++].power;
      out.factors.push_back(std::move(f));
    }
  }
  if (degree(out) > max_degree) return std::nullopt;
  return out;
}

/// a / b if it is a term with an integer coefficient.
std::optional<Term> divide(const Term& a, const Term& b) {
  if (b.coefficient == -1 && a.coefficient == INT64_MIN) return std::nullopt;
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  Term out{a.coefficient / b.coefficient, {}};
  size_t j = 0;
  for (const Factor& f : a.factors) {
    const bool shared =
        j < b.factors.size() && order(*f.atom, *b.factors[j].atom) == 0;
    Factor rest = f;
    if (shared) rest.power -= b.factors[j++].power;
    if (rest.power < 0) return std::nullopt;
    if (rest.power > 0) out.factors.push_back(std::move(rest));
  }
  if (j != b.factors.size()) return std::nullopt;
  return out;
}

struct Division {
  Dim quotient, remainder;
};

/// a = quotient * b + remainder: terms that b's leading term divides move to
/// the quotient. Deterministic, so equal operands give equal results.
Division divide(const Dim& a, const Dim& b) {
  const Terms divisor = Dim::Poly::terms_of(b);
  Dim rest = a, quotient, remainder;
  for (size_t step = 0; step < max_terms; ++step) {
    const Terms terms = Dim::Poly::terms_of(rest);
    if (terms.empty() || rest.overflowed() || quotient.overflowed()) break;
    const Dim lead = from_terms({terms.front()});
    if (auto t = divide(terms.front(), divisor.front())) {
      const Dim q = from_terms({*t});
      quotient = quotient + q;
      rest = rest - q * b;
    } else {
      remainder = remainder + lead;
      rest = rest - lead;
    }
  }
  return {quotient, remainder + rest};
}

int64_t floor_div_integers(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int depth(const Dim& d) {
  int most = 0;
  for (const Term& t : Dim::Poly::terms_of(d))
    for (const Factor& f : t.factors) most = std::max(most, f.atom->depth);
  return most;
}

/// The quotient as an atom of its own.
Dim quotient_atom(const Dim& a, const Dim& b) {
  auto atom = std::make_shared<Atom>();
  atom->is_quotient = true;
  atom->dividend = a;
  atom->divisor = b;
  atom->depth = std::max(depth(a), depth(b)) + 1;
  if (atom->depth > max_depth) return Dim::Poly::overflow();
  return from_terms({Term{1, {Factor{std::move(atom), 1}}}});
}

/// floor(a / c) for a polynomial and a constant c > 1. Multiples of c leave
/// (floor((c*q + r) / c) = q + floor(r / c)), common factors cancel, quotients
/// of quotients join.
Dim floor_div_by_constant(const Dim& a, int64_t c) {
  Terms whole, rest;
  int64_t constant = 0, common = c;
  for (const Term& t : Dim::Poly::terms_of(a)) {
    const int64_t q = floor_div_integers(t.coefficient, c);
    const int64_t r = t.coefficient % c + (t.coefficient % c < 0 ? c : 0);
    if (q != 0) whole.push_back({q, t.factors});
    if (r == 0) continue;
    if (t.factors.empty()) {
      constant = r;
    } else {
      rest.push_back({r, t.factors});
      common = std::gcd(common, r);
    }
  }
  const Dim quotient = from_terms(std::move(whole));
  if (rest.empty()) return quotient;
  for (Term& t : rest) t.coefficient /= common;
  if (constant / common != 0) rest.push_back({constant / common, {}});
  c /= common;
  if (c == 1) return quotient + from_terms(std::move(rest));
  const Term& only = rest.front();
  if (rest.size() == 1 && only.coefficient == 1 && only.factors.size() == 1 &&
      only.factors[0].power == 1 && only.factors[0].atom->is_quotient) {
    const Atom& inner = *only.factors[0].atom;
    if (inner.divisor.is_constant() && inner.divisor.value() > 0)
      return quotient + floor_div(inner.dividend, inner.divisor * Dim(c));
  }
  return quotient + quotient_atom(from_terms(std::move(rest)), Dim(c));
}

std::string print_sum(const Dim& d);

std::string print_atom(const Atom& atom) {
  if (!atom.is_quotient) return atom.name;
  const auto part = [](const Dim& d) {
    const std::string text = print_sum(d);
    return d.is_constant() || d.as_symbol() ? text : "(" + text + ")";
  };
  return "(" + part(atom.dividend) + " // " + part(atom.divisor) + ")";
}

std::string print_factors(const Term& t) {
  std::string out;
  for (const Factor& f : t.factors)
    for (int i = 0; i < f.power; ++i) {
      if (!out.empty()) out += "*";
      out += print_atom(*f.atom);
    }
  return out;
}

std::string print_sum(const Dim& d) {
  if (d.is_constant()) return std::to_string(d.value());
  std::string out;
  for (const Term& t : Dim::Poly::terms_of(d)) {
    const bool negative = t.coefficient < 0;
    const uint64_t magnitude =
        negative ? -static_cast<uint64_t>(t.coefficient) : t.coefficient;
    if (out.empty()) {
      if (negative) out += "-";
    } else {
      out += negative ? " - " : " + ";
    }
    if (t.factors.empty()) {
      out += std::to_string(magnitude);
    } else {
      if (magnitude != 1) out += std::to_string(magnitude) + "*";
      out += print_factors(t);
    }
  }
  return out;
}

void collect_symbols(const Dim& d, std::vector<uint32_t>& out) {
  for (const Term& t : Dim::Poly::terms_of(d))
    for (const Factor& f : t.factors) {
      if (f.atom->is_quotient) {
        collect_symbols(f.atom->dividend, out);
        collect_symbols(f.atom->divisor, out);
      } else if (std::find(out.begin(), out.end(), f.atom->id) == out.end()) {
        out.push_back(f.atom->id);
      }
    }
}

bool any_open(const Dim& d) {
  for (const Term& t : Dim::Poly::terms_of(d))
    for (const Factor& f : t.factors) {
      const Atom& atom = *f.atom;
      if (atom.is_quotient ? any_open(atom.dividend) || any_open(atom.divisor)
                           : atom.open)
        return true;
    }
  return false;
}

}  // namespace

Dim Dim::Poly::from_sorted(Terms terms) {
  if (terms.empty()) return Dim(0);
  if (terms.size() > max_terms) return overflow();
  if (terms.size() == 1 && terms[0].factors.empty())
    return Dim(terms[0].coefficient);
  Dim d;
  d.poly_ = std::make_shared<const Poly>(Poly{std::move(terms)});
  return d;
}

Dim Dim::symbol(uint32_t id, std::string name, bool open) {
  auto atom = std::make_shared<Atom>();
  atom->id = id;
  atom->name = std::move(name);
  atom->open = open;
  return from_terms({Term{1, {Factor{std::move(atom), 1}}}});
}

bool Dim::is_open() const { return poly_ && any_open(*this); }

int64_t Dim::value() const {
  CHECK(is_constant());
  return value_;
}

std::optional<uint32_t> Dim::as_symbol() const {
  if (!poly_ || poly_->terms.size() != 1) return std::nullopt;
  const Term& t = poly_->terms[0];
  if (t.coefficient != 1 || t.factors.size() != 1 || t.factors[0].power != 1 ||
      t.factors[0].atom->is_quotient)
    return std::nullopt;
  return t.factors[0].atom->id;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.overflowed_ || b.overflowed_) return Dim::Poly::overflow();
  if (!a.poly_ && !b.poly_) {
    Dim out;
    out.overflowed_ = __builtin_add_overflow(a.value_, b.value_, &out.value_);
    return out;
  }
  Terms terms = Dim::Poly::terms_of(a);
  for (Term& t : Dim::Poly::terms_of(b)) terms.push_back(std::move(t));
  return from_terms(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (!a.poly_ && !b.poly_ && !a.overflowed_ && !b.overflowed_) {
    Dim out;
    out.overflowed_ = __builtin_sub_overflow(a.value_, b.value_, &out.value_);
    return out;
  }
  return a + Dim(-1) * b;
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.overflowed_ || b.overflowed_) return Dim::Poly::overflow();
  if (!a.poly_ && !b.poly_) {
    Dim out;
    out.overflowed_ = __builtin_mul_overflow(a.value_, b.value_, &out.value_);
    return out;
  }
  const Terms left = Dim::Poly::terms_of(a), right = Dim::Poly::terms_of(b);
  if (left.size() * right.size() > max_terms * 4) return Dim::Poly::overflow();
  Terms terms;
  for (const Term& x : left)
    for (const Term& y : right) {
      auto product = multiply(x, y);
      if (!product) return Dim::Poly::overflow();
      terms.push_back(std::move(*product));
    }
  return from_terms(std::move(terms));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.overflowed_ || b.overflowed_) return Dim::Poly::overflow();
  CHECK(b.poly_ || b.value_ != 0);
  if (!a.poly_ && !b.poly_) {
    if (b.value_ == -1) return Dim(0) - a;  // of the least there is none
    return floor_div_integers(a.value_, b.value_);
  }
  if (!b.poly_ && b.value_ < 0) {
    if (b.value_ == INT64_MIN) return Dim::Poly::overflow();
    return floor_div(Dim(0) - a, Dim(-b.value_));
  }
  if (!b.poly_ && b.value_ == 1) return a;
  if (!b.poly_) return floor_div_by_constant(a, b.value_);
  const Division d = divide(a, b);
  if (d.remainder == Dim(0)) return d.quotient;
  if (d.quotient.overflowed_ || d.remainder.overflowed_)
    return Dim::Poly::overflow();
  return d.quotient + quotient_atom(d.remainder, b);
}

Dim floor_mod(const Dim& a, const Dim& b) {
  if (a.poly_ || b.poly_ || a.overflowed_ || b.overflowed_)
    return a - b * floor_div(a, b);
  CHECK(b.value_ != 0);
  if (b.value_ == -1) return 0;
  const int64_t rest = a.value_ % b.value_;
  return rest != 0 && (rest < 0) != (b.value_ < 0) ? rest + b.value_ : rest;
}

std::optional<Dim> exact_div(const Dim& a, const Dim& b) {
  if (a.overflowed_ || b.overflowed_) return std::nullopt;
  if (!b.poly_ && b.value_ == 0) return std::nullopt;
  const Division d = divide(a, b);
  if (d.quotient.overflowed_ || !(d.remainder == Dim(0))) return std::nullopt;
  return d.quotient;
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.poly_ == b.poly_ && a.value_ == b.value_)
    return a.overflowed_ == b.overflowed_;
  if (!a.poly_ || !b.poly_) return false;
  return order(a.poly_->terms, b.poly_->terms) == 0;
}

Comparison compare(const Dim& a, const Dim& b) {
  if (a == b) return Comparison::equal;
  if (a.is_constant() && b.is_constant()) return Comparison::different;
  const Dim difference = a - b;
  const bool open = difference.overflowed() ? a.is_open() || b.is_open()
                                            : difference.is_open();
  return open ? Comparison::open : Comparison::different;
}

Dim Dim::substitute(
    const std::function<std::optional<Dim>(uint32_t id)>& f) const {
  if (!poly_) return *this;
  Dim sum;
  for (const Term& t : poly_->terms) {
    Dim product(t.coefficient);
    for (const Factor& factor : t.factors) {
      const Atom& atom = *factor.atom;
      Dim value;
      if (atom.is_quotient) {
        const Dim divisor = atom.divisor.substitute(f);
        // A divisor that turns out to be 0 has no quotient.
        value = divisor == Dim(0)
                    ? Poly::overflow()
                    : floor_div(atom.dividend.substitute(f), divisor);
      } else {
        value = f(atom.id).value_or(
            Poly::from_sorted({Term{1, {{factor.atom, 1}}}}));
      }
      for (int i = 0; i < factor.power; ++i) product = product * value;
    }
    sum = sum + product;
  }
  return sum;
}

std::string Dim::to_string() const { return print_sum(*this); }

std::vector<uint32_t> Dim::symbols() const {
  std::vector<uint32_t> out;
  collect_symbols(*this, out);
  return out;
}

Dim element_count(const Shape& shape) {
  Dim product(1);
  for (const Dim& d : shape) product = product * d;
  return product;
}

}  // namespace unisono::ir
