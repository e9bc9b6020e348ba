#include "jit/kernel/work.h"

#include <algorithm>
#include <vector>

#include "jit/ir/table.h"

namespace unisono::jit {
namespace {

/// By axis of a nest: whether something depends on it.
using Axes = std::vector<bool>;

/// Counts one nest.
class NestWork {
 public:
  explicit NestWork(const Nest& nest)
      : nest_(nest), turns_(turns_of_expressions(nest)) {
    for (const Expr& expr : nest.exprs) depends_.push_back(axes_of(expr));
  }

  double flops() const {
    double total = 0;
    for (size_t e = 0; e < nest_.exprs.size(); ++e)
      total += flops_of(nest_.exprs[e]) * points(depends_[e]) *
               times_taken(nest_, turns_[e], unknown_turns);
    for (const Reduction& reduction : nest_.reductions) {
      const bool dot = reduction.kind == Reduction::Kind::dot;
      if (is_floating(reduction.dtype))
        total += (dot ? 2 : 1) * points(with_reduced(reduction));
    }
    if (nest_.scan && is_floating(nest_.scan->dtype) && is_asked_for())
      total += points(joined(axes_of(nest_.scan->operand), nest_.reduced));
    if (nest_.scatter && nest_.scatter->add &&
        is_floating(nest_.scatter->dtype))
      total += points(Axes(nest_.extents.size(), true));
    return total;
  }

  /// Adds the elements that are read of each argument, and those written.
  void count_elements(std::vector<double>& read,
                      std::vector<double>& written) const {
    for (size_t e = 0; e < nest_.exprs.size(); ++e) {
      const Expr& expr = nest_.exprs[e];
      if (expr.kind != Expr::Kind::load && expr.kind != Expr::Kind::gather)
        continue;
      read[expr.argument] +=
          points(axes_of(expr)) * times_taken(nest_, turns_[e], unknown_turns);
    }
    for (const Store& store : nest_.stores)
      written[store.argument] += points(axes_of(store.at));
    auto count_puts = [&](int loop) {
      for (const Turns::Put& put : nest_.turns_of(loop).puts)
        written[put.store.argument] += times_taken(nest_, loop, unknown_turns) *
                                       points(axes_of(put.store.at));
    };
    if (nest_.turns) count_puts(-1);
    for (size_t i = 0; i < nest_.inner.size(); ++i)
      count_puts(static_cast<int>(i));
    if (nest_.scan)
      written[nest_.scan->argument] += points(axes_of(nest_.scan->at));
    if (nest_.scatter) {
      Axes axes =
          joined(axes_of(nest_.scatter->at), axes_of(nest_.scatter->value));
      for (const ExprId index : nest_.scatter->indices)
        axes = joined(std::move(axes), axes_of(index));
      written[nest_.scatter->argument] += points(axes);
    }
  }

 private:
  /// Where nobody knows.
  static constexpr double unknown_turns = 1;

  /// Of the stages of a scan one counts: the others are how a GPU does it.
  bool is_asked_for() const {
    return nest_.scan->part != Scan::Part::totals &&
           nest_.scan->part != Scan::Part::carries;
  }

  static Axes joined(Axes a, const Axes& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] || b[i];
    return a;
  }

  Axes axes_of(const Affine& at) const {
    Axes out(nest_.extents.size());
    for (size_t a = 0; a < std::min(out.size(), at.factors.size()); ++a)
      out[a] = at.factors[a] != 0;
    return out;
  }

  /// None of an expression that is not there.
  Axes axes_of(ExprId expr) const {
    return expr >= 0 ? depends_[expr] : Axes(nest_.extents.size());
  }

  Axes with_reduced(const Reduction& reduction) const {
    return joined(joined(axes_of(reduction.operand), axes_of(reduction.second)),
                  nest_.reduced);
  }

  /// Operands stand before users, and so does what a reduction reads.
  Axes axes_of(const Expr& expr) const {
    Axes out = axes_of(expr.at);
    for (const ExprId operand : expr.operands)
      out = joined(std::move(out), axes_of(operand));
    if (expr.kind == Expr::Kind::reduced)
      for (size_t a = 0; a < out.size(); ++a) out[a] = !nest_.reduced[a];
    // A carry may depend on anything.
    if (expr.kind == Expr::Kind::carried || expr.kind == Expr::Kind::turned)
      out.assign(out.size(), true);
    return out;
  }

  double points(const Axes& axes) const {
    double total = 1;
    for (size_t a = 0; a < axes.size(); ++a)
      if (axes[a]) total *= static_cast<double>(nest_.extents[a]);
    return total;
  }

  static double flops_of(const Expr& expr) {
    const bool counts = expr.kind == Expr::Kind::operation &&
                        is_floating(expr.dtype) && expr.op != ir::Op::cast &&
                        expr.op != ir::Op::select;
    if (!counts) return 0;
    return expr.op == ir::Op::fma ? 2 : 1;
  }

  const Nest& nest_;
  const std::vector<int> turns_;  // by expression: in which it is computed
  std::vector<Axes> depends_;     // by expression
};

}  // namespace

Work work_of(const DotShape& product) {
  const DotShape& p = product;
  return {
      2.0 * static_cast<double>(p.batch * p.m * p.n) * static_cast<double>(p.k),
      p.batch * (p.m * p.k + p.k * p.n + p.m * p.n) * byte_size(p.dtype)};
}

Work work_of(const Kernel& kernel, std::span<const int64_t> argument_bytes) {
  Work work;
  std::vector<double> read(kernel.arguments.size());
  std::vector<double> written(kernel.arguments.size());
  for (const Nest& nest : kernel.nests) {
    const NestWork counted(nest);
    work.flops += counted.flops();
    counted.count_elements(read, written);
  }
  for (size_t a = 0; a < kernel.arguments.size(); ++a) {
    const auto size = static_cast<double>(byte_size(kernel.arguments[a].dtype));
    const auto all = static_cast<double>(argument_bytes[a]);
    for (const double elements : {read[a], written[a]})
      work.bytes += static_cast<int64_t>(std::min(elements * size, all));
  }
  return work;
}

}  // namespace unisono::jit
