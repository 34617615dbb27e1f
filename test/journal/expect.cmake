# Runs a mutant (mutations.py). Expected is that the explorer finds something wrong ("caught"), that
# it does not ("harmless"), or that a check of the library ends the process ("checked").
if(EXPECTED STREQUAL "harmless")
  set(states 60000)
  set(status_expected 3)
else()
  set(states 1000000)
  set(status_expected 4)
endif()
execute_process(COMMAND ${COMMAND} ${states} RESULT_VARIABLE status OUTPUT_VARIABLE output
                ERROR_VARIABLE errors)
message("${output}${errors}")
if(EXPECTED STREQUAL "checked")
  if(NOT errors MATCHES "broken invariant")
    message(FATAL_ERROR "expected a broken invariant, found exit status ${status}")
  endif()
elseif(NOT status STREQUAL status_expected)
  message(FATAL_ERROR "expected exit status ${status_expected} (${EXPECTED}), found ${status}")
endif()
