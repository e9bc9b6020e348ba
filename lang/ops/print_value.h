#pragma once
// Values as text: what `print`, interpolations and sessions show.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jit/reference/reference.h"
#include "lang/context/walk.h"

namespace unisono::lang {

/// A value as `print` shows it (run mode; forces what is pending). With
/// `placed`, an array that is spread over devices says where it lies. That
/// depends on the number of devices, so sessions show it, but no program prints
/// it.
std::string to_text(Walk& walk, const Value& value, bool placed, Span where);

/// Text with values in it: an interpolation, or a line of `print`. In run mode
/// values are written out; in trace mode arrays stay operands; in check mode
/// only specs are looked at.
class TextBuilder {
 public:
  explicit TextBuilder(Walk& walk) : walk_(walk) {}
  void text(std::string_view text);
  /// `quoted`: strings in quotes, as inside a tuple.
  void value(const Value& value, std::string_view spec, Span where,
             bool quoted = false);
  StrValue finish();
  /// Bytes so far.
  size_t size() const;

 private:
  void array(const ArrayValue& array, std::string_view spec, Span where);
  void tree(const Value& value, std::string_view spec, Span where);
  Walk& walk_;
  bool known_ = true;  // false in check mode once a value is not known
  /// In check mode: the text has arrays of compiled code in it.
  bool deferred_ = false;
  DeferredText pieces_{{""}, {}, {}};
};

/// Elements as NumPy prints them: aligned, corners only above 1,000 elements.
/// (print_array.cpp)
std::string array_text(const ir::Type& type, const std::vector<uint8_t>& bytes,
                       std::string_view spec);

/// What a `host_call` node prints, without prefix and line end.
std::string render_host_call(const ir::HostCallAttrs& attrs,
                             const std::vector<jit::HostArray>& operands);

}  // namespace unisono::lang
