# ./dev test --coverage: rooms whose branches the tests must take, and those
# where thresholds are read, are compiled so that they count their branches;
# tests/coverage.py and tests/coverage_thresholds.py read the counts.
option(UNISONO_COVERAGE "count the branches that tests take" OFF)
if(UNISONO_COVERAGE)
  file(STRINGS ${PROJECT_SOURCE_DIR}/tests/coverage_rooms.txt rooms REGEX "^[a-z]")
  foreach(room ${rooms})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${room}/*.cpp)
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS
      -fprofile-instr-generate -fcoverage-mapping -O1)
  endforeach()
  add_link_options(-fprofile-instr-generate)
endif()
