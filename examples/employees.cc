// Figure 2 of the SOFORT paper (DaMoN 2014): a table of employees and their offices. Ingo moves
// from B1.01 to B1.03. A transaction that began to read before still sees the old office; one that
// begins afterwards sees the new one. Nothing is overwritten: the move makes a second version of
// Ingo's row.
//
//   employees [POOL]      without a pool, a fresh one on /dev/shm, removed at the end
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "flugs/database.h"

using namespace flugs;

namespace {

std::string made;  // the pool, if this program must remove it

[[noreturn]] void fail(const Status& status) {
  std::fprintf(stderr, "employees: %s\n", status.to_string().c_str());
  std::exit(1);
}

template <typename T>
T check(Result<T> result) {
  if (!result.ok()) fail(result.status());
  return std::move(result).value();
}

void check(const Status& status) {
  if (!status.ok()) fail(status);
}

constexpr ColumnId kName{0};
constexpr ColumnId kOffice{1};

TableId make_table(Database& database) {
  TableSchema schema("employees");
  schema.column("name", Type::kString).column("office", Type::kString).not_null();
  schema.primary_key({"name"});
  return check(database.create_table(schema));
}

void hire(Database& database, TableId employees) {
  Transaction transaction = check(database.begin());
  for (const auto& [name, office] :
       {std::pair{"Ingo", "B1.01"}, std::pair{"Anja", "B1.02"}, std::pair{"Peter", "B2.07"}})
    check(transaction.insert(employees, {Value::string(name), Value::string(office)}));
  check(transaction.commit());
}

/// Returns the commit time-stamp: the new version's life begins there, and the old one's ends.
std::uint64_t move(Database& database, KeyId by_name, const char* name, const char* office) {
  Transaction transaction = check(database.begin());
  const Row row = check(transaction.get(by_name, {Value::string(name)}));
  check(transaction.update(by_name.table, row.id(), {{kOffice, Value::string(office)}}));
  check(transaction.commit());
  return transaction.commit_timestamp();
}

void print(const char* title, const Transaction& snapshot, TableId employees) {
  std::vector<std::string> lines;
  check(snapshot.scan(employees, {kName, kOffice}, [&lines](const ScanBatch& batch) {
    for (std::size_t i = 0; i < batch.row_count(); ++i) {
      char line[64];
      std::snprintf(line, sizeof line, "  %-8s %-8s %u",
                    std::string(batch.column_unchecked<std::string_view>(0)[i]).c_str(),
                    std::string(batch.column_unchecked<std::string_view>(1)[i]).c_str(),
                    batch.row_ids()[i].value());
      lines.emplace_back(line);
    }
    return true;
  }));
  std::sort(lines.begin(), lines.end());
  std::printf("%s (snapshot at %llu)\n  %-8s %-8s %s\n", title,
              static_cast<unsigned long long>(snapshot.snapshot()), "name", "office", "row");
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
}

std::string office_of(const Transaction& snapshot, KeyId by_name, const char* name) {
  return std::string(
      check(snapshot.get(by_name, {Value::string(name)})).get_unchecked<std::string_view>(kOffice));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) made = "/dev/shm/flugs-employees-" + std::to_string(getpid());
  std::atexit([] { unlink(made.c_str()); });
  OpenOptions options;
  options.path = argc < 2 ? made : argv[1];
  Database database = check(Database::open(options));
  const TableId employees = make_table(database);
  const KeyId by_name = check(database.find_key(employees, "primary"));
  hire(database, employees);

  const Transaction before = check(database.begin(AccessMode::kReadOnly));
  const std::uint64_t moved = move(database, by_name, "Ingo", "B1.03");
  const Transaction after = check(database.begin(AccessMode::kReadOnly));

  print("begun before Ingo moved", before, employees);
  std::printf("\nIngo moves from B1.01 to B1.03, committed at %llu\n\n",
              static_cast<unsigned long long>(moved));
  print("begun afterwards", after, employees);

  const bool right =
      office_of(before, by_name, "Ingo") == "B1.01" && office_of(after, by_name, "Ingo") == "B1.03";
  return right ? 0 : 1;
}
