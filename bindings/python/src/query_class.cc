#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/python/src/classes.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/results.h"

namespace flugs::python {

using query::Expr;
using query::Query;

namespace {

using nb::literals::operator""_a;

PyQuery with(const PyQuery& self, Query query) {
  return {self.session, self.work, std::move(query)};
}

/// One item, or a list of them.
std::vector<nb::object> list_of(nb::handle items) {
  if (nb::isinstance<nb::str>(items) || nb::isinstance<Expr>(items) ||
      nb::isinstance<query::Aggregate>(items))
    return {nb::borrow(items)};
  std::vector<nb::object> result;
  for (const nb::handle item : items) result.push_back(nb::borrow(item));
  return result;
}

std::vector<query::Item> items_of(nb::handle items) {
  std::vector<query::Item> result;
  for (const nb::object& item : list_of(items)) result.emplace_back(to_item(item));
  return result;
}

PyQuery group_by(const PyQuery& self, const nb::args& keys, nb::handle aggregates) {
  std::vector<query::Aggregate> made;
  for (const nb::object& one : list_of(aggregates)) made.push_back(nb::cast<query::Aggregate>(one));
  std::vector<query::Item> by;
  for (const nb::handle key : keys)
    for (query::Item& item : items_of(key)) by.push_back(std::move(item));
  return with(self, self.query.group_by(std::move(by), std::move(made)));
}

PyQuery order_by(const PyQuery& self, const nb::args& keys, nb::handle descending) {
  std::vector<query::Item> items;
  for (const nb::handle key : keys)
    for (query::Item& item : items_of(key)) items.push_back(std::move(item));
  std::vector<bool> down(items.size(), false);
  if (nb::isinstance<nb::bool_>(descending)) {
    down.assign(items.size(), nb::cast<bool>(descending));
  } else {
    down.clear();
    for (const nb::handle one : descending) down.push_back(nb::cast<bool>(one));
    if (down.size() != items.size()) throw nb::value_error("`descending` has one value per key");
  }
  std::vector<query::SortKey> by;
  for (std::size_t i = 0; i < items.size(); ++i) by.emplace_back(std::move(items[i]), down[i]);
  return with(self, self.query.order_by(std::move(by)));
}

/// A str is a column of both sides, a pair has an item of each.
std::vector<query::JoinKey> join_keys(nb::handle on) {
  std::vector<query::JoinKey> keys;
  const bool is_one = nb::isinstance<nb::str>(on);
  const nb::object all = is_one ? nb::object(nb::make_tuple(on)) : nb::borrow(on);
  for (const nb::handle key : all) {
    if (nb::isinstance<nb::str>(key)) {
      keys.emplace_back(to_item(key), to_item(key));
      continue;
    }
    const auto pair = nb::cast<nb::tuple>(nb::handle(&PyTuple_Type)(key));
    if (pair.size() != 2) throw nb::value_error("a key of a join is a column, or a pair of items");
    keys.emplace_back(to_item(pair[0]), to_item(pair[1]));
  }
  return keys;
}

PyQuery join(const PyQuery& self, const PyQuery& right, nb::handle on, const std::string& how,
             nb::handle also) {
  if (self.session != right.session) throw nb::value_error("queries of two databases");
  const Expr condition = also.is_none() ? Expr() : to_expr(also);
  std::vector<query::JoinKey> keys = join_keys(on);
  if (how == "inner") return with(self, self.query.join(right.query, std::move(keys), condition));
  if (how == "left")
    return with(self, self.query.left_join(right.query, std::move(keys), condition));
  if (how == "semi")
    return with(self, self.query.semi_join(right.query, std::move(keys), condition));
  if (how == "anti")
    return with(self, self.query.anti_join(right.query, std::move(keys), condition));
  throw nb::value_error("`how` is 'inner', 'left', 'semi' or 'anti'");
}

std::string explain(const PyQuery& self) {
  const std::shared_ptr<Work> work =
      self.work != nullptr ? self.work : Work::begin(self.session, AccessMode::kReadOnly);
  const Work::Turn turn(*work);
  return take(self.query.explain(work->transaction()));
}

void bind_steps(nb::class_<PyQuery>& query) {
  query
      .def(
          "where",
          [](const PyQuery& self, nb::handle condition) {
            return with(self, self.query.where(to_expr(condition)));
          },
          "condition"_a, nb::sig("def where(self, condition: Expr) -> Query"),
          "The rows for which the condition is true.")
      .def(
          "select",
          [](const PyQuery& self, const nb::args& outputs) {
            std::vector<query::Item> items;
            for (const nb::handle output : outputs)
              for (query::Item& item : items_of(output)) items.push_back(std::move(item));
            return with(self, self.query.select(std::move(items)));
          },
          nb::sig("def select(self, *outputs: str | Expr | Iterable[str | Expr]) -> Query"),
          "The given outputs and no others.")
      .def(
          "prefixed",
          [](const PyQuery& self, const std::string& prefix) {
            return with(self, self.query.as(prefix));
          },
          "prefix"_a, "All columns, their names preceded by `prefix` and a dot.")
      .def("group_by", &group_by, nb::arg("keys"), nb::kw_only(), "agg"_a,
           nb::sig("def group_by(self, *keys: str | Expr | Iterable[str | Expr],"
                   " agg: Aggregate | Iterable[Aggregate]) -> Query"),
           "A row for each combination of keys; without keys one row.")
      .def(
          "distinct", [](const PyQuery& self) { return with(self, self.query.distinct()); },
          "Each row once.")
      .def("order_by", &order_by, nb::arg("keys"), nb::kw_only(), "descending"_a = false,
           nb::sig("def order_by(self, *keys: str | Expr | Iterable[str | Expr],"
                   " descending: bool | Iterable[bool] = False) -> Query"),
           "Sorts the rows.")
      .def(
          "limit",
          [](const PyQuery& self, std::uint64_t rows, std::uint64_t offset) {
            return with(self, self.query.limit(rows, offset));
          },
          "rows"_a, "offset"_a = 0, "At most `rows` rows, after the first `offset`.")
      .def("join", &join, "right"_a, "on"_a, "how"_a = "inner", "also"_a = nb::none(),
           nb::sig("def join(self, right: Query,"
                   " on: str | Iterable[str | tuple[str | Expr, str | Expr]],"
                   " how: str = 'inner', also: Expr | None = None) -> Query"),
           "Each row with each row of `right` that has equal keys. `how`: 'inner', 'left', 'semi' "
           "(rows with a partner) or 'anti' (rows without one).");
}

}  // namespace

PyQuery make_query(const std::shared_ptr<Session>& session, const std::shared_ptr<Work>& work,
                   nb::handle table) {
  return {session, work, Query::table(session->table(table).name)};
}

void bind_queries(nb::module_& module) {
  nb::class_<PyQuery> query(
      module, "Query",
      "A query: a table and the steps applied to its rows, in the order in which they are written. "
      "Each step returns a new query. It runs when its rows are asked for, each time anew.");
  bind_steps(query);
  bind_conversions(query);
  query
      .def(
          "run",
          [](const PyQuery& self, std::uint32_t threads, std::uint64_t memory_bytes_max,
             std::string temporary_folder, bool runs_as_written) {
            return run(self, {.threads = threads,
                              .memory_bytes_max = memory_bytes_max,
                              .temporary_folder = std::move(temporary_folder),
                              .runs_as_written = runs_as_written});
          },
          "threads"_a = 0, "memory_bytes_max"_a = std::uint64_t{4} << 30, "temporary_folder"_a = "",
          "runs_as_written"_a = false,
          nb::sig("def run(self, threads: int = 0, memory_bytes_max: int = 4294967296,"
                  " temporary_folder: str = '', runs_as_written: bool = False) -> Result"),
          "Begins to run the query: a Result gives its rows once, and can be told how to run it. "
          "What groups and sorted rows take beyond `memory_bytes_max` goes to files without names "
          "in `temporary_folder`; empty: the system's. Conditions go down to the tables, and "
          "inner joins run in the order that promises to be the fastest, unless `runs_as_written`.")
      .def("explain", &explain, "The plan, without running it.")
      .def(
          "fetchall", [](const PyQuery& self) { return fetch(*run(self, {}), -1); },
          nb::sig("def fetchall(self) -> list[tuple[Any, ...]]"), "All rows, as tuples.")
      .def(
          "fetchone",
          [](const PyQuery& self) -> nb::object {
            const nb::list rows = fetch(*run(self, {}), 1);
            return nb::len(rows) == 0 ? nb::none() : nb::object(rows[0]);
          },
          nb::sig("def fetchone(self) -> tuple[Any, ...] | None"), "The first row, or None.")
      .def(
          "dicts",
          [](const PyQuery& self) {
            std::shared_ptr<Stream> result = run(self, {});
            result->give_dicts();
            return result;
          },
          nb::sig("def dicts(self) -> Iterator[dict[str, Any]]"), "The rows as dicts, one by one.")
      .def(
          "__iter__", [](const PyQuery& self) { return run(self, {}); },
          nb::sig("def __iter__(self) -> Iterator[tuple[Any, ...]]"))
      .def(
          "__arrow_c_stream__",
          [](const PyQuery& self, nb::handle) { return arrow_capsule(run(self, {})); },
          "requested_schema"_a = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"),
          "The rows for any library that reads Arrow.");
}

}  // namespace flugs::python
