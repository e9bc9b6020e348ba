#ifdef __x86_64__
#define UNISONO_INSTRUCTIONS avx2
// What the standard library instantiates stays as it is elsewhere.
#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "jit/ir/graph.h"
#include "jit/ir/table.h"
#include "jit/ir/type_class.h"
#include "jit/scalar/element_instructions.h"
#include "runtime/dtype.h"

#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2"))), \
                             apply_to = function)
#include "jit/scalar/element_loops.h"
#pragma clang attribute pop

namespace unisono::jit {
const ElementLoops avx2_loops = {find_element_loop, find_cast_loop,
                                 find_element_step, find_cast_step};
}
#endif
