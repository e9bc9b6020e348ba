#include "host/session/host_value.h"

#include <memory>
#include <variant>

#include "lang/context/function.h"

namespace unisono::host {

bool is_host_value(const lang::Value& leaf) {
  if (const auto* function =
          leaf.get_if<std::shared_ptr<const lang::FunctionValue>>())
    return std::holds_alternative<const lang::Builtin*>((*function)->what);
  return leaf.is<lang::NoneValue>() || leaf.is<lang::IntValue>() ||
         leaf.is<lang::BoolValue>() || leaf.is<lang::StrValue>() ||
         leaf.is<lang::TypeValue>() || leaf.is<lang::SplitValue>();
}

}  // namespace unisono::host
