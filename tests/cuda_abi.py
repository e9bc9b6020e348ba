#!/usr/bin/env python3
"""Compares what we know of NVIDIA's libraries with NVIDIA's own headers, where they are.

usage: tests/cuda_abi.py [FOLDER ...]

Each folder has cuda.h, cublasLt.h or nccl.h, or several (the toolkit's include folder, or those
of the Python packages nvidia-cuda-runtime, nvidia-cublas and nvidia-nccl-cu12, which may be named
in one call as A:B:C; nccl.h needs those of the runtime). A compiler then checks runtime/cuda/types.h,
runtime/cuda/driver.def, cublas_library.h and nccl_library.h: each function's parameters under the exact symbol that we
look up, each structure's size and members' places, each number of an enumeration.
"""
import os
import pathlib
import re
import subprocess
import sys

import nvidia

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILER = os.environ.get("CXX", "clang++-19")

# How our enumerations are called in the headers: what their names
# begin with, and those that are not ours in capitals.
ENUMS = {
    "DeviceAttribute": ("CU_DEVICE_ATTRIBUTE_", {"clock_rate_khz": "CLOCK_RATE", "memory_clock_rate_khz": "MEMORY_CLOCK_RATE"}),
    "FunctionAttribute": ("CU_FUNC_ATTRIBUTE_", {}),
    "PeerAttribute": ("CU_DEVICE_P2P_ATTRIBUTE_", {"array_access_supported": "CUDA_ARRAY_ACCESS_SUPPORTED"}),
    "Limit": ("CU_LIMIT_", {}),
    "PointerAttribute": ("CU_POINTER_ATTRIBUTE_", {}),
    "MemoryType": ("CU_MEMORYTYPE_", {}),
    "JitOption": ("CU_JIT_", {}),
    "JitInput": ("CU_JIT_INPUT_", {}),
    "StreamFlags": ("CU_", {}),
    "EventFlags": ("CU_", {}),
    "ContextFlags": ("CU_CTX_", {}),
    "HostAllocFlags": ("CU_MEMHOSTALLOC_", {"device_map": "DEVICEMAP", "write_combined": "WRITECOMBINED"}),
    "HostRegisterFlags": ("CU_MEMHOSTREGISTER_", {"device_map": "DEVICEMAP", "io_memory": "IOMEMORY"}),
    "CaptureMode": ("CU_STREAM_CAPTURE_MODE_", {}),
    "CaptureStatus": ("CU_STREAM_CAPTURE_STATUS_", {}),
    "GraphExecUpdate": ("CU_GRAPH_EXEC_UPDATE_", {n: "ERROR_" + n.upper() for n in (
        "topology_changed", "node_type_changed", "function_changed", "parameters_changed", "not_supported")}),
    "MemoryPoolAttribute": ("CU_MEMPOOL_ATTR_", {}),
    "MemoryAccess": ("CU_MEM_ACCESS_FLAGS_PROT_", {"read_write": "READWRITE"}),
    "MemoryLocationType": ("CU_MEM_LOCATION_TYPE_", {}),
    "AllocationType": ("CU_MEM_ALLOCATION_TYPE_", {}),
    "AllocationHandle": ("CU_MEM_HANDLE_TYPE_", {}),
    "ProcAddressResult": ("CU_GET_PROC_ADDRESS_", {}),
}
ERRORS = {"success": "CUDA_SUCCESS", "device_assert": "CUDA_ERROR_ASSERT",
          "compat_not_supported": "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"}
NOT_OURS = ("stream_", "event_", "context_", "host_alloc_", "host_register_")
STRUCTS = {
    "Uuid": "CUuuid", "GraphExecUpdateResultInfo": "CUgraphExecUpdateResultInfo", "MemoryLocation": "CUmemLocation",
    "MemoryAccessDescription": "CUmemAccessDesc", "MemoryPoolProperties": "CUmemPoolProps", "Copy2D": "CUDA_MEMCPY2D",
    "Copy3DPeer": "CUDA_MEMCPY3D_PEER",
}
CUBLAS = {
    "Status": {"success": "CUBLAS_STATUS_SUCCESS"},
    "DataType": {"f32": "CUDA_R_32F", "f64": "CUDA_R_64F", "f16": "CUDA_R_16F", "bf16": "CUDA_R_16BF"},
    "ComputeType": {"f32": "CUBLAS_COMPUTE_32F", "f64": "CUBLAS_COMPUTE_64F", "fast_tf32": "CUBLAS_COMPUTE_32F_FAST_TF32",
                    "f32_pedantic": "CUBLAS_COMPUTE_32F_PEDANTIC"},
    "Operation": {"none": "CUBLAS_OP_N", "transpose": "CUBLAS_OP_T"},
    "MatmulAttribute": {"transpose_a": "CUBLASLT_MATMUL_DESC_TRANSA", "transpose_b": "CUBLASLT_MATMUL_DESC_TRANSB"},
    "LayoutAttribute": {"batch_count": "CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT",
                        "batch_stride": "CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET"},
    "PreferenceAttribute": {"workspace_bytes": "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES",
                            "reduction_schemes": "CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK",
                            **{f"alignment_{x}": f"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{x.upper()}_BYTES" for x in "abcd"}},
}
NCCL = {
    "Status": {"success": "ncclSuccess", "unhandled_cuda_error": "ncclUnhandledCudaError", "system_error": "ncclSystemError",
               "internal_error": "ncclInternalError", "invalid_argument": "ncclInvalidArgument",
               "invalid_usage": "ncclInvalidUsage", "remote_error": "ncclRemoteError", "in_progress": "ncclInProgress"},
    "DataType": {"i8": "ncclInt8"},
}
# Whether a caller cannot tell one function from another.
ALIKE = """
template <class T> concept Sized = !std::is_void_v<T> && !std::is_function_v<T> && requires { sizeof(T); };
template <class A, class B> struct Alike {
  static constexpr bool value = [] {
    if constexpr (std::is_void_v<A> || std::is_void_v<B>) return std::is_void_v<A> && std::is_void_v<B>;
    else return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
                std::is_floating_point_v<A> == std::is_floating_point_v<B>;
  }();
};
template <class A, class B> struct Alike<A*, B*> {
  static constexpr bool value = [] {
    if constexpr (std::is_function_v<A> || (Sized<A> && Sized<B>))
      return Alike<std::remove_cv_t<A>, std::remove_cv_t<B>>::value;
    else return true;  // handles, or untyped
  }();
};
template <class R, class... A, class S, class... B> struct Alike<R(A...), S(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) != sizeof...(B)) return false;
    else return Alike<R, S>::value && (Alike<A, B>::value && ...);
  }();
};
"""


def text_of(path):
    return re.sub(r"//.*", "", (ROOT / path).read_text())


def enumerations(source):
    """Name of each enumeration, and its enumerators."""
    for name, body in re.findall(r"\benum (?:class )?(\w+) : \w+ \{(.*?)\};", source, re.S):
        yield name, re.findall(r"(\w+) = \d+", body)


def cuda_checks(header):
    source = text_of("runtime/cuda/types.h")
    lines, newer, replaced = [], [], []

    def same(ours, theirs):
        if re.search(rf"\b{theirs}\b", header):
            lines.append(f'static_assert((long long)({ours}) == (long long)({theirs}), "{ours}");')
        else:
            newer.append(theirs)

    for name, enumerators in enumerations(source):
        if name == "Code":
            continue
        prefix, special = ENUMS[name]
        for own in enumerators:
            short = own
            if name in ("ContextFlags", "HostAllocFlags", "HostRegisterFlags"):
                short = re.sub("^(?:%s)" % "|".join(NOT_OURS), "", own)
            same(f"unisono::cuda::{name}::{own}", prefix + special.get(short, short.strip("_").upper()))
    for own, _ in re.findall(r"CUDA_(?:STICKY_)?ERROR\((\w+), *(\d+)", text_of("runtime/cuda/errors.def")):
        same(f"unisono::cuda::{own}", ERRORS.get(own, f"CUDA_ERROR_{own.upper()}"))
    for own, theirs in STRUCTS.items():
        lines.append(f"static_assert(sizeof(unisono::cuda::{own}) == sizeof({theirs}) && "
                     f"alignof(unisono::cuda::{own}) == alignof({theirs}));")
        body = re.search(rf"struct {own} \{{(.*?)\n\}};", source, re.S)[1]
        for field in re.findall(r"(\w+)(?:\[\d+\])?;", body):
            if field == "reserved":  # less of it in newer versions
                continue
            lines.append(f"template <class T> constexpr bool at_{own}_{field}() {{ if constexpr (requires {{ &T::{field}; }}) "
                         f"return offsetof(T, {field}) == offsetof(unisono::cuda::{own}, {field}) && "
                         f"sizeof(T::{field}) == sizeof(unisono::cuda::{own}::{field}); else return true; }}\n"
                         f"static_assert(at_{own}_{field}<{theirs}>());")
    functions = re.findall(r"^CUDA_(?:TEST_)?FUNCTION\((\w+), *(\w+), *(\d+), *(\(.*\))\)", text_of("runtime/cuda/driver.def"), re.M)
    for name, symbol, since, parameters in functions:
        lines.append(f"namespace n_{name} {{ using namespace unisono::cuda; using F = Code{parameters}; }}")
        if not re.search(rf"\b{symbol} ?\(", header):
            newer.append(symbol)
            continue
        known = [f"decltype({symbol})"]
        # Of all that this name ever was, what it is since then.
        base = re.sub(r"_v\d$", "", symbol)
        typed = set(re.findall(rf"\bPFN_{base}_v(\d{{4,}})\b", header))
        if since in typed:
            known.append(f"std::remove_pointer_t<PFN_{base}_v{since}>")
        elif typed:
            lines.append(f'static_assert(false, "{symbol} is since {" or ".join(sorted(typed))}");')
        for theirs in known:
            lines.append(f'static_assert(Alike<n_{name}::F, {theirs}>::value, "{symbol}");')
        latest = re.findall(rf"^#define {base} (?:__CUDA_API_PT(?:DS|SZ)\()?(\w+)", header, re.M)
        if latest and latest[-1] != symbol:
            replaced.append(f"{symbol} by {latest[-1]}")
    return lines, newer, replaced, len(functions)


def cublas_checks():
    lines = ["namespace ours = unisono::cublas;"]
    source = text_of("runtime/cuda/cublas_library.h")
    for name, enumerators in enumerations(source):
        for own in enumerators:
            lines.append(f'static_assert((long long)(ours::{name}::{own}) == (long long)({CUBLAS[name][own]}), "{own}");')
    lines += ["static_assert(ours::separate_reduction == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);",
              "static_assert(sizeof(ours::Algorithm) == sizeof(cublasLtMatmulAlgo_t));",
              "static_assert(sizeof(ours::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));"]
    for own, theirs in (("algorithm", "algo"), ("workspace_bytes", "workspaceSize"), ("state", "state"), ("waves", "wavesCount")):
        lines.append(f"static_assert(offsetof(ours::HeuristicResult, {own}) == offsetof(cublasLtMatmulHeuristicResult_t, {theirs}));")
    functions = re.findall(r"CUBLASLT_FUNCTION\((\w+), *(\w+), *(\(.*\))\)", text_of("runtime/cuda/cublas.def"))
    for name, symbol, parameters in functions:
        lines.append(f"namespace b_{name} {{ using namespace unisono::cublas; namespace cuda = unisono::cuda; using F = Status{parameters}; }}\n"
                     f'static_assert(Alike<b_{name}::F, decltype({symbol})>::value, "{symbol}");')
    return lines, len(functions)


def nccl_checks():
    lines = ["namespace nccl = unisono::nccl;"]
    for name, enumerators in enumerations(text_of("runtime/cuda/nccl_library.h")):
        for own in enumerators:
            lines.append(f'static_assert((long long)(nccl::{name}::{own}) == (long long)({NCCL[name][own]}), "{own}");')
    # Ours is the structure's beginning, as it once was, and says so by its size and version.
    lines += ["static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));",
              "constexpr ncclConfig_t by_default = NCCL_CONFIG_INITIALIZER;",
              "static_assert(nccl::Config().magic == by_default.magic && nccl::Config().blocking == by_default.blocking);",
              "static_assert(nccl::Config().version == NCCL_VERSION(2, 14, 0));",
              "static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));"]
    for field in ("size", "magic", "version", "blocking"):
        lines.append(f"static_assert(offsetof(nccl::Config, {field}) == offsetof(ncclConfig_t, {field}) && "
                     f"sizeof(nccl::Config::{field}) == sizeof(ncclConfig_t::{field}));")
    functions = re.findall(r"NCCL_FUNCTION\((\w+), *(\w+), *(\(.*\))\)", text_of("runtime/cuda/nccl.def"))
    for name, symbol, parameters in functions:
        lines.append(f"namespace c_{name} {{ using namespace unisono::nccl; namespace cuda = unisono::cuda; using F = Status{parameters}; }}\n"
                     f'static_assert(Alike<c_{name}::F, decltype({symbol})>::value, "{symbol}");')
    return lines, len(functions)


def compiler(options, folders, code):
    return subprocess.run([COMPILER, "-std=c++20", *options, f"-I{ROOT}", *(f"-isystem{f}" for f in folders), "-xc++", "-"],
                          input="\n".join(code), capture_output=True, text=True)


def check(folders):
    def find(name):
        return next((p for f in folders if (p := pathlib.Path(f) / name).exists()), None)

    said, code, ok = [], ["#include <cstddef>", "#include <type_traits>", ALIKE], True
    cuda, cublas, nccl = find("cuda.h"), find("cublasLt.h"), find("nccl.h")
    if cuda:
        # The declarations of old versions too, each under its exact name.
        include = ["#define __CUDA_API_VERSION_INTERNAL", "#include <cuda.h>", "#include <cudaTypedefs.h>" if find("cudaTypedefs.h") else ""]
        header = compiler(["-E", "-dD"], folders, include).stdout
        version = re.search(r"#define CUDA_VERSION (\d+)", header)[1]
        lines, newer, replaced, count = cuda_checks(header)
        code += [*include, '#include "runtime/cuda/types.h"', *lines]
        said.append(f"cuda.h {version}: {count} functions, {len(lines)} checks")
        said += [f"  not in it: {', '.join(newer)}"] * bool(newer)
        said += [f"  replaced, kept for older programs: {', '.join(replaced)}"] * bool(replaced)
    if cublas:
        lines, count = cublas_checks()
        code += ["#include <cublasLt.h>", '#include "runtime/cuda/cublas_library.h"', *lines]
        said.append(f"cublasLt.h: {count} functions, {len(lines)} checks")
    if nccl:
        lines, count = nccl_checks()
        code += ["#include <nccl.h>", '#include "runtime/cuda/nccl_library.h"', *lines]
        version = re.search(r"#define NCCL_VERSION_CODE (\d+)", nccl.read_text())[1]
        said.append(f"nccl.h {version}: {count} functions, {len(lines)} checks")
    if said:
        done = compiler(["-fsyntax-only", "-w", "-ferror-limit=0"], folders, code)
        ok = done.returncode == 0
        said += [] if ok else [done.stderr[-8000:]]
    print("\n".join(said))
    return ok


def main():
    folders = [f.split(":") for f in sys.argv[1:]]
    if not folders:
        home = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include"
        folders = [[home]] if os.path.exists(home + "/cuda.h") else []
    if not folders:
        nvidia.skip("no cuda.h here, so nothing was compared")
    return 0 if all([check(f) for f in folders]) else 1


if __name__ == "__main__":
    sys.exit(main())
