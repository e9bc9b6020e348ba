find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
# Static, as the bundle needs it; Debian has no CMake package of it.
find_library(CMARK libcmark-gfm.a REQUIRED)
find_library(CMARK_EXTENSIONS libcmark-gfm-extensions.a REQUIRED)

# LAPACK and BLAS, the reference ones, of which archives give what is used: they
# have no threads and the same bits everywhere, and nothing is to be installed
# where the executable runs. (liblapack.so is whatever the machine has.)
find_library(LAPACK_ARCHIVE liblapack.a PATH_SUFFIXES lapack REQUIRED)
find_library(BLAS_ARCHIVE libblas.a PATH_SUFFIXES blas REQUIRED)

find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19)
set(llvm_components native NVPTX OrcJIT)
if(UNISONO_SANITIZE MATCHES address)  # generated code is instrumented as well
  list(APPEND llvm_components Passes)
endif()
llvm_map_components_to_libnames(LLVM_LIBS ${llvm_components})

function(add_floor name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "host/(start|jupyter_main)\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "host/notebook/")
  add_library(unisono_${name} STATIC ${sources})
  target_include_directories(unisono_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(unisono_${name} PUBLIC ${ARGN})
  set(header ${PROJECT_SOURCE_DIR}/cmake/precompiled/${name}.h)
  if(EXISTS ${header})
    precompile(unisono_${name} ${header})
  endif()
endfunction()

add_floor(runtime runtime fmt::fmt Threads::Threads ZLIB::ZLIB ${LAPACK_ARCHIVE}
  ${BLAS_ARCHIVE} ${CMAKE_DL_LIBS})
set_source_files_properties(runtime/cuda/gpu.cpp runtime/cluster/cluster.cpp
  PROPERTIES
  COMPILE_DEFINITIONS UNISONO_VERSION="${PROJECT_VERSION}")
add_floor(jit jit unisono_runtime)
target_include_directories(unisono_jit SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_definitions(unisono_jit PRIVATE __STDC_CONSTANT_MACROS
  __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
target_link_libraries(unisono_jit PUBLIC ${LLVM_LIBS})
# Sorting in vectors: headers of Highway, of whose inner functions some are
# called, so it must be this version.
find_file(HIGHWAY hwy/highway.h)
if(HIGHWAY)
  file(STRINGS ${HIGHWAY} version REGEX "define HWY_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" version "${version}")
endif()
if(version STREQUAL "1;0;3")
  set_source_files_properties(jit/sort/vector_sort.cpp PROPERTIES
    COMPILE_DEFINITIONS UNISONO_HIGHWAY)
else()
  message(STATUS "sorts are radix passes: there is no Highway 1.0.3 (libhwy-dev)")
endif()
add_floor(lang lang unisono_jit PNG::PNG)
add_floor(host host unisono_lang nlohmann_json::nlohmann_json ${CMARK_EXTENSIONS}
  ${CMARK})
target_compile_definitions(unisono_host PRIVATE CMARK_GFM_STATIC_DEFINE)
# The date of the manual page; SOURCE_DATE_EPOCH says another one.
string(TIMESTAMP build_date "%Y-%m-%d" UTC)
set_source_files_properties(host/main.cpp PROPERTIES COMPILE_DEFINITIONS
  "UNISONO_VERSION=\"${PROJECT_VERSION}\";UNISONO_DATE=\"${build_date}\"")
add_floor(embed embed unisono_host)
set_source_files_properties(embed/engine.cpp PROPERTIES
  COMPILE_DEFINITIONS UNISONO_VERSION="${PROJECT_VERSION}")

# Texts that are part of the program: files as a table of a floor.
function(embed floor namespace type function header)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  set(out ${PROJECT_BINARY_DIR}/${function}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
  list(JOIN ARGN $<SEMICOLON> patterns)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${patterns} -DOUT=${out}
            -DNAMESPACE=${namespace} -DTYPE=${type} -DFUNCTION=${function}
            -DHEADER=${header} -P ${script}
    DEPENDS ${files} ${script} VERBATIM)
  target_sources(unisono_${floor} PRIVATE ${out})
endfunction()
embed(lang unisono::lang StdlibModule stdlib_modules lang/source/stdlib.h
  stdlib/*.uni)
embed(lang unisono::lang ErrorPage error_pages lang/source/explain.h
  docs/errors/U*.md)
embed(lang unisono::lang ExamplePage example_pages
  lang/source/builtin_examples.h lang/context/builtins.md)
embed(host unisono::host::manual GuidePage guide_pages host/manual/pages.h
  README.md docs/*.md)
embed(host unisono::host::manual Asset assets host/manual/pages.h
  host/manual/assets/*.css host/manual/assets/*.js)
