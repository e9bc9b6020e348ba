#include "jit/element_instructions.h"
#include "jit/element_loops.h"

namespace unisono::jit {
const ElementLoops baseline_loops = {find_element_loop, find_cast_loop};
}
