// einsum: subscripts are read, repeated letters become diagonals, letters that
// nobody needs any more are summed over, and operands are multiplied pairwise,
// in the order that takes the fewest multiplications.
#include "lang/ops/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lang/ops/array_ops.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/operators.h"
#include "lang/ops/sizes.h"

namespace unisono::lang {
namespace {

/// An index: a letter, or -k for the k-th axis from the end that `...` covers.
using Label = int;
using Labels = std::vector<Label>;

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int position(const Labels& labels, Label label) {
  return static_cast<int>(std::find(labels.begin(), labels.end(), label) -
                          labels.begin());
}

/// An operand's or the result's part of the subscripts.
struct Term {
  std::string text;
  Labels before, after;  // of `...`
  bool ellipsis = false;

  int letters() const { return static_cast<int>(before.size() + after.size()); }
  Labels with_rest(int rest) const {
    Labels out = before;
    for (int k = rest; k > 0; --k) out.push_back(-k);
    out.insert(out.end(), after.begin(), after.end());
    return out;
  }
};

struct Indexed {
  ArrayValue array;
  Labels labels;
};

class Einsum {
 public:
  Einsum(Walk& walk, Span subscripts_span, Span where)
      : walk_(walk), subscripts_span_(subscripts_span), where_(where) {}

  Value run(std::string_view subscripts,
            std::span<const CallArgument> operands) {
    read(subscripts, operands.size());
    std::vector<ArrayValue> arrays =
        promote_operands(walk_, operands, "`einsum`");
    if (is_bool(arrays[0]->type.dtype))
      walk_.fail(diagnostic(Code::element_class, where_, "einsum", "numbers",
                            arrays[0]->type.to_string())
                     .set_help("count with `i32(x)`"));
    std::vector<Indexed> items;
    for (size_t i = 0; i < arrays.size(); ++i)
      items.push_back(bind(terms_[i], arrays[i], operands[i].where));
    const Labels output = output_labels();
    take_sizes(items);
    stretch(items);
    for (Indexed& item : items) item = diagonals(std::move(item));
    const Indexed all = sum_out(multiply(std::move(items), output), output);
    return arrange(all, output);
  }

 private:
  [[noreturn]] void wrong(const std::string& why, std::string help = "") {
    walk_.fail(diagnostic(Code::bad_subscripts, subscripts_span_, why)
                   .set_help(std::move(help)));
  }

  Term read_term(std::string_view text) {
    Term term;
    term.text = text;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (letter) {
        (term.ellipsis ? term.after : term.before).push_back(c);
      } else if (text.substr(i, 3) == "..." && !term.ellipsis) {
        term.ellipsis = true;
        i += 2;
      } else if (static_cast<unsigned char>(c) < 0x80) {
        wrong(fmt::format("`{}` in `{}` is no letter", c, text),
              "subscripts are letters, one per axis, and one `...` at most");
      } else {
        wrong(fmt::format("`{}` holds something else than letters", text),
              "subscripts are letters, one per axis, and one `...` at most");
      }
    }
    return term;
  }

  void read(std::string_view subscripts, size_t operands) {
    std::string text;
    for (char c : subscripts)
      if (c != ' ') text += c;
    std::string_view inputs = text;
    if (const size_t arrow = text.find("->"); arrow != std::string::npos) {
      inputs = std::string_view(text).substr(0, arrow);
      result_ = read_term(std::string_view(text).substr(arrow + 2));
    }
    for (size_t begin = 0; begin <= inputs.size();) {
      const size_t comma = std::min(inputs.find(',', begin), inputs.size());
      terms_.push_back(read_term(inputs.substr(begin, comma - begin)));
      begin = comma + 1;
    }
    if (terms_.size() != operands)
      wrong(fmt::format("it names {} operand{}, but there {} {}", terms_.size(),
                        terms_.size() == 1 ? "" : "s",
                        operands == 1 ? "is" : "are", operands));
  }

  Indexed bind(const Term& term, const ArrayValue& x, Span where) {
    const int rank = x->type.rank();
    const bool fits =
        term.ellipsis ? rank >= term.letters() : rank == term.letters();
    if (!fits)
      walk_.fail(
          diagnostic(
              Code::bad_subscripts, where,
              fmt::format("`{}` names {} axes of {}, which has {}", term.text,
                          term.letters(), x->type.to_string(), rank))
              .set_label(x->type.to_string()));
    const int rest = term.ellipsis ? rank - term.letters() : 0;
    rest_ = std::max(rest_, rest);
    Indexed out{x, term.with_rest(rest)};
    for (int i = 0; i < rank; ++i) bind_size(out.labels[i], x, i, where);
    return out;
  }

  void bind_size(Label label, const ArrayValue& x, int axis, Span where) {
    const ir::Dim& size = x->type.shape[axis];
    auto [known, is_new] = sizes_.emplace(label, size);
    if (is_new) return;
    const auto both = label < 0 ? broadcast_size(walk_, known->second, size)
                                : same_size(known->second, size);
    if (both) {
      known->second = *both;
      return;
    }
    const std::string name =
        label < 0 ? "..." : std::string(1, static_cast<char>(label));
    walk_.fail(
        diagnostic(Code::bad_subscripts, where,
                   fmt::format("index `{}` has size {} and size {}", name,
                               known->second.to_string(), size.to_string()))
            .set_label(x->type.to_string())
            .about(known->second - size));
  }

  Labels output_labels() {
    std::map<Label, int> count;
    for (const Term& term : terms_)
      for (Label label : term.with_rest(0)) ++count[label];
    if (!result_) {
      result_ = Term();
      result_->ellipsis = rest_ > 0;
      for (const auto& [label, times] : count)
        if (times == 1) result_->after.push_back(label);
    }
    if (rest_ > 0 && !result_->ellipsis)
      wrong("the operands have `...`, the result has not",
            "write `...` in the result, too");
    for (Label label : result_->with_rest(0)) {
      const char name = static_cast<char>(label);
      if (!count.contains(label))
        wrong(
            fmt::format("the result's index `{}` stands in no operand", name));
      const Labels all = result_->with_rest(0);
      if (std::count(all.begin(), all.end(), label) > 1)
        wrong(fmt::format("the result has the index `{}` twice", name));
    }
    return result_->with_rest(result_->ellipsis ? rest_ : 0);
  }

  /// All operands have one size for each index; but 1 may be stretched.
  void take_sizes(std::vector<Indexed>& items) {
    for (Indexed& item : items) {
      ir::Shape shape = item.array->type.shape;
      for (size_t i = 0; i < shape.size(); ++i)
        if (item.labels[i] >= 0 || shape[i] != ir::Dim(1))
          shape[i] = sizes_.at(item.labels[i]);
      item.array = taken_for(walk_, item.array, std::move(shape));
    }
  }

  /// Axes of `...` that have size 1 against another size are left out: the
  /// operand does not depend on them.
  void stretch(std::vector<Indexed>& items) {
    for (Indexed& item : items) {
      std::vector<int> dropped;
      Labels kept;
      for (size_t i = 0; i < item.labels.size(); ++i) {
        const Label label = item.labels[i];
        if (label < 0 && item.array->type.shape[i] == ir::Dim(1) &&
            !(sizes_.at(label) == ir::Dim(1)))
          dropped.push_back(static_cast<int>(i));
        else
          kept.push_back(label);
      }
      item.array = remove_axes(walk_, item.array, dropped, where_);
      item.labels = std::move(kept);
    }
  }

  /// Axes with one letter become one: their diagonal.
  Indexed diagonals(Indexed x) {
    for (size_t i = 0; i < x.labels.size(); ++i)
      for (size_t j = i + 1; j < x.labels.size(); ++j) {
        if (x.labels[i] != x.labels[j]) continue;
        const ArrayValue along =
            index_range(walk_, 0, 1, x.array->type.shape[i], where_);
        x.array = gather(walk_, x.array, {along, along},
                         {static_cast<int>(i), static_cast<int>(j)},
                         /*checked=*/false, where_);
        const Label label = x.labels[i];
        x.labels.erase(x.labels.begin() + j);
        x.labels.erase(x.labels.begin() + i);
        x.labels.insert(x.labels.begin(), label);
        return diagonals(std::move(x));
      }
    return x;
  }

  /// All items as one, which has the output's indices and perhaps others.
  Indexed multiply(std::vector<Indexed> items, const Labels& output) {
    for (const auto& [a, b] : order(items, output)) {
      Indexed left = std::move(items[a]), right = std::move(items[b]);
      items[a].labels.clear();
      items[b].labels.clear();
      Labels later = output;
      for (const Indexed& item : items)
        later.insert(later.end(), item.labels.begin(), item.labels.end());
      items.push_back(combine(std::move(left), std::move(right), later));
    }
    return std::move(items.back());
  }

  /// The pairs that are multiplied, results numbered after the items. A checker
  /// that does not know the sizes takes any order: the type is the same.
  std::vector<std::pair<int, int>> order(const std::vector<Indexed>& items,
                                         const Labels& output) const {
    std::map<int, double> sizes;
    for (const auto& [label, size] : sizes_) {
      const int64_t known = size.is_constant() ? size.value() : 1;
      sizes[label] = static_cast<double>(std::max<int64_t>(known, 1));
    }
    std::vector<Labels> labels;
    for (const Indexed& item : items) labels.push_back(item.labels);
    return contraction_order(labels, output, sizes);
  }

  Indexed sum_out(Indexed x, const Labels& needed) {
    std::vector<int> axes;
    Labels kept;
    for (size_t i = 0; i < x.labels.size(); ++i)
      if (contains(needed, x.labels[i]))
        kept.push_back(x.labels[i]);
      else
        axes.push_back(static_cast<int>(i));
    return {reduce(walk_, ir::Op::sum, x.array, axes, false, where_),
            std::move(kept)};
  }

  Indexed combine(Indexed a, Indexed b, const Labels& later) {
    const auto with = [&](const Labels& labels) {
      Labels out = later;
      out.insert(out.end(), labels.begin(), labels.end());
      return out;
    };
    a = sum_out(std::move(a), with(b.labels));
    b = sum_out(std::move(b), with(a.labels));
    ir::DotAttrs attrs;
    Labels batch, free;
    for (size_t i = 0; i < a.labels.size(); ++i) {
      const Label label = a.labels[i];
      if (!contains(b.labels, label)) {
        free.push_back(label);
        continue;
      }
      const bool stays = contains(later, label);
      (stays ? attrs.batch_a : attrs.contract_a).push_back(static_cast<int>(i));
      (stays ? attrs.batch_b : attrs.contract_b)
          .push_back(position(b.labels, label));
      if (stays) batch.push_back(label);
    }
    for (Label label : b.labels)
      if (!contains(a.labels, label)) free.push_back(label);
    Labels labels = batch;
    labels.insert(labels.end(), free.begin(), free.end());
    if (!attrs.contract_a.empty())
      return {
          walk_.add(ir::Op::dot, {a.array, b.array}, std::move(attrs), where_),
          std::move(labels)};
    return {
        apply(walk_, ir::Op::mul, align(a, labels), align(b, labels), where_),
        std::move(labels)};
  }

  /// x with its axes in the order of `labels`, and those that it lacks added.
  ArrayValue align(const Indexed& x, const Labels& labels) {
    Labels own;
    ir::BroadcastAttrs attrs;
    for (size_t i = 0; i < labels.size(); ++i) {
      attrs.shape.push_back(sizes_.at(labels[i]));
      if (!contains(x.labels, labels[i])) continue;
      own.push_back(labels[i]);
      attrs.axes.push_back(static_cast<int>(i));
    }
    const ArrayValue ordered = arrange(x, own);
    if (own.size() == labels.size()) return ordered;
    return walk_.add(ir::Op::broadcast, {ordered}, std::move(attrs), where_);
  }

  /// x with its axes in the order of `labels`, which are the same.
  ArrayValue arrange(const Indexed& x, const Labels& labels) {
    std::vector<int> axes;
    for (Label label : labels) axes.push_back(position(x.labels, label));
    return transpose(walk_, x.array, axes, where_);
  }

  Walk& walk_;
  Span subscripts_span_, where_;
  std::vector<Term> terms_;
  std::optional<Term> result_;
  std::map<Label, ir::Dim> sizes_;
  int rest_ = 0;  // axes that `...` covers at most
};

}  // namespace

Value einsum(Walk& walk, std::string_view subscripts,
             std::span<const CallArgument> operands, Span subscripts_span,
             Span where) {
  return Einsum(walk, subscripts_span, where).run(subscripts, operands);
}

}  // namespace unisono::lang
