# The simulated CUDA driver: a library like libcuda, part of the product
# (`--devices sim:8`). It executes PTX with vector code, so it wants AVX2.
file(GLOB_RECURSE simcuda_sources CONFIGURE_DEPENDS simcuda/*.cpp)
list(FILTER simcuda_sources EXCLUDE REGEX "/(cublaslt|nccl)/")
add_library(simcuda SHARED ${simcuda_sources})
target_include_directories(simcuda PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(simcuda PRIVATE Threads::Threads)
# It has threads of its own, so it stays when it is closed.
target_link_options(simcuda PRIVATE -Wl,-z,nodelete -Wl,-Bsymbolic)
if(NOT UNISONO_SANITIZE)  # for the bundle, where libc alone is shared
  target_link_options(simcuda PRIVATE -static-libstdc++ -static-libgcc
    -Wl,--exclude-libs,ALL)
endif()
target_compile_options(simcuda PRIVATE -fvisibility=hidden -fno-math-errno
  -fno-strict-aliasing -Wno-pass-failed)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(simcuda PRIVATE -march=x86-64-v3)
endif()
set_source_files_properties(simcuda/opcodes/rounded.cpp
  simcuda/opcodes/convert.cpp PROPERTIES COMPILE_OPTIONS -frounding-math)
install(TARGETS simcuda LIBRARY)  # `--devices sim:N` finds it from the executable

# A simulated cuBLASLt for it, whose products are kernels of the library.
add_library(simcublaslt SHARED simcuda/cublaslt/simcublaslt.cpp
  ${kernel_modules})
target_include_directories(simcublaslt PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(simcublaslt PRIVATE simcuda)
set_target_properties(simcublaslt PROPERTIES BUILD_RPATH "$ORIGIN")
target_compile_options(simcublaslt PRIVATE -fvisibility=hidden)

# A simulated NCCL, which exchanges with other processes.
add_library(simnccl SHARED simcuda/nccl/simnccl.cpp)
target_include_directories(simnccl PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(simnccl PRIVATE simcuda Threads::Threads)
set_target_properties(simnccl PROPERTIES BUILD_RPATH "$ORIGIN")
target_compile_options(simnccl PRIVATE -fvisibility=hidden)
