#pragma once
// What the simulated cuBLASLt exports besides the library's own functions.
#include <cstdint>

extern "C" {
/// From now on `fail` fails: "create", "heuristic", "matmul"; "" is nothing.
void simcublaslt_fail(const char* fail);
/// Products that were done; and those in tf32.
uint64_t simcublaslt_products();
uint64_t simcublaslt_tf32_products();
}
