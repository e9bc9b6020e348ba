#include "jit/reference/nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "jit/reference/kernels.h"
#include "jit/reference/walk.h"
#include "jit/scalar/element.h"
#include "runtime/check.h"
#include "runtime/execute/program.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit::reference {
namespace {

constexpr int64_t most_bytes = int64_t{1} << 34;

Error at(const ir::Node& node, Error error) {
  error.source = node.source;
  return error;
}

Error at(const ir::Node& node, const ElementError& error) {
  return at(node, checked_error(static_cast<ErrorWord::Code>(error.fault),
                                error.value, 0));
}

/// Whether all elements are the one that the value holds.
bool is_one(const Operand& x) {
  return x.value->is_repeated() || x.value->bytes() == byte_size(x.type->dtype);
}

constexpr size_t most_map_operands = 3;

Result<Value> run_map(const ir::Node& node, std::span<const Operand> x,
                      bool checked) {
  CHECK(x.size() <= most_map_operands);
  const DType dtype = x.back().type->dtype;
  const ElementLoop loop = node.op == ir::Op::cast
                               ? cast_loop(dtype, node.type.dtype)
                               : element_loop(node.op, dtype);
  CHECK(loop != nullptr);
  int64_t n = node.type.elements();
  const bool repeated = n > 1 && std::all_of(x.begin(), x.end(), is_one);
  if (repeated) n = 1;
  Value out = Value::allocate(n * byte_size(node.type.dtype));
  if (!out.ok()) return at(node, out_of_memory(node.type));
  out.set_repeated(repeated);
  const void* in[most_map_operands];
  int64_t strides[most_map_operands];
  for (size_t i = 0; i < x.size(); ++i) {
    in[i] = x[i].value->data();
    strides[i] = n > 1 && is_one(x[i]) ? 0 : 1;
  }
  ElementError error;
  const int64_t result_bytes = byte_size(node.type.dtype);
  in_pieces(n, tuning().map_between_looks, [&](int64_t begin, int64_t end) {
    const void* from[most_map_operands];
    for (size_t i = 0; i < x.size(); ++i)
      from[i] = static_cast<const uint8_t*>(in[i]) +
                begin * strides[i] * byte_size(x[i].type->dtype);
    ElementError here;
    loop(out.mutable_data() + begin * result_bytes, from, strides, end - begin,
         checked ? &here : nullptr);
    if (error.fault == Fault::none) error = here;
  });
  if (error.fault != Fault::none) return at(node, error);
  return out;
}

Result<Value> run_source(const ir::Node& node) {
  if (node.op == ir::Op::iota) {
    Value out = Value::allocate(node.type.bytes());
    if (!out.ok()) return at(node, out_of_memory(node.type));
    iota(node, out.mutable_data());
    return out;
  }
  CHECK(node.op == ir::Op::constant);
  const auto& bytes = ir::attrs<ir::ConstantAttrs>(node).bytes;
  const int64_t wanted = node.type.bytes();
  const auto held = static_cast<int64_t>(bytes.size());
  if (wanted == 0) return Value();
  CHECK(held == wanted || held == byte_size(node.type.dtype));
  Value out = Value::view(bytes.data(), held);
  out.set_repeated(held != wanted);
  return out;
}

/// Operands without repetition, and views of them.
class DenseOperands {
 public:
  explicit DenseOperands(std::span<const Operand> x) {
    values_.reserve(x.size());
    for (const Operand& operand : x) {
      values_.push_back(dense(*operand.value, *operand.type));
      ok_ &= values_.back().ok();
      views_.push_back({*operand.type, values_.back().data()});
    }
  }
  bool ok() const { return ok_; }
  std::span<const View> views() const { return views_; }

 private:
  std::vector<Value> values_;
  std::vector<View> views_;
  bool ok_ = true;
};

/// `loop(views, data)` computes the result from dense operands.
template <class Loop>
Result<Value> run_dense(const ir::Node& node, std::span<const Operand> x,
                        Loop&& loop) {
  const DenseOperands operands(x);
  Value out = Value::allocate(node.type.bytes());
  if (!out.ok() || !operands.ok()) return at(node, out_of_memory(node.type));
  loop(operands.views(), out.mutable_data());
  return out;
}

/// Moves that need not copy: the bytes stay as they are.
bool shares_bytes(const ir::Node& node, const Operand& x) {
  if (node.op == ir::Op::reshape) return true;
  const bool moves_one = node.op == ir::Op::broadcast ||
                         node.op == ir::Op::transpose ||
                         node.op == ir::Op::slice || node.op == ir::Op::flip;
  return moves_one && is_one(x) && node.type.elements() > 0;
}

Result<Value> run_move(const ir::Node& node, std::span<const Operand> x) {
  if (shares_bytes(node, x[0])) {
    Value out = *x[0].value;
    out.set_repeated(is_one(x[0]) && node.type.elements() > 1);
    return out;
  }
  return run_dense(node, x, [&](std::span<const View> views, uint8_t* out) {
    move(node, views, out);
  });
}

Error bad_index(const ir::Node& node, const BadIndex& bad) {
  return at(node,
            checked_error(ErrorWord::index_out_of_bounds, bad.index, bad.size));
}

/// Of an array whose elements are one, which is not read.
Result<Value> gather_one(const ir::Node& node, std::span<const Operand> x,
                         bool checked) {
  if (checked && ir::attrs<ir::IndexAttrs>(node).checked) {
    const DenseOperands indexes(x.subspan(1));
    if (!indexes.ok()) return at(node, out_of_memory(node.type));
    std::vector<View> views = {{*x[0].type, nullptr}};
    for (const View& view : indexes.views()) views.push_back(view);
    if (auto bad = bad_index_of(node, views)) return bad_index(node, *bad);
  }
  Value out = *x[0].value;
  out.set_repeated(node.type.elements() > 1);
  return out;
}

Result<Value> run_gather(const ir::Node& node, std::span<const Operand> x,
                         bool checked) {
  if (is_one(x[0]) && x[0].type->elements() > 0 && node.type.elements() > 0)
    return gather_one(node, x, checked);
  const DenseOperands operands(x);
  Value out = Value::allocate(node.type.bytes());
  if (!out.ok() || !operands.ok()) return at(node, out_of_memory(node.type));
  if (auto bad = gather(node, operands.views(), checked, out.mutable_data()))
    return bad_index(node, *bad);
  return out;
}

/// Works in place if nobody else holds the array.
Result<Value> run_scatter(const ir::Node& node, std::span<const Operand> x,
                          bool checked) {
  const int64_t bytes = node.type.bytes();
  Value out;
  if (x[0].dies && x[0].value->is_exclusive() && !x[0].value->is_repeated()) {
    out = std::move(*x[0].value);
    *x[0].value = Value();
  } else {
    const Value from = dense(*x[0].value, *x[0].type);
    out = Value::allocate(bytes);
    if (!out.ok() || !from.ok()) return at(node, out_of_memory(node.type));
    copy_bytes(out.mutable_data(), from.data(), bytes);
  }
  // The array itself is only written: its view gives the type.
  const DenseOperands rest(x.subspan(1));
  if (!rest.ok()) return at(node, out_of_memory(node.type));
  std::vector<View> views = {{*x[0].type, out.data()}};
  for (const View& view : rest.views()) views.push_back(view);
  if (auto bad = scatter(node, views, checked, out.mutable_data()))
    return bad_index(node, *bad);
  return out;
}

}  // namespace

bool evaluates(ir::Kind kind) {
  switch (kind) {
    case ir::Kind::map:
    case ir::Kind::source:
    case ir::Kind::reduce:
    case ir::Kind::argreduce:
    case ir::Kind::scan:
    case ir::Kind::move:
    case ir::Kind::dot:
    case ir::Kind::index:
    case ir::Kind::sort: return true;
    case ir::Kind::control:
    case ir::Kind::collective:
    case ir::Kind::host: return false;
  }
  __builtin_unreachable();
}

Result<Value> run_node(const ir::Node& node, std::span<const Operand> x,
                       bool checked) {
  if (!fits_in_memory(node.type)) return at(node, out_of_memory(node.type));
  const auto run_line = [&](void (*loop)(const ir::Node&, View, uint8_t*)) {
    return run_dense(node, x, [&](std::span<const View> views, uint8_t* out) {
      loop(node, views[0], out);
    });
  };
  switch (ir::kind(node.op)) {
    case ir::Kind::map: return run_map(node, x, checked);
    case ir::Kind::move: return run_move(node, x);
    case ir::Kind::source: return run_source(node);
    case ir::Kind::index:
      return node.op == ir::Op::gather ? run_gather(node, x, checked)
                                       : run_scatter(node, x, checked);
    case ir::Kind::reduce: return run_line(reduce);
    case ir::Kind::argreduce: return run_line(argreduce);
    case ir::Kind::scan: return run_line(scan);
    case ir::Kind::sort: return run_line(sort);
    case ir::Kind::dot:
      return run_dense(node, x, [&](std::span<const View> views, uint8_t* out) {
        dot(node, views[0], views[1], out);
      });
    case ir::Kind::control:
    case ir::Kind::collective:
    case ir::Kind::host: break;
  }
  check_failed("a node without members", __FILE__, __LINE__);
}

void copy_dense(const Value& value, const ir::Type& type, uint8_t* out) {
  const int64_t bytes = type.bytes(), size = byte_size(type.dtype);
  if (bytes == 0) return;
  int64_t filled = value.is_repeated() ? size : bytes;
  copy_bytes(out, value.data(), filled);
  // Doubling what is filled already.
  while (filled < bytes) {
    const int64_t more = std::min(filled, bytes - filled);
    copy_bytes(out + filled, out, more);
    filled += more;
  }
}

Value dense(const Value& value, const ir::Type& type) {
  if (!value.is_repeated()) return value;
  Value out = Value::allocate(type.bytes());
  if (out.ok()) copy_dense(value, type, out.mutable_data());
  return out;
}

bool fits_in_memory(const ir::Type& type) { return type.bytes() <= most_bytes; }

Error out_of_memory(const ir::Type& type) {
  return {Error::Kind::out_of_memory,
          fmt::format("{} needs {} bytes", type.to_string(), type.bytes())};
}

}  // namespace unisono::jit::reference
