#include "bindings/python/src/errors.h"

#include <array>
#include <string>
#include <string_view>

#include "bindings/python/src/tables.h"

namespace flugs::python {

namespace {

constexpr std::size_t kCodes = static_cast<std::size_t>(StatusCode::kOverflow) + 1;

// Borrowed from the module of Python, which lives as long as the interpreter.
std::array<PyObject*, kCodes> classes{};
PyObject* closed_class = nullptr;
PyObject* error_class = nullptr;

const char* kind_of(SchemaPart::Kind kind) {
  switch (kind) {
    case SchemaPart::Kind::kTable:
      break;
    case SchemaPart::Kind::kColumn:
      return "column";
    case SchemaPart::Kind::kKey:
      return "key";
    case SchemaPart::Kind::kForeignKey:
      return "foreign_key";
    case SchemaPart::Kind::kCheck:
      return "check";
  }
  return "table";
}

}  // namespace

void load_errors() {
  const nb::module_ module = nb::module_::import_("flugs._errors");
  const nb::object by_code = module.attr("BY_CODE");
  for (std::size_t code = 1; code < kCodes; ++code) {
    const std::string_view name = to_string(static_cast<StatusCode>(code));
    classes[code] = nb::object(by_code[nb::str(name.data(), name.size())]).release().ptr();
  }
  closed_class = nb::object(module.attr("Closed")).release().ptr();
  error_class = nb::object(module.attr("Error")).release().ptr();
}

nb::object make_error(const Status& status, const Where& where) {
  const std::string text = status.to_string();
  // It may name a file, whose name need not be UTF-8.
  const nb::object message =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (!message.is_valid()) throw nb::python_error();
  nb::object error = nb::borrow(classes[static_cast<std::size_t>(status.code())])(message);
  const SchemaPart* const part = status.part();
  if (part != nullptr)
    error.attr("table") = part->table.c_str();
  else if (where.table != nullptr)
    error.attr("table") = where.table->name.c_str();
  if (part != nullptr && part->kind != SchemaPart::Kind::kTable)
    error.attr(kind_of(part->kind)) = part->name.c_str();
  const bool is_about_table =
      part == nullptr || (part->kind == SchemaPart::Kind::kTable && where.table != nullptr &&
                          part->table == where.table->name);
  if (where.key != nullptr && is_about_table) error.attr("key") = where.key;
  if (where.values.is_valid()) error.attr("values") = where.values;
  return error;
}

void raise(const Status& status, const Where& where) {
  const nb::object error = make_error(status, where);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void raise_closed(const char* message) {
  PyErr_SetString(closed_class, message);
  throw nb::python_error();
}

StatusCode code_of(const nb::python_error& error) {
  if (!error.matches(error_class)) return StatusCode::kOk;
  for (std::size_t code = 1; code < kCodes; ++code)
    if (error.matches(classes[code])) return static_cast<StatusCode>(code);
  return StatusCode::kOk;
}

}  // namespace flugs::python
