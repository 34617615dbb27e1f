#include "bindings/sqlite/functions.h"

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/sqlite/attached.h"
#include "bindings/sqlite/definition.h"
#include "bindings/sqlite/errors.h"
#include "bindings/sqlite/names.h"
#include "flugs/try.h"

namespace flugs::sqlite {

namespace {

struct OpenWords {
  OpenOptions options;
  Isolation isolation = Isolation::kSnapshot;
};

Result<std::string> text_argument(sqlite3_value* value) {
  if (sqlite3_value_type(value) != SQLITE_TEXT)
    return Status(StatusCode::kInvalidArgument, "an argument must be a text");
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (text == nullptr) return Status(StatusCode::kOutOfMemory);
  return std::string(text, static_cast<std::size_t>(sqlite3_value_bytes(value)));
}

Status read_bytes(const std::string& text, std::uint64_t& out) {
  char* end = nullptr;
  errno = 0;
  out = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || errno != 0 || text.front() == '-')
    return Status(StatusCode::kInvalidArgument, "'" + text + "' is no number of bytes");
  return {};
}

Status read_option(const std::string& word, OpenWords& out) {
  const std::size_t sign = word.find('=');
  const std::string name = word.substr(0, sign);
  const std::string value = sign == std::string::npos ? "" : word.substr(sign + 1);
  if (word == "must_exist") {
    out.options.mode = OpenMode::kOpen;
  } else if (word == "read_only") {
    out.options.mode = OpenMode::kReadOnly;
  } else if (word == "accept_lost_lines") {
    out.options.accept_lost_lines = true;
  } else if (name == "max_bytes") {
    return read_bytes(value, out.options.max_bytes);
  } else if (word == "isolation=snapshot") {
    out.isolation = Isolation::kSnapshot;
  } else if (word == "isolation=serializable") {
    out.isolation = Isolation::kSerializable;
  } else {
    return Status(StatusCode::kInvalidArgument,
                  "flugs_open has no option '" + word +
                      "': there are must_exist, read_only, accept_lost_lines, max_bytes=BYTES, "
                      "isolation=snapshot, isolation=serializable");
  }
  return {};
}

Status open(Session& session, int count, sqlite3_value** arguments) {
  OpenWords words;
  FLUGS_ASSIGN(words.options.path, text_argument(arguments[0]));
  for (int i = 1; i < count; ++i) {
    FLUGS_ASSIGN(const std::string word, text_argument(arguments[i]));
    FLUGS_TRY(read_option(word, words));
  }
  if (words.options.path == ":memory:") {
    words.options.in_memory = true;
    words.options.path.clear();
  }
  const bool is_new = !session.has_pool();
  if (!is_new) {
    FLUGS_TRY(session.prepare_to_change_schema());
    if (words.options.mode == OpenMode::kOpenOrCreate && !words.options.in_memory)
      words.options.mode = OpenMode::kOpen;  // another pool than the connection's is refused
  }
  if (is_new || !words.options.in_memory || !session.path().empty()) {
    Result<std::shared_ptr<Pool>> opened = open_pool(words.options);
    const bool is_another = opened.ok() ? !is_new && *session.database() != &(*opened)->database
                                        : !is_new && opened.code() == StatusCode::kNotFound;
    if (is_another)
      return Status(StatusCode::kBusy,
                    "this connection has the pool " +
                        (session.path().empty() ? std::string(":memory:") : session.path()) +
                        " open: SELECT flugs_close() first");
    if (!opened.ok()) return opened.status();
    if (is_new) session.use(*std::move(opened), words.isolation);
  }
  Status status = attach_all(session);
  if (!status.ok() && is_new) {
    static_cast<void>(detach_all(session));
    session.leave();
  }
  return status;
}

Status close(Session& session) {
  if (!session.has_pool()) return session.database().status();
  FLUGS_TRY(session.prepare_to_change_schema());
  FLUGS_TRY(detach_all(session));
  session.leave();
  return {};
}

Result<sqlite3_int64> merge(Session& session, int count, sqlite3_value** arguments) {
  FLUGS_ASSIGN(Database * database, session.database());
  FLUGS_TRY(session.prepare_to_change_schema());
  std::vector<TableId> tables = database->tables();
  if (count == 1) {
    FLUGS_ASSIGN(const std::string name, text_argument(arguments[0]));
    FLUGS_ASSIGN(const TableId table, database->find_table(name));
    tables = {table};
  }
  sqlite3_int64 rows = 0;
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  for (const TableId table : tables) {
    FLUGS_ASSIGN(const MergeReport report, database->merge(table, options));
    rows += static_cast<sqlite3_int64>(report.rows);
  }
  return rows;
}

/// `change(session, database, table, text of the second argument)` of the table that the first
/// argument names, which is then shown anew.
template <typename Change>
Status change_table(Session& session, sqlite3_value** arguments, Change&& change) {
  FLUGS_ASSIGN(Database * database, session.database());
  FLUGS_TRY(session.prepare_to_change_schema());
  FLUGS_ASSIGN(const std::string name, text_argument(arguments[0]));
  FLUGS_ASSIGN(const std::string text, text_argument(arguments[1]));
  FLUGS_ASSIGN(const TableId table, database->find_table(name));
  {
    const DefinitionChange changing = session.change_definitions();
    FLUGS_TRY(change(session, *database, table, text));
  }
  return attach_again(session, name);
}

Status add_column(Session& session, Database& database, TableId table, const std::string& text) {
  FLUGS_ASSIGN(const ColumnSchema column, read_column(text));
  const std::lock_guard names(session.names());
  FLUGS_TRY(check_new_column(database, table, column.name));
  return database.add_column(table, column).status();
}

Status drop_column(Session&, Database& database, TableId table, const std::string& name) {
  FLUGS_ASSIGN(const ColumnId column, database.find_column(table, name));
  return database.drop_column(table, column);
}

Status add_index(Session&, Database& database, TableId table, const std::string& text) {
  FLUGS_ASSIGN(const KeySchema key, read_key(text));
  return database.add_key(table, key).status();
}

Status drop_index(Session&, Database& database, TableId table, const std::string& name) {
  FLUGS_ASSIGN(const KeyId key, database.find_key(table, name));
  return database.drop_key(key);
}

/// As functions of SQL: NULL, or the error.
template <typename Work>
void answer(sqlite3_context* context, Work&& work) {
  Status status;
  const int code = guarded([&] {
    status = work(*static_cast<Session*>(sqlite3_user_data(context)));
    return SQLITE_OK;
  });
  if (code != SQLITE_OK)
    sqlite3_result_error_code(context, code);
  else if (!status.ok())
    fail(context, status);
}

void open_function(sqlite3_context* context, int count, sqlite3_value** arguments) {
  answer(context, [&](Session& session) -> Status {
    if (count == 0) return Status(StatusCode::kInvalidArgument, "flugs_open needs a path");
    FLUGS_TRY(open(session, count, arguments));
    sqlite3_result_text(context, session.path().c_str(), -1, SQLITE_TRANSIENT);
    return {};
  });
}

void close_function(sqlite3_context* context, int, sqlite3_value**) {
  answer(context, [](Session& session) { return close(session); });
}

void merge_function(sqlite3_context* context, int count, sqlite3_value** arguments) {
  answer(context, [&](Session& session) -> Status {
    FLUGS_ASSIGN(const sqlite3_int64 rows, merge(session, count, arguments));
    sqlite3_result_int64(context, rows);
    return {};
  });
}

/// The definition of the table that the argument names.
void schema_function(sqlite3_context* context, int, sqlite3_value** arguments) {
  answer(context, [&](Session& session) -> Status {
    FLUGS_ASSIGN(Database * database, session.database());
    FLUGS_ASSIGN(const std::string name, text_argument(arguments[0]));
    FLUGS_ASSIGN(const TableId table, database->find_table(name));
    FLUGS_ASSIGN(const TableSchema schema, database->schema(table));
    const std::string text = write_definition(schema);
    sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    return {};
  });
}

template <Status (*kChange)(Session&, Database&, TableId, const std::string&)>
void change_function(sqlite3_context* context, int, sqlite3_value** arguments) {
  answer(context, [&](Session& session) { return change_table(session, arguments, kChange); });
}

void rename_column_function(sqlite3_context* context, int, sqlite3_value** arguments) {
  answer(context, [&](Session& session) {
    return change_table(
        session, arguments,
        [&](Session& of, Database& database, TableId table, const std::string& name) -> Status {
          FLUGS_ASSIGN(const std::string new_name, text_argument(arguments[2]));
          FLUGS_ASSIGN(const ColumnId column, database.find_column(table, name));
          const std::lock_guard names(of.names());
          FLUGS_TRY(check_new_column(database, table, new_name, column));
          return database.rename_column(table, column, new_name);
        });
  });
}

}  // namespace

int make_functions(sqlite3* db, Session* session) {
  struct Function {
    const char* name;
    int count;
    void (*call)(sqlite3_context*, int, sqlite3_value**);
  };
  static constexpr Function kFunctions[] = {
      {"flugs_open", -1, open_function},
      {"flugs_close", 0, close_function},
      {"flugs_merge", 0, merge_function},
      {"flugs_merge", 1, merge_function},
      {"flugs_schema", 1, schema_function},
      {"flugs_add_column", 2, change_function<add_column>},
      {"flugs_drop_column", 2, change_function<drop_column>},
      {"flugs_rename_column", 3, rename_column_function},
      {"flugs_add_index", 2, change_function<add_index>},
      {"flugs_drop_index", 2, change_function<drop_index>},
  };
  for (const Function& f : kFunctions) {
    const int code =
        sqlite3_create_function_v2(db, f.name, f.count, SQLITE_UTF8 | SQLITE_DIRECTONLY, session,
                                   f.call, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

}  // namespace flugs::sqlite
