# How tests are compiled. A third of the time goes into Catch2's header, which is compiled once, and
# most of the rest into optimising what runs once: -Og takes a third less time than -O1, and tests
# are as quick.
function(flugs_test_settings target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED" "" "")
  target_link_libraries(${target} PRIVATE flugs_test_support)
  flugs_settings(${target})
  target_compile_definitions(${target} PRIVATE CATCH_CONFIG_FAST_COMPILE)
  # Sanitizers are there for the library: what tests do themselves is compiled as quickly as can be,
  # unless they do much of it.
  if(FLUGS_SANITIZE STREQUAL "address" AND NOT arg_OPTIMISED)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>
    # Clang minds names of other sources that are compiled together; GCC minds those of one source.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-shadow>
    # From a precompiled header GCC 12 warns of what it does not when it reads the text.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow> $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>)
endfunction()

# lld links a program of tests in a third of the time. What is shipped and measured is linked as
# every system does it.
find_program(FLUGS_LLD ld.lld PATHS /usr/lib/llvm-19/bin)
function(flugs_link_quickly target)
  if(FLUGS_LLD)
    cmake_path(GET FLUGS_LLD PARENT_PATH directory)
    target_link_options(${target} PRIVATE -B${directory} -fuse-ld=lld)
  endif()
endfunction()

# flugs_test(pmem SOURCES pool_test.cc ... LABELS fast [TIMEOUT seconds] [USES target ...]
#            [REBUILT pool_test ...] [OPTIMISED] [EXCHANGES])
#
# One Catch2 program flugs_<name>_test, and for each source one ctest "<name>/<source>" that runs
# the test cases of that file. Labels: fast, figures (compares numbers: sanitizers add nothing),
# crash, concurrency, slow, scm (tools/test says which of them runs where); the target tests_<label>
# builds what carries one. REBUILT names sources whose tests run once more with indexes in DRAM
# (test/support/temporary_database.h), as "<name>_rebuilt/<source>". EXCHANGES: some sources of the
# library are compiled anew for this program, and must be taken before those of the library. Tests
# run in parallel, so each takes its pools from test/support, which gives every one a path of its
# own.
function(flugs_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED;EXCHANGES" "TIMEOUT"
                        "SOURCES;LABELS;USES;REBUILT")
  if(NOT arg_SOURCES)
    return()
  endif()
  set(target flugs_${name}_test)
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_USES})
  if(arg_OPTIMISED AND FLUGS_SANITIZE STREQUAL "address")
    flugs_test_settings(${target} OPTIMISED)  # so the header's flags are others
  else()
    flugs_test_settings(${target})
    target_precompile_headers(${target} REUSE_FROM flugs_test_header)
  endif()
  flugs_together(${target} 12)
  if(NOT arg_EXCHANGES)
    flugs_link_quickly(${target})
  endif()
  # What the macros of Catch2 expand to is not ours to tidy.
  set_target_properties(${target} PROPERTIES CXX_CLANG_TIDY "")
  foreach(label IN LISTS arg_LABELS)
    add_dependencies(tests_${label} ${target})
  endforeach()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  foreach(source IN LISTS arg_SOURCES)
    if(NOT source MATCHES "_test\\.cc$")
      continue()
    endif()
    cmake_path(GET source STEM stem)
    # Each test case carries its file as a tag; a file without test cases is a failure.
    set(tests ${name}/${stem})
    if(stem IN_LIST arg_REBUILT)
      list(APPEND tests ${name}_rebuilt/${stem})
    endif()
    foreach(test IN LISTS tests)
      set(environment ${FLUGS_TEST_ENVIRONMENT})
      if(test MATCHES "_rebuilt/")
        list(APPEND environment FLUGS_TEST_INDEX=dram)
      endif()
      add_test(NAME ${test} COMMAND ${target} --warn NoTests --filenames-as-tags "[#${stem}]")
      set_tests_properties(${test} PROPERTIES
        LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}")
      if("concurrency" IN_LIST arg_LABELS)
        set_tests_properties(${test} PROPERTIES PROCESSORS 2)
      endif()
    endforeach()
  endforeach()
endfunction()

foreach(label fast figures crash concurrency slow scm)
  add_custom_target(tests_${label})
endforeach()
set(FLUGS_TEST_ENVIRONMENT
    "TSAN_OPTIONS=halt_on_error=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    # Of each allocation and release only four callers are kept: thirty take a sixth of the time.
    # What is found is the same. A test that is started by hand tells all of them.
    "ASAN_OPTIONS=malloc_context_size=5")
