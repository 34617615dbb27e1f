# The functions every CMakeLists.txt of the project is written with.

option(FLUGS_TOGETHER "Compile many sources of a folder together" ON)
option(FLUGS_FOLDERS_TOGETHER "And those of a folder with those of its sub-folders" OFF)

# Up to `count` sources of a target are compiled together: most of their time goes into headers and
# templates that they have in common. Names in unnamed namespaces of a folder have to differ.
# FLUGS_TOGETHER=OFF, the preset dev, compiles one at a time: quicker after a change of one.
function(flugs_together target count)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${FLUGS_TOGETHER} UNITY_BUILD_BATCH_SIZE ${count})
endfunction()

# What each of our targets is compiled with: warnings in developer mode, the sanitizer asked for.
# The library (LAYER) has the checks for undefined behaviour but for two (object-size, vptr), which
# find little beside the address sanitizer. Our programs and tests go without two more; the four are
# a third of the time to compile them. The address sanitizer still stops at a null pointer that is
# read; a misaligned one is not noticed there.
# BRIEF: beside the library it does little work: a sanitizer's build does not optimise it.
# UNTIMED: its own work is in no figure, so the release build compiles it with -Og, in half of the
# time that -O3 takes.
function(flugs_settings target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  if("UNTIMED" IN_LIST ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  endif()
  if(FLUGS_DEVELOPER)
    # Objects say nothing of where the checkout is: ccache finds those of another one.
    target_compile_options(${target} PRIVATE -fdebug-prefix-map=${PROJECT_SOURCE_DIR}=.
                                             -fmacro-prefix-map=${PROJECT_SOURCE_DIR}=.
      $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
    # GCC collects garbage for a tenth of its time. It may leave up to two gigabytes instead: the
    # largest of our sources has half as much.
    set(no_collection "SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=2000000")
    target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:${no_collection}>")
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror)
    # GCC 12 sees an overlapping copy in every `"text" + std::string` (GCC bug 105651).
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
    # GCC 12's own std::stable_sort uses what Clang 19 calls deprecated.
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
  endif()
  # GCC's instrumentation makes it see uninitialised reads inside the standard library.
  set(flags -fno-omit-frame-pointer $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(FLUGS_SANITIZE STREQUAL "address")
    list(APPEND flags -fsanitize=address,undefined -fno-sanitize-recover=all)
    # As GCC defines it. Tests do a tenth of their work under a sanitizer.
    list(APPEND flags $<$<CXX_COMPILER_ID:Clang>:-D__SANITIZE_ADDRESS__=1>)
    # A frame of its own on the heap for each call that has variables on the stack would find uses
    # of them after the return. It takes up to half of a test's time and a third of the compiler's.
    # The fuzzers' build has it (preset libfuzzer).
    list(APPEND flags $<$<CXX_COMPILER_ID:Clang>:-fsanitize-address-use-after-return=never>)
    list(APPEND flags -fno-sanitize=object-size,vptr)
    if(NOT "LAYER" IN_LIST ARGN)
      list(APPEND flags -fno-sanitize=null,alignment)
    endif()
  elseif(FLUGS_SANITIZE STREQUAL "thread")
    # Neither compiler models std::atomic_thread_fence, and GCC warns of it; the fences we have
    # order stores to the medium, not memory accesses between threads. GCC defines the macro.
    list(APPEND flags -fsanitize=thread $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>
                      $<$<CXX_COMPILER_ID:Clang>:-D__SANITIZE_THREAD__=1>)
  else()
    return()
  endif()
  if("BRIEF" IN_LIST ARGN)
    list(APPEND flags -O0)
  endif()
  target_compile_options(${target} PRIVATE ${flags})
  target_link_options(${target} PRIVATE ${flags})
endfunction()

# One folder of the library: flugs_layer(columns SOURCES column.cc ... USES base pmem fmt::fmt), or
# a sub-folder with a layer of its own: flugs_layer(tables/rows ...).
# USES names the layers below, which must exist already, and packages; tools/tidy.py holds every
# #include to the same order.
function(flugs_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES")
  string(REPLACE / _ layer ${name})
  if(NOT arg_SOURCES)  # headers only
    add_library(flugs_${layer} INTERFACE)
    return()
  endif()
  add_library(flugs_${layer} OBJECT ${arg_SOURCES})
  target_include_directories(flugs_${layer} PRIVATE ${PROJECT_SOURCE_DIR}
                                                   ${PROJECT_SOURCE_DIR}/include)
  foreach(used IN LISTS arg_USES)
    string(REPLACE / _ below ${used})
    if(used MATCHES "::")
      target_link_libraries(flugs_${layer} PRIVATE ${used})
    elseif(NOT TARGET flugs_${below})
      message(FATAL_ERROR "layer ${name} uses ${used}, which is not below it")
    endif()
  endforeach()
  flugs_settings(flugs_${layer} LAYER)
  flugs_together(flugs_${layer} 20)
  set_property(GLOBAL APPEND PROPERTY FLUGS_LAYERS flugs_${layer})
endfunction()

# FLUGS_FOLDERS_TOGETHER, the presets of the sanitizers and scm-test: layers of one folder of the
# root are compiled together, up to 40 sources, in two thirds of the time. Not for what is shipped:
# GCC inlines less in larger sources, and would have to be told anew what matters. Those that are
# always compiled alone stay where they are.
function(flugs_join_layers objects)
  get_property(layers GLOBAL PROPERTY FLUGS_LAYERS)
  set(result ${layers})
  if(FLUGS_TOGETHER AND FLUGS_FOLDERS_TOGETHER)
    set(result "")
    foreach(layer IN LISTS layers)
      get_target_property(directory ${layer} SOURCE_DIR)
      get_target_property(sources ${layer} SOURCES)
      string(REGEX REPLACE "^flugs_([a-z]*).*" "flugs_all_\\1" joined ${layer})
      set(alone "")
      foreach(source IN LISTS sources)
        get_source_file_property(is_alone ${directory}/${source} TARGET_DIRECTORY ${layer}
                                 SKIP_UNITY_BUILD_INCLUSION)
        if(is_alone)
          list(APPEND alone ${source})
        else()
          list(APPEND ${joined} ${directory}/${source})
        endif()
      endforeach()
      if(alone)
        set_property(TARGET ${layer} PROPERTY SOURCES ${alone})
        list(APPEND result ${layer})
      else()
        set_property(TARGET ${layer} PROPERTY EXCLUDE_FROM_ALL ON)
      endif()
      if(NOT joined IN_LIST result)
        list(APPEND result ${joined})
      endif()
    endforeach()
    foreach(joined IN LISTS result)
      if(NOT TARGET ${joined})
        add_library(${joined} OBJECT ${${joined}})
        target_include_directories(${joined} PRIVATE ${PROJECT_SOURCE_DIR}
                                                     ${PROJECT_SOURCE_DIR}/include)
        target_include_directories(${joined} SYSTEM PRIVATE ${PMEMOBJ_INCLUDE_DIRS})
        target_link_libraries(${joined} PRIVATE ${FLUGS_PACKAGES})
        flugs_settings(${joined} LAYER)
        # It minds names in headers that a source alone does not include: the release build asks it.
        target_compile_options(${joined} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-shadow>)
        flugs_together(${joined} 40)
      endif()
    endforeach()
  endif()
  list(TRANSFORM result REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  set(${objects} ${result} PARENT_SCOPE)
endfunction()

# Links jemalloc if it is there, unless a sanitizer brings its own allocator. The library itself
# never forces an allocator on its users.
function(flugs_allocator target)
  if(NOT FLUGS_SANITIZE AND TARGET PkgConfig::JEMALLOC)
    target_link_libraries(${target} PRIVATE PkgConfig::JEMALLOC)
  endif()
endfunction()

# A program: flugs_program(target SOURCES ... USES ...), on jemalloc.
function(flugs_program target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE flugs_internals ${arg_USES})
  flugs_allocator(${target})
  flugs_settings(${target})
endfunction()

# Sets the path on which an installed target looks for libraries; the folders of libraries that it
# was linked with follow. A build without a shared libflugs uses it, too: otherwise CMake fills the
# place of a longer path with colons, and the loader takes each colon for the working directory.
function(flugs_rpath target path)
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH ${path} INSTALL_RPATH_USE_LINK_PATH ON)
  if(NOT BUILD_SHARED_LIBS)
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()
endfunction()
