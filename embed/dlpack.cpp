// Hand-over of arrays by DLPack.
#include <dlpack/dlpack.h>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "embed/value.h"

// Debian's dlpack.h is older than the form with a version, which is this:
// https://dmlc.github.io/dlpack/latest/c_api.html
#ifndef DLPACK_MAJOR_VERSION
struct DLPackVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
#endif

namespace unisono::embed {
namespace {

constexpr uint32_t our_major = 1, our_minor = 0;
constexpr uint64_t read_only = 1, is_copied = 2;
constexpr uint8_t dl_bool = 6;  // of later headers

struct DlpackType {
  DType dtype;
  uint8_t code, bits;
};
constexpr DlpackType types[] = {
    {DType::Bool, dl_bool, 8},    {DType::I8, kDLInt, 8},
    {DType::I16, kDLInt, 16},     {DType::I32, kDLInt, 32},
    {DType::I64, kDLInt, 64},     {DType::U8, kDLUInt, 8},
    {DType::U16, kDLUInt, 16},    {DType::U32, kDLUInt, 32},
    {DType::U64, kDLUInt, 64},    {DType::F16, kDLFloat, 16},
    {DType::BF16, kDLBfloat, 16}, {DType::F32, kDLFloat, 32},
    {DType::F64, kDLFloat, 64},
};
static_assert(std::size(types) == dtype_count);

DType dtype_of(const DLDataType& type) {
  for (const DlpackType& known : types)
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1)
      return known.dtype;
  refuse(
      fmt::format("no element type is DLPack's code {} of {} bits and {} "
                  "lanes",
                  type.code, type.bits, type.lanes));
}

HostTensor tensor_from(const DLTensor& from) {
  const DLDeviceType device = from.device.device_type;
  if (device != kDLCPU && device != kDLCUDAHost && device != kDLROCMHost)
    refuse(
        fmt::format("the tensor lies on DLPack's device {}, and not in the "
                    "host's memory",
                    static_cast<int>(device)));
  const UnisonoTensor tensor{
      from.data ? static_cast<char*>(from.data) + from.byte_offset : nullptr,
      from.shape, from.strides, from.ndim, dtype_number(dtype_of(from.dtype))};
  return read_tensor(&tensor);
}

template <class Managed>
UnisonoValue* take(Managed* managed) {
  if (!managed) refuse("the tensor is null");
  struct Owner {
    Managed* managed = nullptr;
    ~Owner() {
      if (managed && managed->deleter) managed->deleter(managed);
    }
  };
  const auto owner = std::make_shared<Owner>();
  UnisonoValue* value =
      wrap(nullptr, borrowed_array(tensor_from(managed->dl_tensor), owner));
  owner->managed = managed;  // nothing fails any more
  return value;
}

/// What a tensor that is handed out keeps.
template <class Managed>
struct Given {
  Managed managed{};
  std::vector<int64_t> shape, strides;
  UnisonoValue* value = nullptr;  // a reference, or
  lang::Value copied;             // elements of its own
  ~Given() { unisono_value_release(value); }
};

template <class Managed>
std::unique_ptr<Given<Managed>> give(const UnisonoValue* value, bool copy) {
  array_of(value);  // or refuses
  auto given = std::make_unique<Given<Managed>>();
  UnisonoTensor tensor = tensor_of(*value);
  given->shape.assign(tensor.shape, tensor.shape + tensor.rank);
  given->strides.resize(given->shape.size());
  int64_t step = 1;
  for (size_t axis = given->shape.size(); axis-- > 0;) {
    given->strides[axis] = step;
    step *= given->shape[axis];
  }
  if (copy) {
    given->copied = copied_array(read_tensor(&tensor));
    tensor.data = given->copied.array()->array->blocks()[0]->data();
  } else {
    given->value = unisono_value_retain(value);
  }
  const DlpackType& type = types[tensor.dtype];
  DLTensor& to = given->managed.dl_tensor;
  to.data = tensor.data;
  to.device = {kDLCPU, 0};
  to.ndim = tensor.rank;
  to.dtype = {type.code, type.bits, 1};
  to.shape = given->shape.data();
  to.strides = given->strides.data();
  to.byte_offset = 0;
  given->managed.manager_ctx = given.get();
  given->managed.deleter = [](Managed* self) {
    delete static_cast<Given<Managed>*>(self->manager_ctx);
  };
  return given;
}

}  // namespace
}  // namespace unisono::embed

using namespace unisono::embed;

UnisonoError* unisono_value_from_dlpack(DLManagedTensorVersioned* tensor,
                                        UnisonoValue** value) {
  return guarded([&] {
    if (!value) refuse("unisono_value_from_dlpack: `value` is null");
    if (tensor && tensor->version.major != our_major)
      refuse(fmt::format("the tensor is of DLPack {}, and {} is expected",
                         tensor->version.major, our_major));
    *value = take(tensor);
  });
}

UnisonoError* unisono_value_from_dlpack_unversioned(DLManagedTensor* tensor,
                                                    UnisonoValue** value) {
  return guarded([&] {
    if (!value)
      refuse("unisono_value_from_dlpack_unversioned: `value` is null");
    *value = take(tensor);
  });
}

UnisonoError* unisono_value_to_dlpack(const UnisonoValue* value, int copy,
                                      DLManagedTensorVersioned** tensor) {
  return guarded([&] {
    if (!tensor) refuse("unisono_value_to_dlpack: `tensor` is null");
    auto given = give<DLManagedTensorVersioned>(value, copy != 0);
    given->managed.version = {our_major, our_minor};
    given->managed.flags = copy ? is_copied : read_only;
    *tensor = &given.release()->managed;
  });
}

UnisonoError* unisono_value_to_dlpack_unversioned(const UnisonoValue* value,
                                                  DLManagedTensor** tensor) {
  return guarded([&] {
    if (!tensor)
      refuse("unisono_value_to_dlpack_unversioned: `tensor` is null");
    *tensor = &give<DLManagedTensor>(value, true).release()->managed;
  });
}
