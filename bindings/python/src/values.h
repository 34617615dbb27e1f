#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/python/src/interpreter.h"
#include "flugs/value.h"

namespace flugs::python {

/// Objects that must live as long as views of their bytes are used.
using Kept = std::vector<nb::object>;

/// Finds the types that values have in Python: datetime and decimal.
void load_values();

/// The value of an object. A text of the result is a view of the object's bytes. If `kept` is
/// given, it gets a reference to an object with a text. Throws: TypeError, OverflowError,
/// ValueError.
Value to_value(nb::handle object, Kept* kept = nullptr);
/// Whether to_value runs no code of Python for the object.
inline bool converts_alone(nb::handle object) noexcept {
  PyObject* const p = object.ptr();
  return PyLong_CheckExact(p) || PyUnicode_CheckExact(p) || PyFloat_CheckExact(p) || p == Py_None ||
         PyBool_Check(p) || PyBytes_CheckExact(p);
}
/// A new object. `scale` is that of a decimal of the column that the value is from.
nb::object from_value(const Value& value, std::uint8_t scale = 0);
/// The same for a value that is not NULL, of which `raw` is the payload, or `text` the bytes.
nb::object from_raw(Type type, std::uint8_t scale, std::int64_t raw);
nb::object from_text(Type type, std::string_view text);
/// Seconds of Python, rounded up; what is longer than 30 years, also infinity, becomes that. Throws
/// ValueError for NaN.
std::chrono::milliseconds milliseconds_of(double seconds);
/// The text of a str.
std::string_view text_of(nb::handle object);

}  // namespace flugs::python
