// The file that DuckDB loads. A program that has databases open may link the adapter as well, and
// make this file pass DuckDB on to it: then DuckDB sees these databases.

#include "bindings/duckdb/adapter.h"

namespace {

using Start = void (*)(duckdb_v2_extension_input* input);

Start start_of_program = nullptr;

}  // namespace

/// `start` gets what DuckDB passes to the extension, from the next LOAD on; null: the extension
/// itself does. Call it before DuckDB loads the file, and while it loads nothing.
extern "C" __attribute__((visibility("default"))) void flugs_duckdb_delegate(Start start) {
  start_of_program = start;
}

extern "C" __attribute__((visibility("default"))) void flugs_init_c_api_v2(
    duckdb_v2_extension_input* input) {
  if (start_of_program != nullptr)
    start_of_program(input);
  else
    flugs::duckdb::start(input);
}
