# The library of `./dev wheel`, with libc alone shared, as unisono_portable is
# the executable.
add_library(unisono_wheel SHARED EXCLUDE_FROM_ALL
  $<TARGET_OBJECTS:unisono_embed> bundle/fmt.cpp)
set_target_properties(unisono_wheel PROPERTIES
  OUTPUT_NAME unisono_wheel LINKER_LANGUAGE CXX
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/embed/exports.map)
target_link_options(unisono_wheel PRIVATE
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/embed/exports.map
  -Wl,-z,defs -static-libstdc++ -static-libgcc
  -Wl,-soname,libunisono.so -Wl,--as-needed -Wl,--strip-all
  -Wl,--whole-archive -Wl,-l:libpng16.a -Wl,-l:libz.a -Wl,-l:libzstd.a -Wl,--no-whole-archive)
target_link_libraries(unisono_wheel PRIVATE unisono_host)
