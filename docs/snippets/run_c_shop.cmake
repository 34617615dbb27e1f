# Runs the program of docs/c_api.md with a pool of its own, and compares what it prints.
#   cmake -D PROGRAM=... -P run_c_shop.cmake

string(RANDOM LENGTH 12 name)
set(pool /dev/shm/flugs_c_shop_${name}.pool)
execute_process(COMMAND ${PROGRAM} ${pool} RESULT_VARIABLE result OUTPUT_VARIABLE output)
file(REMOVE ${pool})
set(expected "pen costs 175 cents
item has no row 700
pen 95
pen 97
pen 99
copied 3 rows
last 100
last 99
")
if(NOT result EQUAL 0 OR NOT output STREQUAL expected)
  message(FATAL_ERROR "${result}, printed\n${output}instead of\n${expected}")
endif()
