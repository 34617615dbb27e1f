# Every package the project uses, with the one place that asks for it.

include(CheckCXXSourceCompiles)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED CONFIG)
pkg_check_modules(PMEMOBJ REQUIRED libpmemobj>=1.12)  # headers; loaded at run time
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
# Its -pthread changes nothing, and sources with other options have no use for headers that are
# compiled once.
set_target_properties(PkgConfig::RE2 PROPERTIES INTERFACE_COMPILE_OPTIONS "")

# What a program that links the static library has to link too; also in cmake/flugs-config.cmake.in
# and cmake/flugs.pc.in.
set(FLUGS_PACKAGES PkgConfig::XXHASH PkgConfig::RE2 fmt::fmt Threads::Threads ${CMAKE_DL_LIBS})

# The tool `flugs` needs two packages of headers. Without them a project that wants the library only
# gets the library only.
find_package(CLI11 QUIET CONFIG)
find_package(nlohmann_json QUIET CONFIG)
set(has_tool OFF)
if(PROJECT_IS_TOP_LEVEL AND CLI11_FOUND AND nlohmann_json_FOUND)
  set(has_tool ON)
endif()
option(FLUGS_TOOL "The tool flugs; ON if CLI11 and nlohmann_json are there" ${has_tool})
if(FLUGS_DEVELOPER)
  set(FLUGS_TOOL ON)
endif()
if(FLUGS_TOOL)
  find_package(CLI11 REQUIRED CONFIG)
  find_package(nlohmann_json REQUIRED CONFIG)
  if(NOT FLUGS_DEVELOPER)
    pkg_check_modules(JEMALLOC QUIET IMPORTED_TARGET jemalloc)
  endif()
elseif(PROJECT_IS_TOP_LEVEL)
  message(STATUS "The tool flugs is left out: it needs CLI11, nlohmann_json and FLUGS_TOOL=ON")
endif()
if(FLUGS_TOOL)
  # The tool takes the archive if it needs no other library: it starts in a twenty-fifth less time
  # than with the shared library. Objects that are shared cannot take it.
  find_library(FLUGS_RE2_ARCHIVE NAMES libre2.a)
  if(FLUGS_RE2_ARCHIVE)
    set(CMAKE_REQUIRED_LIBRARIES ${FLUGS_RE2_ARCHIVE} Threads::Threads)
    check_cxx_source_compiles("#include <re2/re2.h>
      int main() { return re2::RE2(\"a\").ok(); }" FLUGS_RE2_ARCHIVE_LINKS)
    unset(CMAKE_REQUIRED_LIBRARIES)
  endif()
endif()
if(FLUGS_SQLITE)
  # Takes the archive if it needs no library that is not linked anyway: the tool starts in a tenth
  # less time than with the shared library.
  find_library(FLUGS_SQLITE_ARCHIVE NAMES libsqlite3.a)
  if(FLUGS_SQLITE_ARCHIVE)
    set(CMAKE_REQUIRED_LIBRARIES ${FLUGS_SQLITE_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS})
    check_cxx_source_compiles("#include <sqlite3.h>
      int main() { return sqlite3_open(nullptr, nullptr); }" FLUGS_SQLITE_ARCHIVE_LINKS)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(FLUGS_SQLITE_ARCHIVE_LINKS)
      set(SQLite3_LIBRARY ${FLUGS_SQLITE_ARCHIVE} CACHE FILEPATH "Library of SQLite")
    endif()
  endif()
  find_package(SQLite3 3.38 QUIET)
  if(NOT SQLite3_FOUND)
    message(STATUS "The extension of SQLite is left out: it needs the headers of SQLite 3.38, "
                   "package libsqlite3-dev")
    set(FLUGS_SQLITE OFF)
  endif()
endif()
# A module with a sanitizer cannot be loaded.
if(FLUGS_SANITIZE)
  set(FLUGS_DUCKDB OFF)
endif()
if(FLUGS_DUCKDB)
  set(FLUGS_DUCKDB_HEADERS ${PROJECT_SOURCE_DIR}/.cache/duckdb CACHE PATH
      "Folder of duckdb_v2.h and duckdb_extension_v2.h of exactly DuckDB 2.0.0")
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(NOT EXISTS ${FLUGS_DUCKDB_HEADERS}/duckdb_extension_v2.h OR NOT Python3_FOUND)
    message(STATUS "The extension of DuckDB is left out: tools/setup --tests gets its headers")
    set(FLUGS_DUCKDB OFF)
  endif()
endif()
# Lines that can be edited in `flugs sql`.
if(FLUGS_TOOL AND FLUGS_SQLITE)
  pkg_check_modules(LIBEDIT QUIET IMPORTED_TARGET libedit)
  if(NOT LIBEDIT_FOUND)
    message(STATUS "flugs sql has no history: that needs package libedit-dev")
  endif()
endif()
if(FLUGS_DEVELOPER)
  find_package(Catch2 2.13 REQUIRED CONFIG)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  find_package(SQLite3 REQUIRED)
  pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
endif()

find_program(CCACHE_PROGRAM ccache)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  if(CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
  # The compiler allocates by jemalloc, which keeps what was freed: Clang takes a fifth less time
  # for a large source, GCC 3 % less.
  if(FLUGS_DEVELOPER)
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER env LD_PRELOAD=${JEMALLOC_LINK_LIBRARIES}
         MALLOC_CONF=narenas:1,dirty_decay_ms:-1,muzzy_decay_ms:-1)
  endif()
endif()
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
