#pragma once
// What GPUs reach, each figure beside a peer that is measured in the same run:
// a copy from device to device through the driver, or cuBLASLt.

namespace bench {

/// usage: bench_gpu [--devices LIST] [--small] [NAME ...]. Prints a Markdown
/// table; 0, or 1 where devices or results are wrong. `--small` is for
/// simulated GPUs: the work is tiny, the times mean nothing.
int gpu_bench(int argc, char** argv);

}  // namespace bench
