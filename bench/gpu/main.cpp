#include "bench/gpu/gpu_bench.h"

int main(int argc, char** argv) { return bench::gpu_bench(argc, argv); }
