#include "tools/sql/sql_load.h"

#include <sqlite3.h>

#include <ctime>
#include <functional>
#include <utility>

#include "bindings/sqlite/sqlite_api.h"
#include "flugs/try.h"
#include "tools/sql/sqlite_settings.h"

namespace flugs::tools {

namespace {

/// The processor time of this process, in nanoseconds.
double processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// A connection with the table, and its prepared statements.
class SqlSide {
 public:
  SqlSide() = default;
  SqlSide(const SqlSide&) = delete;
  SqlSide& operator=(const SqlSide&) = delete;
  ~SqlSide() {
    for (sqlite3_stmt* statement : statements_) sqlite3_finalize(statement);
    sqlite3_close(db_);
  }

  Status open_flugs(const std::string& pool) {
    FLUGS_TRY(open(":memory:"));
    if (sqlite3_flugssqlite_init(db_, nullptr, nullptr) != SQLITE_OK) return failure();
    FLUGS_TRY(execute("SELECT flugs_open('" + pool + "')"));
    return execute(
        "CREATE VIRTUAL TABLE temp.t USING flugs(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, "
        "c REAL, name TEXT)");
  }
  Status open_sqlite(const std::string& path) {
    FLUGS_TRY(open(path));
    return execute(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -1000000; "
        "PRAGMA mmap_size = 10000000000; "
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c REAL, name TEXT)");
  }

  Status execute(const std::string& sql) {
    return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? Status()
                                                                                  : failure();
  }
  Result<sqlite3_stmt*> prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
        SQLITE_OK)
      return failure();
    statements_.push_back(statement);
    return statement;
  }
  Status failure() const { return Status(StatusCode::kInvalidArgument, sqlite3_errmsg(db_)); }

 private:
  Status open(const std::string& path) {
    set_up_sqlite();
    // One thread uses a connection, so it needs no lock.
    constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    return sqlite3_open_v2(path.c_str(), &db_, kFlags, nullptr) == SQLITE_OK ? Status() : failure();
  }

  sqlite3* db_ = nullptr;
  std::vector<sqlite3_stmt*> statements_;
};

/// A row of the table whose numbers depend on `id` alone.
std::int64_t mixed(std::uint64_t id) {
  id *= 0x9e3779b97f4a7c15u;
  return static_cast<std::int64_t>((id ^ (id >> 29)) % 1'000'000);
}

Status load_rows(SqlSide& side, std::uint64_t rows) {
  constexpr std::uint64_t kRowsPerTransaction = 10'000;
  FLUGS_ASSIGN(sqlite3_stmt * insert, side.prepare("INSERT INTO t VALUES(?, ?, ?, ?, ?)"));
  for (std::uint64_t id = 0; id < rows; ++id) {
    if (id % kRowsPerTransaction == 0) FLUGS_TRY(side.execute(id == 0 ? "BEGIN" : "COMMIT; BEGIN"));
    const std::string name = "name " + std::to_string(id % 1000);
    sqlite3_bind_int64(insert, 1, static_cast<sqlite3_int64>(id));
    sqlite3_bind_int64(insert, 2, mixed(id));
    sqlite3_bind_int64(insert, 3, mixed(id + 1) % 1000);
    sqlite3_bind_double(insert, 4, static_cast<double>(mixed(id)) / 4);
    sqlite3_bind_text(insert, 5, name.data(), static_cast<int>(name.size()), SQLITE_STATIC);
    if (sqlite3_step(insert) != SQLITE_DONE) return side.failure();
    sqlite3_reset(insert);
  }
  return side.execute("COMMIT");
}

/// The sum of what was read: both sides must have the same.
using Work = std::function<Result<std::int64_t>(SqlSide&, const SqlLoad&)>;

Result<std::int64_t> look_up(SqlSide& side, const SqlLoad& load, bool is_transaction) {
  FLUGS_ASSIGN(sqlite3_stmt * select, side.prepare("SELECT a, b, c, name FROM t WHERE id = ?"));
  if (is_transaction) FLUGS_TRY(side.execute("BEGIN"));
  std::int64_t sum = 0;
  for (std::uint64_t i = 0; i < load.statements; ++i) {
    sqlite3_bind_int64(select, 1, mixed(i) % static_cast<std::int64_t>(load.rows));
    if (sqlite3_step(select) != SQLITE_ROW) return side.failure();
    sum += sqlite3_column_int64(select, 0) + sqlite3_column_int64(select, 1) +
           static_cast<std::int64_t>(sqlite3_column_double(select, 2)) +
           sqlite3_column_text(select, 3)[5];
    sqlite3_reset(select);
  }
  if (is_transaction) FLUGS_TRY(side.execute("COMMIT"));
  return sum;
}

Result<std::int64_t> update(SqlSide& side, const SqlLoad& load) {
  FLUGS_ASSIGN(sqlite3_stmt * change, side.prepare("UPDATE t SET a = ? WHERE id = ?"));
  for (std::uint64_t i = 0; i < load.statements; ++i) {
    sqlite3_bind_int64(change, 1, static_cast<sqlite3_int64>(i));
    sqlite3_bind_int64(change, 2, mixed(i) % static_cast<std::int64_t>(load.rows));
    if (sqlite3_step(change) != SQLITE_DONE) return side.failure();
    sqlite3_reset(change);
  }
  return std::int64_t{0};
}

Result<std::int64_t> scan(SqlSide& side, const char* sql) {
  FLUGS_ASSIGN(sqlite3_stmt * select, side.prepare(sql));
  if (sqlite3_step(select) != SQLITE_ROW) return side.failure();
  const std::int64_t sum = sqlite3_column_int64(select, 0);
  sqlite3_reset(select);
  return sum;
}

/// Adds a figure: the work on both sides, `runs` times, divided by `count`.
Status measure(const SqlLoad& load, SqlSide& flugs, SqlSide& sqlite, SqlFigure figure, double count,
               std::uint32_t runs, const Work& work, std::vector<SqlFigure>& out) {
  for (std::uint32_t run = 0; run < runs; ++run) {
    std::int64_t sums[2] = {};
    for (int side = 0; side < 2; ++side) {
      const double start = processor_ns();
      FLUGS_ASSIGN(sums[side], work(side == 0 ? flugs : sqlite, load));
      const double each = (processor_ns() - start) / count;
      (side == 0 ? figure.flugs : figure.sqlite)
          .push_back(figure.unit == "us" ? each / 1000 : each);
    }
    if (sums[0] != sums[1])
      return Status(StatusCode::kInvalidArgument, figure.what + ": the sides differ");
  }
  out.push_back(std::move(figure));
  return {};
}

}  // namespace

Result<std::vector<SqlFigure>> measure_sql(const SqlLoad& load) {
  SqlSide flugs;
  SqlSide sqlite;
  FLUGS_TRY(flugs.open_flugs(load.pool));
  FLUGS_TRY(sqlite.open_sqlite(load.sqlite));
  std::vector<SqlFigure> out;
  const auto rows = static_cast<double>(load.rows);
  const auto statements = static_cast<double>(load.statements);
  const auto add = [&](const char* what, const char* unit, double count, std::uint32_t runs,
                       const Work& work) {
    return measure(load, flugs, sqlite, {what, unit, {}, {}}, count, runs, work, out);
  };
  FLUGS_TRY(add("INSERT, 10,000 a transaction, a row", "us", rows, 1,
                [](SqlSide& side, const SqlLoad& l) -> Result<std::int64_t> {
                  FLUGS_TRY(load_rows(side, l.rows));
                  return std::int64_t{0};
                }));
  FLUGS_TRY(add("SELECT by key", "us", statements, load.runs,
                [](SqlSide& side, const SqlLoad& l) { return look_up(side, l, false); }));
  FLUGS_TRY(add("SELECT by key inside BEGIN", "us", statements, load.runs,
                [](SqlSide& side, const SqlLoad& l) { return look_up(side, l, true); }));
  FLUGS_TRY(add("UPDATE by key", "us", statements, load.runs, update));
  FLUGS_TRY(add("scan that takes 1 % of the rows, a row", "ns", rows, load.runs,
                [](SqlSide& side, const SqlLoad&) {
                  return scan(side, "SELECT sum(a) FROM t WHERE b < 10");
                }));
  FLUGS_TRY(add("scan that takes half of the rows, a row", "ns", rows, load.runs,
                [](SqlSide& side, const SqlLoad&) {
                  return scan(side, "SELECT sum(a) FROM t WHERE b < 500");
                }));
  return out;
}

}  // namespace flugs::tools
