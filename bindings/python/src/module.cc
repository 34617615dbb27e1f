// The module flugs._flugs. The package in bindings/python/flugs gives its names to users.
#include <nanobind/nanobind.h>

#include "bindings/python/src/classes.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/session.h"
#include "bindings/python/src/values.h"

NB_MODULE(_flugs, module) {
  using namespace flugs::python;
  module.doc() = "The engine of flugs.";
  count_forks();
  load_errors();
  load_values();
  bind_expressions(module);
  bind_queries(module);
  bind_results(module);
  bind_rows(module);
  bind_table(module);
  bind_transaction(module);
  bind_database(module);
#ifdef FLUGS_DUCKDB
  bind_duckdb(module);
#endif
  module.def("_check_signals", [] {
    if (PyErr_CheckSignals() != 0) throw flugs::python::nb::python_error();
  });
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Session::close_all));
}
