# The bench and its peers; built by `./dev bench`, not by default.
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.cpp)
find_library(OPENBLAS openblas)
find_package(kissfft CONFIG QUIET COMPONENTS SHARED)
if(bench_sources AND OPENBLAS AND TARGET unisono)
  add_executable(bench EXCLUDE_FROM_ALL ${bench_sources})
  # Our LAPACK is wanted first, else what it calls would be OpenBLAS's.
  target_link_libraries(bench PRIVATE unisono_embed unisono_runtime ${LAPACK_ARCHIVE}
    ${BLAS_ARCHIVE} ${OPENBLAS} mvec m)
  target_link_options(bench PRIVATE -fopenmp LINKER:-u,_ZN7unisono6lapack8choleskyIdEEvlPKT_PS2_)
  if(TARGET kissfft::kissfft-float)
    target_link_libraries(bench PRIVATE kissfft::kissfft-float)
    target_compile_definitions(bench PRIVATE BENCH_KISSFFT)
  endif()
  set_source_files_properties(bench/peers.cpp PROPERTIES
    COMPILE_OPTIONS "-O3;-march=native;-fopenmp;-Wno-psabi")
  set_source_files_properties(
    bench/peers_loops.cpp bench/peers_nested_loops.cpp bench/peers_stencils.cpp PROPERTIES
    COMPILE_OPTIONS "-O3;-march=native;-fopenmp;-Wno-psabi;-ffp-contract=off")
  set_source_files_properties(
    bench/peers_black_scholes.cpp bench/peers_normalise.cpp
    bench/peers_random.cpp bench/peers_networks.cpp PROPERTIES
    COMPILE_OPTIONS "-O3;-march=native;-fopenmp;-Wno-psabi;-ffast-math;-fveclib=libmvec")
  add_dependencies(bench unisono)
  # A peer of calls from C++: without it that row is left out.
  find_path(LUA_HEADERS lua.hpp PATH_SUFFIXES lua5.4)
  find_library(LUA lua5.4)
  if(LUA_HEADERS AND LUA)
    set_source_files_properties(bench/simulation_steps.cpp PROPERTIES
      COMPILE_DEFINITIONS BENCH_LUA INCLUDE_DIRECTORIES ${LUA_HEADERS})
    target_link_libraries(bench PRIVATE ${LUA})
  endif()
endif()

# What GPUs reach, beside copies and cuBLASLt: ./dev bench-gpu
file(GLOB gpu_bench_sources CONFIGURE_DEPENDS bench/gpu/*.cpp)
add_executable(bench_gpu EXCLUDE_FROM_ALL ${gpu_bench_sources})
target_link_libraries(bench_gpu PRIVATE unisono_host)
add_dependencies(bench_gpu simcuda)
