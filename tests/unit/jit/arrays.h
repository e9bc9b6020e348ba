#pragma once
// Arrays of the evaluator from lists of numbers, and back.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "jit/reference/reference.h"
#include "jit/scalar/element.h"

namespace unisono::jit {

inline HostArray array(DType dtype, const std::vector<int64_t>& sizes,
                       const std::vector<double>& values) {
  HostArray out{{dtype, ir::Shape(sizes.begin(), sizes.end())}, {}};
  REQUIRE(out.type.elements() == static_cast<int64_t>(values.size()));
  for (double v : values)
    for (uint8_t b : jit::element_bytes(dtype, v)) out.bytes.push_back(b);
  return out;
}

inline HostArray scalar_array(DType dtype, double value) {
  return array(dtype, {}, {value});
}

inline std::vector<double> values_of(const HostArray& x) {
  std::vector<double> out;
  with_dtype(x.type.dtype, [&]<DType D>() {
    using T = typename StorageOf<D>::type;
    for (size_t i = 0; i < x.bytes.size(); i += sizeof(T)) {
      T element;
      std::memcpy(&element, x.bytes.data() + i, sizeof(T));
      out.push_back(static_cast<double>(
          static_cast<typename ComputeOf<D>::type>(element)));
    }
  });
  return out;
}

/// The outputs of a graph that must not fail.
inline std::vector<HostArray> outputs_of(const ir::Graph& graph,
                                         const std::vector<HostArray>& inputs,
                                         const ReferenceOptions& o = {}) {
  auto out = evaluate(graph, inputs, o);
  if (!out) FAIL(out.error().message);
  return *out;
}

/// The values of the one output.
inline std::vector<double> value_of(const ir::Graph& graph,
                                    const std::vector<HostArray>& inputs) {
  return values_of(outputs_of(graph, inputs).at(0));
}

inline bool same_bits(const HostArray& a, const HostArray& b) {
  return a.type == b.type && a.bytes == b.bytes;
}

}  // namespace unisono::jit
