# How tests are compiled. A third of the time goes into Catch2's header, which is compiled once, and
# most of the rest into optimising what runs once: -Og takes a third less time than -O1, and tests
# are as quick.
function(flugs_test_settings target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED" "" "")
  target_link_libraries(${target} PRIVATE flugs_test_support)
  flugs_settings(${target})
  target_compile_definitions(${target} PRIVATE CATCH_CONFIG_FAST_COMPILE)
  # Sanitizers are there for the library: what tests do themselves is compiled as quickly as can be,
  # unless they do much of it (OPTIMISED) under the address sanitizer.
  if(FLUGS_SANITIZE STREQUAL "address" AND arg_OPTIMISED)
    # Half of the time to compile the random queries, whose tests take 5 % longer.
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -inline-threshold=0>)
  elseif(FLUGS_SANITIZE)
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

# Where the library has checks (a sanitizer's, or those of FLUGS_SCM), the linker takes it before
# the tests and Catch2. All define the same inline functions, and the linker keeps the first
# definition: the library's, which has all checks.
function(flugs_link_library_first target)
  if(FLUGS_SANITIZE OR FLUGS_SCM)
    target_link_options(${target} PRIVATE
      LINKER:--whole-archive $<TARGET_FILE:flugs> LINKER:--no-whole-archive)
  endif()
endfunction()

# What a plain tools/test leaves out of the release build (decision 0061): tests that the builds of
# the sanitizers run (label sanitized), and tests that belong to a night (label night).
define_property(TARGET PROPERTY FLUGS_LEFT_OUT BRIEF_DOCS "Only tests with such a label need it")

# flugs_leave_out(sanitized TARGETS flugs_pmem_test ... TESTS pmem/pool_test ...): these tests get
# the label, and nothing but them needs these programs.
function(flugs_leave_out label)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TARGETS;TESTS")
  foreach(test IN LISTS arg_TESTS)
    set_property(TEST ${test} APPEND PROPERTY LABELS ${label})
  endforeach()
  if(arg_TARGETS)
    set_target_properties(${arg_TARGETS} PROPERTIES FLUGS_LEFT_OUT ON)
  endif()
endfunction()

# The target tests_release: all that a plain tools/test builds of the release build.
function(flugs_add_tests_release)
  add_custom_target(tests_release)
  set(directories ${PROJECT_SOURCE_DIR})
  while(directories)
    list(POP_FRONT directories directory)
    get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
    list(APPEND directories ${below})
    get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(type ${target} TYPE)
      get_target_property(optional ${target} EXCLUDE_FROM_ALL)
      get_target_property(left_out ${target} FLUGS_LEFT_OUT)
      if(NOT type MATCHES "OBJECT|STATIC|INTERFACE" AND NOT optional AND NOT left_out)
        add_dependencies(tests_release ${target})
      endif()
    endforeach()
  endwhile()
endfunction()

# flugs_test(pmem SOURCES pool_test.cc ... LABELS fast [TIMEOUT seconds] [USES target ...]
#            [REBUILT pool_test ...] [OPTIMISED] [EXCHANGES] [RELEASED]
#            [ASAN_AT_NIGHT])
#
# One Catch2 program flugs_<name>_test, and for each source one ctest "<name>/<source>" that runs
# the test cases of that file. Labels: fast, figures (compares numbers: sanitizers add nothing),
# crash, concurrency, slow, scm, night (tools/test says which of them runs where); the target
# tests_<label> builds what carries one. A test that is fast or concurrency is also sanitized,
# unless it is RELEASED: optimisation changes what it tests. Nor is a source sanitized that has more
# rounds in the release build (rounds_of and kEffort of test/support/complaint.h): that build runs
# it, too. ASAN_AT_NIGHT: by day only other builds run it, not the address sanitizer's (label
# asan_night). REBUILT names sources whose tests run once more with indexes in DRAM
# (test/support/temporary_database.h), as "<name>_rebuilt/<source>". EXCHANGES: some sources of the
# library are compiled anew for this program, and must be taken before those of the library. Tests
# run in parallel, so each takes its pools from test/support, which gives every one a path of its
# own.
function(flugs_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED;EXCHANGES;RELEASED;ASAN_AT_NIGHT"
                        "TIMEOUT" "SOURCES;LABELS;USES;REBUILT")
  if(NOT arg_SOURCES)
    return()
  endif()
  set(target flugs_${name}_test)
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_USES})
  if(arg_OPTIMISED AND FLUGS_SANITIZE STREQUAL "address")
    flugs_test_settings(${target} OPTIMISED)  # so the headers' flags are others
  else()
    flugs_test_settings(${target})
    if(NOT FLUGS_SCM)  # that build has one program
      target_precompile_headers(${target} REUSE_FROM flugs_test_headers)
    endif()
  endif()
  flugs_together(${target} 12)
  if(NOT arg_EXCHANGES)
    flugs_link_quickly(${target})
    flugs_link_library_first(${target})
  endif()
  # What the macros of Catch2 expand to is not ours to tidy.
  set_target_properties(${target} PROPERTIES CXX_CLANG_TIDY "")
  set(wanted_for ${arg_LABELS})
  if(arg_ASAN_AT_NIGHT AND FLUGS_SANITIZE STREQUAL "address")
    set(wanted_for asan_night)
  endif()
  foreach(label IN LISTS wanted_for)
    add_dependencies(tests_${label} ${target})
  endforeach()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(arg_ASAN_AT_NIGHT)
    list(APPEND arg_LABELS asan_night)
  endif()
  set(of_sanitizers OFF)
  if(NOT arg_RELEASED AND ("fast" IN_LIST arg_LABELS OR "concurrency" IN_LIST arg_LABELS))
    set(of_sanitizers ON)
  endif()
  set(left_out ${of_sanitizers})
  foreach(source IN LISTS arg_SOURCES)
    if(NOT source MATCHES "_test\\.cc$")
      continue()
    endif()
    cmake_path(GET source STEM stem)
    file(STRINGS ${source} has_more_rounds REGEX "rounds_of|kEffort")
    set(labels ${arg_LABELS})
    if(of_sanitizers AND has_more_rounds)
      set(left_out OFF)
    elseif(of_sanitizers)
      list(APPEND labels sanitized)
    endif()
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
        LABELS "${labels}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}")
      if("concurrency" IN_LIST arg_LABELS)
        set_tests_properties(${test} PROPERTIES PROCESSORS 2)
      endif()
    endforeach()
  endforeach()
  if(left_out)
    flugs_leave_out(sanitized TARGETS ${target})
  endif()
endfunction()

foreach(label fast figures crash concurrency slow scm night asan_night)
  add_custom_target(tests_${label})
endforeach()
set(FLUGS_TEST_ENVIRONMENT
    "TSAN_OPTIONS=halt_on_error=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    # Of each allocation and release only four callers are kept: thirty take a sixth of the time.
    # What is found is the same. A test that is started by hand tells all of them. What was freed is
    # kept until 32 MB were: 256 MB, each page of which is touched anew, take a tenth of the time.
    "ASAN_OPTIONS=malloc_context_size=5:quarantine_size_mb=32")
