// Dictionaries that are mostly waste, in a full pool whose chunks may stay as they are: merges put
// the end of the dictionaries off, but not for ever.
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flugs/database.h"
#include "flugs/pool_check.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kRows = 20000;
constexpr int kNumbers = 4;

/// A row takes less in the delta, where it has codes, than its values do.
class Measurements {
 public:
  explicit Measurements(const TemporaryPath& path) {
    OpenOptions options;
    options.path = path.string();
    options.max_bytes = std::uint64_t{16} << 20;
    options.slots_max = 4;
    options.merge_policy.automatic = false;
    database_.emplace(must(Database::open(options)));
    TableSchema schema("measurements");
    schema.column("id", Type::kInt64).primary_key({"id"});
    schema.column("place", Type::kString, {.not_null = true, .encoding = Encoding::kDictionary});
    for (int i = 0; i < kNumbers; ++i)
      schema.column("c" + std::to_string(i), Type::kDouble,
                    {.not_null = true, .encoding = Encoding::kDictionary});
    table_ = must(database_->create_table(schema));
    Transaction t = must(database_->begin());
    for (std::int64_t id = 0; id < kRows; ++id) {
      std::vector<Value> row{Value::int64(id), Value::string("harbour")};
      for (int i = 0; i < kNumbers; ++i) row.push_back(Value::real(number(id, i)));
      must(t.insert(table_, row));
    }
    must(t.commit());
  }

  /// Gives one row numbers that no row has had.
  Status update_next() {
    std::vector<ColumnValue> changes;
    const std::int64_t version = kRows + updates_;
    for (int i = 0; i < kNumbers; ++i)
      changes.push_back(
          {ColumnId(static_cast<std::uint16_t>(2 + i)), Value::real(number(version, i))});
    Transaction t = must(database_->begin());
    const std::vector<Value> id{Value::int64(updates_ % kRows)};
    const Status updated = t.update(KeyId{table_, 0}, id, changes).status();
    if (!updated.ok()) return updated;
    if (Status s = t.commit(); !s.ok()) return s;
    ++updates_;
    return {};
  }
  MergeReport merge() {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    everything.threads = 1;
    return must(database_->merge(table_, everything));
  }
  std::int64_t updates() const noexcept { return updates_; }
  void check() {
    must(database_->check());
    const Transaction t = must(database_->begin(AccessMode::kReadOnly));
    const std::int64_t rounds = updates_ / kRows;
    for (std::int64_t id = 0; id < kRows; ++id) {
      const Row row = must(t.get({table_, 0}, {Value::int64(id)}));
      const std::int64_t version = (rounds + (id < updates_ % kRows ? 1 : 0)) * kRows + id;
      for (int i = 0; i < kNumbers; ++i)
        REQUIRE(must(row.get(ColumnId(static_cast<std::uint16_t>(2 + i)))).as_double() ==
                number(version, i));
    }
  }

 private:
  static double number(std::int64_t version, int column) {
    return static_cast<double>(version) + column / 8.0;
  }

  std::optional<Database> database_;
  TableId table_;
  std::int64_t updates_ = 0;
};

TEST_CASE("wasteful dictionaries of a full pool go after a few refused writes", "[space]") {
  const TemporaryPath path;
  Measurements table(path);
  while (table.update_next().ok()) {
  }
  const std::int64_t fitted = table.updates();
  REQUIRE(fitted > kRows);
  CHECK(table.merge().columns_rewritten == 0);
  CHECK(table.merge().columns_rewritten == 0);  // no write was refused meanwhile
  std::uint32_t rewritten = 0;
  for (int merges = 0; table.updates() < 3 * fitted;) {
    const Status updated = table.update_next();
    if (updated.ok()) continue;
    REQUIRE(updated.code() == StatusCode::kOutOfSpace);
    REQUIRE(++merges < 5);
    rewritten += table.merge().columns_rewritten;
  }
  CHECK(rewritten >= 1);
  table.check();
}

}  // namespace
}  // namespace flugs::test
