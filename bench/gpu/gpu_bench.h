#pragma once
// The speed of GPUs, each figure beside a peer that is measured in the same
// run: a copy from device to device through the driver, or cuBLASLt.

namespace bench {

/// usage: bench_gpu [--devices LIST] [--small] [--json FILE] [NAME ...]. Prints
/// a Markdown table, and writes the times to a file for peers.py; 0, or 1 where
/// devices or results are wrong. `--small` is for simulated GPUs: the work is
/// tiny, the times mean nothing. `--program` prints a program with the kernels
/// that are measured, and nothing else (tests/ptxas.py reads it).
int gpu_bench(int argc, char** argv);

}  // namespace bench
