#include "jit/reference/host_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "jit/ir/kinds.h"
#include "jit/ir/routines.h"
#include "jit/reference/routines.h"
#include "runtime/check.h"
#include "runtime/stop.h"

namespace unisono::jit {
namespace {

/// One of the parts along the leading axis.
HostArray part_of(const HostArray& whole, int64_t member) {
  HostArray part = whole;
  part.type.shape.erase(part.type.shape.begin());
  const auto size = static_cast<size_t>(part.type.bytes());
  const uint8_t* from = whole.bytes.data() + static_cast<size_t>(member) * size;
  part.bytes.assign(from, from + size);
  return part;
}

Status call_members(const HostCall& call, const ir::Node& node, int64_t member,
                    const std::vector<HostArray>& operands,
                    std::vector<HostArray>& results) {
  const auto& a = ir::attrs<ir::HostCallAttrs>(node);
  const size_t count = operands.size() - a.masked;
  for (int64_t m = 0; m < a.members; ++m) {
    if (stop_requested()) return stopped_error();
    if (a.masked && !operands.back().bytes[static_cast<size_t>(m)]) continue;
    std::vector<HostArray> mine, given;
    for (size_t i = 0; i < count; ++i) {
      const bool mapped =
          std::ranges::find(a.mapped, static_cast<int>(i)) != a.mapped.end();
      mine.push_back(mapped ? part_of(operands[i], m) : operands[i]);
    }
    for (const ir::Type& type : a.results)
      given.push_back(
          {type, std::vector<uint8_t>(static_cast<size_t>(type.bytes()))});
    if (Status done = call(node, member, mine, given); !done) {
      Error error = std::move(done).error();
      if (node.by_member) error.member = m;
      return error;
    }
    for (size_t i = 0; i < given.size(); ++i)
      if (const size_t size = given[i].bytes.size(); size > 0)
        std::memcpy(results[i].bytes.data() + static_cast<size_t>(m) * size,
                    given[i].bytes.data(), size);
  }
  return Unit{};
}

}  // namespace

Status call_host(const HostCall& call, const ir::Node& node, int64_t member,
                 const std::vector<HostArray>& operands,
                 std::vector<HostArray>& results) {
  const auto& a = ir::attrs<ir::HostCallAttrs>(node);
  if (ir::is_routine(a))
    return run_routine(*ir::routine_from_name(a.function), operands, results);
  if (!call) return Unit{};
  Status done = a.members > 0
                    ? call_members(call, node, member, operands, results)
                    : call(node, member, operands, results);
  if (done) return done;
  Error error = std::move(done).error();
  if (error.source == 0) error.source = node.source;
  return error;
}

}  // namespace unisono::jit
