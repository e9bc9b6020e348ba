// Random programs of maps and collectives: nested `pmap`s on a mesh, member by
// member in the reference evaluator, against the same as nested `vmap`s; and
// against compiled code on as many devices as the mesh has.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "lang/context/walk.h"
#include "lang/syntax/parser.h"

namespace unisono::lang {
namespace {

constexpr int most_devices = 12;

/// A session that compiles nothing but maps, or nothing at all.
struct Host {
  explicit Host(bool reference) : runtime(most_devices) {
    machine.runtime = &runtime;
    machine.compiler = &compiler;
    machine.reference_only = reference;
    machine.compile_threshold = INT64_MAX;
    machine.output = [this](std::string_view text) { printed += text; };
  }

  /// What the program prints; messages if it has errors.
  std::string run(std::string text) {
    SourceMap sources;
    Diagnostics diagnostics;
    Walk walk(machine, sources, diagnostics);
    printed.clear();
    const SourceFile& file = sources.add("random.uni", std::move(text));
    const auto program = parse(file, diagnostics).program;
    const bool good = walk.check(*program) && walk.run(*program);
    return good ? printed : render(diagnostics);
  }

  Runtime runtime;
  jit::Compiler compiler;
  Machine machine;
  std::string printed;
};

/// One program: a function of a tree of vectors, with random collectives.
class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {
    const std::pair<int, int> meshes[] = {{1, 2}, {2, 1}, {2, 2}, {2, 3},
                                          {3, 2}, {4, 1}, {1, 5}, {3, 4},
                                          {4, 3}, {2, 4}};
    std::tie(rows_, cols_) = meshes[below(std::size(meshes))];
    row_members_ = rows_ * (chance(30) ? 1 + below(3) : 1);
    col_members_ = cols_ * (chance(30) ? 1 + below(3) : 1);
    dtype_ = chance(60) ? "f32" : chance(50) ? "i32" : "f16";
  }

  std::string text() {
    std::string body;
    for (const char* leaf : {"t.a", "t.b.0", "t.b.1"}) values_.push_back(leaf);
    const int steps = 2 + below(6);
    for (int i = 0; i < steps; ++i) {
      const std::string name = fmt::format("v{}", i);
      body += fmt::format("  let {} = {}\n", name, expression());
      values_.push_back(name);
    }
    const bool tuple = chance(50);
    const std::string result =
        tuple ? fmt::format("({}, (p = {}, q = {}))", value(), value(), value())
              : value();
    const std::string leaves =
        tuple ? "same(a.0, b.0), same(a.1.p, b.1.p), same(a.1.q, b.1.q)"
              : "same(a, b)";
    const std::string shown = tuple ? "a.1.q" : "a";
    return fmt::format(
        "axis rows, cols = mesh({}, {})\n"
        "def f(t) {{\n{}  {}\n}}\n"
        "def same(a, b) = all((a == b) or ((a != a) and (b != b)))\n"
        "let x = cast(reshape(arange({} * {} * 3) * 7 % 23, ({}, {}, 3)), {})\n"
        "let t = (a = x, b = (x * 2 - 5, x[0, 0]))\n"
        "let axes = ({}, {})\n"
        "def nested(map, out) = map(map(f, in_axes=((a = 0, b = (0, none)),), "
        "out_axes=out, over=cols), in_axes=((a = 0, b = (0, none)),), "
        "out_axes=0, over=rows)\n"
        "let a = nested(pmap, axes.0)(t)\n"
        "let b = nested(vmap, axes.0)(t)\n"
        "print({})\nprint(typeof(a))\nprint(sum(abs({}) % 7), {})\n",
        rows_, cols_, body, result, row_members_, col_members_, row_members_,
        col_members_, dtype_, below(2), below(2), leaves, shown, shown);
  }

 private:
  int below(size_t n) { return static_cast<int>(random_() % n); }
  bool chance(int percent) { return below(100) < percent; }
  const std::string& value() { return values_[below(values_.size())]; }

  struct Axes {
    std::string text;
    int members;
  };
  Axes axes() {
    switch (below(5)) {
      case 0: return {"rows", row_members_};
      case 1: return {"cols", col_members_};
      case 2: return {"(rows, cols)", row_members_ * col_members_};
      case 3: return {"(cols, rows)", row_members_ * col_members_};
      default: return {"(cols,)", col_members_};
    }
  }

  /// ", groups=((0, 2), (1, 3))", or nothing. `size` is then theirs.
  std::string groups(int members, bool equal, int* size) {
    *size = members;
    if (chance(50)) return "";
    std::vector<int> order(members);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<int> divisors;
    for (int d = 1; d <= members; ++d)
      if (members % d == 0) divisors.push_back(d);
    *size = divisors[below(divisors.size())];
    std::string text;
    for (size_t i = 0; i < order.size();) {
      const int count = equal ? *size : 1 + below(members);
      text += "(";
      for (int j = 0; j < count && i < order.size(); ++j)
        text += fmt::format("{}, ", order[i++]);
      text += "), ";
    }
    return fmt::format(", groups=({})", text);
  }

  /// Of shape [3], as all values are.
  std::string expression() {
    const std::string x = value(), y = value();
    const Axes over = axes();
    int size = 0;
    switch (below(12)) {
      case 0: return fmt::format("{} - {}", x, y);
      case 1: return fmt::format("where({} > {}, {}, {} * 2)", x, y, y, x);
      case 2: {
        const std::string apart = groups(over.members, false, &size);
        const char* op[] = {"psum", "pmax", "pmin"};
        return fmt::format("{}({}, {}{})", op[below(3)], x, over.text, apart);
      }
      case 3: {
        const std::string apart = groups(over.members, true, &size);
        return fmt::format("sum(all_gather({}, {}, axis={}{}), axis={})", x,
                           over.text, 1, apart, 1);
      }
      case 4: {
        const std::string apart = groups(over.members, true, &size);
        return fmt::format("all_gather({}, {}, tiled=true{})[-3:]", x,
                           over.text, apart);
      }
      case 5: {  // parts that differ along the leading axis
        const std::string apart = groups(over.members, true, &size);
        return fmt::format(
            "psum_scatter(cast(arange({}), {})[:, none] * {}[none, :], {}{})",
            size, dtype_, x, over.text, apart);
      }
      case 6: {
        const std::string apart = groups(over.members, true, &size);
        return fmt::format(
            "all_to_all({}[:, none] + cast(arange({}), {})[none, :], {}, "
            "split=1, concat=0{})[{}]",
            x, size, dtype_, over.text, apart, below(size));
      }
      case 7:
        return fmt::format("ppermute({}, {}, shift={}, wrap={})", x, over.text,
                           below(7) - 3, chance(50) ? "true" : "false");
      case 8: {
        std::string pairs;
        for (int i = 0; i < over.members; ++i)
          if (chance(60))
            pairs += fmt::format("({}, {}), ", i,
                                 (i * (over.members - 1)) % over.members);
        return fmt::format("ppermute({}, {}, perm=({}))", x, over.text, pairs);
      }
      case 9: {
        std::vector<int> order(over.members);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random_);
        return fmt::format("pshuffle({}, {}, ({},))", x, over.text,
                           fmt::join(order, ", "));
      }
      case 10:
        return fmt::format("pbroadcast({}, {}, {})", x, over.text,
                           below(over.members));
      default:
        return fmt::format("{} * cast(axis_index({}) - {}, {})", x, over.text,
                           below(4), dtype_);
    }
  }

  std::mt19937 random_;
  int rows_ = 1, cols_ = 1, row_members_ = 1, col_members_ = 1;
  std::string dtype_;
  std::vector<std::string> values_;
};

/// The program's output is that of nested vmaps, too.
bool agrees(const std::string& output) {
  return output.starts_with("true") &&
         output.substr(0, output.find('\n')).find("false") == std::string::npos;
}

}  // namespace

TEST_CASE("random programs: nested pmaps are nested vmaps") {
  Host reference(true);
  for (uint32_t seed = 1; seed <= 1800; ++seed) {
    const std::string text = RandomProgram(seed).text();
    const std::string output = reference.run(text);
    REQUIRE_MESSAGE(agrees(output), text << output);
  }
}

TEST_CASE("random programs: compiled code gives the same bits") {
  Host reference(true), compiled(false);
  for (uint32_t seed = 10'001; seed <= 10'200; ++seed) {
    const std::string text = RandomProgram(seed).text();
    const std::string expected = reference.run(text);
    REQUIRE_MESSAGE(agrees(expected), text << expected);
    const std::string output = compiled.run(text);
    REQUIRE_MESSAGE(output == expected, text << expected << output);
  }
}

}  // namespace unisono::lang
