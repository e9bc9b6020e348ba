# ./dev test --coverage: rooms whose branches the tests must take are compiled
# so that they count them; tests/coverage.py reads the counts.
option(UNISONO_COVERAGE "count the branches that tests take" OFF)
if(UNISONO_COVERAGE)
  file(STRINGS ${PROJECT_SOURCE_DIR}/tests/coverage_rooms.txt rooms)
  foreach(room ${rooms})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${room}/*.cpp)
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS
      -fprofile-instr-generate -fcoverage-mapping)
  endforeach()
  add_link_options(-fprofile-instr-generate)
endif()
