// Reads the printed form. One line is one node; a subgraph stands in braces
// after its attribute's name.
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <map>

#include "jit/ir/attr_fields.h"
#include "jit/ir/text.h"
#include "jit/ir/verify.h"

namespace unisono::ir {
namespace {

constexpr int max_depth = 64;
constexpr int64_t max_rank = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::optional<Graph> whole() {
    Graph g;
    if (!graph(g)) return std::nullopt;
    spaces(true);
    if (!rest_.empty() && !fail("text after `return`")) return std::nullopt;
    return g;
  }
  Error error() const {
    return {Error::Kind::compile_failed,
            fmt::format("line {}: {}", line_, message_)};
  }

 private:
  // ---- characters and words: each gives false after fail(). ----
  bool fail(std::string message) {
    if (message_.empty()) message_ = std::move(message);
    return false;
  }
  void spaces(bool lines = false) {
    while (!rest_.empty() && (rest_[0] == ' ' || (lines && rest_[0] == '\n'))) {
      if (rest_[0] == '\n') ++line_;
      rest_.remove_prefix(1);
    }
  }
  bool at(char c) {
    spaces();
    return !rest_.empty() && rest_[0] == c;
  }
  bool accept(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool expect(char c) {
    return accept(c) || fail(fmt::format("expected `{}`", c));
  }
  bool end_of_line() {
    spaces();
    if (rest_.empty()) return true;
    if (rest_[0] != '\n') return fail("expected the end of the line");
    rest_.remove_prefix(1);
    ++line_;
    return true;
  }
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '?';
  }
  std::string_view word() {
    spaces();
    size_t n = 0;
    while (n < rest_.size() && is_name(rest_[n])) ++n;
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  template <class T>
  bool number(T& out, int base = 10) {
    spaces();
    const auto [end, error] =
        read_number(rest_.data(), rest_.data() + rest_.size(), out, base);
    if (error != std::errc()) return fail("expected a number that fits");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  template <class T>
  static std::from_chars_result read_number(const char* begin, const char* end,
                                            T& out, int base) {
    if constexpr (std::is_floating_point_v<T>)
      return std::from_chars(begin, end, out);
    else
      return std::from_chars(begin, end, out, base);
  }
  /// "[", items, "]".
  template <class Item>
  bool list(Item&& item) {
    if (!expect('[')) return false;
    if (accept(']')) return true;
    do {
      if (!item()) return false;
    } while (accept(','));
    return expect(']');
  }

  // ---- sizes and types ----
  bool dim(Dim& out) {
    if (++depth_ > max_depth) return fail("nested too deeply");
    const bool good = sum(out);
    --depth_;
    return good;
  }
  bool sum(Dim& out) {
    if (!product(out)) return false;
    while (at('+') || at('-')) {
      const bool plus = accept('+');
      if (!plus) accept('-');
      Dim right;
      if (!product(right)) return false;
      out = plus ? out + right : out - right;
    }
    return true;
  }
  bool product(Dim& out) {
    if (!factor(out)) return false;
    while (at('*') || at('/')) {
      const bool times = accept('*');
      if (!times && !(expect('/') && expect('/'))) return false;
      Dim right;
      if (!factor(right)) return false;
      if (!times && right == Dim(0)) return fail("a size is divided by 0");
      out = times ? out * right : floor_div(out, right);
    }
    return true;
  }
  bool factor(Dim& out) {
    if (accept('(')) return dim(out) && expect(')');
    const bool negative = accept('-');
    spaces();
    if (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
      uint64_t magnitude = 0;
      if (!number(magnitude)) return false;
      if (magnitude > static_cast<uint64_t>(INT64_MAX) + negative)
        return fail("a size that does not fit");
      out = static_cast<int64_t>(negative ? -magnitude : magnitude);
      return true;
    }
    const std::string name(word());
    if (name.empty()) return fail("expected a size");
    const auto id = symbols_.try_emplace(name, symbols_.size()).first->second;
    out = Dim::symbol(id, name, name.starts_with('?'));
    if (negative) out = 0 - out;
    return true;
  }
  bool value(Shape& out) {
    out.clear();
    return list([&] {
      if (static_cast<int64_t>(out.size()) == max_rank)
        return fail("a rank that is too large");
      return dim(out.emplace_back());
    });
  }
  bool value(DType& out) {
    const auto dtype = dtype_from_name(word());
    if (!dtype) return fail("expected an element type");
    out = *dtype;
    return true;
  }
  bool value(Type& out) {
    out.shape.clear();
    return value(out.dtype) && (!at('[') || value(out.shape));
  }

  // ---- attributes ----
  bool value(int& out) { return number(out); }
  bool value(int64_t& out) { return number(out); }
  bool value(Dim& out) { return dim(out); }
  bool value(bool& out) {
    const auto text = word();
    out = text == "true";
    return out || text == "false" || fail("expected `true` or `false`");
  }
  bool value(ReduceOrder& out) {
    const auto text = word();
    out = text == "members" ? ReduceOrder::members : ReduceOrder::elements;
    return text == "members" || text == "elements" || fail("expected an order");
  }
  bool value(Precision& out) {
    const auto text = word();
    out = text == "exact"  ? Precision::exact
          : text == "tf32" ? Precision::tf32
                           : Precision::usual;
    return text == "exact" || text == "tf32" || text == "usual" ||
           fail("expected `usual`, `exact` or `tf32`");
  }
  bool value(CallAttrs::Rule& out) {
    const auto text = word();
    out = text == "vjp" ? CallAttrs::Rule::vjp : CallAttrs::Rule::jvp;
    return text == "vjp" || text == "jvp" || fail("expected `jvp` or `vjp`");
  }
  bool value(ReduceOp& out) {
    const auto text = word();
    out = text == "max"   ? ReduceOp::max
          : text == "min" ? ReduceOp::min
                          : ReduceOp::sum;
    return text == "max" || text == "min" || text == "sum" ||
           fail("expected `sum`, `max` or `min`");
  }
  bool value(std::pair<int, int>& out) {
    return expect('(') && number(out.first) && expect(',') &&
           number(out.second) && expect(')');
  }
  bool value(std::string& out) {
    out.clear();
    if (!expect('"')) return false;
    while (!rest_.empty() && rest_[0] != '"' && rest_[0] != '\n') {
      char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '\\') {
        if (rest_.empty()) break;
        c = rest_[0];
        rest_.remove_prefix(1);
        if (c == 'x') {
          unsigned byte = 0;
          const auto digits = rest_.substr(0, 2);
          const auto [end, error] = std::from_chars(
              digits.data(), digits.data() + digits.size(), byte, 16);
          if (error != std::errc() || end != digits.data() + 2)
            return fail("expected two hexadecimal digits");
          rest_.remove_prefix(2);
          c = static_cast<char>(byte);
        }
      }
      out += c;
    }
    return expect('"');
  }
  template <class T>
  bool value(std::vector<T>& out) {
    out.clear();
    return list([&] { return value(out.emplace_back()); });
  }
  bool value(std::shared_ptr<const Graph>& out) {
    if (!expect('{') || !end_of_line()) return false;
    if (++depth_ > max_depth) return fail("nested too deeply");
    auto g = std::make_shared<Graph>();
    if (!graph(*g)) return false;
    --depth_;
    out = std::move(g);
    return expect('}');
  }
  bool attribute(Attrs& attrs, std::string_view name) {
    bool known = false, good = true;
    std::visit(
        [&](auto& a) {
          for_each_field(a, a, [&](const char* field, auto& x, auto&) {
            if (name != field) return;
            known = true;
            good = value(x);
          });
        },
        attrs);
    if (!known) return fail(fmt::format("unknown attribute `{}`", name));
    return good;
  }

  // ---- constants ----
  template <DType D>
  bool element(std::vector<uint8_t>& bytes) {
    using Storage = typename StorageOf<D>::type;
    Storage stored{};
    if constexpr (D == DType::Bool) {
      bool truth = false;
      if (!value(truth)) return false;
      stored = truth;
    } else if constexpr (is_float<D>) {
      if (!float_element<D>(stored)) return false;
    } else {
      if (!number(stored)) return false;
    }
    const size_t end = bytes.size();
    bytes.resize(end + sizeof stored);
    std::memcpy(bytes.data() + end, &stored, sizeof stored);
    return true;
  }
  template <DType D>
  static constexpr bool is_float =
      D == DType::F16 || D == DType::BF16 || D == DType::F32 || D == DType::F64;
  template <DType D>
  bool float_element(typename StorageOf<D>::type& stored) {
    spaces();
    if (rest_.starts_with("nan:0x")) {
      rest_.remove_prefix(6);
      uint64_t bits = 0;
      if (!number(bits, 16)) return false;
      if (sizeof stored < 8 && bits >> (8 * sizeof stored) != 0)
        return fail("too many bits");
      std::memcpy(&stored, &bits, sizeof stored);
      return true;
    }
    typename ComputeOf<D>::type computed{};
    const bool negative = rest_.starts_with('-');
    const auto name = rest_.substr(negative ? 1 : 0, 3);
    if (name == "nan" || name == "inf") {
      rest_.remove_prefix(negative ? 4 : 3);
      using Limits = std::numeric_limits<decltype(computed)>;
      computed = name == "nan" ? Limits::quiet_NaN() : Limits::infinity();
      if (negative) computed = -computed;
    } else if (!number(computed)) {
      return false;
    }
    stored = static_cast<typename StorageOf<D>::type>(computed);
    return true;
  }
  bool constant(ConstantAttrs& a) {
    return with_dtype(a.type.dtype, [&]<DType D>() {
      if (!at('[')) return element<D>(a.bytes);
      return list([&] { return element<D>(a.bytes); });
    });
  }

  // ---- nodes ----
  bool operand(const Graph& g, NodeId& out) {
    if (!expect('%') || !number(out)) return false;
    if (out < 0 || out >= static_cast<NodeId>(g.nodes.size()))
      return fail(fmt::format("%{} is not defined before", out));
    return true;
  }
  bool operands(const Graph& g, std::vector<NodeId>& out) {
    if (!at('%')) return true;
    do {
      if (!operand(g, out.emplace_back())) return false;
    } while (accept(','));
    return true;
  }
  bool node(Graph& g) {
    const auto id = static_cast<NodeId>(g.nodes.size());
    NodeId written = 0;
    if (!expect('%') || !number(written)) return false;
    if (written != id) return fail(fmt::format("expected %{}", id));
    Node n;
    if (!expect(':') || !value(n.type) || !expect('=')) return false;
    const auto op = op_from_name(word());
    if (!op) return fail("unknown operation");
    n.op = *op;
    n.attrs = usual_attrs(n.op, n.type, id);
    if (!operands(g, n.inputs)) return false;
    if (n.op == Op::constant && !constant(std::get<ConstantAttrs>(n.attrs)))
      return false;
    while (!at('@') && !at('\n') && !rest_.empty()) {
      const auto name = word();
      if (name.empty()) return fail("expected an attribute");
      if (!expect('=') || !attribute(n.attrs, name)) return false;
    }
    if (accept('@') && !number(n.source)) return false;
    if (!at('\n') && !rest_.empty()) {
      n.by_member = word() == "by" && word() == "member";
      if (!n.by_member) return fail("expected the end of the line");
    }
    if (n.op == Op::input) g.inputs.push_back(id);
    g.nodes.push_back(std::move(n));
    if (auto good = verify_node(g, id); !good)
      return fail(good.error().message);
    return end_of_line();
  }
  bool graph(Graph& g) {
    while (true) {
      spaces(true);
      if (rest_.empty()) return fail("expected `return`");
      if (rest_[0] == '%') {
        if (!node(g)) return false;
        continue;
      }
      if (word() != "return") return fail("expected a node or `return`");
      if (!operands(g, g.outputs)) return false;
      return end_of_line();
    }
  }

  std::string_view rest_;
  int line_ = 1;
  int depth_ = 0;
  std::string message_;
  std::map<std::string, uint32_t> symbols_;
};

}  // namespace

Result<Graph> parse(std::string_view text) {
  Parser parser(text);
  auto graph = parser.whole();
  if (!graph) return parser.error();
  return *std::move(graph);
}

}  // namespace unisono::ir
