#include <array>
#include <optional>
#include <utility>

#include "bindings/python/src/classes.h"
#include "bindings/python/src/errors.h"

namespace flugs::python {

namespace {

/// A walk along a key. It ends with its transaction.
class PyRows : public Child {
 public:
  PyRows(std::shared_ptr<Work> work, const TableInfo& table, Rows&& rows)
      : work_(std::move(work)), table_(table), rows_(std::move(rows)) {
    work_->add(*this);
  }
  ~PyRows() {
    if (!work_->session().is_of_this_process()) return;
    work_->gate().enter_surely();
    work_->remove(*this);
    if (rows_.has_value()) work_->drop(*std::move(rows_));
    rows_.reset();
    work_->gate().leave();
  }
  void end() noexcept override { rows_.reset(); }

  /// The next row as a dict, or null at the end.
  nb::object next() {
    const Work::Turn turn(*work_);
    const Row* const row = rows_->next();
    if (row != nullptr) return to_dict(table_, *row);
    check(rows_->status(), {.table = &table_});
    return {};
  }

 private:
  std::shared_ptr<Work> work_;
  const TableInfo& table_;
  std::optional<Rows> rows_;
};

[[noreturn]] void raise_value(const char* message) {
  PyErr_SetString(PyExc_ValueError, message);
  throw nb::python_error();
}

Rows begin_walk(const Transaction& transaction, const KeyInfo& key,
                const RowsArguments& arguments) {
  if (!arguments.prefix.is_none()) {
    if (!arguments.lower.is_none() || !arguments.upper.is_none())
      raise_value("give a prefix, or bounds");
    return transaction.rows(key.id, KeyValues(arguments.prefix));
  }
  if (arguments.lower.is_none() && arguments.upper.is_none())
    return transaction.rows(key.id, std::span<const Value>());
  std::optional<KeyValues> lower;
  std::optional<KeyValues> upper;
  KeyBound from;
  KeyBound to;
  if (!arguments.lower.is_none()) from = {lower.emplace(arguments.lower), true};
  if (!arguments.upper.is_none()) to = {upper.emplace(arguments.upper), false};
  return transaction.rows(key.id, from, to);
}

}  // namespace

nb::object make_rows(const std::shared_ptr<Work>& work, nb::handle table,
                     const RowsArguments& arguments) {
  const Work::Turn turn(*work);
  const TableInfo& info = work->session().table(table);
  const bool walks = !arguments.key.is_none() || !arguments.prefix.is_none() ||
                     !arguments.lower.is_none() || !arguments.upper.is_none() || arguments.reverse;
  if (!walks) {
    nb::object query = nb::cast(make_query(work->shared_session(), work, table));
    if (!arguments.limit.is_none()) query = query.attr("limit")(arguments.limit);
    return query.attr("dicts")();
  }
  Rows rows = begin_walk(work->transaction(), info.key(arguments.key), arguments);
  if (arguments.reverse) rows = std::move(rows).reverse();
  if (!arguments.limit.is_none())
    rows = std::move(rows).limit(nb::cast<std::uint64_t>(arguments.limit));
  return nb::cast(new PyRows(work, info, std::move(rows)), nb::rv_policy::take_ownership);
}

void bind_rows(nb::module_& module) {
  nb::class_<PyRows>(module, "Rows", "Rows of a key, one by one, as dicts.")
      .def(
          "__iter__", [](nb::object self) { return self; },
          nb::sig("def __iter__(self) -> Iterator[dict[str, Any]]"))
      .def(
          "__next__",
          [](PyRows& self) {
            nb::object row = self.next();
            if (!row.is_valid()) throw nb::stop_iteration();
            return row;
          },
          nb::sig("def __next__(self) -> dict[str, Any]"));
}

}  // namespace flugs::python
