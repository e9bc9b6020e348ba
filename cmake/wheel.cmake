# The library of `./dev wheel`: what it shares with others is libc, and libpng
# and zlib, which lie beside it in the wheel (Debian's archive of libpng is not
# made for shared libraries).
add_library(unisono_wheel SHARED EXCLUDE_FROM_ALL
  $<TARGET_OBJECTS:unisono_embed> bundle/fmt.cpp)
set_target_properties(unisono_wheel PROPERTIES
  OUTPUT_NAME unisono_wheel LINKER_LANGUAGE CXX
  BUILD_RPATH "$ORIGIN" BUILD_RPATH_USE_ORIGIN ON
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/embed/exports.map)
target_link_options(unisono_wheel PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/embed/exports.map
  -Wl,-z,defs -static-libstdc++ -static-libgcc
  -Wl,-soname,libunisono.so -Wl,--as-needed -Wl,--strip-all
  -Wl,--whole-archive -Wl,-l:libzstd.a -Wl,--no-whole-archive)
target_link_libraries(unisono_wheel PRIVATE unisono_host)
list_inputs(unisono_wheel libunisono_wheel.so)
