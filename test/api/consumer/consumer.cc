// Uses an installed flugs through public headers only: inserts a row, closes and reopens the
// database, and finds the row. argv[1]: path of the pool, which must not exist.
#include <cstdio>
#include <iostream>

#include "flugs/flugs.h"

namespace {

using flugs::Value;

flugs::OpenOptions options(const char* path) {
  flugs::OpenOptions options;
  options.path = path;
  options.max_bytes = std::uint64_t{1} << 30;
  return options;
}

flugs::Status write(const char* path) {
  auto database = flugs::Database::open(options(path));
  if (!database.ok()) return database.status();
  flugs::TableSchema schema("town");
  schema.column("id", flugs::Type::kInt64).column("name", flugs::Type::kString);
  schema.primary_key({"id"});
  const auto table = database->create_table(schema);
  if (!table.ok()) return table.status();
  auto transaction = database->begin();
  if (!transaction.ok()) return transaction.status();
  const auto row = transaction->insert(*table, {Value::int64(1), Value::string("Gdansk")});
  if (!row.ok()) return row.status();
  return transaction->commit();
}

flugs::Status read(const char* path) {
  auto database = flugs::Database::open(options(path));
  if (!database.ok()) return database.status();
  const auto table = database->find_table("town");
  if (!table.ok()) return table.status();
  const auto key = database->find_key(*table, "primary");
  if (!key.ok()) return key.status();
  auto transaction = database->begin(flugs::AccessMode::kReadOnly);
  if (!transaction.ok()) return transaction.status();
  const auto row = transaction->get(*key, {Value::int64(1)});
  if (!row.ok()) return row.status();
  if (row->get_unchecked<std::string_view>(flugs::ColumnId(1)) != "Gdansk") {
    return {flugs::StatusCode::kCorrupt, "another name was read than was written"};
  }
  return transaction->commit();
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return 2;
  flugs::Status status = write(arguments[1]);
  if (status.ok()) status = read(arguments[1]);
  std::remove(arguments[1]);
  std::cout << status.to_string() << '\n';
  return status.ok() ? 0 : 1;
}
