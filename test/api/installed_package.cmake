# Installs flugs into a prefix of its own and builds and runs test/api/consumer against it, once
# with find_package and once with pkg-config. The installed tool makes a pool and looks at it.
#   cmake -D BUILD_DIR=... -D SOURCE_DIR=... -D CXX=... -D CC=... -P installed_package.cmake

set(work ${BUILD_DIR}/installed_package)
file(REMOVE_RECURSE ${work})

function(must)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

must(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/prefix)
# Moved, so that a path of the build that got into the package is noticed.
file(RENAME ${work}/prefix ${work}/moved)

must(${CMAKE_COMMAND} -S ${SOURCE_DIR}/test/api/consumer -B ${work}/by_cmake -G Ninja
     -D CMAKE_PREFIX_PATH=${work}/moved -D CMAKE_CXX_COMPILER=${CXX})
must(${CMAKE_COMMAND} --build ${work}/by_cmake)
must(${work}/by_cmake/consumer ${work}/by_cmake.pool)

file(GLOB_RECURSE package_file ${work}/moved/*/flugs.pc)
cmake_path(GET package_file PARENT_PATH package_dir)
set(ENV{PKG_CONFIG_PATH} ${package_dir})
must(pkg-config --cflags --libs flugs)
separate_arguments(flags UNIX_COMMAND "${output}")
cmake_path(GET package_dir PARENT_PATH library_dir)
must(${CXX} -std=c++20 ${SOURCE_DIR}/test/api/consumer/consumer.cc -o ${work}/by_pkg_config
     ${flags} -Wl,-rpath,${library_dir})
must(${work}/by_pkg_config ${work}/by_pkg_config.pool)

# The C ABI needs neither a C++ compiler nor any header but its own.
must(pkg-config --cflags --libs flugs_c)
separate_arguments(flags UNIX_COMMAND "${output}")
must(${CC} -std=c11 -Wall -Wextra -Wpedantic -Werror ${SOURCE_DIR}/docs/snippets/c_shop.c
     -o ${work}/by_c ${flags} -Wl,-rpath,${library_dir})
must(${work}/by_c ${work}/by_c.pool)

# The tool: of this build, and a part of a build without developer packages unless that is unwanted.
set(tool ${work}/moved/bin/flugs)
must(${tool} --version)
must(${tool} bench merge --rows 1000 --pool ${work}/tool.pool --keep)
must(${tool} pool info ${work}/tool.pool)
must(${tool} pool check ${work}/tool.pool)
must(${tool} pool schema ${work}/tool.pool)
if(NOT output MATCHES "CREATE TABLE")
  message(FATAL_ERROR "flugs pool schema printed\n${output}")
endif()
foreach(wanted IN ITEMS ON OFF)
  must(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${work}/library_${wanted} -G Ninja
       -D FLUGS_DEVELOPER=OFF -D FLUGS_TOOL=${wanted} -D CMAKE_CXX_COMPILER=${CXX})
  must(${CMAKE_COMMAND} --build ${work}/library_${wanted} --target help)
  string(FIND "${output}" "flugs_tool: phony" found)
  if((wanted AND found EQUAL -1) OR NOT (wanted OR found EQUAL -1))
    message(FATAL_ERROR "FLUGS_TOOL=${wanted}, and the targets are\n${output}")
  endif()
endforeach()
