#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "jit/ir/attr_fields.h"
#include "jit/ir/text.h"

namespace unisono::ir {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class T>
std::string float_text(T value, uint64_t bits, uint64_t usual_nan) {
  if (std::isnan(value) && bits != usual_nan)
    return fmt::format("nan:{:#x}", bits);
  return fmt::format("{}", value);
}

template <DType D>
std::string element_text(const uint8_t* bytes) {
  using Storage = typename StorageOf<D>::type;
  Storage stored;
  std::memcpy(&stored, bytes, sizeof stored);
  if constexpr (D == DType::Bool) {
    return stored ? "true" : "false";
  } else if constexpr (D == DType::F16 || D == DType::BF16) {
    return float_text(static_cast<float>(stored), stored.bits,
                      D == DType::F16 ? 0x7e00 : 0x7fc0);
  } else if constexpr (D == DType::F32) {
    return float_text(stored, std::bit_cast<uint32_t>(stored), 0x7fc00000);
  } else if constexpr (D == DType::F64) {
    return float_text(stored, std::bit_cast<uint64_t>(stored),
                      0x7ff8000000000000);
  } else {
    return fmt::format("{}", stored);
  }
}

std::string constant_text(const ConstantAttrs& a) {
  return with_dtype(a.type.dtype, [&]<DType D>() {
    constexpr size_t size = sizeof(typename StorageOf<D>::type);
    const bool one = a.bytes.size() == size;
    if (one) return element_text<D>(a.bytes.data());
    std::string out = "[";
    for (size_t i = 0; i + size <= a.bytes.size(); i += size) {
      if (i) out += ", ";
      out += element_text<D>(a.bytes.data() + i);
    }
    return out + "]";
  });
}

class Printer {
 public:
  std::string text;

  void graph(const Graph& g) {
    for (size_t i = 0; i < g.nodes.size(); ++i) node(g, static_cast<NodeId>(i));
    line();
    text += "return";
    ids(g.outputs);
    text += "\n";
  }

 private:
  void line() { text.append(2 * depth_, ' '); }
  void ids(const std::vector<NodeId>& list) {
    for (size_t i = 0; i < list.size(); ++i)
      text += fmt::format("{}%{}", i ? ", " : " ", list[i]);
  }
  void node(const Graph& g, NodeId id) {
    const Node& n = g[id];
    line();
    text += fmt::format("%{}: {} = {}", id, n.type.to_string(), name(n.op));
    ids(n.inputs);
    if (const auto* constant = std::get_if<ConstantAttrs>(&n.attrs)) {
      text += " " + constant_text(*constant);
    } else {
      const Attrs usual = usual_attrs(n.op, n.type, id);
      std::visit(
          [&](const auto& a) {
            using T = std::decay_t<decltype(a)>;
            const T* b = std::get_if<T>(&usual);
            const T fallback{};
            for_each_field(
                a, b ? *b : fallback,
                [&](const char* field, const auto& x, const auto& y) {
                  if (x == y) return;
                  text += fmt::format(" {}=", field);
                  value(x);
                });
          },
          n.attrs);
    }
    if (n.source) text += fmt::format(" @{}", n.source);
    if (n.by_member) text += " by member";
    text += "\n";
  }

  void value(int x) { text += fmt::format("{}", x); }
  void value(int64_t x) { text += fmt::format("{}", x); }
  void value(bool x) { text += x ? "true" : "false"; }
  void value(const Dim& x) { text += x.to_string(); }
  void value(const std::string& x) { text += quoted(x); }
  void value(DType x) { text += name(x); }
  void value(const Type& x) { text += x.to_string(); }
  void value(ReduceOrder x) {
    text += x == ReduceOrder::elements ? "elements" : "members";
  }
  void value(Precision x) {
    text += x == Precision::usual   ? "usual"
            : x == Precision::exact ? "exact"
                                    : "tf32";
  }
  void value(CallAttrs::Rule x) {
    text += x == CallAttrs::Rule::jvp ? "jvp" : "vjp";
  }
  void value(ReduceOp x) {
    text += x == ReduceOp::sum ? "sum" : x == ReduceOp::max ? "max" : "min";
  }
  void value(const std::pair<int, int>& x) {
    text += fmt::format("({}, {})", x.first, x.second);
  }
  template <class T>
  void value(const std::vector<T>& list) {
    text += "[";
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) text += ", ";
      value(list[i]);
    }
    text += "]";
  }
  void value(const std::shared_ptr<const Graph>& g) {
    text += "{\n";
    ++depth_;
    if (g) graph(*g);
    --depth_;
    line();
    text += "}";
  }

  size_t depth_ = 0;
};

}  // namespace

std::string print(const Graph& graph) {
  Printer printer;
  printer.graph(graph);
  return std::move(printer.text);
}

Attrs usual_attrs(Op op, const Type& result, NodeId index) {
  switch (kind(op)) {
    case Kind::map:
      if (op == Op::cast) return CastAttrs{result.dtype};
      return NoAttrs{};
    case Kind::reduce:
    case Kind::argreduce: return ReduceAttrs{};
    case Kind::scan: return ScanAttrs{};
    case Kind::move:
      if (op == Op::reshape) return ShapeAttrs{result.shape};
      if (op == Op::broadcast) return BroadcastAttrs{result.shape, {}};
      if (op == Op::slice) {
        const Shape ones(result.shape.size(), Dim(1));
        const Shape zeros(result.shape.size(), Dim(0));
        return SliceAttrs{zeros, ones, result.shape};
      }
      if (op == Op::pad) {
        const Shape zeros(result.shape.size(), Dim(0));
        return PadAttrs{zeros, zeros};
      }
      if (op == Op::concat) return AxisAttrs{};
      return AxesAttrs{};
    case Kind::source:
      if (op == Op::input) return InputAttrs{index};
      if (op == Op::constant) return ConstantAttrs{result, {}};
      return IotaAttrs{result, 0};
    case Kind::index: return IndexAttrs{};
    case Kind::dot: return DotAttrs{};
    case Kind::sort: return NoAttrs{};
    case Kind::control:
      if (op == Op::if_else) return IfAttrs{};
      if (op == Op::loop) return LoopAttrs{};
      if (op == Op::call) return CallAttrs{};
      return ProjectAttrs{};
    case Kind::collective: return CollectiveAttrs{};
    case Kind::host: return HostCallAttrs{};
  }
  __builtin_unreachable();
}

}  // namespace unisono::ir
