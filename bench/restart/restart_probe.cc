#include "bench/restart/restart_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/restart/restart_writers.h"
#include "bench/support/clock.h"
#include "flugs/query.h"

namespace flugs::bench {

namespace {

Status wrong(std::string what) {
  return Status(StatusCode::kCorrupt, "wrong answer: " + std::move(what));
}

/// Checks that a row was found and has exactly the values `expected`.
Status expect_values(const Result<Row>& row, std::uint64_t id, const RestartRow& expected) {
  if (row.code() == StatusCode::kNotFound) return wrong(fmt::format("row {} does not exist", id));
  if (!row.ok()) return row.status();
  for (std::uint16_t column = 0; column < kRestartColumns; ++column)
    if (const Value value = row->get_unchecked(ColumnId(column)); value != expected[column])
      return wrong(fmt::format("c{} of row {} is {} instead of {}", column + 1, id,
                               value.to_string(), expected[column].to_string()));
  return {};
}

Status expect_row(const Transaction& transaction, TableId table, std::uint32_t id,
                  const RestartRow& expected) {
  return expect_values(transaction.get(table, RowId(id)), id, expected);
}

Status expect_sample(const Transaction& transaction, TableId table, const RestartControl& control,
                     std::uint64_t index) {
  RestartRow expected;
  control.plan().data().row(index * control.plan().sample_step(), expected);
  return expect_row(transaction, table, control.samples()[index], expected);
}

/// A point select: by key if there is a key, else by row id. The benchmark times the first one.
/// `number` may be any number.
Status select_point(const Transaction& transaction, TableId table, const RestartControl& control,
                    std::uint64_t number) {
  if (!control.plan().keyed)
    return expect_sample(transaction, table, control, number % control.plan().samples());
  RestartRow expected;
  const std::uint64_t row = number % control.plan().rows;
  control.plan().data().row(row, expected);
  return expect_values(transaction.get({table, 0}, {RestartData::id(row)}), row, expected);
}

/// Effects of the writers of the life before: the certain ones, and transactions that may have
/// happened.
struct Aftermath {
  RestartTotals certain;
  std::vector<RestartTotals> possible;
  std::uint64_t acknowledged = 0;
};

RestartTotals totals_of(const RestartControl& control, std::uint32_t life, std::uint32_t writer,
                        std::uint64_t number) {
  const RestartData data = control.plan().data();
  RestartTotals totals;
  totals.rows = RestartEntry::kRows;
  for (std::size_t slot = 0; slot < RestartEntry::kRows; ++slot) {
    const std::uint64_t ordinal = data.load_ordinal(0, restart_serial(life, writer, number, slot));
    totals.sum += static_cast<std::uint64_t>(data.integer(0, ordinal));
    totals.matches += ordinal == data.wanted_ordinal() ? 1 : 0;
  }
  return totals;
}

/// The rows of an acknowledged transaction; the first one unless the next transaction, which
/// changes it, was begun.
Status expect_entry(const Transaction& transaction, TableId table, const RestartControl& control,
                    std::uint32_t writer, std::uint64_t number, bool next_begun) {
  const RestartData data = control.plan().data();
  const RestartEntry& entry = control.log(writer)[number];
  RestartRow expected;
  for (std::size_t slot = next_begun ? 1 : 0; slot < RestartEntry::kRows; ++slot) {
    data.load_row(restart_serial(entry.life, writer, number, slot), expected);
    Status status = expect_row(transaction, table, entry.rows[slot], expected);
    if (!status.ok()) return status;
  }
  if (number == 0) return {};
  data.load_row(restart_serial(entry.life, writer, number - 1, 0), expected);
  const std::uint64_t ordinal =
      data.load_ordinal(1, restart_serial(entry.life, writer, number, RestartEntry::kRows));
  expected[1] = data.value(1, ordinal);
  return expect_row(transaction, table, entry.updated, expected);
}

/// Goes through what the writers of `life` logged.
Status audit_writers(const Transaction& transaction, TableId table, const RestartControl& control,
                     std::uint32_t life, Aftermath& aftermath) {
  for (std::uint32_t writer = 0; writer < control.plan().writers; ++writer) {
    const std::span<const RestartEntry> log = control.log(writer);
    const auto begun = [&](std::uint64_t number) {
      return number < log.size() && log[number].life == life &&
             log[number].state != RestartEntry::kNothing;
    };
    for (std::uint64_t number = 0; begun(number); ++number) {
      if (log[number].state != RestartEntry::kAcknowledged) {
        aftermath.possible.push_back(totals_of(control, life, writer, number));
        break;
      }
      ++aftermath.acknowledged;
      aftermath.certain += totals_of(control, life, writer, number);
      Status status = expect_entry(transaction, table, control, writer, number, begun(number + 1));
      if (!status.ok()) return status;
    }
  }
  return {};
}

/// Some of the transactions in flight happened entirely, the others not at all: whether there is
/// such a choice with which everything found adds up. Keeps it in `certain`.
bool explain(Aftermath& aftermath, RestartTotals before, const RestartTotals& found) {
  for (std::uint32_t choice = 0; choice < (1u << aftermath.possible.size()); ++choice) {
    RestartTotals expected = before;
    expected += aftermath.certain;
    for (std::size_t i = 0; i < aftermath.possible.size(); ++i)
      if ((choice >> i & 1) != 0) expected += aftermath.possible[i];
    if (expected != found) continue;
    aftermath.certain = expected;
    return true;
  }
  return false;
}

Status select_by_value(const Transaction& transaction, TableId table, const RestartControl& control,
                       std::uint64_t& matches, double& ms) {
  const RestartData data = control.plan().data();
  const Value wanted = data.value(0, data.wanted_ordinal());
  const std::array<ColumnId, kRestartColumns> columns = {ColumnId{0}, ColumnId{1}, ColumnId{2},
                                                         ColumnId{3}};
  bool all_equal = true;
  const std::uint64_t begin = monotonic_ns();
  Status status = transaction.scan(
      table, columns, Predicate::equal(columns[0], wanted), [&](const ScanBatch& batch) {
        matches += batch.row_count();
        for (const std::int64_t value : batch.column_unchecked<std::int64_t>(0))
          all_equal = all_equal && value == wanted.raw();
        return true;
      });
  ms = ms_since(begin);
  if (!status.ok()) return status;
  if (!all_equal) return wrong("select where c1 = v returned a row in which c1 is not v");
  return {};
}

Status sum_first_column(const Transaction& transaction, RestartTotals& found, double& ms) {
  const std::uint64_t begin = monotonic_ns();
  const Result<query::QueryResult> result =
      query::Query::table("r").group_by({}, {query::count(), query::sum("c1")}).run(transaction);
  ms = ms_since(begin);
  if (!result.ok()) return result.status();
  found.rows = static_cast<std::uint64_t>(result->get_unchecked(0, 0).raw());
  found.sum = static_cast<std::uint64_t>(result->get_unchecked(0, 1).raw());
  return {};
}

/// The same row by row, through a scan.
Status add_up_first_column(const Transaction& transaction, TableId table, RestartTotals& found) {
  return transaction.scan(table, {ColumnId{0}}, [&](const ScanBatch& batch) {
    found.rows += batch.row_count();
    for (const std::int64_t value : batch.column_unchecked<std::int64_t>(0))
      found.sum += static_cast<std::uint64_t>(value);
    return true;
  });
}

/// Rows and sum, asked for in each way there is.
Status find_totals(const Transaction& transaction, TableId table, RestartControl& control,
                   RestartTotals& found) {
  RestartTimes& times = control.status().times;
  RestartTotals again;
  RestartTotals scanned;
  Status status = sum_first_column(transaction, found, times.sum_ms);
  if (status.ok()) status = sum_first_column(transaction, again, times.sum_again_ms);
  if (status.ok()) status = add_up_first_column(transaction, table, scanned);
  if (!status.ok()) return status;
  if (again != found) return wrong("sum(c1) twice gives two sums");
  if (scanned != found) return wrong("the sum over a scan differs from sum(c1)");
  if (control.plan().sums_first && control.status().first_sum != found)
    return wrong("sum(c1) as the first query gave a different sum");
  return {};
}

}  // namespace

Status ask_first_query(Database& database, TableId table, RestartControl& control) {
  Result<Transaction> transaction = database.begin(AccessMode::kReadOnly);
  if (!transaction.ok()) return transaction.status();
  double ms = 0;
  if (control.plan().sums_first)
    return sum_first_column(*transaction, control.status().first_sum, ms);
  return select_point(*transaction, table, control, mix64(control.status().life));
}

Status find_full_speed(Database& database, TableId table, RestartControl& control) {
  constexpr std::uint64_t kWindowNs = 2'000'000;
  constexpr std::size_t kWindows = 500;
  constexpr double kShare = 0.9;
  std::vector<std::uint64_t> selects(kWindows, 0);
  const std::uint64_t begin = monotonic_ns();
  std::uint64_t number = mix64(begin);
  for (std::uint64_t now = begin; now < begin + kWindows * kWindowNs; now = monotonic_ns()) {
    Result<Transaction> transaction = database.begin(AccessMode::kReadOnly);
    if (!transaction.ok()) return transaction.status();
    number = mix64(number);
    if (Status s = select_point(*transaction, table, control, number); !s.ok()) return s;
    ++selects[(now - begin) / kWindowNs];
  }
  std::vector<std::uint64_t> later(selects.begin() + kWindows / 2, selects.end());
  std::nth_element(later.begin(), later.begin() + kWindows / 4, later.end());
  const auto usual = static_cast<double>(later[kWindows / 4]);
  const auto is_usual = [&](std::uint64_t count) {
    return static_cast<double>(count) >= kShare * usual;
  };
  // The first of three in a row: one window may be fast by chance.
  std::size_t window = 0;
  while (window + 3 < kWindows && !(is_usual(selects[window]) && is_usual(selects[window + 1]) &&
                                    is_usual(selects[window + 2])))
    ++window;
  RestartTimes& times = control.status().times;
  const bool is_found = window + 3 < kWindows;
  times.full_speed_ns = is_found ? begin + window * kWindowNs : 0;
  times.selects_per_s = usual * 1e9 / static_cast<double>(kWindowNs);
  return {};
}

Status check_restart_answers(Database& database, TableId table, RestartControl& control) {
  RestartStatus& result = control.status();
  Result<Transaction> transaction = database.begin(AccessMode::kReadOnly);
  if (!transaction.ok()) return transaction.status();
  for (std::uint64_t index = 0; index < control.plan().samples(); ++index) {
    Status status = expect_sample(*transaction, table, control, index);
    if (!status.ok()) return status;
  }
  RestartTotals found;
  Status status = find_totals(*transaction, table, control, found);
  if (status.ok())
    status =
        select_by_value(*transaction, table, control, found.matches, result.times.select_scan_ms);
  Aftermath aftermath;
  if (status.ok()) status = audit_writers(*transaction, table, control, result.life - 1, aftermath);
  if (!status.ok()) return status;
  result.times.acknowledged_checked = aftermath.acknowledged;
  if (!explain(aftermath, result.totals, found))
    return wrong(
        fmt::format("{} rows, {} with c1 = v, sum(c1) {}; {} rows were there before and "
                    "{} acknowledged since, {} transactions were in flight",
                    found.rows, found.matches, found.sum, result.totals.rows,
                    aftermath.certain.rows, aftermath.possible.size()));
  result.totals = aftermath.certain;
  return {};
}

}  // namespace flugs::bench
