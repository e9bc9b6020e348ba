#pragma once
// How the function of a builtin names its arguments:
//
//   Value builtin_flip(CallOf<"flip">& call) {
//     const ArrayValue x = array_argument(call["x"]);
//     return flip(call.walk, x, axes_argument(call["axis"], x->type), ...);
//
// The compiler reads the row `flip` of builtins.def: a row or a parameter that
// is not there does not compile, and an argument is found by a constant.
#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "lang/context/builtin.h"
#include "lang/context/signature.h"

namespace unisono::lang {

struct SignatureRow {
  std::string_view name;  // of the builtin
  std::string_view text;
};

/// The rows of the table, in its order.
inline constexpr SignatureRow signature_rows[] = {
#define BUILTIN(name, function, signature, help) {#name, signature},
#define OPERATION BUILTIN
#include "lang/context/builtins.def"
};

/// A signature is known by the first row that has it, so that rows with the
/// same one have the same type of call, and may share functions.
consteval size_t signature_id(std::string_view text) {
  return std::ranges::find(signature_rows, text, &SignatureRow::text) -
         std::begin(signature_rows);
}

/// That of the builtin with this name: of two rows the later, as in the
/// language.
consteval size_t signature_of(std::string_view builtin) {
  for (size_t i = std::size(signature_rows); i-- > 0;)
    if (signature_rows[i].name == builtin)
      return signature_id(signature_rows[i].text);
  throw "there is no builtin with this name";
}

/// The parameters of a signature.
template <size_t id>
inline constexpr auto signature_parameters = [] {
  constexpr std::string_view text = signature_rows[id].text;
  std::array<Parameter, parse_signature(text).size()> out;
  std::ranges::copy(parse_signature(text), out.begin());
  return out;
}();

/// The place of a parameter in a signature.
consteval size_t parameter_place(size_t id, std::string_view name) {
  size_t place = 0;
  for (const Parameter& parameter : parse_signature(signature_rows[id].text)) {
    if (parameter.name == name && !parameter.is_rest) return place;
    ++place;
  }
  throw "the signature has no parameter with this name";
}

/// A call with one signature.
template <size_t signature>
struct CallWith : BuiltinCall {
  /// A name of the signature: `call["axis"]`.
  struct Name {
    size_t place;
    consteval Name(const char* name)
        : place(parameter_place(signature, name)) {}
  };
  Argument operator[](Name name) { return {*this, name.place}; }
};

/// A text as an argument of a template.
struct BuiltinName {
  char text[24] = {};
  consteval BuiltinName(const char* name) {
    for (char* to = text; *name;) *to++ = *name++;
  }
};

/// A call of the builtin with this name.
template <BuiltinName builtin>
using CallOf = CallWith<signature_of(builtin.text)>;

}  // namespace unisono::lang
