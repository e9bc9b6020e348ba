// Arrays: how elements of the host's become a session's, and back.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "embed/borrowed.h"
#include "embed/value.h"
#include "host/session/host_value.h"

namespace unisono::embed {
namespace {

using lang::ArrayCell;
using lang::Value;

static_assert(static_cast<int>(DType::Bool) == UNISONO_BOOL);
static_assert(static_cast<int>(DType::I8) == UNISONO_I8);
static_assert(static_cast<int>(DType::I64) == UNISONO_I64);
static_assert(static_cast<int>(DType::U8) == UNISONO_U8);
static_assert(static_cast<int>(DType::U64) == UNISONO_U64);
static_assert(static_cast<int>(DType::F16) == UNISONO_F16);
static_assert(static_cast<int>(DType::BF16) == UNISONO_BF16);
static_assert(static_cast<int>(DType::F32) == UNISONO_F32);
static_assert(static_cast<int>(DType::F64) == UNISONO_F64);
static_assert(dtype_count == UNISONO_F64 + 1);

/// A block in the host's memory: nobody's device.
struct HostBlock {
  std::shared_ptr<const void> owner;
  Buffer buffer;
};

/// Where no elements lie.
alignas(64) constexpr char nothing[64] = {};

bool is_host_array(const unisono::Array& array) {
  return !array.blocks()[0] || !array.blocks()[0]->device();
}

/// Where all elements lie, if that is memory that the host may read.
const void* readable(const unisono::Array& array) {
  const Sharding& sharding = array.sharding();
  if (array.bytes() == 0) return nothing;
  if (is_host_array(array)) return array.blocks()[0]->data();
  const Device& device = *array.blocks()[0]->device();
  if (sharding.is_split() || array.blocks()[0]->device()->queue() ||
      device.index() < 0)  // in a file
    return nullptr;
  return array.blocks()[0]->data();
}

/// What keeps the elements of an array of another session.
struct Kept {
  std::shared_ptr<Session> session;
  std::shared_ptr<Buffer> block;
};

template <class T>
T checked(Result<T> result) {
  if (result) return std::move(*result);
  const Error& error = result.error();
  switch (error.kind) {
    case Error::Kind::out_of_memory: refuse(error.message, UNISONO_MEMORY);
    case Error::Kind::cancelled: refuse("", UNISONO_CANCELLED);
    case Error::Kind::device_lost: refuse(error.message, UNISONO_DEVICE);
    case Error::Kind::invalid_file:
    case Error::Kind::io:
    case Error::Kind::integer_division:
    case Error::Kind::index_out_of_bounds:
    case Error::Kind::check_failed:
    case Error::Kind::stalled:
    case Error::Kind::host_function:
    case Error::Kind::compile_failed: break;
  }
  refuse(error.message, UNISONO_INTERNAL);
}

/// The elements of `array`, which is the host's or of `from`, for `session`.
unisono::Array brought(const std::shared_ptr<Session>& session,
                       const std::shared_ptr<Session>& from,
                       const unisono::Array& array, Foreign foreign) {
  const bool is_host = is_host_array(array);
  if (!is_host && &from->runtime() == &session->runtime()) return array;
  Device& device = *session->runtime().devices()[0];
  const void* data = readable(array);
  if (data && !device.queue() && (is_host || foreign == Foreign::borrow)) {
    auto owner = std::make_shared<const Kept>(Kept{from, array.blocks()[0]});
    return {array.dtype(),
            array.shape(),
            Sharding{-1, {&device}},
            {borrow(device, data, array.bytes(), std::move(owner))}};
  }
  if (data)
    return checked(array_from_host(device, array.dtype(), array.shape(), data));
  const std::vector<uint8_t> bytes = checked(array_to_host(array));
  return checked(
      array_from_host(device, array.dtype(), array.shape(), bytes.data()));
}

std::shared_ptr<ArrayCell> copy_of(const ArrayCell& cell) {
  auto copy = std::make_shared<ArrayCell>();
  copy->type = cell.type;
  copy->weak = cell.weak;
  copy->literal = cell.literal;
  copy->constant = cell.constant;
  if (!cell.constant) copy->array = cell.array;
  return copy;
}

void copy_strided(const HostTensor& from, size_t axis, const char*& at,
                  char*& to, int64_t element) {
  if (axis == from.shape.size()) {
    std::memcpy(to, at, static_cast<size_t>(element));
    to += element;
    return;
  }
  const char* begin = at;
  for (int64_t i = 0; i < from.shape[axis]; ++i) {
    at = begin + i * from.strides[axis] * element;
    copy_strided(from, axis + 1, at, to, element);
  }
  at = begin;
}

}  // namespace

int32_t dtype_number(DType dtype) { return static_cast<int32_t>(dtype); }

UnisonoValue* wrap(std::shared_ptr<Session> session, const Value& value) {
  bool belongs = false, called = false;
  Value outside = lang::map_leaves(value, [&](const Value& leaf) -> Value {
    const ArrayCell* array = leaf.array();
    if (!array) {
      belongs |= !host::is_host_value(leaf);
      called |= leaf.is<std::shared_ptr<const lang::FunctionValue>>();
      return leaf;
    }
    if (array->donated)
      refuse("this array was given away by `donate`", UNISONO_RUNTIME);
    if (!array->constant && !array->array)
      refuse("an array was not computed", UNISONO_INTERNAL);
    belongs |= !array->constant && !is_host_array(*array->array);
    return copy_of(*array);
  });
  return new UnisonoValue(belongs ? session : nullptr, std::move(outside),
                          called ? session : nullptr);
}

Value attach(const std::shared_ptr<Session>& session, const UnisonoValue& value,
             Foreign foreign) {
  return lang::map_leaves(value.value, [&](const Value& leaf) -> Value {
    if (const ArrayCell* array = leaf.array()) {
      auto cell = copy_of(*array);
      if (cell->array)
        cell->array = brought(session, value.session, *cell->array, foreign);
      return cell;
    }
    if (value.session != session && !host::is_host_value(leaf))
      refuse(
          fmt::format("{} belongs to another session", lang::type_name(leaf)));
    return leaf;
  });
}

Value host_array(DType dtype, std::vector<int64_t> shape, const void* data,
                 std::shared_ptr<const void> owner) {
  auto block = std::make_shared<HostBlock>();
  auto cell = std::make_shared<ArrayCell>();
  cell->type.dtype = dtype;
  int64_t bytes = byte_size(dtype);
  for (const int64_t size : shape) {
    cell->type.shape.emplace_back(size);
    bytes *= size;
  }
  block->owner = std::move(owner);
  block->buffer = Buffer(nullptr, const_cast<void*>(data), bytes);
  cell->array.emplace(dtype, std::move(shape), Sharding{-1, {nullptr}},
                      DeviceBlocks{{block, &block->buffer}});
  return cell;
}

int64_t HostTensor::bytes() const {
  int64_t bytes = byte_size(dtype);
  for (const int64_t size : shape) bytes *= size;
  return bytes;
}

bool HostTensor::is_dense() const {
  if (reinterpret_cast<uintptr_t>(data) %
          static_cast<uintptr_t>(byte_size(dtype)) !=
      0)
    return false;
  int64_t step = 1;
  for (size_t axis = shape.size(); axis-- > 0; step *= shape[axis])
    if (shape[axis] != 1 && strides[axis] != step) return bytes() == 0;
  return true;
}

HostTensor read_tensor(const UnisonoTensor* tensor) {
  if (!tensor) refuse("the tensor is null");
  constexpr int32_t most_rank = 64;
  // No address space holds more.
  constexpr int64_t most_bytes = int64_t{1} << 46;
  if (tensor->rank < 0 || tensor->rank > most_rank)
    refuse(fmt::format("the rank of a tensor is 0 to {}, not {}", most_rank,
                       tensor->rank));
  if (tensor->dtype < 0 || tensor->dtype >= dtype_count)
    refuse(fmt::format("there is no element type {}", tensor->dtype));
  if (tensor->rank > 0 && !tensor->shape) refuse("a tensor's shape is null");
  HostTensor out;
  out.dtype = static_cast<DType>(tensor->dtype);
  out.data = tensor->data;
  const auto rank = static_cast<size_t>(tensor->rank);
  out.shape.assign(tensor->shape, tensor->shape + rank);
  int64_t bytes = byte_size(out.dtype);
  bool is_empty = false;
  for (const int64_t size : out.shape) {
    if (size < 0) refuse(fmt::format("a tensor has size {}", size));
    is_empty |= size == 0;
  }
  for (const int64_t size : out.shape)
    if (!is_empty &&
        (size > most_bytes || __builtin_mul_overflow(bytes, size, &bytes) ||
         bytes > most_bytes))
      refuse("a tensor is larger than any memory");
  if (!tensor->data && !is_empty) refuse("a tensor's data is null");
  out.strides.resize(rank);
  int64_t step = 1;
  for (size_t axis = rank; axis-- > 0;) {
    out.strides[axis] = tensor->strides ? tensor->strides[axis] : step;
    step *= out.shape[axis];
  }
  return out;
}

Value copied_array(const HostTensor& tensor) {
  // Aligned as what devices allocate is.
  const auto bytes = static_cast<size_t>(tensor.bytes());
  const std::shared_ptr<void> memory(
      ::operator new(bytes, std::align_val_t(64)),
      [](void* data) { ::operator delete(data, std::align_val_t(64)); });
  if (tensor.is_dense()) {
    if (bytes > 0) std::memcpy(memory.get(), tensor.data, bytes);
  } else {
    const char* from = static_cast<const char*>(tensor.data);
    char* to = static_cast<char*>(memory.get());
    copy_strided(tensor, 0, from, to, byte_size(tensor.dtype));
  }
  // Any byte but 0 is true in the host's memory, and 1 alone in ours.
  if (tensor.dtype == DType::Bool) {
    auto* truth = static_cast<uint8_t*>(memory.get());
    for (size_t i = 0; i < bytes; ++i) truth[i] = truth[i] != 0;
  }
  return host_array(tensor.dtype, tensor.shape, memory.get(), memory);
}

Value borrowed_array(const HostTensor& tensor,
                     std::shared_ptr<const void> owner) {
  if (!tensor.is_dense()) return copied_array(tensor);
  return host_array(tensor.dtype, tensor.shape, tensor.data, std::move(owner));
}

const ArrayCell& array_of(const UnisonoValue* value) {
  if (!value) refuse("the value is null");
  const ArrayCell* array = value->value.array();
  if (!array)
    refuse(fmt::format("an array was expected, not {}",
                       lang::type_name(value->value)));
  return *array;
}

UnisonoTensor tensor_of(const UnisonoValue& value) {
  const ArrayCell& cell = array_of(&value);
  const std::lock_guard lock(value.mutex);
  if (!value.shape) value.shape = cell.type.sizes();
  UnisonoTensor tensor{nullptr, value.shape->data(), nullptr,
                       static_cast<int32_t>(value.shape->size()),
                       dtype_number(cell.type.dtype)};
  const void* data = cell.array ? readable(*cell.array) : nullptr;
  if (!data) {
    if (!value.elements) {
      std::vector<uint8_t> bytes;
      if (cell.constant) {
        // One element stands for all.
        const auto all = static_cast<size_t>(cell.type.bytes());
        const std::vector<uint8_t>& known = *cell.constant;
        bytes.resize(all);
        for (size_t at = 0; at < all; at += known.size())
          std::memcpy(&bytes[at], known.data(), known.size());
      } else {
        bytes = checked(array_to_host(*cell.array));
      }
      const auto kept =
          std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
      value.elements = {kept, kept->data()};
    }
    data = value.elements.get();
  }
  tensor.data = const_cast<void*>(data);
  return tensor;
}

}  // namespace unisono::embed

using namespace unisono::embed;

UnisonoError* unisono_value_copy(const UnisonoTensor* tensor,
                                 UnisonoValue** value) {
  return guarded([&] {
    if (!value) refuse("unisono_value_copy: `value` is null");
    *value = wrap(nullptr, copied_array(read_tensor(tensor)));
  });
}

UnisonoError* unisono_value_borrow(const UnisonoTensor* tensor,
                                   UnisonoRelease release, void* user,
                                   UnisonoValue** value) {
  return guarded([&] {
    if (!value) refuse("unisono_value_borrow: `value` is null");
    const auto owner = std::make_shared<Owner>();
    *value = wrap(nullptr, borrowed_array(read_tensor(tensor), owner));
    // Nothing fails any more. Of a copy the owner goes at once.
    owner->user = user;
    owner->release = release;
  });
}

UnisonoError* unisono_value_get_tensor(const UnisonoValue* value,
                                       UnisonoTensor* tensor) {
  return guarded([&] {
    if (!value || !tensor)
      refuse("unisono_value_get_tensor: `value` or `tensor` is null");
    *tensor = tensor_of(*value);
  });
}

UnisonoError* unisono_value_get_array_type(const UnisonoValue* value,
                                           UnisonoTensor* tensor) {
  return guarded([&] {
    if (!tensor) refuse("unisono_value_get_array_type: `tensor` is null");
    const unisono::lang::ArrayCell& cell = array_of(value);
    const std::lock_guard lock(value->mutex);
    if (!value->shape) value->shape = cell.type.sizes();
    *tensor = {nullptr, value->shape->data(), nullptr,
               static_cast<int32_t>(value->shape->size()),
               dtype_number(cell.type.dtype)};
  });
}
