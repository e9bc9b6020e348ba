# The executable of `./dev bundle`: unisono, the suites of tests/conformance and
# the bench for GPUs in one, with libc alone shared. Static libraries come
# first, and what is shared is dropped where nothing is missing any more; fmt,
# which distributions have shared, is compiled.
file(GLOB driver_suite CONFIGURE_DEPENDS tests/conformance/*.cpp)
file(GLOB device_suite CONFIGURE_DEPENDS tests/conformance/devices/*.cpp)
add_executable(unisono_portable EXCLUDE_FROM_ALL bundle/main.cpp bundle/fmt.cpp
  ${driver_suite} ${device_suite} tests/unit/jit/random_graph.cpp
  bench/gpu/gpu_bench.cpp)
target_compile_definitions(unisono_portable PRIVATE
  UNISONO_SOURCE_DIR="." SIMCUDA_LIBRARY="libsimcuda.so")
target_link_options(unisono_portable PRIVATE -static-libstdc++ -static-libgcc
  ${at_fixed_address} -Wl,--as-needed -Wl,--strip-all
  -Wl,--whole-archive -Wl,-l:libpng16.a -Wl,-l:libz.a -Wl,-l:libzstd.a -Wl,--no-whole-archive)
target_link_libraries(unisono_portable PRIVATE unisono_host)
target_include_directories(unisono_portable PRIVATE
  ${PROJECT_BINARY_DIR}/commit)
add_dependencies(unisono_portable simcuda commit)
# Lists for bundle/notices.py, beside the target: what was linked, and of which
# archives something is in it.
function(list_inputs target file)
  target_link_options(${target} PRIVATE
    -Wl,--dependency-file=${PROJECT_BINARY_DIR}/${file}.inputs
    -Wl,--print-archive-stats=${PROJECT_BINARY_DIR}/${file}.archives)
endfunction()
list_inputs(unisono_portable unisono_portable)
list_inputs(simcuda libsimcuda.so)
