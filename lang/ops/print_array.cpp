// Arrays as NumPy prints them: one format for all elements, found from the
// digits that each of them needs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>

#include "lang/ops/format_spec.h"
#include "lang/ops/print_value.h"

namespace unisono::lang {
namespace {

constexpr int max_fraction_digits = 8;
constexpr int64_t corner_threshold = 1000, edge_items = 3;
constexpr size_t line_width = 75;

/// Shortest decimal digits that read back as the same element.
template <class T>
Decimal shortest(T x) {
  char text[64];
  const auto done = std::to_chars(text, text + sizeof text, std::fabs(x),
                                  std::chars_format::scientific);
  return read_scientific({text, done.ptr});
}
/// A 16-bit float: the fewest digits that round to the same bits, of which the
/// nearest are not always some.
template <class T>
Decimal shortest16(T x) {
  const float value = std::fabs(static_cast<float>(x));
  for (int precision = 0;; ++precision) {  // 4 is enough
    const std::string text = fmt::format("{:.{}e}", value, precision);
    const double unit =
        std::pow(10.0, read_scientific(text).exponent - precision);
    for (const double step : {0.0, 1.0, -1.0}) {
      double read = 0;  // whatever the process's locale is
      std::from_chars(text.data(), text.data() + text.size(), read);
      const double near = read + step * unit;
      const std::string other = fmt::format("{:.{}e}", near, precision);
      float back = 0;
      std::from_chars(other.data(), other.data() + other.size(), back);
      if (static_cast<float>(T(back)) == value) return read_scientific(other);
    }
  }
}

/// One floating element, ready to be laid out.
struct Number {
  double value = 0;
  Decimal decimal;
};

int digits_after_point(const Decimal& d) {
  return std::max(static_cast<int>(d.digits.size()) - 1 - d.exponent, 0);
}

/// The digits at their places, zeros where there are none, and `fraction` of
/// them, one at least, after the point: "9999999800000.0", "0.050". It reads
/// back as the same element and says no more about it than that.
std::string placed(const Number& n, int fraction) {
  const std::string& digits = n.decimal.digits;
  const int point = n.decimal.exponent + 1;  // so many stand before it
  std::string text = std::signbit(n.value) ? "-" : "";
  for (int place = std::min(0, point - 1); place < point + fraction; ++place) {
    if (place == point) text += '.';
    const bool there = place >= 0 && place < static_cast<int>(digits.size());
    text += there ? digits[place] : '0';
  }
  return text;
}

/// "10." or "0.5"; digits after the point as the element needs them, but for
/// those after the eighth. All digits before it are the element's own: there
/// are eight at most.
std::string positional(const Number& n) {
  const int digits = digits_after_point(n.decimal);
  if (digits == 0) return fmt::format("{:.0f}.", n.value);
  if (digits <= max_fraction_digits) return placed(n, digits);
  std::string text = fmt::format("{:.{}f}", n.value, max_fraction_digits);
  while (text.back() == '0') text.pop_back();
  return text;
}

/// `digits` of them after the point, more than the element needs or fewer,
/// perhaps: "1.5e-05", "1.e+20".
std::string scientific(const Number& n, int digits) {
  std::string text = fmt::format("{:.{}e}", n.value, digits);
  if (digits + 1 == static_cast<int>(n.decimal.digits.size())) {
    std::string exact = n.decimal.digits.substr(0, 1);
    if (digits > 0) exact += "." + n.decimal.digits.substr(1);
    const int exponent = n.decimal.exponent;
    text = fmt::format("{}{}e{}{:02}", std::signbit(n.value) ? "-" : "", exact,
                       exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  return text;
}

int mantissa_digits(const Decimal& d) {
  return std::min(static_cast<int>(d.digits.size()) - 1, max_fraction_digits);
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
  for (const Number& n : numbers)
    if (std::isfinite(n.value))
      digits = std::max(digits, mantissa_digits(n.decimal));
  std::vector<std::string> texts;
  size_t tail = 0;  // characters after the point, to line the points up
  for (const Number& n : numbers) {
    if (!std::isfinite(n.value)) {
      texts.push_back(std::isnan(n.value) ? "nan"
                      : n.value < 0       ? "-inf"
                                          : "inf");
    } else if (use_exponent) {
      texts.push_back(scientific(n, digits));
      if (digits == 0) texts.back().insert(texts.back().find('e'), ".");
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

/// A lone float, from 1e8 on with an exponent (f64, whose digits reach
/// further, from 1e16 on, as Python has it): 0.1, 1e+20, 319600.0.
std::string scalar_float(const Number& n, DType dtype) {
  if (std::isnan(n.value)) return "nan";
  if (std::isinf(n.value)) return n.value < 0 ? "-inf" : "inf";
  const int beyond = dtype == DType::F64 ? 16 : 8;
  if (n.value != 0 && (n.decimal.exponent < -4 || n.decimal.exponent >= beyond))
    return scientific(n, static_cast<int>(n.decimal.digits.size()) - 1);
  return placed(n, std::max(digits_after_point(n.decimal), 1));
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
                       std::string_view text) {
  const FormatSpec spec = read_spec(text);
  return with_dtype(dtype, [&]<DType D>() -> std::string {
    typename StorageOf<D>::type x;
    std::memcpy(&x, bytes, sizeof x);
    if constexpr (D == DType::Bool) {
      return format_text(x ? "true" : "false", spec);
    } else if constexpr (DType::F16 <= D) {
      const Number n = number_at<D>(bytes);
      return format_float(n.value, scalar_float(n, D), spec);
    } else if constexpr (std::is_signed_v<decltype(x)>) {
      return format_integer(int64_t{x}, spec);
    } else {
      return format_integer(uint64_t{x}, spec);
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
    for (size_t i = sizes_.size(); i-- > 1;)
      stride_[i - 1] = stride_[i] * sizes_[i];
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
    for (const int64_t i : indices(axis))
      if (i >= 0) visit(axis + 1, at + i * stride_[axis], element);
  }
  void make_texts(std::string_view spec) {
    const int64_t size = byte_size(type_.dtype);
    if (is_floating(type_.dtype) && spec.empty()) {
      std::vector<Number> numbers;
      for (const int64_t at : shown_)
        numbers.push_back(number_at(type_.dtype, bytes_.data() + at * size));
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
        if (!first) text += std::string(sizes_.size() - 1 - axis, '\n') + inner;
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
  if (type.rank() > 0)
    return type.elements() == 0 ? "[]" : Layout(type, bytes, spec).text();
  if (is_floating(type.dtype) && spec.empty())
    return scalar_float(number_at(type.dtype, bytes.data()), type.dtype);
  return plain_text(type.dtype, bytes.data(), spec);
}

}  // namespace unisono::lang
