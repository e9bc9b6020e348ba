# One doctest executable per floor: tests/unit/FLOOR/*.cpp.
set_source_files_properties(tests/unit/main.cpp PROPERTIES
  SKIP_PRECOMPILE_HEADERS ON)
foreach(floor runtime jit lang host embed)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS tests/unit/${floor}/*.cpp)
  if(sources)
    add_executable(test_${floor} tests/unit/main.cpp ${sources})
    target_link_libraries(test_${floor} PRIVATE unisono_${floor})
    target_compile_definitions(test_${floor} PRIVATE
      UNISONO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    if(floor STREQUAL "jit")
      target_include_directories(test_${floor} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    endif()
    if(EXISTS ${PROJECT_SOURCE_DIR}/cmake/precompiled/${floor}.h)
      precompile(test_${floor} <doctest/doctest.h>
        ${PROJECT_SOURCE_DIR}/cmake/precompiled/${floor}.h)
    endif()
    target_compile_definitions(test_${floor} PRIVATE
      SIMCUDA_LIBRARY="$<TARGET_FILE:simcuda>"
      SIMCUBLASLT_LIBRARY="$<TARGET_FILE:simcublaslt>")
    add_dependencies(test_${floor} simcuda simcublaslt)
  endif()
endforeach()

# Many programs in one process, for tests/run.
add_executable(player tests/tools/player.cpp)
target_link_libraries(player PRIVATE unisono_host)
target_link_options(player PRIVATE ${at_fixed_address})

# A tool as NVIDIA's are, for tests/gpu_tools.py.
add_library(nvtxprobe MODULE tests/tools/nvtx_probe.cpp)

# Tests of it, and tests that any CUDA driver must pass.
foreach(suite simcuda conformance)
  if(suite STREQUAL "conformance")
    file(GLOB sources CONFIGURE_DEPENDS tests/conformance/*.cpp)
  else()
    file(GLOB sources CONFIGURE_DEPENDS tests/unit/${suite}/*.cpp)
  endif()
  if(sources)
    add_executable(test_${suite} tests/unit/main.cpp ${sources})
    target_include_directories(test_${suite} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(test_${suite} PRIVATE dl Threads::Threads)
    target_compile_definitions(test_${suite} PRIVATE
      UNISONO_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
      SIMCUDA_LIBRARY="$<TARGET_FILE:simcuda>")
    add_dependencies(test_${suite} simcuda)
  endif()
endforeach()

# Tests that devices of every kind must pass: CPUs, simulated GPUs, GPUs.
file(GLOB sources CONFIGURE_DEPENDS tests/conformance/devices/*.cpp)
add_executable(test_devices tests/unit/main.cpp ${sources}
  tests/unit/jit/random_graph.cpp)
target_link_libraries(test_devices PRIVATE unisono_jit)
add_dependencies(test_devices simcuda)

# Fuzzing, on request: cmake --build build --target fuzz_parser
add_executable(fuzz_parser EXCLUDE_FROM_ALL tests/fuzz/parser_fuzz.cpp
  lang/syntax/ast.cpp lang/source/diagnostics.cpp lang/format/doc.cpp lang/syntax/dump.cpp lang/format/format.cpp
  lang/format/format_expr.cpp lang/syntax/lexer.cpp lang/syntax/literal_range.cpp lang/syntax/parser.cpp
  lang/syntax/parser_expr.cpp lang/syntax/parser_habits.cpp lang/syntax/parser_literal.cpp
  lang/syntax/parser_primary.cpp lang/syntax/parser_statement.cpp lang/source/source.cpp
  lang/syntax/token.cpp lang/source/utf8.cpp
  runtime/dtype.cpp)
target_include_directories(fuzz_parser PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(fuzz_parser PRIVATE fmt::fmt)
target_compile_options(fuzz_parser PRIVATE -g -fsanitize=fuzzer,address
  -D_GLIBCXX_ASSERTIONS)
target_link_options(fuzz_parser PRIVATE -fsanitize=fuzzer,address)
