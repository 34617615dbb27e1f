#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "flugs/status.h"
#include "tools/peers/restart/tatp_engine.h"

namespace flugs::tools {

using SqlValue = std::variant<std::int64_t, std::string_view>;

/// A row of a result while it is looked at. No column is NULL.
class SqlRow {
 public:
  virtual ~SqlRow() = default;
  virtual std::int64_t integer(std::size_t column) const = 0;
  virtual std::string_view text(std::size_t column) const = 0;
};

class SqlStatement {
 public:
  using Take = std::function<void(const SqlRow&)>;

  virtual ~SqlStatement() = default;
  /// Gives each row of the result; returns how many these were, or how many were changed.
  /// Fails with kConflict, kAlreadyExists, kIoError.
  virtual Result<std::uint64_t> run(std::span<const SqlValue> parameters, const Take& take) = 0;
};

/// One thread's connection; it outlives its statements.
class SqlSession {
 public:
  virtual ~SqlSession() = default;
  /// Fails as SqlStatement::run.
  virtual Status execute(const char* sql) = 0;
  virtual Result<std::unique_ptr<SqlStatement>> prepare(const char* sql) = 0;
};

/// The bulk load of one table. Rows are there when `finish` has returned.
class SqlAppender {
 public:
  virtual ~SqlAppender() = default;
  virtual Status append(std::span<const SqlValue> row) = 0;
  virtual Status finish() = 0;
};

class SqlStore {
 public:
  virtual ~SqlStore() = default;

  virtual std::string setup() const = 0;
  virtual std::string guarantee() const = 0;
  /// Fails with kIoError.
  virtual Status open(const std::string& directory) = 0;
  /// Thread-safety: any thread.
  virtual Result<std::unique_ptr<SqlSession>> connect() = 0;
  virtual Result<std::unique_ptr<SqlAppender>> append_to(const std::string& table,
                                                         std::size_t columns) = 0;
  /// Empties the log.
  virtual Status finish_load() = 0;
  /// SQL behind the definition of a table whose key has several columns.
  virtual const char* after_table() const = 0;
  /// SQL that begins a transaction that writes.
  virtual const char* begin_writing() const = 0;
  /// A lock for the only writer; null: there may be several writers.
  virtual std::mutex* one_writer() = 0;
};

/// TATP in such a database.
std::unique_ptr<TatpEngine> make_sql_tatp(std::unique_ptr<SqlStore> store);

}  // namespace flugs::tools
