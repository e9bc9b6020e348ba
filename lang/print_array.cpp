// Arrays as NumPy prints them: one format for all elements, found from the
// digits that each of them needs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "lang/print_value.h"

namespace unisono::lang {
namespace {

constexpr int max_fraction_digits = 8;
constexpr int64_t corner_threshold = 1000, edge_items = 3;
constexpr size_t line_width = 75;

/// Shortest decimal digits that read back as the same element: "1234" and the
/// power of ten of the first digit.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

Decimal from_scientific(const char* begin, const char* end) {
  Decimal d;
  const char* p = begin;
  for (; p != end && *p != 'e'; ++p) {
    if (*p >= '0' && *p <= '9') d.digits += *p;
  }
  if (p != end && *++p == '+') ++p;
  std::from_chars(p, end, d.exponent);  // nothing ends the text but `end`
  while (d.digits.size() > 1 && d.digits.back() == '0') d.digits.pop_back();
  return d;
}

template <class T>
Decimal shortest(T x) {
  char text[64];
  const auto done = std::to_chars(text, text + sizeof text, std::fabs(x),
                                  std::chars_format::scientific);
  return from_scientific(text, done.ptr);
}
/// A 16-bit float: the fewest digits that round to the same bits.
template <class T>
Decimal shortest16(T x) {
  const float value = std::fabs(static_cast<float>(x));
  for (int precision = 0; precision < 9; ++precision) {
    const std::string text = fmt::format("{:.{}e}", value, precision);
    if (static_cast<float>(T(std::strtof(text.c_str(), nullptr))) == value) {
      return from_scientific(text.data(), text.data() + text.size());
    }
  }
  return shortest(value);
}

/// One floating element, ready to be laid out.
struct Number {
  double value = 0;
  Decimal decimal;
};

int fraction_digits(const Decimal& d) {
  return std::clamp(static_cast<int>(d.digits.size()) - 1 - d.exponent, 0,
                    max_fraction_digits);
}
int mantissa_digits(const Decimal& d) {
  return std::min(static_cast<int>(d.digits.size()) - 1, max_fraction_digits);
}

std::string strip_zeros(std::string text) {
  if (text.find('.') == text.npos) return text;
  while (text.back() == '0') text.pop_back();
  return text;
}

/// "10." or "0.5"; digits after the point as the element needs them.
std::string positional(const Number& n) {
  std::string text =
      fmt::format("{:.{}f}", n.value, fraction_digits(n.decimal));
  if (text.find('.') == text.npos) text += '.';
  return strip_zeros(std::move(text));
}
std::string scientific(const Number& n, int digits) {
  std::string text = fmt::format("{:.{}e}", n.value, digits);
  if (digits == 0) text.insert(text.find('e'), ".");
  return text;
}

/// One format for all: positional, or scientific when the elements are very
/// large, very small or far apart (NumPy's rule).
std::vector<std::string> float_texts(const std::vector<Number>& numbers) {
  double largest = 0, smallest = INFINITY;
  for (const Number& n : numbers) {
    const double a = std::fabs(n.value);
    if (a == 0 || !std::isfinite(a)) continue;
    largest = std::max(largest, a);
    smallest = std::min(smallest, a);
  }
  const bool use_exponent = largest > 0 && (largest >= 1e8 || smallest < 1e-4 ||
                                            largest / smallest > 1000);
  int digits = 0;
  for (const Number& n : numbers) {
    if (std::isfinite(n.value)) {
      digits = std::max(digits, mantissa_digits(n.decimal));
    }
  }
  std::vector<std::string> texts;
  size_t tail = 0;  // characters after the point, to line the points up
  for (const Number& n : numbers) {
    if (!std::isfinite(n.value)) {
      texts.push_back(std::isnan(n.value) ? "nan"
                      : n.value < 0       ? "-inf"
                                          : "inf");
    } else if (use_exponent) {
      texts.push_back(scientific(n, digits));
    } else {
      texts.push_back(positional(n));
      tail = std::max(tail, texts.back().size() - texts.back().find('.') - 1);
    }
  }
  for (size_t i = 0; i < texts.size() && !use_exponent; ++i) {
    if (!std::isfinite(numbers[i].value)) continue;
    std::string& text = texts[i];
    text.append(tail - (text.size() - text.find('.') - 1), ' ');
  }
  return texts;
}

/// A lone float as Python's repr: 0.1, 1e+20, 319600.0.
std::string scalar_float(const Number& n) {
  if (std::isnan(n.value)) return "nan";
  if (std::isinf(n.value)) return n.value < 0 ? "-inf" : "inf";
  if (n.value != 0 && (n.decimal.exponent < -4 || n.decimal.exponent >= 16)) {
    std::string text = fmt::format(
        "{:.{}e}", n.value, static_cast<int>(n.decimal.digits.size()) - 1);
    return text;
  }
  const int digits =
      static_cast<int>(n.decimal.digits.size()) - 1 - n.decimal.exponent;
  return fmt::format("{:.{}f}", n.value, std::max(digits, 1));
}

template <DType D>
Number number_at(const uint8_t* bytes) {
  typename StorageOf<D>::type x;
  std::memcpy(&x, bytes, sizeof x);
  Number n;
  if constexpr (D == DType::F16 || D == DType::BF16) {
    n.value = static_cast<float>(x);
    if (std::isfinite(n.value)) n.decimal = shortest16(x);
  } else if constexpr (D == DType::F32 || D == DType::F64) {
    n.value = x;
    if (std::isfinite(x)) n.decimal = shortest(x);
  }
  return n;
}
Number number_at(DType dtype, const uint8_t* bytes) {
  return with_dtype(dtype, [&]<DType D>() { return number_at<D>(bytes); });
}

/// A bool or integer, or any element with a spec.
std::string plain_text(DType dtype, const uint8_t* bytes,
                       std::string_view spec) {
  const std::string format =
      spec.empty() ? "{}" : "{:" + std::string(spec) + "}";
  const bool as_float = !spec.empty() && std::strchr("eEfFgG", spec.back());
  return with_dtype(dtype, [&]<DType D>() -> std::string {
    typename StorageOf<D>::type x;
    std::memcpy(&x, bytes, sizeof x);
    if constexpr (D == DType::Bool) {
      return fmt::format(fmt::runtime(format), x ? "true" : "false");
    } else if constexpr (DType::F16 <= D) {
      const auto value =
          static_cast<double>(static_cast<typename ComputeOf<D>::type>(x));
      return fmt::format(fmt::runtime(format), value);
    } else if (as_float) {
      return fmt::format(fmt::runtime(format), static_cast<double>(x));
    } else {
      return fmt::format(fmt::runtime(format), +x);
    }
  });
}

/// The elements that are shown, and how the array is laid out in lines.
class Layout {
 public:
  Layout(const ir::Type& type, const std::vector<uint8_t>& bytes,
         std::string_view spec)
      : type_(type), sizes_(type.sizes()), bytes_(bytes) {
    corners_ = type.elements() > corner_threshold;
    stride_.assign(sizes_.size(), 1);
    for (size_t i = sizes_.size(); i-- > 1;) {
      stride_[i - 1] = stride_[i] * sizes_[i];
    }
    visit(0, 0, [&](int64_t at) { shown_.push_back(at); });
    make_texts(spec);
  }

  std::string text() {
    next_ = 0;
    return lines(0, "");
  }

 private:
  /// Indices shown along an axis; -1 stands for the dots.
  std::vector<int64_t> indices(size_t axis) const {
    std::vector<int64_t> result;
    const int64_t size = sizes_[axis];
    for (int64_t i = 0; i < size; ++i) {
      if (corners_ && size > 2 * edge_items && i == edge_items) {
        result.push_back(-1);
        i = size - edge_items;
      }
      result.push_back(i);
    }
    return result;
  }
  void visit(size_t axis, int64_t at,
             const std::function<void(int64_t)>& element) const {
    if (axis == sizes_.size()) return element(at);
    for (const int64_t i : indices(axis)) {
      if (i >= 0) visit(axis + 1, at + i * stride_[axis], element);
    }
  }
  void make_texts(std::string_view spec) {
    const int64_t size = byte_size(type_.dtype);
    if (is_floating(type_.dtype) && spec.empty()) {
      std::vector<Number> numbers;
      for (const int64_t at : shown_) {
        numbers.push_back(number_at(type_.dtype, bytes_.data() + at * size));
      }
      texts_ = float_texts(numbers);
    } else {
      for (const int64_t at : shown_) {
        texts_.push_back(
            plain_text(type_.dtype, bytes_.data() + at * size, spec));
      }
    }
    size_t width = 0;
    for (const std::string& t : texts_) width = std::max(width, t.size());
    for (std::string& t : texts_) t.insert(0, width - t.size(), ' ');
  }
  /// The part of the array below `axis`; lines after the first are indented.
  std::string lines(size_t axis, const std::string& indent) {
    if (axis == sizes_.size()) return texts_[next_++];
    const bool last = axis + 1 == sizes_.size();
    const std::string inner = indent + " ";
    std::string text = "[";
    size_t column = inner.size();
    bool first = true;
    for (const int64_t i : indices(axis)) {
      const std::string item = i < 0 ? "..." : lines(axis + 1, inner);
      if (!last) {
        if (!first) {
          text += std::string(sizes_.size() - 1 - axis, '\n') + inner;
        }
      } else if (!first && column + 1 + item.size() + axis > line_width) {
        text += "\n" + inner;
        column = inner.size();
      } else if (!first) {
        text += ' ';
        ++column;
      }
      text += item;
      column += item.size();
      first = false;
    }
    return text + "]";
  }

  const ir::Type& type_;
  std::vector<int64_t> sizes_, stride_, shown_;
  const std::vector<uint8_t>& bytes_;
  std::vector<std::string> texts_;
  size_t next_ = 0;
  bool corners_ = false;
};

}  // namespace

std::string array_text(const ir::Type& type, const std::vector<uint8_t>& bytes,
                       std::string_view spec) {
  if (type.rank() > 0) {
    return type.elements() == 0 ? "[]" : Layout(type, bytes, spec).text();
  }
  if (is_floating(type.dtype) && spec.empty()) {
    return scalar_float(number_at(type.dtype, bytes.data()));
  }
  return plain_text(type.dtype, bytes.data(), spec);
}

}  // namespace unisono::lang
