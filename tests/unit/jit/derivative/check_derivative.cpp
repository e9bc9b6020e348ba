#include "tests/unit/jit/derivative/check_derivative.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <regex>

#include "jit/ir/text.h"
#include "jit/ir/verify.h"
#include "jit/scalar/element.h"
#include "jit/transform/varies.h"
#include "runtime/check.h"
#include "tests/unit/jit/compiled.h"

namespace unisono::jit::testing {
namespace {

using ir::Graph;
using ir::Type;
using Arrays = std::vector<HostArray>;
using Members = std::vector<Arrays>;

bool is_float(const Type& type) { return type.dtype == DType::F64; }

std::vector<double> read(const HostArray& x) {
  std::vector<double> out(x.bytes.size() / 8);
  if (!out.empty()) std::memcpy(out.data(), x.bytes.data(), x.bytes.size());
  return out;
}

HostArray written(const Type& type, const std::vector<double>& x) {
  HostArray out{type, std::vector<uint8_t>(x.size() * 8)};
  if (!x.empty()) std::memcpy(out.bytes.data(), x.data(), out.bytes.size());
  return out;
}

HostArray added(const HostArray& x, const HostArray& t, double scale) {
  std::vector<double> sum = read(x);
  const std::vector<double> step = read(t);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += scale * step[i];
  return written(x.type, sum);
}

double product(const HostArray& a, const HostArray& b) {
  const std::vector<double> x = read(a), y = read(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

double size_of_product(const HostArray& a, const HostArray& b) {
  const std::vector<double> x = read(a), y = read(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::abs(x[i] * y[i]);
  return sum;
}

/// The f64 arrays rounded to `dtype`, and back.
Members typed(Members x, DType dtype) {
  for (Arrays& member : x)
    for (HostArray& array : member) {
      if (!is_float(array.type)) continue;
      HostArray out{{dtype, array.type.shape}, {}};
      for (const double element : read(array))
        for (const uint8_t byte : element_bytes(dtype, element))
          out.bytes.push_back(byte);
      array = std::move(out);
    }
  return x;
}
Members widened(Members x) {
  for (Arrays& member : x)
    for (HostArray& array : member)
      if (is_floating(array.type.dtype))
        array = written({DType::F64, array.type.shape}, values_of(array));
  return x;
}
/// The graph with another type for f64.
Graph typed(const Graph& graph, DType dtype) {
  return *ir::parse(std::regex_replace(
      ir::print(graph), std::regex("\\bf64\\b"), std::string(name(dtype))));
}
double epsilon(DType dtype) {
  return dtype == DType::F64   ? 0x1p-52
         : dtype == DType::F32 ? 0x1p-23
         : dtype == DType::F16 ? 0x1p-10
                               : 0x1p-7;
}

struct Wrong {
  std::string what;
};

Members evaluated(const Graph& graph, const Members& inputs) {
  if (auto good = ir::verify(graph); !good)
    throw Wrong{"not well formed: " + good.error().message + "\n" +
                ir::print(graph)};
  auto out = inputs.size() == 1 ? [&]() -> Result<Members> {
    auto one = evaluate(graph, inputs[0]);
    if (!one) return one.error();
    return Members{*one};
  }()
      : evaluate_members(graph, ir::AxisId{1}, inputs);
  if (!out) throw Wrong{"fails: " + out.error().message};
  return *out;
}

Graph graph_of(std::variant<Graph, NoDerivative> result, const char* which) {
  if (const auto* none = std::get_if<NoDerivative>(&result))
    throw Wrong{fmt::format("{} has none: why {}, at {}", which,
                            static_cast<int>(none->why), ir::name(none->op))};
  return std::get<Graph>(std::move(result));
}

class Checker {
 public:
  Checker(const DerivativeCase& c, std::mt19937& random)
      : case_(c), random_(random) {
    const size_t members = c.inputs.size();
    for (size_t i = 0; i < c.graph.inputs.size(); ++i) {
      const bool shared = i < c.shared.size() && c.shared[i];
      varies_.push_back(members > 1 && !shared);
      spec_.inputs.push_back(is_float(c.graph.type(c.graph.inputs[i])));
      spec_.varies.emplace_back();
      if (varies_[i]) spec_.varies[i].push_back(1);
    }
    if (members > 1) spec_.axes.push_back({1, static_cast<int64_t>(members)});
    outputs_vary_ = varying_outputs(c.graph, 1, varies_);
  }

  void check(bool second) {
    const Graph forward = graph_of(jvp(case_.graph, spec_), "jvp");
    const Graph backward = graph_of(vjp(case_.graph, spec_), "vjp");
    const Members values = evaluated(case_.graph, case_.inputs);
    const Members tangents = random_inputs();
    const Members jvp_out = evaluated(forward, joined(case_.inputs, tangents));
    compare_values(values, jvp_out, "jvp");
    const Members moved = parts_from(jvp_out, values[0].size());
    compare_differences(tangents, moved);

    const Members cotangents = random_outputs(values);
    const Members vjp_out =
        evaluated(backward, joined(case_.inputs, cotangents));
    compare_values(values, vjp_out, "vjp");
    const Members gradients = parts_from(vjp_out, values[0].size());
    compare_products(cotangents, moved, gradients, tangents, case_.exact);
    if (!second) return;

    DerivativeCase next{backward,
                        joined(case_.inputs, cotangents),
                        {},
                        case_.smooth,
                        case_.exact};
    for (size_t i = 0; i < next.graph.inputs.size(); ++i)
      next.shared.push_back(i < varies_.size()
                                ? !varies_[i]
                                : !cotangent_varies(i - varies_.size()));
    Checker again(next, random_);
    try {
      again.check(false);
    } catch (Wrong& wrong) {
      wrong.what = "of the graph of vjp: " + wrong.what;
      throw;
    }
  }

  void check_type(DType dtype, bool compiled) {
    const Graph graph = typed(case_.graph, dtype);
    const Graph forward = graph_of(jvp(graph, spec_), "jvp"),
                backward = graph_of(vjp(graph, spec_), "vjp");
    const Members inputs = typed(case_.inputs, dtype),
                  tangents = typed(random_inputs(), dtype),
                  with_tangents = joined(inputs, tangents);
    const size_t outputs = graph.outputs.size();
    const Members moved =
        widened(parts_from(evaluated(forward, with_tangents), outputs));
    const Members wanted =
        parts_from(evaluated(graph_of(jvp(case_.graph, spec_), "jvp"),
                             widened(with_tangents)),
                   outputs);
    compare_rounded(wanted, moved, rounding * epsilon(dtype));

    const Members values = evaluated(case_.graph, widened(inputs));
    const Members cotangents = typed(random_outputs(values), dtype),
                  with_cotangents = joined(inputs, cotangents);
    const Members gradients =
        widened(parts_from(evaluated(backward, with_cotangents), outputs));
    if (is_tame(wanted) && is_tame(values))
      compare_products(widened(cotangents), moved, gradients, widened(tangents),
                       rounding * epsilon(dtype));
    if (!compiled) return;
    compare_compiled(forward, with_tangents);
    compare_compiled(backward, with_cotangents);
  }

 private:
  /// Units of the last place that derivatives of the table's rows may be off,
  /// of their largest part.
  static constexpr double rounding = 24;

  /// Numbers that the smallest type holds with many digits.
  static bool is_tame(const Members& x) {
    for (const Arrays& member : x)
      for (const HostArray& array : member)
        if (is_float(array.type))
          for (const double element : read(array))
            if (!(std::abs(element) < 1e3)) return false;
    return true;
  }

  static void compare_rounded(const Members& wanted, const Members& moved,
                              double allowed) {
    if (!is_tame(wanted)) return;
    for (size_t m = 0; m < wanted.size(); ++m)
      for (size_t k = 0; k < wanted[m].size(); ++k) {
        const auto want = read(wanted[m][k]), have = read(moved[m][k]);
        double scale = 1;
        for (const double element : want)
          scale = std::max(scale, std::abs(element));
        for (size_t i = 0; i < want.size(); ++i)
          if (!(std::abs(want[i] - have[i]) <= allowed * scale))
            throw Wrong{
                fmt::format("member {}, tangent {}, element {}: {}, in f64 {}",
                            m, k, i, have[i], want[i])};
      }
  }

  /// One compiler for each number of devices keeps what it has compiled.
  static Bench& bench(size_t devices) {
    static std::map<size_t, Bench> all;
    return all.try_emplace(devices, 0, static_cast<int>(devices)).first->second;
  }

  static void compare_compiled(const Graph& graph, const Members& inputs) {
    if (inputs.size() == 1) {
      const std::string wrong = difference(bench(1), graph, inputs[0]);
      if (!wrong.empty()) throw Wrong{wrong};
      return;
    }
    const Members want = evaluated(graph, inputs);
    const auto have = bench(inputs.size()).run_all(graph, inputs);
    if (!have) throw Wrong{"compiled: " + have.error().message};
    for (size_t m = 0; m < want.size(); ++m)
      for (size_t i = 0; i < want[m].size(); ++i)
        if (!same_values(want[m][i], (*have)[m][i]))
          throw Wrong{fmt::format("member {}, output {}, {}\n{}", m, i,
                                  first_difference(want[m][i], (*have)[m][i]),
                                  ir::print(graph))};
  }

  std::vector<size_t> float_outputs() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < case_.graph.outputs.size(); ++i)
      if (is_float(case_.graph.type(case_.graph.outputs[i]))) out.push_back(i);
    return out;
  }
  bool cotangent_varies(size_t cotangent) const {
    return outputs_vary_[float_outputs()[cotangent]];
  }

  Members random_inputs() {
    Members out(case_.inputs.size());
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (!spec_.inputs[i]) continue;
      for (size_t m = 0; m < out.size(); ++m)
        out[m].push_back(
            m > 0 && !varies_[i]
                ? out[0].back()
                : numbers(case_.inputs[0][i].type.shape, -1, 1, random_));
    }
    return out;
  }
  Members random_outputs(const Members& values) {
    Members out(values.size());
    for (const size_t i : float_outputs())
      for (size_t m = 0; m < out.size(); ++m)
        out[m].push_back(
            m > 0 && !outputs_vary_[i]
                ? out[0].back()
                : numbers(values[0][i].type.shape, -1, 1, random_));
    return out;
  }
  static Members joined(const Members& a, const Members& b) {
    Members out = a;
    for (size_t m = 0; m < a.size(); ++m)
      out[m].insert(out[m].end(), b[m].begin(), b[m].end());
    return out;
  }
  static Members parts_from(const Members& x, size_t from) {
    Members out;
    for (const Arrays& member : x)
      out.emplace_back(member.begin() + static_cast<ptrdiff_t>(from),
                       member.end());
    return out;
  }

  static void compare_values(const Members& want, const Members& have,
                             const char* which) {
    for (size_t m = 0; m < want.size(); ++m)
      for (size_t i = 0; i < want[m].size(); ++i)
        if (want[m][i].bytes != have[m][i].bytes)
          throw Wrong{fmt::format("{} gives another value {}", which, i)};
  }

  /// The outputs at a distance along the tangents.
  Members values_at(const Members& tangents, double distance) {
    Members at = case_.inputs;
    for (size_t m = 0; m < at.size(); ++m) {
      size_t next = 0;
      for (size_t i = 0; i < at[m].size(); ++i)
        if (spec_.inputs[i])
          at[m][i] = added(at[m][i], tangents[m][next++], distance);
    }
    return evaluated(case_.graph, at);
  }

  /// Where the case is not smooth, a difference counts if it agrees with one
  /// over another distance.
  void compare_differences(const Members& tangents, const Members& moved) {
    constexpr double step = 1e-6, wide = 8e-6;
    const Members up = values_at(tangents, step),
                  down = values_at(tangents, -step);
    Members far_up, far_down;
    if (!case_.smooth) {
      far_up = values_at(tangents, wide);
      far_down = values_at(tangents, -wide);
    }
    const std::vector<size_t> outputs = float_outputs();
    for (size_t m = 0; m < moved.size(); ++m)
      for (size_t k = 0; k < outputs.size(); ++k) {
        const size_t o = outputs[k];
        const auto high = read(up[m][o]), low = read(down[m][o]);
        const auto t = read(moved[m][k]);
        double scale = 1;
        for (size_t i = 0; i < t.size(); ++i)
          scale = std::max({scale, std::abs(t[i]), std::abs(high[i])});
        for (size_t i = 0; i < t.size(); ++i) {
          // The maximum of nothing is infinite everywhere.
          const double want =
              high[i] == low[i] ? 0 : (high[i] - low[i]) / (2 * step);
          double allowed = 1e-6 * scale;
          if (!case_.smooth) {
            const double other =
                (read(far_up[m][o])[i] - read(far_down[m][o])[i]) / (2 * wide);
            allowed = 1e-5 * scale;
            if (!(std::abs(want - other) <= 0.1 * allowed) || !(scale < 1e3) ||
                !std::isfinite(t[i]))
              continue;
          }
          if (!(std::abs(want - t[i]) <= allowed))
            throw Wrong{fmt::format(
                "member {}, output {}, element {}: jvp gives {}, differences "
                "{}",
                m, o, i, t[i], want)};
        }
      }
  }

  void compare_products(const Members& cotangents, const Members& moved,
                        const Members& gradients, const Members& tangents,
                        double exact) {
    double left = 0, right = 0, scale = 1e-300;
    const std::vector<size_t> outputs = float_outputs();
    for (size_t k = 0; k < outputs.size(); ++k)
      for (size_t m = 0; m < moved.size(); ++m) {
        if (m > 0 && !outputs_vary_[outputs[k]]) continue;  // counts once
        left += product(cotangents[m][k], moved[m][k]);
        scale += size_of_product(cotangents[m][k], moved[m][k]);
      }
    size_t next = 0;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (!spec_.inputs[i]) continue;
      for (size_t m = 0; m < gradients.size(); ++m) {
        if (m > 0 && !varies_[i]) {
          if (gradients[m][next].bytes != gradients[0][next].bytes)
            throw Wrong{fmt::format(
                "the cotangent of input {} differs between members", i)};
          continue;
        }
        right += product(gradients[m][next], tangents[m][next]);
        scale += size_of_product(gradients[m][next], tangents[m][next]);
      }
      ++next;
    }
    const bool usual = case_.exact == 1e-12;  // else numbers of any size
    if (!usual && !(scale < 1e100 && std::isfinite(left - right))) return;
    // Of what cancels, or is too small for a type's digits.
    const double least = !usual ? 1e-10 : exact == 1e-12 ? 0 : 1e-3 * exact;
    if (!(std::abs(left - right) <= exact * scale + least))
      throw Wrong{fmt::format("<c, J t> is {}, <J' c, t> is {}", left, right)};
  }

  const DerivativeCase& case_;
  std::mt19937& random_;
  DerivativeSpec spec_;
  std::vector<bool> varies_, outputs_vary_;
};

}  // namespace

std::optional<std::string> wrong_derivative(const DerivativeCase& c,
                                            std::mt19937& random, bool second) {
  try {
    Checker(c, random).check(second);
  } catch (const Wrong& wrong) {
    return wrong.what + "\n" + ir::print(c.graph);
  }
  return std::nullopt;
}

std::optional<std::string> wrong_in_type(const DerivativeCase& c, DType dtype,
                                         std::mt19937& random, bool compiled) {
  try {
    Checker(c, random).check_type(dtype, compiled);
  } catch (const Wrong& wrong) {
    return fmt::format("{}: {}\n{}", name(dtype), wrong.what,
                       ir::print(c.graph));
  }
  return std::nullopt;
}

HostArray numbers(const ir::Shape& shape, double low, double high,
                  std::mt19937& random) {
  const Type type{DType::F64, shape};
  std::vector<double> x(static_cast<size_t>(type.elements()));
  for (double& element : x)
    element =
        low + (high - low) * (static_cast<double>(random()) / 4294967296.0);
  return written(type, x);
}

HostArray integers(DType dtype, const ir::Shape& shape,
                   const std::vector<int64_t>& values) {
  HostArray out{{dtype, shape}, {}};
  for (const int64_t value : values) {
    const auto bytes = element_bytes(dtype, value);
    out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
  }
  CHECK(static_cast<int64_t>(values.size()) == out.type.elements());
  return out;
}

}  // namespace unisono::jit::testing
