#pragma once
// What the simulated cuBLASLt exports besides the library's own functions, for
// tests; to be found with dlsym.
#include <cstdint>

extern "C" {
/// From now on the function `fail` fails: "create", "heuristic" or "matmul"; ""
/// is none.
void simcublaslt_fail(const char* fail);
/// How many products were done so far, and how many of them in tf32.
uint64_t simcublaslt_products();
uint64_t simcublaslt_tf32_products();
}
