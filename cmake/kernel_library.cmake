# So are the kernels for GPUs that are the same in all programs: C++ for NVPTX,
# by the clang that compiles all else, to PTX for the oldest GPUs. It includes
# headers of the standard library, whose places are the host's.
file(GLOB kernel_sources CONFIGURE_DEPENDS runtime/kernel_library/*.cc)
file(GLOB kernel_headers CONFIGURE_DEPENDS runtime/kernel_library/*.h)
# Those that use what newer GPUs have are compiled for these, too.
set(kernel_ptx_75 65)
set(kernel_ptx_80 70)
set(kernel_ptx_90a 80)
set(kernel_flags -x c++ --target=nvptx64-nvidia-cuda -D__x86_64__=1 -std=c++20 -O3 -ffp-contract=off
  -nogpulib -fno-exceptions -Wall -Wextra
  $<$<BOOL:${UNISONO_WERROR}>:-Werror> -I${PROJECT_SOURCE_DIR})
foreach(folder ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  list(APPEND kernel_flags -isystem ${folder})
endforeach()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/kernel_library)
foreach(source ${kernel_sources})
  get_filename_component(name ${source} NAME_WE)
  set(capabilities 75)
  file(STRINGS ${source} newer REGEX "kernel_library/(matrix_unit|pipeline|wide).h")
  if(newer)
    list(APPEND capabilities 80)
  endif()
  file(STRINGS ${source} newest REGEX "kernel_library/warpgroup.h")
  if(newest)
    list(APPEND capabilities 90a)
  endif()
  # Blocks on a multiprocessor: those of wide.h need all that there is.
  set(resident 2)
  file(STRINGS ${source} wide REGEX "kernel_library/wide.h")
  if(wide)
    set(resident 1)
  endif()
  foreach(capability ${capabilities})
    set(ptx ${PROJECT_BINARY_DIR}/kernel_library/${name}-${capability}.ptx)
    string(REGEX REPLACE "a$" "" number ${capability})
    set(groups "")
    if(NOT number STREQUAL capability)
      set(groups -DGRID_WARPGROUPS)
    endif()
    # Blocks of 256 threads, and how many on a multiprocessor: clang knows how
    # to say that in CUDA alone.
    add_custom_command(OUTPUT ${ptx}
      COMMAND ${CMAKE_CXX_COMPILER} ${kernel_flags} -march=sm_${capability}
              --cuda-feature=+ptx${kernel_ptx_${capability}}
              -DGRID_CAPABILITY=${number} ${groups} -S -o ${ptx} ${source}
      COMMAND sed -i "s/^{$/.maxntid 256, 1, 1\\n.minnctapersm ${resident}\\n{/" ${ptx}
      DEPENDS ${source} ${kernel_headers} VERBATIM)
    list(APPEND kernel_ptx ${ptx})
  endforeach()
endforeach()
set(kernel_modules ${PROJECT_BINARY_DIR}/kernel_modules.cpp)
add_custom_command(OUTPUT ${kernel_modules}
  COMMAND ${CMAKE_COMMAND} -DIN=${PROJECT_BINARY_DIR}/kernel_library/*.ptx
          -DOUT=${kernel_modules} -DNAMESPACE=unisono -DTYPE=KernelModule
          -DFUNCTION=kernel_modules -DHEADER=runtime/kernel_library/kernel_library.h
          -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${kernel_ptx} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
target_sources(unisono_runtime PRIVATE ${kernel_modules})
