#include "bindings/python/src/values.h"

#include <datetime.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

namespace flugs::python {

namespace {

constexpr std::int64_t kSecond = 1'000'000;  // microseconds
constexpr std::int64_t kDay = 86'400 * kSecond;

// They live as long as the interpreter.
PyObject* decimal_class = nullptr;
PyObject* utc = nullptr;

[[noreturn]] void raise_python(PyObject* type, const char* message) {
  PyErr_SetString(type, message);
  throw nb::python_error();
}

Value from_int(PyObject* object) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0) raise_python(PyExc_OverflowError, "an int of more than 64 bits");
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return Value::int64(number);
}

std::int64_t days_of(PyObject* date) {
  const std::chrono::year_month_day day{
      std::chrono::year(PyDateTime_GET_YEAR(date)),
      std::chrono::month(static_cast<unsigned>(PyDateTime_GET_MONTH(date))),
      std::chrono::day(static_cast<unsigned>(PyDateTime_GET_DAY(date)))};
  return std::chrono::sys_days(day).time_since_epoch().count();
}

/// Subclasses may be no time, as pandas.NaT, or have nanoseconds.
void check_subclass(nb::handle object) {
  const nb::object equal = nb::steal(PyObject_RichCompare(object.ptr(), object.ptr(), Py_EQ));
  if (!equal.is_valid()) throw nb::python_error();
  if (PyObject_IsTrue(equal.ptr()) != 1)
    raise_python(PyExc_ValueError, "no time, as NaT is: None is NULL");
  const nb::object nanoseconds = nb::getattr(object, "nanosecond", nb::int_(0));
  if (PyObject_IsTrue(nanoseconds.ptr()) != 0)
    raise_python(PyExc_ValueError, "a time with nanoseconds: a timestamp has microseconds");
}

/// Naive times are UTC, others are converted to it.
Value from_datetime(nb::handle object) {
  if (!PyDateTime_CheckExact(object.ptr())) check_subclass(object);
  nb::object time = nb::borrow(object);
  if (!nb::object(time.attr("tzinfo")).is_none()) time = time.attr("astimezone")(nb::handle(utc));
  PyObject* const p = time.ptr();
  const std::int64_t seconds = PyDateTime_DATE_GET_HOUR(p) * 3600 +
                               PyDateTime_DATE_GET_MINUTE(p) * 60 + PyDateTime_DATE_GET_SECOND(p);
  return Value::timestamp(days_of(p) * kDay + seconds * kSecond +
                          PyDateTime_DATE_GET_MICROSECOND(p));
}

Value from_decimal(nb::handle object) {
  nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  Value value;
  if (Value::parse_decimal(text_of(text), value)) return value;
  text = nb::module_::import_("builtins").attr("format")(object, "f");  // no exponent
  if (Value::parse_decimal(text_of(text), value)) return value;
  const std::string message =
      "a decimal of more than 64 bits or 18 digits after the point: " + std::string(text_of(text));
  raise_python(PyExc_ValueError, message.c_str());
}

/// The scalars of NumPy that are neither numbers of Python nor usable as an index.
bool from_numpy(PyObject* object, Value& value) {
  const std::string_view type = Py_TYPE(object)->tp_name;
  if (type == "numpy.bool" || type == "numpy.bool_") {
    value = Value::boolean(PyObject_IsTrue(object) == 1);
  } else if (type == "numpy.float32" || type == "numpy.float16") {
    value = Value::real(PyFloat_AsDouble(object));
  } else {
    return false;
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return true;
}

/// What is left when no exact type of Python fits: subclasses and types of other modules.
Value from_other(nb::handle object, Kept* kept) {
  PyObject* const p = object.ptr();
  if (PyBytes_Check(p)) {
    if (kept != nullptr) kept->push_back(nb::borrow(object));
    return Value::bytes({PyBytes_AS_STRING(p), static_cast<std::size_t>(PyBytes_GET_SIZE(p))});
  }
  if (PyDateTime_Check(p)) return from_datetime(object);
  if (PyDate_Check(p)) return Value::date(static_cast<std::int32_t>(days_of(p)));
  if (PyObject_IsInstance(p, decimal_class) == 1) return from_decimal(object);
  if (PyUnicode_Check(p)) {
    if (kept != nullptr) kept->push_back(nb::borrow(object));
    return Value::string(text_of(object));
  }
  if (PyFloat_Check(p)) return Value::real(PyFloat_AS_DOUBLE(p));
  if (Value value; from_numpy(p, value)) return value;
  if (PyIndex_Check(p)) {
    const nb::object number = nb::steal(PyNumber_Index(p));
    if (!number.is_valid()) throw nb::python_error();
    return from_int(number.ptr());
  }
  const nb::object name = nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(p))).attr("__name__");
  const std::string message = "flugs has no type for values of " + nb::cast<std::string>(name);
  raise_python(PyExc_TypeError, message.c_str());
}

nb::object checked(PyObject* made) {
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

nb::object to_decimal(std::int64_t units, std::uint8_t scale) {
  const bool is_negative = units < 0;
  std::string digits = std::to_string(units);
  if (is_negative) digits.erase(0, 1);
  if (scale > 0) {
    if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
    digits.insert(digits.size() - scale, 1, '.');
  }
  if (is_negative) digits.insert(0, 1, '-');
  const nb::object text =
      checked(PyUnicode_FromStringAndSize(digits.data(), static_cast<Py_ssize_t>(digits.size())));
  return checked(PyObject_CallOneArg(decimal_class, text.ptr()));
}

std::chrono::year_month_day day_of(std::int64_t days) {
  // What datetime can hold: 0001-01-01 to 9999-12-31.
  if (days < -719'162 || days > 2'932'896)
    raise_python(PyExc_OverflowError, "a date outside of the years 1 to 9999");
  return std::chrono::sys_days(std::chrono::days(days));
}

nb::object to_date(std::int64_t days) {
  const std::chrono::year_month_day day = day_of(days);
  return checked(PyDate_FromDate(int(day.year()), static_cast<int>(unsigned(day.month())),
                                 static_cast<int>(unsigned(day.day()))));
}

nb::object to_datetime(std::int64_t microseconds) {
  std::int64_t days = microseconds / kDay;
  std::int64_t rest = microseconds % kDay;
  if (rest < 0) {
    rest += kDay;
    --days;
  }
  const std::chrono::year_month_day day = day_of(days);
  const int seconds = static_cast<int>(rest / kSecond);
  return checked(PyDateTime_FromDateAndTime(
      int(day.year()), static_cast<int>(unsigned(day.month())),
      static_cast<int>(unsigned(day.day())), seconds / 3600, seconds / 60 % 60, seconds % 60,
      static_cast<int>(rest % kSecond)));
}

}  // namespace

void load_values() {
  PyDateTime_IMPORT;
  if (PyDateTimeAPI == nullptr) throw nb::python_error();
  decimal_class = nb::object(nb::module_::import_("decimal").attr("Decimal")).release().ptr();
  utc = nb::borrow(PyDateTime_TimeZone_UTC).release().ptr();
}

std::string_view text_of(nb::handle object) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (bytes == nullptr) throw nb::python_error();
  return {bytes, static_cast<std::size_t>(size)};
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  constexpr double kMost = 30.0 * 366 * 86'400;  // far from the end of any clock
  if (std::isnan(seconds)) raise_python(PyExc_ValueError, "NaN is no number of seconds");
  const double bounded = std::clamp(seconds, -kMost, kMost);
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(bounded * 1000)));
}

Value to_value(nb::handle object, Kept* kept) {
  PyObject* const p = object.ptr();
  if (PyLong_CheckExact(p)) return from_int(p);
  if (PyUnicode_CheckExact(p)) {
    if (kept != nullptr) kept->push_back(nb::borrow(object));
    return Value::string(text_of(object));
  }
  if (PyFloat_CheckExact(p)) return Value::real(PyFloat_AS_DOUBLE(p));
  if (p == Py_None) return Value::null();
  if (PyBool_Check(p)) return Value::boolean(p == Py_True);
  return from_other(object, kept);
}

nb::object from_raw(Type type, std::uint8_t scale, std::int64_t raw) {
  switch (type) {
    case Type::kBool:
      return nb::borrow(raw != 0 ? Py_True : Py_False);
    case Type::kDouble:
      return checked(PyFloat_FromDouble(std::bit_cast<double>(raw)));
    case Type::kDecimal:
      return to_decimal(raw, scale);
    case Type::kDate:
      return to_date(raw);
    case Type::kTimestamp:
      return to_datetime(raw);
    default:
      return checked(PyLong_FromLongLong(raw));
  }
}

nb::object from_text(Type type, std::string_view text) {
  const auto size = static_cast<Py_ssize_t>(text.size());
  if (type == Type::kBytes) return checked(PyBytes_FromStringAndSize(text.data(), size));
  return checked(PyUnicode_DecodeUTF8(text.data(), size, nullptr));
}

nb::object from_value(const Value& value, std::uint8_t scale) {
  if (value.is_null()) return nb::none();
  if (value.type() == Type::kString || value.type() == Type::kBytes)
    return from_text(value.type(), value.as_string());
  if (value.type() == Type::kDecimal && value.scale() != Value::kScaleOfColumn)
    scale = value.scale();
  return from_raw(value.type(), scale, value.raw());
}

}  // namespace flugs::python
