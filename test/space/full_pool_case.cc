#include "test/space/full_pool_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "flugs/expression.h"
#include "flugs/pool_check.h"

namespace flugs::test {

namespace {

constexpr std::uint64_t kMega = std::uint64_t{1} << 20;
constexpr std::size_t kTextBytesMax = 400;
constexpr int kMergesMax = 4;  // without progress the case has failed

template <typename T>
void shuffle(std::vector<T>& all, Random& random) {
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
}

}  // namespace

FullPoolCase::FullPoolCase(std::uint64_t seed, Columns columns)
    : seed_(seed), columns_(columns), random_(seed) {
  constexpr std::uint64_t kSizes[] = {8, 12, 16, 24, 32, 64};
  options_.path = path_.string();
  options_.max_bytes = kSizes[random_.below(random_.chance(90) ? 4 : 6)] * kMega;
  options_.segment_bytes = random_.chance(50) ? 64 * kMega : kMega << random_.below(4);
  options_.tuning.grow_ahead_bytes = random_.chance(50) ? 0 : kMega;
  options_.index_place = random_.chance(50) ? IndexPlace::kPool : IndexPlace::kDram;
  options_.slots_max = 16;
  fill_percent_ = random_.chance(50) ? 100 : 50 + random_.below(50);
  removes_all_ = random_.chance(50);
  removes_at_once_ = random_.chance(50);
  reopens_ = random_.chance(30);
  options_.merge_policy.automatic = random_.chance(50);
  schema_ = draw_schema();
}

TableSchema FullPoolCase::draw_schema() {
  TableSchema schema("filled");
  schema.column("id", Type::kInt64);
  constexpr Type kTypes[] = {Type::kInt32, Type::kInt64,  Type::kDouble,
                             Type::kDate,  Type::kString, Type::kBytes};
  constexpr Encoding kEncodings[] = {Encoding::kAuto, Encoding::kDictionary, Encoding::kDirect};
  const std::uint64_t columns = random_.below(8);
  for (std::uint64_t i = 0; i < columns; ++i) {
    // Drawn in this order with every compiler.
    const Type type = kTypes[random_.below(columns_ == Columns::kAny ? 6 : 4)];
    const bool is_not_null = random_.chance(50);
    const Encoding encoding = kEncodings[random_.below(3)];
    schema.column("c" + std::to_string(i), type, {.not_null = is_not_null, .encoding = encoding});
  }
  if (random_.chance(90)) schema.primary_key({"id"});
  if (columns > 0 && random_.chance(40)) schema.key("second", {"c0", "id"});
  if (random_.chance(20)) schema.unique_key("third", {"id"}, {.ordered = true});
  if (seed_ % 8 == 5) schema.in_columns();  // the rest is as the seed has always drawn it
  return schema;
}

std::string FullPoolCase::words() const {
  std::string columns;
  for (const ColumnSchema& column : schema_.columns)
    columns += fmt::format(" {}/{}{}", to_string(column.type), static_cast<int>(column.encoding),
                           column.nullable ? "?" : "");
  return fmt::format(
      "seed {}: {} MB, segments {} MB, {}, {} % full, removes {} {}{}{}, {} keys, columns{}; {} "
      "rows",
      seed_, options_.max_bytes / kMega, options_.segment_bytes / kMega,
      options_.index_place == IndexPlace::kPool ? "indexes in the pool" : "indexes in DRAM",
      fill_percent_, removes_all_ ? "all" : "half", removes_at_once_ ? "at once" : "in batches",
      reopens_ ? ", opened anew" : "", options_.merge_policy.automatic ? ", merges by itself" : "",
      schema_.keys.size(), columns, count_);
}

// The same for the same number.
Value FullPoolCase::value(std::uint64_t number, std::size_t column) {
  if (column == 0) return Value::int64(static_cast<std::int64_t>(number));
  Random drawn(seed_ ^ (number * 64 + column) * 0x9e3779b97f4a7c15u);
  const ColumnSchema& schema = schema_.columns[column];
  // Half of the columns repeat their values.
  const std::uint64_t pick = column % 2 == 0 ? drawn.below(100) : drawn.next() >> 2;
  if (schema.nullable && drawn.chance(10)) return Value::null();
  switch (schema.type) {
    case Type::kInt32:
      return Value::int32(static_cast<std::int32_t>(pick));
    case Type::kDouble:
      return Value::real(static_cast<double>(pick));
    case Type::kDate:
      return Value::date(static_cast<std::int32_t>(pick % 100'000));
    case Type::kString:
    case Type::kBytes: {
      Random letters(pick);
      std::string text(letters.below(kTextBytesMax), ' ');
      for (char& c : text) c = static_cast<char>('a' + letters.below(26));
      texts_.push_back(std::move(text));
      return Value::from_bytes(schema.type, texts_.back());
    }
    default:
      return Value::int64(static_cast<std::int64_t>(pick));
  }
}

std::vector<Value> FullPoolCase::row(std::uint64_t number) {
  texts_.clear();
  texts_.reserve(schema_.columns.size());
  std::vector<Value> values;
  for (std::size_t i = 0; i < schema_.columns.size(); ++i) values.push_back(value(number, i));
  return values;
}

Status FullPoolCase::insert(const std::vector<std::uint64_t>& numbers) {
  Result<Transaction> t = database_->begin();
  if (!t.ok()) return t.status();
  for (const std::uint64_t number : numbers)
    if (Status s = t->insert(table_, row(number)).status(); !s.ok()) return s;
  return t->commit();
}

// Until the pool is as full as was drawn, or has no room.
Status FullPoolCase::fill() {
  for (;;) {
    const Statistics now = database_->statistics();
    if (fill_percent_ < 100 && now.pool_used_bytes * 100 >= options_.max_bytes * fill_percent_)
      return {};
    std::vector<std::uint64_t> batch(1 + random_.below(500));
    std::iota(batch.begin(), batch.end(), count_);
    Status inserted = insert(batch);
    while (inserted.code() == StatusCode::kOutOfSpace && batch.size() > 1) {
      batch.resize(batch.size() / 2);
      inserted = insert(batch);
    }
    if (inserted.code() == StatusCode::kOutOfSpace) return {};
    if (!inserted.ok()) return inserted;
    count_ += batch.size();
  }
}

Status FullPoolCase::remove_batch(const std::vector<std::uint64_t>& numbers) {
  Result<Transaction> t = database_->begin();
  if (!t.ok()) return t.status();
  for (const std::uint64_t number : numbers) {
    const Status s = t->remove({table_, 0}, {Value::int64(static_cast<std::int64_t>(number))});
    if (!s.ok()) return s;
  }
  return t->commit();
}

Status FullPoolCase::remove() {
  std::vector<std::uint64_t> numbers(count_);
  std::iota(numbers.begin(), numbers.end(), 0);
  if (random_.chance(50)) shuffle(numbers, random_);
  if (!removes_all_) numbers.resize(count_ / 2);
  gone_ = numbers;
  if (!schema_.has_primary_key) {
    Transaction t = must(database_->begin());
    const std::uint64_t end = removes_all_ ? count_ : count_ / 2;
    gone_.resize(end);
    std::iota(gone_.begin(), gone_.end(), 0);
    const Result<std::uint64_t> removed =
        t.remove_where(table_, query::col("id") < static_cast<std::int64_t>(end));
    if (!removed.ok()) return removed.status();
    return t.commit();
  }
  if (removes_at_once_) return remove_batch(numbers);
  for (std::size_t i = 0; i < numbers.size();) {
    const std::size_t end = std::min(numbers.size(), i + 1 + random_.below(1000));
    const std::vector<std::uint64_t> batch(numbers.begin() + static_cast<std::ptrdiff_t>(i),
                                           numbers.begin() + static_cast<std::ptrdiff_t>(end));
    if (Status s = remove_batch(batch); !s.ok()) return s;
    i = end;
  }
  return {};
}

Status FullPoolCase::merge() {
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  everything.threads = 1;
  return database_->merge(table_, everything).status();
}

// A column of texts may lack room to begin anew, or for the groups that it needs then. Merges by
// themselves may have made room for more rows than fit again: later merges write index runs, too,
// and groups whose rows are partly new.
bool FullPoolCase::may_leave_out(std::uint64_t inserted) const {
  const std::uint64_t rows = count_ - gone_.size() + inserted;
  return columns_ == Columns::kAny || (options_.merge_policy.automatic && rows >= count_ / 4 * 3);
}

// Merges when the pool has no room, as its user would.
Status FullPoolCase::insert_again() {
  std::vector<std::uint64_t> numbers = gone_;
  if (random_.chance(50)) shuffle(numbers, random_);
  int merges = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    const std::size_t end = std::min(numbers.size(), i + 1 + random_.below(500));
    const std::vector<std::uint64_t> batch(numbers.begin() + static_cast<std::ptrdiff_t>(i),
                                           numbers.begin() + static_cast<std::ptrdiff_t>(end));
    const Status inserted = insert(batch);
    if (inserted.ok()) {
      merges = 0;
      i = end;
      continue;
    }
    if (inserted.code() == StatusCode::kOutOfSpace && merges == kMergesMax && may_leave_out(i)) {
      left_out_ = numbers.size() - i;
      return {};
    }
    if (inserted.code() != StatusCode::kOutOfSpace || merges++ == kMergesMax)
      return Status(inserted.code(), fmt::format("{} of {} rows inserted again: {}", i,
                                                 numbers.size(), inserted.message()));
    if (Status s = merge(); !s.ok()) return s;
  }
  return {};
}

Status FullPoolCase::compare() {
  if (Status s = database_->check(); !s.ok()) return s;
  const Transaction t = must(database_->begin(AccessMode::kReadOnly));
  std::vector<ColumnId> columns;
  for (std::uint16_t i = 0; i < schema_.columns.size(); ++i) columns.emplace_back(i);
  std::uint64_t found = 0;
  std::string wrong;
  const Status scanned = t.scan(table_, columns, Predicate::all(), [&](const ScanBatch& batch) {
    found += batch.row_count();
    for (std::size_t r = 0; r < batch.row_count(); ++r) {
      const auto number = static_cast<std::uint64_t>(batch.get_unchecked(0, r).as_int64());
      const std::vector<Value> expected = row(number);
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (!(batch.get_unchecked(i, r) == expected[i]))
          wrong = fmt::format("row {}, column {} differs", number, i);
    }
    return wrong.empty();
  });
  if (!scanned.ok()) return scanned;
  if (!wrong.empty()) return Status(StatusCode::kCorrupt, wrong);
  if (found != count_ - left_out_)
    return Status(StatusCode::kCorrupt,
                  fmt::format("{} rows found, expected {}", found, count_ - left_out_));
  return {};
}

Status FullPoolCase::run() {
  const auto step = [](std::string_view what, const Status& s) {
    return s.ok() ? s : Status(s.code(), fmt::format("{}: {}", what, s.message()));
  };
  Result<Database> opened = Database::open(options_);
  if (!opened.ok()) return opened.status();
  database_.emplace(*std::move(opened));
  Result<TableId> made = database_->create_table(schema_);
  if (!made.ok()) return step("create_table", made.status());
  table_ = *made;
  if (Status s = step("fill", fill()); !s.ok()) return s;
  if (random_.chance(20))
    if (Status s = step("merge when full", merge()); !s.ok()) return s;
  if (reopens_) {
    database_.reset();
    database_.emplace(must(Database::open(options_)));
    table_ = must(database_->find_table("filled"));
  }
  if (Status s = step("remove", remove()); !s.ok()) return s;
  if (random_.chance(50))
    if (Status s = step("merge", merge()); !s.ok()) return s;
  if (Status s = step("insert again", insert_again()); !s.ok()) return s;
  if (Status s = step("compare", compare()); !s.ok()) return s;
  database_.reset();
  const PoolCheckReport report = must(check_pool({options_.path, {}}));
  return report.is_clean() ? Status() : Status(StatusCode::kCorrupt, "check_pool finds faults");
}

}  // namespace flugs::test
