#include "jit/scalar/element_instructions.h"
#include "jit/scalar/element_loops.h"

namespace unisono::jit {
const ElementLoops baseline_loops = {find_element_loop, find_cast_loop,
                                     find_element_step, find_cast_step};
}
