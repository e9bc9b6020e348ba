set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

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
