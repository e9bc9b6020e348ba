#include "lang/code/text_steps.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "lang/ops/elements.h"
#include "lang/ops/index_plan.h"
#include "lang/ops/text.h"

namespace unisono::lang {
namespace {

using jit::Step;
using jit::StepFunction;
using jit::StepRun;
using jit::bytecode::Compare;

TextRun& run_of(StepRun* run) { return *static_cast<TextRun*>(run); }

/// Ends the run. Never inlined, so that the steps keep nothing on the stack.
[[gnu::noinline]] void fail(const Step* step, uint64_t* registers,
                            StepRun* run) {
  run->failed = step;
  run_of(run).window = registers;
}

/// What a step does; false where it has no quick way.
using Quick = bool (*)(TextRun& run, const Step* step, uint64_t* window);

/// A step with a quick way, and another one for what is left.
template <Quick quick>
void step_of(const Step* step, uint64_t* registers, StepRun* any) {
  TextRun& run = run_of(any);
  if (!quick(run, step, registers) && !run.evaluate(run, step, registers))
      [[unlikely]]
    return fail(step, registers, any);
  [[clang::musttail]] return step[1].function(step + 1, registers, any);
}

/// A step that fails where it has no quick way.
template <Quick quick>
void sure_step_of(const Step* step, uint64_t* registers, StepRun* any) {
  if (!quick(run_of(any), step, registers)) [[unlikely]]
    return fail(step, registers, any);
  [[clang::musttail]] return step[1].function(step + 1, registers, any);
}

const Text& text_of(TextRun& run, const Step* step, const uint64_t* window,
                    int operand) {
  return run.at(window, step->in[operand]).text;
}

bool give(TextRun& run, const Step* step, const uint64_t* window, Text text) {
  run.at(window, step->out).text = std::move(text);
  return true;
}

// ---- what is held ----------------------------------------------------------

[[gnu::noinline]] bool begin(TextRun& run, const Step* step, uint64_t* window) {
  const auto registers = static_cast<size_t>(window - run.first) +
                         static_cast<size_t>(step->number);
  if (run.held.size() < registers) run.held.resize(registers);
  return true;
}

[[gnu::noinline]] bool constant(TextRun& run, const Step* step,
                                uint64_t* window) {
  run.at(window, step->out) = run.constants[step->number];
  return true;
}

[[gnu::noinline]] bool copy(TextRun& run, const Step* step, uint64_t* window) {
  run.at(window, step->out) = run.at(window, step->in[0]);
  window[step->out] = window[step->in[0]];
  return true;
}

[[gnu::noinline]] bool move(TextRun& run, const Step* step, uint64_t* window) {
  run.at(window, step->out) = std::move(run.at(window, step->in[0]));
  window[step->out] = window[step->in[0]];
  return true;
}

bool nothing(TextRun& /*run*/, const Step* /*step*/, uint64_t* /*window*/) {
  return false;
}

// ---- longer text -----------------------------------------------------------

[[gnu::noinline]] bool join(TextRun& run, const Step* step, uint64_t* window) {
  const Text &a = text_of(run, step, window, 0),
             &b = text_of(run, step, window, 1);
  if (a->size() + b->size() > max_text_bytes) return false;
  std::string both;
  both.reserve(a->size() + b->size());
  both += *a;
  both += *b;
  return give(run, step, window, std::move(both));
}

bool append(Text& text, std::string_view more) {
  if (text->size() + more.size() > max_text_bytes) return false;
  if (!more.empty()) text.append(more);
  return true;
}

[[gnu::noinline]] bool append_text(TextRun& run, const Step* step,
                                   uint64_t* window) {
  return append(run.at(window, step->out).text, *text_of(run, step, window, 0));
}

[[gnu::noinline]] bool append_constant(TextRun& run, const Step* step,
                                       uint64_t* window) {
  return append(run.at(window, step->out).text,
                *run.constants[step->number].text);
}

/// The digits of an int.
class Digits {
 public:
  explicit Digits(int64_t value)
      : end_(std::to_chars(std::begin(digits_), std::end(digits_), value).ptr) {
  }
  operator std::string_view() const { return {digits_, end_}; }

 private:
  char digits_[20];
  const char* end_;
};

[[gnu::noinline]] bool append_int(TextRun& run, const Step* step,
                                  uint64_t* window) {
  return append(run.at(window, step->out).text,
                Digits(static_cast<int64_t>(window[step->in[0]])));
}

// ---- questions -------------------------------------------------------------

/// What stands on the right: a constant, or what a register holds.
template <bool is_constant>
const Text& right_of(TextRun& run, const Step* step, const uint64_t* window) {
  return is_constant ? run.constants[step->in[1]].text
                     : text_of(run, step, window, 1);
}

template <bool with_constant>
[[gnu::noinline]] bool compare(TextRun& run, const Step* step,
                               uint64_t* window) {
  const Text &a = text_of(run, step, window, 0),
             &b = right_of<with_constant>(run, step, window);
  const auto holds = [&] {
    switch (static_cast<Compare>(step->number)) {
      case Compare::eq: return a == b;
      case Compare::ne: return !(a == b);
      case Compare::lt: return *a < *b;
      case Compare::le: return *a <= *b;
      case Compare::gt: return *a > *b;
      case Compare::ge: return *a >= *b;
    }
    __builtin_unreachable();
  };
  window[step->out] = holds() ? 1 : 0;
  return true;
}

template <bool with_constant>
[[gnu::noinline]] bool contains(TextRun& run, const Step* step,
                                uint64_t* window) {
  const Text &part = text_of(run, step, window, 0),
             &whole = right_of<with_constant>(run, step, window);
  const bool found = part->size() == 1
                         ? whole->find((*part)[0]) != std::string::npos
                         : whole->find(*part) != std::string::npos;
  window[step->out] = found != (step->number != 0) ? 1 : 0;
  return true;
}

// ---- parts -----------------------------------------------------------------

/// The place that an index names, counted from the end if it is negative;
/// false if there is none.
bool place_of(uint64_t index, size_t size, size_t& place) {
  auto at = static_cast<int64_t>(index);
  if (at < 0) at += static_cast<int64_t>(size);
  place = static_cast<size_t>(at);
  return place < size;
}

[[gnu::noinline]] bool character_at(TextRun& run, const Step* step,
                                    uint64_t* window) {
  const Text& text = text_of(run, step, window, 0);
  size_t at = 0;
  if (!text.is_ascii() || !place_of(window[step->in[1]], text->size(), at))
    return false;
  return give(run, step, window,
              character(std::string_view(*text).substr(at, 1)));
}

[[gnu::noinline]] bool next_character(TextRun& run, const Step* step,
                                      uint64_t* window) {
  const Held& all = run.at(window, step->in[0]);
  const auto at = static_cast<size_t>(window[step->in[1]]);
  if (!all.items)
    return give(run, step, window,
                character(std::string_view(*all.text).substr(at, 1)));
  Text each = all.items->items[at].get_if<StrValue>()->value;
  return give(run, step, window, std::move(each));
}

[[gnu::noinline]] bool find_characters(TextRun& run, const Step* step,
                                       uint64_t* window) {
  const Text text = text_of(run, step, window, 0);
  Held& all = run.at(window, step->out);
  all = {text, nullptr};
  if (!text.is_ascii()) {
    std::vector<Value> items;
    for (const std::string_view c : characters(*text))
      items.push_back(StrValue{character(c)});
    const Value tuple = make_tuple(std::move(items));
    all.items = *tuple.get_if<std::shared_ptr<const TupleValue>>();
  }
  window[step->in[1]] = all.items ? all.items->items.size() : text->size();
  return true;
}

[[gnu::noinline]] bool slice(TextRun& run, const Step* step, uint64_t* window) {
  const Text& text = text_of(run, step, window, 0);
  const int64_t by = step->number >> 2;
  if (!text.is_ascii() || by == 0) return false;
  const auto bound = [&](int operand, int64_t bit) {
    return (step->number & bit) != 0
               ? std::optional(static_cast<int64_t>(window[step->in[operand]]))
               : std::nullopt;
  };
  const auto size = static_cast<int64_t>(text->size());
  const SliceRange range = known_slice(bound(1, 1), bound(2, 2), by, size);
  const int64_t start = range.start.value(), count = range.size.value(),
                stride = range.step.value();
  if (stride == 1) {
    const std::string_view part = std::string_view(*text).substr(
        static_cast<size_t>(start), static_cast<size_t>(count));
    return give(run, step, window,
                count == 1 ? character(part) : Text(std::string(part)));
  }
  std::string out(static_cast<size_t>(count), '\0');
  for (int64_t i = 0; i < count; ++i)
    out[static_cast<size_t>(i)] =
        (*text)[static_cast<size_t>(start + i * stride)];
  return give(run, step, window, std::move(out));
}

/// The item in[1] of the tuple in[0]; null if there is none.
const Value* item_of(TextRun& run, const Step* step, const uint64_t* window) {
  const std::vector<Value>& items = run.at(window, step->in[0]).items->items;
  size_t at = 0;
  return place_of(window[step->in[1]], items.size(), at) ? &items[at] : nullptr;
}

[[gnu::noinline]] bool text_item(TextRun& run, const Step* step,
                                 uint64_t* window) {
  const Value* item = item_of(run, step, window);
  if (!item) return false;
  Text text = item->get_if<StrValue>()->value;
  return give(run, step, window, std::move(text));
}

[[gnu::noinline]] bool int_item(TextRun& run, const Step* step,
                                uint64_t* window) {
  const Value* item = item_of(run, step, window);
  if (!item) return false;
  window[step->out] =
      static_cast<uint64_t>(item->get_if<IntValue>()->value.value());
  return true;
}

bool add_item(TextRun& run, const Step* step, const uint64_t* window,
              Value item) {
  auto& tuple = run.at(window, step->out).items;
  if (tuple->items.size() >= static_cast<size_t>(step->number)) return false;
  // Nobody else can tell: the tuple is held here alone, or is copied.
  if (tuple.use_count() > 1) tuple = std::make_shared<TupleValue>(*tuple);
  const_cast<TupleValue&>(*tuple).append(std::move(item));
  return true;
}

[[gnu::noinline]] bool add_text(TextRun& run, const Step* step,
                                uint64_t* window) {
  return add_item(run, step, window, StrValue{text_of(run, step, window, 0)});
}

[[gnu::noinline]] bool add_int(TextRun& run, const Step* step,
                               uint64_t* window) {
  return add_item(run, step, window,
                  IntValue{static_cast<int64_t>(window[step->in[0]])});
}

[[gnu::noinline]] bool text_length(TextRun& run, const Step* step,
                                   uint64_t* window) {
  window[step->out] =
      static_cast<uint64_t>(character_count(text_of(run, step, window, 0)));
  return true;
}

[[gnu::noinline]] bool items_length(TextRun& run, const Step* step,
                                    uint64_t* window) {
  window[step->out] = run.at(window, step->in[0]).items->items.size();
  return true;
}

[[gnu::noinline]] bool require_items(TextRun& run, const Step* step,
                                     uint64_t* window) {
  return run.at(window, step->in[0]).items->items.size() ==
         static_cast<size_t>(step->number);
}

[[gnu::noinline]] bool require_some(TextRun& run, const Step* step,
                                    uint64_t* window) {
  return !run.at(window, step->in[0]).items->items.empty();
}

// ---- arrays ----------------------------------------------------------------

DType dtype_of(const Step* step) {
  return static_cast<DType>(step->number & 0xff);
}
size_t rank_of(const Step* step) {
  return static_cast<size_t>(step->number >> 8);
}

bool give_array(TextRun& run, const Step* step, uint64_t* window,
                std::shared_ptr<OwnArray> array) {
  if (!array) return false;
  window[step->out] = std::bit_cast<uint64_t>(
      static_cast<const jit::bytecode::ElementView*>(array.get()));
  run.at(window, step->out) = {{}, nullptr, std::move(array)};
  return true;
}

std::shared_ptr<OwnArray> array_of(TextRun& run, const Step* step,
                                   const uint64_t* window) {
  std::vector<int64_t> shape(rank_of(step));
  std::memcpy(shape.data(), window + step->in[0],
              shape.size() * sizeof(int64_t));
  return make_own_array(*run.host, dtype_of(step), std::move(shape));
}

/// Fills an array with one element.
[[gnu::noinline]] bool make_array(TextRun& run, const Step* step,
                                  uint64_t* window) {
  std::shared_ptr<OwnArray> array = array_of(run, step, window);
  if (!array) return false;
  const auto bytes = static_cast<size_t>(array->cell->type.bytes());
  const auto each = static_cast<size_t>(byte_size(dtype_of(step)));
  for (size_t at = 0; at < bytes; at += each)
    std::memcpy(array->elements + at, &window[step->in[1]], each);
  return give_array(run, step, window, std::move(array));
}

[[gnu::noinline]] bool count_array(TextRun& run, const Step* step,
                                   uint64_t* window) {
  std::shared_ptr<OwnArray> array = array_of(run, step, window);
  if (!array) return false;
  const auto count_as = [&]<class T>(T first) {
    T* elements = reinterpret_cast<T*>(array->elements);
    std::iota(elements, elements + array->shape[0], first);
  };
  switch (byte_size(dtype_of(step))) {
    case 4: count_as(int32_t{0}); break;
    case 8: count_as(int64_t{0}); break;
    default: return false;
  }
  return give_array(run, step, window, std::move(array));
}

[[gnu::noinline]] bool copy_array(TextRun& run, const Step* step,
                                  uint64_t* window) {
  const auto& view =
      *std::bit_cast<const jit::bytecode::ElementView*>(window[step->in[0]]);
  return give_array(
      run, step, window,
      copy_own_array(*run.host, dtype_of(step),
                     {view.sizes, view.sizes + rank_of(step)}, view.data));
}

[[gnu::noinline]] bool own_alone(TextRun& run, const Step* step,
                                 uint64_t* window) {
  const OwnArray& array = *run.at(window, step->out).array;
  return give_array(run, step, window,
                    copy_own_array(*run.host, array.cell->type.dtype,
                                   array.shape, array.elements));
}

template <class T>
void store_element(const Step* step, uint64_t* window, StepRun* any) {
  TextRun& run = run_of(any);
  if (run.at(window, step->out).array.use_count() > 1 &&
      !own_alone(run, step, window)) [[unlikely]]
    return fail(step, window, any);
  std::memcpy(run.at(window, step->out).array->elements +
                  window[step->in[0]] * sizeof(T),
              &window[step->in[1]], sizeof(T));
  [[clang::musttail]] return step[1].function(step + 1, window, any);
}

// ---- functions of text -----------------------------------------------------

bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return is_small(c) || is_capital(c); }
bool is_letter_or_digit(char c) { return is_letter(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

template <bool (*is)(char)>
[[gnu::noinline]] bool is_made_of(TextRun& run, const Step* step,
                                  uint64_t* window) {
  const Text& text = text_of(run, step, window, 0);
  if (!text.is_ascii()) return false;
  window[step->out] = !text->empty() && std::ranges::all_of(*text, is) ? 1 : 0;
  return true;
}

/// Whether there are letters of this case, and none of the other.
template <bool (*is)(char), bool (*is_other)(char)>
[[gnu::noinline]] bool is_in_case(TextRun& run, const Step* step,
                                  uint64_t* window) {
  const Text& text = text_of(run, step, window, 0);
  if (!text.is_ascii()) return false;
  window[step->out] =
      std::ranges::any_of(*text, is) && std::ranges::none_of(*text, is_other)
          ? 1
          : 0;
  return true;
}

template <bool (*changes)(char), int by>
[[gnu::noinline]] bool with_case(TextRun& run, const Step* step,
                                 uint64_t* window) {
  const Text& text = text_of(run, step, window, 0);
  if (!text.is_ascii()) return false;
  std::string out = *text;
  for (char& c : out)
    if (changes(c)) c = static_cast<char>(c + by);
  return give(run, step, window,
              out.size() == 1 ? character(out) : Text(std::move(out)));
}

[[gnu::noinline]] bool number_of(TextRun& run, const Step* step,
                                 uint64_t* window) {
  const Text& text = text_of(run, step, window, 0);
  if (text->size() != 1 || !text.is_ascii()) return false;
  window[step->out] = static_cast<unsigned char>((*text)[0]);
  return true;
}

[[gnu::noinline]] bool character_with(TextRun& run, const Step* step,
                                      uint64_t* window) {
  const uint64_t number = window[step->in[0]];
  if (number >= 0x80) return false;
  const auto c = static_cast<char>(number);
  return give(run, step, window, character({&c, 1}));
}

[[gnu::noinline]] bool read_int(TextRun& run, const Step* step,
                                uint64_t* window) {
  const std::string& text = *text_of(run, step, window, 0);
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || stop != end || error != std::errc()) return false;
  window[step->out] = static_cast<uint64_t>(value);
  return true;
}

[[gnu::noinline]] bool digits_of(TextRun& run, const Step* step,
                                 uint64_t* window) {
  const Digits digits(static_cast<int64_t>(window[step->in[0]]));
  return give(run, step, window, Text(std::string(digits)));
}

struct NamedStep {
  std::string_view builtin;
  StepFunction step;
};
constexpr NamedStep functions[] = {
    {"upper", step_of<with_case<is_small, 'A' - 'a'>>},
    {"lower", step_of<with_case<is_capital, 'a' - 'A'>>},
    {"isdigit", step_of<is_made_of<is_digit>>},
    {"isalpha", step_of<is_made_of<is_letter>>},
    {"isalnum", step_of<is_made_of<is_letter_or_digit>>},
    {"isspace", step_of<is_made_of<is_blank>>},
    {"isupper", step_of<is_in_case<is_capital, is_small>>},
    {"islower", step_of<is_in_case<is_small, is_capital>>},
    {"ord", step_of<number_of>},
    {"chr", step_of<character_with>},
    {"int", step_of<read_int>},
    {"str", step_of<digits_of>},
};

}  // namespace

std::shared_ptr<OwnArray> own_array(ArrayValue cell, uint8_t* elements,
                                    std::vector<int64_t> shape) {
  auto out = std::make_shared<OwnArray>();
  out->shape = std::move(shape);
  out->cell = std::move(cell);
  out->elements = elements;
  out->data = elements;
  out->sizes = out->shape.data();
  return out;
}

std::shared_ptr<OwnArray> make_own_array(Walk& walk, DType dtype,
                                         std::vector<int64_t> shape) {
  // Of larger ones the walk says what is wrong, or computes with them at once.
  constexpr int64_t most_elements = int64_t{1} << 26;
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0 || size > most_elements) return nullptr;
    count *= size;
    if (count > most_elements) return nullptr;
  }
  auto [cell, elements] =
      unset_array(walk, dtype, ir::Shape(shape.begin(), shape.end()));
  return cell ? own_array(std::move(cell), elements, std::move(shape))
              : nullptr;
}

std::shared_ptr<OwnArray> copy_own_array(Walk& walk, DType dtype,
                                         std::vector<int64_t> shape,
                                         const uint8_t* elements) {
  auto out = make_own_array(walk, dtype, std::move(shape));
  if (out && out->cell->type.bytes() > 0)
    std::memcpy(out->elements, elements,
                static_cast<size_t>(out->cell->type.bytes()));
  return out;
}

StepFunction store_element_step(int64_t bytes) {
  if (bytes == 1) return store_element<uint8_t>;
  if (bytes == 2) return store_element<uint16_t>;
  return bytes == 4 ? store_element<uint32_t> : store_element<uint64_t>;
}

StepFunction text_function_step(std::string_view builtin) {
  const auto* found =
      std::ranges::find(functions, builtin, &NamedStep::builtin);
  return found == std::end(functions) ? text_step(TextStep::evaluate)
                                      : found->step;
}

StepFunction text_step(TextStep step) {
  switch (step) {
    case TextStep::begin: return sure_step_of<begin>;
    case TextStep::constant: return sure_step_of<constant>;
    case TextStep::copy: return sure_step_of<copy>;
    case TextStep::move: return sure_step_of<move>;
    case TextStep::evaluate: return step_of<nothing>;
    case TextStep::join: return step_of<join>;
    case TextStep::append: return sure_step_of<append_text>;
    case TextStep::append_constant: return sure_step_of<append_constant>;
    case TextStep::append_int: return sure_step_of<append_int>;
    case TextStep::compare: return sure_step_of<compare<false>>;
    case TextStep::contains: return sure_step_of<contains<false>>;
    case TextStep::compare_constant: return sure_step_of<compare<true>>;
    case TextStep::contains_constant: return sure_step_of<contains<true>>;
    case TextStep::character: return step_of<character_at>;
    case TextStep::characters: return sure_step_of<find_characters>;
    case TextStep::next_character: return sure_step_of<next_character>;
    case TextStep::slice: return step_of<slice>;
    case TextStep::text_item: return step_of<text_item>;
    case TextStep::int_item: return step_of<int_item>;
    case TextStep::add_text: return sure_step_of<add_text>;
    case TextStep::add_int: return sure_step_of<add_int>;
    case TextStep::length: return sure_step_of<text_length>;
    case TextStep::items_length: return sure_step_of<items_length>;
    case TextStep::require_items: return sure_step_of<require_items>;
    case TextStep::require_some: return sure_step_of<require_some>;
    case TextStep::make_array: return sure_step_of<make_array>;
    case TextStep::count_array: return sure_step_of<count_array>;
    case TextStep::copy_array: return sure_step_of<copy_array>;
  }
  __builtin_unreachable();
}

}  // namespace unisono::lang
