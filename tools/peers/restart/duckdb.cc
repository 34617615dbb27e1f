#include <cstddef>
#include <utility>

#include "tools/peers/engines/duckdb_connection.h"
#include "tools/peers/restart/engine.h"

namespace flugs::tools {

namespace {

class DuckdbSession : public PeerSession {
 public:
  explicit DuckdbSession(DuckdbConnection connection) : connection_(std::move(connection)) {}

  Status find(PeerRow& row) override {
    Status status = find_.prepare(connection_, "SELECT c1, c2, c3, c4 FROM r WHERE id = ?");
    if (!status.ok()) return status;
    find_.bind(1, row.id);
    DuckdbResult result;
    status = find_.execute(result);
    if (!status.ok()) return status;
    duckdb_data_chunk chunk = duckdb_fetch_chunk(*result.get());
    if (chunk == nullptr) return Status(StatusCode::kNotFound);
    if (duckdb_data_chunk_get_size(chunk) == 0) status = Status(StatusCode::kNotFound);
    for (std::size_t i = 0; i < row.values.size() && status.ok(); ++i)
      row.values[i] = *static_cast<const std::int32_t*>(
          duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk, i)));
    duckdb_destroy_data_chunk(&chunk);
    return status;
  }

  Status write(std::span<const PeerRow> inserted, const PeerRow* changed) override {
    for (;;) {
      Status status = write_once(inserted, changed);
      if (status.ok()) return status;
      // It says so when another writer was there first; then it is asked again.
      if (status.message().find("onflict") == std::string_view::npos) return status;
      const Status rolled_back = connection_.execute("ROLLBACK");
      if (!rolled_back.ok() &&
          rolled_back.message().find("no transaction is active") == std::string_view::npos)
        return rolled_back;
    }
  }

 private:
  Status write_once(std::span<const PeerRow> inserted, const PeerRow* changed) {
    Status status = connection_.execute("BEGIN TRANSACTION");
    if (status.ok()) status = insert(inserted);
    if (status.ok() && changed != nullptr) status = change(*changed);
    if (status.ok()) status = connection_.execute("COMMIT");
    return status;
  }

  /// As many rows each time.
  Status insert(std::span<const PeerRow> rows) {
    std::string sql = "INSERT INTO r VALUES ";
    for (std::size_t i = 0; i < rows.size(); ++i) sql += i == 0 ? "(?,?,?,?,?)" : ",(?,?,?,?,?)";
    Status status = insert_.prepare(connection_, sql);
    if (!status.ok()) return status;
    std::uint64_t index = 0;
    for (const PeerRow& row : rows) {
      insert_.bind(++index, row.id);
      for (const std::int32_t value : row.values) insert_.bind(++index, value);
    }
    DuckdbResult result;
    return insert_.execute(result);
  }

  Status change(const PeerRow& row) {
    Status status = change_.prepare(connection_, "UPDATE r SET c2 = ? WHERE id = ?");
    if (!status.ok()) return status;
    change_.bind(1, row.values[1]);
    change_.bind(2, row.id);
    DuckdbResult result;
    return change_.execute(result);
  }

  DuckdbConnection connection_;  // outlives the statements below
  DuckdbStatement find_;
  DuckdbStatement insert_;
  DuckdbStatement change_;
};

class DuckdbEngine : public PeerEngine {
 public:
  ~DuckdbEngine() override {
    if (database_ != nullptr) duckdb_close(&database_);
  }

  std::string setup() const override {
    return "settings as they come; no key declared, as its documents advise for loading: ids "
           "ascend, so that minima and maxima of row groups find the row; bulk load by an "
           "appender, then CHECKPOINT; prepared statements";
  }
  std::string guarantee() const override { return "commit: changes in the log, which is synced"; }

  Status open(const std::string& directory, bool create) override {
    char* error = nullptr;
    if (duckdb_open_ext((directory + "/r.duckdb").c_str(), &database_, nullptr, &error) != 0) {
      Status status = duckdb_failure(error == nullptr ? "cannot open" : error);
      duckdb_free(error);
      return status;
    }
    if (!create) return {};
    DuckdbConnection connection;
    Status status = connection.connect(database_);
    if (!status.ok()) return status;
    return connection.execute(
        "CREATE TABLE r (id BIGINT NOT NULL, c1 INTEGER NOT NULL, c2 INTEGER NOT NULL, "
        "c3 INTEGER NOT NULL, c4 INTEGER NOT NULL)");
  }

  Status load(std::uint64_t rows, const NextRow& next) override {
    DuckdbConnection connection;
    Status status = connection.connect(database_);
    if (!status.ok()) return status;
    duckdb_appender appender = nullptr;
    if (duckdb_appender_create(connection.get(), nullptr, "r", &appender) != 0)
      return duckdb_failure("cannot append to the table");
    duckdb_state failed = 0;
    for (std::uint64_t i = 0; i < rows && failed == 0; ++i) {
      const PeerRow& row = next();
      failed |= duckdb_append_int64(appender, row.id);
      for (const std::int32_t value : row.values) failed |= duckdb_append_int32(appender, value);
      failed |= duckdb_appender_end_row(appender);
    }
    failed |= duckdb_appender_destroy(&appender);
    return failed == 0 ? connection.execute("CHECKPOINT")
                       : duckdb_failure("a row was not appended");
  }

  Result<std::unique_ptr<PeerSession>> session() override {
    DuckdbConnection connection;
    Status status = connection.connect(database_);
    if (!status.ok()) return status;
    return std::unique_ptr<PeerSession>(new DuckdbSession(std::move(connection)));
  }

 private:
  duckdb_database database_ = nullptr;
};

}  // namespace

std::string peer_engine_name() { return std::string("DuckDB ") + duckdb_library_version(); }

std::unique_ptr<PeerEngine> make_peer_engine() { return std::make_unique<DuckdbEngine>(); }

}  // namespace flugs::tools
