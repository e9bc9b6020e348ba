#pragma once
// Values of the C interface: values of the language, taken out of their
// session.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "embed/counted.h"
#include "embed/session.h"
#include "embed/unisono.h"
#include "lang/context/value.h"

/// Immutable but for what is found out once. Its arrays are cells of its own,
/// computed or constant. An array in the host's memory has one block, whose
/// device is null.
struct UnisonoValue : unisono::embed::Counted<UnisonoValue> {
  UnisonoValue(std::shared_ptr<unisono::embed::Session> belongs_to,
               unisono::lang::Value is,
               std::shared_ptr<unisono::embed::Session> called_in = nullptr)
      : session(std::move(belongs_to)),
        home(std::move(called_in)),
        value(std::move(is)) {}

  /// Of which it has functions or arrays; null if it has none.
  const std::shared_ptr<unisono::embed::Session> session;
  /// The session that gave it, if functions of the language are in it: these
  /// belong to no session, and are called there. Else null.
  const std::shared_ptr<unisono::embed::Session> home;
  const unisono::lang::Value value;

  mutable std::mutex mutex;  // of what follows
  mutable std::optional<std::string> type, signature;
  /// Of an array: its shape, and its elements if they had to be copied.
  mutable std::optional<std::vector<int64_t>> shape;
  mutable std::shared_ptr<const void> elements;
};

namespace unisono::embed {

/// A value that a session gave, or, with null, one that belongs to none. A
/// reference of the caller's. Refused if an array in it was given away.
UnisonoValue* wrap(std::shared_ptr<Session> session, const lang::Value& value);

/// What becomes of arrays of other sessions. Those that stay with a session are
/// copied: two sessions that keep each other would never end.
enum class Foreign { borrow, copy };

/// The value as one of the session's: arrays lie on its devices. Those in the
/// host's memory are borrowed where CPUs compute. Refused for functions and
/// devices of another session.
lang::Value attach(const std::shared_ptr<Session>& session,
                   const UnisonoValue& value,
                   Foreign foreign = Foreign::borrow);

/// Where the function is called with these arguments: in its session; one of
/// the language itself in an argument's, or in its home. Refused for what is no
/// function.
std::shared_ptr<Session> session_of_call(const UnisonoValue* function,
                                         const UnisonoValue* const* arguments,
                                         size_t count);

/// The array that a value is; refused for other values.
const lang::ArrayCell& array_of(const UnisonoValue* value);

/// Elements in the host's memory, dense and aligned to an element; `owner`
/// keeps them.
lang::Value host_array(DType dtype, std::vector<int64_t> shape,
                       const void* data, std::shared_ptr<const void> owner);

/// A checked description of elements in the host's memory.
struct HostTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> shape, strides;  // in elements
  const void* data = nullptr;
  int64_t bytes() const;
  /// The last axis is the fastest, without gaps, and an element lies where its
  /// type may.
  bool is_dense() const;
};
/// Refused if it is no sensible tensor.
HostTensor read_tensor(const UnisonoTensor* tensor);
/// An array of the elements, which are copied unless they are dense.
lang::Value borrowed_array(const HostTensor& tensor,
                           std::shared_ptr<const void> owner);
lang::Value copied_array(const HostTensor& tensor);

/// What unisono_value_get_tensor gives.
UnisonoTensor tensor_of(const UnisonoValue& value);

int32_t dtype_number(DType dtype);

}  // namespace unisono::embed
