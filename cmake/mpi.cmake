# MPI for programs in several processes, where the machine has one: a library of
# its own, which is opened under a launcher of MPI alone.
find_program(MPICC mpicc)
if(MPICC)
  execute_process(COMMAND ${MPICC} -show OUTPUT_VARIABLE mpi_command
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  separate_arguments(mpi_command UNIX_COMMAND "${mpi_command}")
  set(mpi_compile ${mpi_command})
  list(FILTER mpi_compile INCLUDE REGEX "^-[ID]")
  list(APPEND mpi_compile -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX)  # C's functions alone
  set(mpi_link ${mpi_command})
  list(FILTER mpi_link INCLUDE REGEX "^-(L|l|Wl,-rpath)")
  add_library(unisono_mpi SHARED runtime/cluster/mpi_library.cc)
  target_include_directories(unisono_mpi PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(unisono_mpi PRIVATE ${mpi_compile}
    -Wno-unused-parameter)
  target_link_libraries(unisono_mpi PRIVATE ${mpi_link})
  install(TARGETS unisono_mpi LIBRARY)

  # The peer of `./dev bench --mpi`.
  add_executable(mpi_allreduce EXCLUDE_FROM_ALL bench/mpi_allreduce.cc)
  target_compile_options(mpi_allreduce PRIVATE ${mpi_compile} -march=native
    -Wno-unused-parameter)
  target_link_libraries(mpi_allreduce PRIVATE ${mpi_link})
endif()
