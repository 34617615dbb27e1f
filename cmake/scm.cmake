# FLUGS_SCM: the build that charges reads of emulated SCM (docs/decisions/0028-scm-reads.md). The
# compiler puts a check before every load and store of ours, which calls pmem/medium/scm_reads.cc.
option(FLUGS_SCM "Check every load and store, to charge the latency of emulated SCM: slow" OFF)
if(NOT FLUGS_SCM)
  return()
endif()
if(FLUGS_SANITIZE OR FLUGS_LIBFUZZER OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "FLUGS_SCM needs GCC, and cannot be combined with a sanitizer")
endif()

# Where the address sanitizer has its shadow, which the kernel keeps free.
set(FLUGS_SCM_SHADOW 0x7fff8000)
add_compile_definitions(FLUGS_SCM FLUGS_SCM_SHADOW=${FLUGS_SCM_SHADOW})
add_compile_options(-fsanitize=kernel-address -fasan-shadow-offset=${FLUGS_SCM_SHADOW}
  --param=asan-instrumentation-with-call-threshold=1000000
  # It is no address sanitizer to those who ask. Templates of libstdc++ are compiled with checks.
  -U__SANITIZE_ADDRESS__ -D_GLIBCXX_EXTERN_TEMPLATE=0)
# What is read by libraries that are compiled without checks.
set(FLUGS_SCM_LINK_OPTIONS "")
foreach(name memcpy memmove memset memcmp memchr strlen XXH3_64bits XXH3_64bits_withSeed)
  list(APPEND FLUGS_SCM_LINK_OPTIONS LINKER:--wrap=${name})
endforeach()
