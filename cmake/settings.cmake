set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Headers that many files include are compiled once for each floor, which is a
# quarter of a build's time. Of such files ccache has only what was compiled in
# the same folder: who has told it to serve several (base_dir) gets them
# compiled each by itself.
find_program(CCACHE ccache)
set(precompiled ON)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros
      ${CCACHE})
  execute_process(COMMAND ${CCACHE} --get-config base_dir
    OUTPUT_VARIABLE served OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(served)
    set(precompiled OFF)
  endif()
endif()
option(UNISONO_PRECOMPILED "headers that many files include are compiled once"
  ${precompiled})

# precompile(TARGET HEADER ...)
function(precompile target)
  if(NOT UNISONO_PRECOMPILED)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # the same bytes each time
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# No contraction: an fma stands where the source says fma, and nowhere else, so
# that the reference evaluator and generated code give the same bits.
add_compile_options(-Wall -Wextra $<$<BOOL:${UNISONO_WERROR}>:-Werror>
                    -ffp-contract=off -ffunction-sections -fdata-sections)
add_link_options(-fuse-ld=lld -Wl,--gc-sections -Wl,--as-needed)
# What a sanitizer finds ends the program, so that a test which only looks at
# its exit status sees it. -O1, and lines without variables: the suite is large.
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")
if(UNISONO_SANITIZE)
  add_compile_options(-fsanitize=${UNISONO_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize=function -fno-sanitize-recover=all
                      -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${UNISONO_SANITIZE})
endif()
