#include "bench/tpcc/ch_tables.h"

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/support/integer.h"
#include "bench/tpcc/tpcc_random.h"

namespace flugs::bench {

namespace {

constexpr std::array<std::string_view, 5> kRegions = {"Africa", "America", "Asia", "Australia",
                                                      "Europe"};

struct Nation {
  std::string_view name;
  std::uint32_t region;  // key in REGION
};

/// In the order of their keys, the codes of `kLettersAndDigits`.
constexpr std::array<Nation, 62> kNations = {{
    {"Australia", 4},
    {"Belgium", 5},
    {"Cameroon", 1},
    {"Denmark", 5},
    {"Ecuador", 2},
    {"France", 5},
    {"Germany", 5},
    {"Hungary", 5},
    {"Italy", 5},
    {"Japan", 3},
    {"Kenya", 1},
    {"Lithuania", 5},
    {"Mexico", 2},
    {"Netherlands", 5},
    {"Oman", 1},
    {"Portugal", 5},
    {"Qatar", 1},
    {"Rwanda", 1},
    {"Serbia", 5},
    {"Togo", 1},
    {"United States", 2},
    {"Vietnam", 3},
    {"Singapore", 3},
    {"Cambodia", 3},
    {"Yemen", 1},
    {"Zimbabwe", 1},
    {"Argentina", 2},
    {"Bolivia", 2},
    {"Canada", 2},
    {"Dominican Republic", 2},
    {"Egypt", 1},
    {"Finland", 5},
    {"Ghana", 1},
    {"Haiti", 2},
    {"India", 3},
    {"Jamaica", 4},
    {"Kazakhstan", 3},
    {"Luxembourg", 5},
    {"Morocco", 1},
    {"Norway", 5},
    {"Poland", 5},
    {"Peru", 2},
    {"Nicaragua", 2},
    {"Romania", 5},
    {"South Africa", 1},
    {"Thailand", 3},
    {"United Kingdom", 5},
    {"Venezuela", 2},
    {"Liechtenstein", 5},
    {"Austria", 5},
    {"Laos", 3},
    {"Zambia", 1},
    {"Switzerland", 5},
    {"China", 3},
    {"Papua New Guinea", 4},
    {"East Timor", 4},
    {"Bulgaria", 5},
    {"Brazil", 2},
    {"Albania", 5},
    {"Andorra", 5},
    {"Belize", 2},
    {"Botswana", 1},
}};
static_assert(kNations.size() == kLettersAndDigits.size());

std::uint32_t nation_key(std::size_t number) {
  return static_cast<unsigned char>(kLettersAndDigits[number]);
}

TableSchema& key_column(TableSchema& schema, const char* name) {
  return schema.column(name, Type::kInt32).not_null().direct();
}
TableSchema& text_column(TableSchema& schema, const char* name) {
  return schema.column(name, Type::kString).not_null();
}

TableSchema region_schema() {
  TableSchema schema("region");
  key_column(schema, "r_regionkey");
  text_column(schema, "r_name");
  text_column(schema, "r_comment");
  return schema.primary_key({"r_regionkey"});
}

TableSchema nation_schema() {
  TableSchema schema("nation");
  key_column(schema, "n_nationkey");
  text_column(schema, "n_name");
  schema.column("n_regionkey", Type::kInt32).not_null();
  text_column(schema, "n_comment");
  return schema.primary_key({"n_nationkey"});
}

TableSchema supplier_schema() {
  TableSchema schema("supplier");
  key_column(schema, "su_suppkey");
  text_column(schema, "su_name").direct();
  text_column(schema, "su_address").direct();
  schema.column("su_nationkey", Type::kInt32).not_null().expect_distinct(kNations.size());
  text_column(schema, "su_phone").direct();
  schema.column("su_acctbal", Type::kDecimal).not_null().scale(2).direct();
  text_column(schema, "su_comment").direct();
  return schema.primary_key({"su_suppkey"});
}

class ChLoader {
 public:
  explicit ChLoader(std::uint64_t seed) : random_(mix64(seed ^ 0x6368u)) {}

  void regions() {
    for (std::uint32_t r = 0; r < kRegions.size(); ++r) {
      values_.push_back(integer(r + 1));
      values_.push_back(Value::string(kRegions[r]));
      letters(31, 115);
    }
  }
  void nations() {
    for (std::size_t n = 0; n < kNations.size(); ++n) {
      values_.push_back(integer(nation_key(n)));
      values_.push_back(Value::string(kNations[n].name));
      values_.push_back(integer(kNations[n].region));
      letters(31, 114);
    }
  }
  void suppliers() {
    for (std::uint32_t s = 0; s < kChSuppliers; ++s) {
      const std::string number = std::to_string(s);
      values_.push_back(integer(s));
      text("Supplier#" + std::string(9 - number.size(), '0') + number);
      letters(10, 40);
      values_.push_back(integer(nation_key(random_.below(kNations.size()))));
      std::string phone(15, ' ');
      fill_digits(random_, phone);
      text(std::move(phone));
      values_.push_back(Value::decimal_units(std::int64_t{random_.between(0, 1'099'998)} - 99'999));
      comment();
    }
  }
  /// Inserts the rows made since the last call, in one transaction.
  Status insert(Database& database, const TableSchema& schema) {
    const Result<TableId> table = database.create_table(schema);
    if (!table.ok()) return table.status();
    Result<Transaction> transaction = database.begin();
    if (!transaction.ok()) return transaction.status();
    Status status = transaction->insert_rows(*table, values_);
    if (status.ok()) status = transaction->commit();
    values_.clear();
    texts_.clear();
    return status;
  }

 private:
  void text(std::string made) {
    texts_.push_back(std::move(made));
    values_.push_back(Value::string(texts_.back()));
  }
  void letters(std::uint32_t low, std::uint32_t high) {
    std::string made(random_.between(low, high), ' ');
    fill_alphanumeric(random_, made);
    text(std::move(made));
  }
  /// Q16 looks for "bad": one in a hundred has it, since random letters hardly ever do.
  void comment() {
    constexpr std::string_view kBad = "bad";
    std::string made(random_.between(25, 100), ' ');
    fill_alphanumeric(random_, made);
    if (random_.below(100) == 0) made.replace(random_.below(20), kBad.size(), kBad);
    text(std::move(made));
  }

  Random random_;
  std::deque<std::string> texts_;  // what the values show
  std::vector<Value> values_;
};

}  // namespace

Status make_ch_tables(Database& database, std::uint64_t seed) {
  ChLoader loader(seed);
  loader.regions();
  Status status = loader.insert(database, region_schema());
  if (!status.ok()) return status;
  loader.nations();
  status = loader.insert(database, nation_schema());
  if (!status.ok()) return status;
  loader.suppliers();
  return loader.insert(database, supplier_schema());
}

}  // namespace flugs::bench
