# ./dev test --coverage: the rooms whose branches the tests must take are
# compiled so that they count them (tests/coverage.py reads the counts).
set(UNISONO_COVERAGE OFF CACHE BOOL "count the branches that tests take")
if(UNISONO_COVERAGE)
  add_link_options(-fprofile-instr-generate)
  add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:UNISONO_COVERAGE>)
endif()

# Called behind the floors: rooms of one floor.
function(count_branches target)
  if(NOT UNISONO_COVERAGE)
    return()
  endif()
  foreach(room ${ARGN})
    file(GLOB sources ${PROJECT_SOURCE_DIR}/${room}/*.cpp)
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS
      -fprofile-instr-generate -fcoverage-mapping)
  endforeach()
endfunction()
