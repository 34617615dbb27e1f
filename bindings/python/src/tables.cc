#include "bindings/python/src/tables.h"

#include <array>
#include <memory>
#include <utility>

#include "bindings/python/src/errors.h"

namespace flugs::python {

namespace {

// While one thread at a time runs, a call that does not let go of the interpreter needs no
// references of its own.
#ifdef Py_GIL_DISABLED
constexpr bool kThreadsRun = true;
#else
constexpr bool kThreadsRun = false;
#endif

Kept* kept_if_needed(Kept& kept) noexcept { return kThreadsRun ? &kept : nullptr; }

constexpr std::size_t kColumnsOnStack = 32;

[[noreturn]] void raise_type(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw nb::python_error();
}

void find_columns(TableInfo& info) {
  for (std::size_t i = 0; i < info.schema.columns.size(); ++i) {
    const ColumnSchema& column = info.schema.columns[i];
    ColumnInfo& found = info.columns.emplace_back();
    found.id = ColumnId(static_cast<std::uint16_t>(i));
    found.scale = column.scale;
    info.has_numbers |= column.auto_increment;
    info.has_dropped |= column.dropped;
    if (column.dropped) continue;
    found.name = nb::steal(PyUnicode_InternFromString(column.name.c_str()));
    if (!found.name.is_valid()) throw nb::python_error();
    info.positions[found.name] = i;
    info.empty_row[found.name] = nb::none();
  }
}

Status find_keys(TableInfo& info, const Database& database) {
  for (std::size_t i = 0; i < info.schema.keys.size(); ++i) {
    const KeySchema& key = info.schema.keys[i];
    KeyInfo& found = info.keys.emplace_back();
    if (key.dropped) continue;
    found.name = key.name;
    found.id = KeyId{info.id, static_cast<std::uint16_t>(i)};
    found.is_ordered = key.ordered;
    if (!key.unique) continue;
    Result<Prepared> prepared = database.prepare(found.id);
    if (!prepared.ok()) return prepared.status();
    found.prepared = *std::move(prepared);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TableInfo>> TableInfo::find(const Database& database,
                                                   std::string_view name) {
  Result<Table> table = database.table(name);
  if (!table.ok()) return table.status();
  auto info = std::make_unique<TableInfo>();
  info->id = table->id();
  info->name = name;
  info->schema = table->schema();
  find_columns(*info);
  if (Status s = find_keys(*info, database); !s.ok()) return s;
  return info;
}

const KeyInfo& TableInfo::key(nb::handle wanted) const {
  const std::string_view name_of_key = wanted.is_none() ? "primary" : text_of(wanted);
  for (const KeyInfo& key : keys)
    if (!name_of_key.empty() && key.name == name_of_key) return key;
  std::string message = "table " + name + ": no key " + std::string(name_of_key);
  raise(Status(StatusCode::kNotFound, std::move(message)), {.table = this});
}

const KeyInfo& TableInfo::unique_key(nb::handle wanted) const {
  const KeyInfo& found = wanted.is_none() && schema.has_primary_key ? keys.front() : key(wanted);
  if (found.prepared.has_value()) return found;
  raise(Status(StatusCode::kInvalidArgument,
               "table " + name + ", key " + found.name + ": not unique, use rows"),
        {.table = this});
}

const ColumnInfo& TableInfo::column(nb::handle wanted) const {
  PyObject* const position = PyDict_GetItemWithError(positions.ptr(), wanted.ptr());
  if (position != nullptr) return columns[PyLong_AsSize_t(position)];
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!nb::isinstance<nb::str>(wanted)) raise_type("names of columns are str");
  std::string message = "table " + name + ": no column " + std::string(text_of(wanted));
  raise(Status(StatusCode::kNotFound, std::move(message)), {.table = this});
}

const TableInfo* KnownTables::find(std::string_view name) const noexcept {
  const TableInfo* table = heads_[bucket_of(name)].load(std::memory_order_acquire);
  while (table != nullptr && table->name != name) table = table->next;
  return table;
}

const TableInfo* KnownTables::keep(std::unique_ptr<TableInfo> found,
                                   std::uint64_t times_forgotten) {
  const std::lock_guard lock(mutex_);
  if (times_forgotten_.load(std::memory_order_relaxed) != times_forgotten) return nullptr;
  std::atomic<const TableInfo*>& head = heads_[bucket_of(found->name)];
  found->next = head.load(std::memory_order_relaxed);
  const TableInfo* const kept = all_.emplace_back(std::move(found)).get();
  head.store(kept, std::memory_order_release);
  return kept;
}

void KnownTables::forget() noexcept {
  const std::lock_guard lock(mutex_);
  times_forgotten_.fetch_add(1, std::memory_order_release);
  for (std::atomic<const TableInfo*>& head : heads_) head.store(nullptr, std::memory_order_release);
}

void KnownTables::leave() noexcept {
  for (std::unique_ptr<TableInfo>& table : all_) static_cast<void>(table.release());
}

nb::object to_dict(const TableInfo& table, const Row& row) {
  const std::size_t count = table.columns.size();
  const bool fits = count <= kColumnsOnStack;
  FewValues<kColumnsOnStack> few(fits ? count : 0);
  std::vector<Value> many(fits ? 0 : count);
  const std::span<Value> values = fits ? few.all() : std::span<Value>(many);
  row.get_all(values);
  return to_dict(table, values);
}

nb::object to_dict(const TableInfo& table, std::span<const Value> values) {
  // A copy is quicker, but threads that run at the same time would wait for each other to make it.
  nb::object dict = nb::steal(kThreadsRun ? PyDict_New() : PyDict_Copy(table.empty_row.ptr()));
  if (!dict.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ColumnInfo& column = table.columns[i];
    if (!column.name.is_valid() || (!kThreadsRun && values[i].is_null())) continue;
    const nb::object value = from_value(values[i], column.scale);
    if (PyDict_SetItem(dict.ptr(), column.name.ptr(), value.ptr()) != 0) throw nb::python_error();
  }
  return dict;
}

void append_row(const TableInfo& table, nb::handle row, std::vector<Value>& values, Kept* kept) {
  const bool is_tuple = PyTuple_Check(row.ptr());
  if (!is_tuple && !PyList_Check(row.ptr())) raise_type("a row is a dict, a tuple or a list");
  const auto size = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(row.ptr()));
  const std::size_t wanted = nb::len(table.positions);
  if (size != wanted) {
    std::string message = "table " + table.name + ": a row of " + std::to_string(size) +
                          " values, expected " + std::to_string(wanted);
    raise(Status(StatusCode::kInvalidArgument, std::move(message)), {.table = &table});
  }
  std::size_t next = 0;
  for (const ColumnInfo& column : table.columns) {
    if (!column.name.is_valid()) {
      values.push_back(Value::null());
      continue;
    }
    if (is_tuple) {
      values.push_back(to_value(PyTuple_GET_ITEM(row.ptr(), next++), kept));
      continue;
    }
    const nb::object value = nb::steal(PySequence_GetItem(row.ptr(), next++));
    if (!value.is_valid()) throw nb::python_error();
    values.push_back(to_value(value, kept));
  }
}

RowValues::RowValues(const TableInfo& table, nb::handle row, Kept* kept) {
  if (!PyDict_Check(row.ptr())) {
    if (nb::hasattr(row, "keys")) {
      const nb::dict copy = nb::cast<nb::dict>(nb::handle(&PyDict_Type)(row));
      *this = RowValues(table, copy, kept);
      (kept != nullptr ? *kept : kept_).push_back(copy);
      return;
    }
    is_whole_ = true;
    whole_.reserve(table.columns.size());
    // A list may change while a value is converted.
    if (kept == nullptr) kept = PyTuple_Check(row.ptr()) ? kept_if_needed(kept_) : &kept_;
    append_row(table, row, whole_, kept);
    return;
  }
  const nb::ft_object_guard guard(row);  // against threads that change it
  given_.reserve(nb::len(nb::borrow<nb::dict>(row)));
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  // So may a dict, by what an object does that is converted.
  bool is_plain = true;
  for (Py_ssize_t place = 0; PyDict_Next(row.ptr(), &place, &name, &value) != 0;)
    is_plain = is_plain && converts_alone(value) && PyUnicode_CheckExact(name);
  if (kept == nullptr) kept = is_plain ? kept_if_needed(kept_) : &kept_;
  for (Py_ssize_t place = 0; PyDict_Next(row.ptr(), &place, &name, &value) != 0;) {
    const nb::object held_name = nb::borrow(name);
    const nb::object held = nb::borrow(value);
    given_.push_back({table.column(held_name).id, to_value(held, kept)});
  }
}

std::span<const Value> RowValues::complete(const TableInfo& table) {
  if (is_whole_) return whole_;
  whole_.clear();
  for (const ColumnSchema& column : table.schema.columns)
    whole_.push_back(column.default_value.has_value() && !column.dropped
                         ? column.default_value->value()
                         : Value::null());
  for (const ColumnValue& given : given_) whole_[given.column.value()] = given.value;
  return whole_;
}

KeyValues::KeyValues(nb::handle values) {
  if (!PyTuple_Check(values.ptr())) {
    values_.add(to_value(values, kept_if_needed(kept_)));
    return;
  }
  const auto size = static_cast<std::size_t>(PyTuple_GET_SIZE(values.ptr()));
  if (size > kMost) raise_type("a key has at most 16 values");
  for (std::size_t i = 0; i < size; ++i)
    values_.add(to_value(PyTuple_GET_ITEM(values.ptr(), i), kept_if_needed(kept_)));
}

}  // namespace flugs::python
