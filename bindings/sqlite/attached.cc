#include "bindings/sqlite/attached.h"

#include <utility>
#include <vector>

#include "bindings/sqlite/columns.h"
#include "flugs/try.h"

namespace flugs::sqlite {

namespace {

/// kInvalidArgument: SQLite does not take the statement as it is.
StatusCode kind_of(int code) noexcept {
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return StatusCode::kBusy;
    case SQLITE_NOMEM:
      return StatusCode::kOutOfMemory;
    case SQLITE_READONLY:
      return StatusCode::kReadOnly;
    case SQLITE_AUTH:
    case SQLITE_INTERRUPT:
    case SQLITE_ABORT:
      return StatusCode::kCancelled;
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_CORRUPT:
      return StatusCode::kIoError;
    default:
      return StatusCode::kInvalidArgument;
  }
}

Status execute(Session& session, const std::string& sql) {
  char* message = nullptr;
  const int code = sqlite3_exec(session.db(), sql.c_str(), nullptr, nullptr, &message);
  Status status;
  if (code != SQLITE_OK) {
    status = Status(kind_of(code), message != nullptr ? message : sqlite3_errstr(code));
  }
  sqlite3_free(message);
  return status;
}

/// Names of the virtual tables of a schema that flugs has.
Result<std::vector<std::string>> shown(Session& session, const std::string& schema) {
  std::vector<std::string> names;
  const std::string sql = "SELECT name FROM " + schema +
                          ".sqlite_master WHERE type = 'table' AND "
                          "sql LIKE 'CREATE VIRTUAL TABLE % USING flugs%'";
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(session.db(), sql.c_str(), -1, &statement, nullptr);
  while (code == SQLITE_OK || code == SQLITE_ROW) {
    code = sqlite3_step(statement);
    if (code != SQLITE_ROW) break;
    const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    if (name != nullptr) names.emplace_back(name);
  }
  sqlite3_finalize(statement);
  if (code != SQLITE_DONE)
    return Status(StatusCode::kInvalidArgument, sqlite3_errmsg(session.db()));
  return names;
}

/// Sets a flag while it lives.
class Flag {
 public:
  explicit Flag(bool& flag) noexcept : flag_(flag) { flag_ = true; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  ~Flag() { flag_ = false; }

 private:
  bool& flag_;
};

}  // namespace

Status detach_all(Session& session) {
  const Flag detaching(session.is_detaching);
  FLUGS_ASSIGN(const std::vector<std::string> names, shown(session, "temp"));
  for (const std::string& name : names)
    FLUGS_TRY(execute(session, "DROP TABLE temp." + quoted(name)));
  return {};
}

Status attach_all(Session& session) {
  FLUGS_TRY(detach_all(session));
  session.not_shown.clear();
  FLUGS_ASSIGN(Database * database, session.database());
  FLUGS_TRY(execute(session, "CREATE VIRTUAL TABLE temp.flugs_statistics USING flugs_statistics"));
  for (const TableId table : database->tables()) {
    const Result<TableSchema> schema = database->schema(table);
    if (!schema.ok()) continue;  // dropped meanwhile
    Status made =
        execute(session, "CREATE VIRTUAL TABLE temp." + quoted(schema->name) + " USING flugs");
    // One that SQLite does not take does not hide the others.
    if (made.code() == StatusCode::kInvalidArgument)
      session.not_shown.emplace_back(schema->name, made.message());
    else if (!made.ok())
      return made;
  }
  return {};
}

Status attach_again(Session& session, const std::string& table) {
  for (const char* schema : {"temp", "main"}) {
    FLUGS_ASSIGN(const std::vector<std::string> names, shown(session, schema));
    for (const std::string& name : names) {
      if (name != table) continue;
      const std::string qualified = std::string(schema) + "." + quoted(name);
      {
        const Flag detaching(session.is_detaching);
        FLUGS_TRY(execute(session, "DROP TABLE " + qualified));
      }
      FLUGS_TRY(execute(session, "CREATE VIRTUAL TABLE " + qualified + " USING flugs"));
    }
  }
  return {};
}

}  // namespace flugs::sqlite
