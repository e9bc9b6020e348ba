# Writes ${OUT}, unless it says so already: UNISONO_COMMIT, the commit of
# ${SOURCE} in brackets, with a + where files differ from it; empty where there
# is no repository, as in a release.
execute_process(COMMAND git describe --always --exclude=* --abbrev=10 --dirty=+
  WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(status EQUAL 0 AND EXISTS ${SOURCE}/.git)
  set(commit " (${commit})")
else()
  set(commit "")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define UNISONO_COMMIT \"${commit}\"\n")
