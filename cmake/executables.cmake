add_executable(unisono host/start.cpp)
# `unisono --version` names the commit, which is looked up in each build.
add_custom_target(commit BYPRODUCTS ${PROJECT_BINARY_DIR}/commit/commit.h
  COMMAND ${CMAKE_COMMAND} -DOUT=${PROJECT_BINARY_DIR}/commit/commit.h
          -DSOURCE=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake
  VERBATIM)
add_dependencies(unisono commit)
target_include_directories(unisono PRIVATE ${PROJECT_BINARY_DIR}/commit)
install(TARGETS unisono RUNTIME)
target_link_libraries(unisono PRIVATE unisono_host)
# At a fixed address: else each start relocates 100,000 addresses, most of them
# LLVM's tables, which costs a fifth of it. Libraries, stacks and the heap still
# lie at random.
set(at_fixed_address $<$<CONFIG:Release>:-no-pie>)
target_link_options(unisono PRIVATE ${at_fixed_address})

# The kernel of notebooks, an executable of its own: no other needs xeus.
find_package(xeus 2.4 CONFIG QUIET)
if(xeus_FOUND)
  file(GLOB notebook_sources CONFIGURE_DEPENDS host/notebook/*.cpp)
  add_executable(unisono-jupyter host/jupyter_main.cpp ${notebook_sources})
  target_include_directories(unisono-jupyter SYSTEM PRIVATE ${xeus_INCLUDE_DIRS})
  target_compile_definitions(unisono-jupyter PRIVATE
    UNISONO_VERSION="${PROJECT_VERSION}")
  target_link_libraries(unisono-jupyter PRIVATE unisono_host xeus zmq OpenSSL::Crypto)
  install(TARGETS unisono-jupyter RUNTIME)
else()
  message(STATUS "unisono-jupyter is not built: there is no xeus 2.4 (xeus-dev)")
endif()

# The manual, as a page of man and as web pages, and what shells complete: the
# executable has all of it.
set(shell_files ${PROJECT_BINARY_DIR}/shell)
add_custom_command(OUTPUT ${shell_files}/unisono.1
  COMMAND ${CMAKE_COMMAND} -E make_directory ${shell_files}
  COMMAND unisono man > ${shell_files}/unisono.1
  COMMAND unisono completion bash > ${shell_files}/unisono
  COMMAND unisono completion zsh > ${shell_files}/_unisono
  COMMAND unisono completion fish > ${shell_files}/unisono.fish
  COMMAND unisono doc --out ${shell_files}/html
  DEPENDS unisono VERBATIM)
add_custom_target(shell_files ALL DEPENDS ${shell_files}/unisono.1)
install(FILES ${shell_files}/unisono.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY ${shell_files}/html DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${shell_files}/unisono
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${shell_files}/_unisono
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${shell_files}/unisono.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
