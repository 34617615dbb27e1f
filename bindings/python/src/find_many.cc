// Rows of many keys: while they are looked up and decoded, other threads of Python run.

#include <optional>
#include <vector>

#include "bindings/python/src/errors.h"
#include "bindings/python/src/writes.h"

namespace flugs::python {

namespace {

// Keys that are looked up at a time. Their rows fit the second-level cache, and signals are looked
// for in between.
constexpr std::size_t kKeysAtOnce = 1024;

/// Some keys, and what is found for them.
struct Group {
  std::vector<Value> keys;  // of each key a value for each of its columns
  std::size_t count = 0;
  Kept kept;
  std::vector<std::optional<Row>> rows;
  std::vector<Value> values;  // of each row that was found, one after the other
};

/// Whether there may be more keys behind these.
bool take_keys(nb::handle iterator, const TableInfo& table, const KeyInfo& key,
               const Session& session, Group& group) {
  const std::size_t width = table.schema.keys[key.id.index].columns.size();
  group.keys.clear();
  group.kept.clear();
  for (group.count = 0; group.count < kKeysAtOnce; ++group.count) {
    const nb::object of_one = nb::steal(PyIter_Next(iterator.ptr()));
    if (!of_one.is_valid()) {
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return false;
    }
    session.check_open();  // the iterator may take long
    const bool is_tuple = PyTuple_Check(of_one.ptr());
    const std::size_t size =
        is_tuple ? static_cast<std::size_t>(PyTuple_GET_SIZE(of_one.ptr())) : 1;
    if (size != width) {
      std::string message = "table " + table.name + ", key " + key.name + ": a key of " +
                            std::to_string(size) + " values, expected " + std::to_string(width);
      raise(Status(StatusCode::kInvalidArgument, std::move(message)),
            {&table, key.name.c_str(), of_one});
    }
    for (std::size_t i = 0; i < size; ++i) {
      PyObject* const value = is_tuple ? PyTuple_GET_ITEM(of_one.ptr(), i) : of_one.ptr();
      group.keys.push_back(to_value(value, &group.kept));
    }
  }
  return true;
}

Status look_up(const Transaction& transaction, const TableInfo& table, const KeyInfo& key,
               Group& group) {
  const Detached detached;
  group.rows.resize(group.count);
  if (Status s = transaction.get_many(key.id, group.keys, group.rows); !s.ok()) return s;
  const std::size_t columns = table.columns.size();
  group.values.resize(group.count * columns);
  std::size_t next = 0;
  for (const std::optional<Row>& row : group.rows)
    if (row) row->get_all(std::span(group.values).subspan(columns * next++, columns));
  return {};
}

}  // namespace

nb::list find_many(const Transaction& transaction, const TableInfo& table, nb::handle keys,
                   nb::handle key_name, const Session& session, Work* work) {
  const KeyInfo& key = table.unique_key(key_name);
  const nb::object iterator = nb::steal(PyObject_GetIter(keys.ptr()));
  if (!iterator.is_valid()) throw nb::python_error();
  nb::list found;
  Group group;
  for (bool has_more = true; has_more;) {
    has_more = take_keys(iterator, table, key, session, group);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    // The values are views of rows until they are dicts, and to make a dict may run a finalizer.
    std::optional<Work::Busy> busy;
    if (work != nullptr) busy.emplace(*work);
    check(look_up(transaction, table, key, group), {&table, key.name.c_str()});
    std::size_t next = 0;
    for (const std::optional<Row>& row : group.rows) {
      if (!row) {
        found.append(nb::none());
        continue;
      }
      const std::size_t columns = table.columns.size();
      found.append(to_dict(table, std::span(group.values).subspan(columns * next++, columns)));
    }
  }
  return found;
}

}  // namespace flugs::python
