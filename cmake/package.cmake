# The library for other programs: libunisono.so and libunisono.a, headers, a
# CMake package and a file for pkg-config.
include(CMakePackageConfigHelpers)

# Nothing but the functions of unisono.h is visible, so that the program may
# have another LLVM, or another fmt, than the ones inside.
add_library(unisono_shared SHARED embed/unisono.h)
set_target_properties(unisono_shared PROPERTIES
  OUTPUT_NAME unisono EXPORT_NAME unisono LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION 0
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/embed/exports.map)
target_link_libraries(unisono_shared PRIVATE
  $<LINK_LIBRARY:WHOLE_ARCHIVE,unisono_embed>)
target_link_options(unisono_shared PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/embed/exports.map
  -Wl,-z,defs)
if(UNISONO_SANITIZE)  # whose functions are the executable's
  target_link_options(unisono_shared PRIVATE -Wl,-z,undefs)
endif()
target_include_directories(unisono_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/embed>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(unisono_shared INTERFACE cxx_std_20)
# Inside another project, as find_package has it.
add_library(unisono::unisono ALIAS unisono_shared)

set(for_all "")
if(PROJECT_IS_TOP_LEVEL)
  set(for_all ALL)
endif()

# One archive of all floors. LLVM is not in it: the program links that, and it
# is then the one that the program sees, too.
set(static_library ${PROJECT_BINARY_DIR}/libunisono.a)
set(floors runtime jit lang host embed)
set(script "CREATE ${static_library}\n")
foreach(floor ${floors})
  string(APPEND script "ADDLIB $<TARGET_FILE:unisono_${floor}>\n")
  list(APPEND floor_libraries unisono_${floor} $<TARGET_FILE:unisono_${floor}>)
endforeach()
file(GENERATE OUTPUT ${static_library}.mri CONTENT "${script}SAVE\nEND\n")
add_custom_command(OUTPUT ${static_library}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${static_library}
  COMMAND ${CMAKE_AR} -M < ${static_library}.mri
  DEPENDS ${floor_libraries} ${static_library}.mri)
add_custom_target(unisono_static ${for_all} DEPENDS ${static_library})

# What a program with the static library links besides.
list(JOIN LLVM_LIBS ";" llvm_targets)
execute_process(COMMAND ${LLVM_TOOLS_BINARY_DIR}/llvm-config --link-static --libs
  ${llvm_components} OUTPUT_VARIABLE llvm_flags OUTPUT_STRIP_TRAILING_WHITESPACE)
set(static_flags "-L${LLVM_LIBRARY_DIRS} ${llvm_flags} ${LAPACK_ARCHIVE} ${BLAS_ARCHIVE} -lfmt -lpng -lz -lzstd -lstdc++ -lm -lpthread -ldl")
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/unisono)
configure_package_config_file(cmake/unisonoConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/unisonoConfig.cmake
  INSTALL_DESTINATION ${package_folder}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/package/unisonoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH package_root /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/unisono.pc.in ${PROJECT_BINARY_DIR}/package/unisono.pc @ONLY)

install(TARGETS unisono_shared EXPORT unisono
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT library NAMELINK_COMPONENT library)
install(EXPORT unisono NAMESPACE unisono:: FILE unisonoTargets.cmake
  DESTINATION ${package_folder} COMPONENT library)
install(FILES ${PROJECT_BINARY_DIR}/package/unisonoConfig.cmake
  ${PROJECT_BINARY_DIR}/package/unisonoConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT library)
install(FILES ${PROJECT_BINARY_DIR}/package/unisono.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
# 73 MB that few programs want: cmake --install build --component static
install(FILES ${static_library} DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT static EXCLUDE_FROM_ALL)
install(FILES embed/unisono.h embed/unisono.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
