// The program stands for a DuckDB of another version: the extension must find its functions by
// name, and must not touch its table of functions.

#include <string>

#include <catch2/catch.hpp>
#include "bindings/duckdb/adapter.h"
#include "bindings/duckdb/api.h"

#undef duckdb_v2_error_info_set_code
#undef duckdb_v2_error_info_set_text

namespace {

std::string version_here = "v2.0.1";
DUCKDB_V2_ERROR code_set = DUCKDB_V2_ERROR_NONE;
std::string text_set;
int tables_given = 0;

const void* give_table(duckdb_v2_extension_handle /*extension*/, const char* /*version*/) {
  ++tables_given;
  return nullptr;
}

void load() {
  code_set = DUCKDB_V2_ERROR_NONE;
  text_set.clear();
  tables_given = 0;
  duckdb_v2_error_info_handle slot = nullptr;
  duckdb_v2_extension_input input{&give_table, nullptr, nullptr, &slot};
  flugs::duckdb::start(&input);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) const char* duckdb_library_version() {
  return version_here.c_str();
}
__attribute__((visibility("default"))) DUCKDB_V2_ERROR
duckdb_v2_error_info_set_code(duckdb_v2_error_info_handle /*info*/, DUCKDB_V2_ERROR code) {
  code_set = code;
  return DUCKDB_V2_ERROR_NONE;
}
__attribute__((visibility("default"))) DUCKDB_V2_ERROR
duckdb_v2_error_info_set_text(duckdb_v2_error_info_handle /*info*/, const duckdb_v2_str* text) {
  text_set = std::string(flugs::duckdb::view_of(*text));
  return DUCKDB_V2_ERROR_NONE;
}
}

TEST_CASE("another version of DuckDB is refused before it is asked for its functions",
          "[duckdb][unit]") {
  load();
  CHECK(tables_given == 0);
  CHECK(code_set == DUCKDB_V2_ERROR_INPUT_INVALID);
  CHECK(text_set ==
        "this extension of flugs is for DuckDB 2.0.0, and this is 2.0.1; install duckdb==2.0.0");
}

TEST_CASE("the version of the headers is asked for its functions", "[duckdb][unit]") {
  version_here = "v2.0.0";
  load();
  version_here = "v2.0.1";
  CHECK(tables_given == 1);
  CHECK(text_set.empty());
}
