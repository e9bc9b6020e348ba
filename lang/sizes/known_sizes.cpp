#include "lang/sizes/known_sizes.h"

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "jit/ir/hash.h"
#include "jit/ir/kinds.h"
#include "runtime/dtype.h"

namespace unisono::lang {

/// The table of a walk.
class KnownSizes {
 public:
  /// Of values by their numbers, and of all else by their keys.
  std::unordered_map<uint64_t, ir::Dim> sizes;
  /// Symbols of what scalars hold, and those of `renewed`.
  std::unordered_set<uint32_t> computed, renewed;
  uint64_t values = 0;  // that got a number of their own
  int host_slices = 0;  // HostSlices that live
};

namespace {

/// Longer constants are told apart by their cells.
constexpr size_t most_hashed_bytes = 64;
/// A sum of more symbols is a symbol of its own.
constexpr size_t most_symbols = 4;

KnownSizes& known(Walk& walk) {
  if (!walk.known_sizes) walk.known_sizes = std::make_shared<KnownSizes>();
  return *walk.known_sizes;
}

uint64_t mixed(uint64_t state, uint64_t value) {
  state = (state ^ value) * 0x9e3779b97f4a7c15;
  return state ^ (state >> 29);
}

uint64_t new_number(KnownSizes& sizes) {
  return SizeKey("value").add(++sizes.values).hash();
}

/// Whether it is an integer that wraps only far beyond all sizes.
bool holds_size(const ir::Type& type) {
  return type.rank() == 0 && is_integer(type.dtype) &&
         byte_size(type.dtype) >= byte_size(DType::I32);
}

bool depends_on(const ir::Dim& size,
                const std::unordered_set<uint32_t>& symbols) {
  for (const uint32_t id : size.symbols())
    if (symbols.contains(id)) return true;
  return false;
}

/// The number that a constant scalar is; nothing beyond i64.
std::optional<int64_t> constant_integer(const ArrayCell& scalar) {
  if (!scalar.constant) return std::nullopt;
  return with_dtype(
      scalar.type.dtype, [&]<DType D>() -> std::optional<int64_t> {
        using T = typename StorageOf<D>::type;
        if constexpr (std::is_integral_v<T>) {
          T value;
          std::memcpy(&value, scalar.constant->data(), sizeof value);
          if (std::in_range<int64_t>(value)) return static_cast<int64_t>(value);
        }
        return std::nullopt;
      });
}

/// What an operation of integer scalars makes of their sizes; nothing if that
/// is a symbol of its own.
std::optional<ir::Dim> arithmetic(ir::Op op, std::span<const ir::Dim> x) {
  using ir::Op;
  const auto is_factor = [](const ir::Dim& size) {  // products of sums grow
    return size.is_constant() || size.as_symbol();
  };
  if (op == Op::cast) return x[0];
  if (op == Op::neg) return ir::Dim(0) - x[0];
  if (op == Op::add) return x[0] + x[1];
  if (op == Op::sub) return x[0] - x[1];
  if (op == Op::mul && (is_factor(x[0]) || is_factor(x[1]))) return x[0] * x[1];
  const bool divides = op == Op::floor_div || op == Op::mod;
  if (divides && x[1].is_constant() && x[1] != ir::Dim(0))
    return op == Op::mod ? floor_mod(x[0], x[1]) : floor_div(x[0], x[1]);
  if (op != Op::minimum && op != Op::maximum) return std::nullopt;
  const ir::Dim difference = x[0] - x[1];
  if (!difference.is_constant() || difference.overflowed()) return std::nullopt;
  return (difference.value() > 0) == (op == Op::maximum) ? x[0] : x[1];
}

}  // namespace

SizeKey::SizeKey(std::string_view way)
    : hash_(std::hash<std::string_view>()(way)) {}

SizeKey& SizeKey::add(uint64_t number) {
  hash_ = mixed(hash_, number);
  return *this;
}

SizeKey& SizeKey::add(const ir::Dim& size) {
  if (size.is_constant()) return add(static_cast<uint64_t>(size.value()));
  add(std::hash<std::string>()(size.to_string()));
  for (const uint32_t id : size.symbols()) add(uint64_t{id});
  return *this;
}

ir::Dim open_size(Walk& walk, const SizeKey& key) {
  auto& sizes = known(walk).sizes;
  if (const auto found = sizes.find(key.hash()); found != sizes.end())
    return found->second;
  return sizes.emplace(key.hash(), walk.open_size()).first->second;
}

uint64_t number_of(Walk& walk, ArrayCell& cell) {
  if (cell.constant && cell.constant->size() <= most_hashed_bytes)
    return SizeKey("constant")
        .add(ir::hash({ir::Op::constant,
                       {},
                       ir::ConstantAttrs{cell.type, *cell.constant},
                       cell.type,
                       0}))
        .hash();
  if (cell.number == 0) cell.number = new_number(known(walk));
  return cell.number;
}

ir::Dim size_of(Walk& walk, ArrayCell& scalar) {
  if (const auto number = constant_integer(scalar)) return *number;
  const uint64_t number = number_of(walk, scalar);
  KnownSizes& all = known(walk);
  if (const auto found = all.sizes.find(number); found != all.sizes.end())
    return found->second;
  const ir::Dim symbol = walk.open_size();
  all.computed.insert(*symbol.as_symbol());
  return all.sizes.emplace(number, symbol).first->second;
}

ir::Dim host_size_of(Walk& walk, ArrayCell& scalar) {
  const auto& computed = known(walk).computed;
  return size_of(walk, scalar)
      .substitute([&](uint32_t id) -> std::optional<ir::Dim> {
        if (!computed.contains(id)) return std::nullopt;
        return open_size(walk, SizeKey("int").add(uint64_t{id}));
      });
}

void set_size(Walk& walk, ArrayCell& cell, const ir::Dim& size) {
  cell.number = SizeKey("size").add(size).hash();
  known(walk).sizes.try_emplace(cell.number, size);
}

bool is_computed(Walk& walk, const ir::Dim& size) {
  return depends_on(size, known(walk).computed);
}

bool is_of_renewed(Walk& walk, const ir::Dim& size) {
  return depends_on(size, known(walk).renewed);
}

std::optional<uint64_t> result_number(Walk& walk, ir::Op op,
                                      std::span<const ArrayValue> operands,
                                      const ir::Attrs& attrs,
                                      const ir::Type& type) {
  // Arrays that are traced have their sizes; one element may become a scalar.
  if (walk.mode() != Mode::check && type.elements() != 1) return std::nullopt;
  const ir::Kind kind = ir::kind(op);
  if (kind == ir::Kind::control || kind == ir::Kind::host ||
      kind == ir::Kind::collective)
    return std::nullopt;
  SizeKey key("operation");
  key.add(ir::hash({op, {}, attrs, type, 0}));
  for (const ArrayValue& operand : operands) key.add(number_of(walk, *operand));
  return key.hash();
}

void note_result(Walk& walk, ir::Op op, std::span<const ArrayValue> operands,
                 uint64_t number, ArrayCell& result) {
  result.number = number;
  if (!holds_size(result.type)) return;
  std::vector<ir::Dim> sizes;
  for (const ArrayValue& operand : operands) {
    if (!holds_size(operand->type)) return;
    sizes.push_back(size_of(walk, *operand));
  }
  auto size = arithmetic(op, sizes);
  if (size && !size->overflowed() && size->symbols().size() <= most_symbols)
    known(walk).sizes.try_emplace(number, *std::move(size));
}

Value renewed(Walk& walk, const Value& value, uint32_t first_symbol) {
  std::unordered_map<uint32_t, ir::Dim> symbols;
  const auto other = [&](uint32_t id) -> std::optional<ir::Dim> {
    if (id < first_symbol) return std::nullopt;
    const auto [known, added] = symbols.try_emplace(id);
    if (added) known->second = walk.open_size();
    return known->second;
  };
  return map_leaves(value, [&](const Value& leaf) -> Value {
    if (const auto* i = leaf.get_if<IntValue>())
      return i->value.is_open() ? IntValue{i->value.substitute(other)} : *i;
    const ArrayCell* array = leaf.array();
    if (!array || array->constant) return leaf;
    const auto out = std::make_shared<ArrayCell>(*array);
    out->number = 0;
    for (ir::Dim& size : out->type.shape)
      if (size.is_open()) size = size.substitute(other);
    if (holds_size(out->type))
      known(walk).renewed.insert(*size_of(walk, *out).as_symbol());
    return out;
  });
}

Value as_parameters(const Value& value) {
  return map_leaves(value, [&](const Value& leaf) -> Value {
    const ArrayCell* array = leaf.array();
    if (!array || array->literal || !holds_size(array->type)) return leaf;
    const auto parameter = std::make_shared<ArrayCell>(*array);
    parameter->number = 0;
    return parameter;
  });
}

HostSlices::HostSlices(Walk& walk) : sizes_(known(walk)) {
  ++sizes_.host_slices;
}
HostSlices::~HostSlices() { --sizes_.host_slices; }
bool HostSlices::around(Walk& walk) { return known(walk).host_slices > 0; }

void forget_sizes(Walk& walk) {
  // Most traces ask for none; a table that is cleared would stay as large.
  if (!walk.known_sizes || walk.known_sizes->sizes.empty()) return;
  KnownSizes& all = *walk.known_sizes;
  all.sizes = {};
  all.computed = {};
  all.renewed = {};
}

}  // namespace unisono::lang
