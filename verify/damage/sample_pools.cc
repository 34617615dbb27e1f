#include "verify/damage/sample_pools.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>

#include "base/types.h"
#include "bench/support/random.h"
#include "engine/audit/pool_audit.h"
#include "engine/database/database_core.h"
#include "flugs/merge.h"
#include "verify/damage/guarded_buffer.h"

namespace flugs::damage {

namespace {

using bench::Random;
using engine::DatabaseCore;

constexpr std::size_t kPoolBytes = std::size_t{512} << 10;
constexpr std::uint64_t kSegmentBytes = std::uint64_t{64} << 10;

TableSchema people_schema() {
  TableSchema schema("people");
  schema.column("id", Type::kInt32)
      .column("name", Type::kString)
      .column("city", Type::kString)
      .column("age", Type::kInt32)
      .column("note", Type::kString)
      .direct()
      .primary_key({"id"})
      .unique_key("by_name", {"name"})
      .key("by_city", {"city", "age"});
  return schema;
}

TableSchema types_schema(bool direct) {
  TableSchema schema(direct ? "direct" : "types");
  schema.column("id", Type::kInt64);
  for (const Type type : kAllTypes) {
    schema.column(std::string(to_string(type)), type);
    schema.columns.back().encoding = direct ? Encoding::kDirect : Encoding::kDictionary;
  }
  schema.primary_key({"id"}).ordered();
  schema.key("by_double", {"double", "string"});
  schema.unique_key("by_date", {"date", "id"}).ordered().hash_prefix(1);
  return schema;
}

TableSchema log_schema() {
  TableSchema schema("log");
  schema.column("id", Type::kInt32).direct().not_null();
  schema.column("text", Type::kString).direct().column("kind", Type::kString);
  return schema;
}

TableSchema customers_schema() {
  TableSchema schema("customers");
  schema.column("id", Type::kInt64).auto_increment().column("name", Type::kString);
  return schema.with_default(Value::string("without a name so far")).primary_key({"id"});
}

/// Rows that refer to customers, by a key that the foreign key adds, and to each other.
TableSchema bills_schema() {
  TableSchema schema("bills");
  schema.column("id", Type::kInt32).column("customer", Type::kInt64);
  schema.column("sum", Type::kDecimal).scale(2).not_null().with_default(Value::int32(1));
  schema.column("before", Type::kInt32).column("state", Type::kString);
  schema.primary_key({"id"});
  schema.check("summed", Condition::compare("sum", Condition::Kind::kGreater, Value::int32(0)));
  schema.check("known", Condition::any_of(
                            {Condition::is_null("state"),
                             Condition::in("state", {Value::string("paid"), Value::string("sent")}),
                             Condition::starts_with("state", "lost")}));
  schema.foreign_key("of_customer", {"customer"}, "customers", ReferenceAction::kCascade);
  return schema.foreign_key("follows", {"before"}, "bills", ReferenceAction::kSetNull,
                            ReferenceAction::kCascade);
}

std::string text_of(Random& random, std::uint32_t bytes_max) {
  std::string text(random.below(bytes_max + 1), 'x');
  for (char& c : text) c = static_cast<char>('a' + random.below(26));
  return text;
}

/// Fills a database; fails with the database's status.
class Filler {
 public:
  Filler(DatabaseCore& core, std::uint64_t seed) : core_(core), random_(seed) {}

  Status make(const TableSchema& schema) { return core_.create_table(schema).status(); }

  /// Inserts rows `first` to `end` - 1 in one transaction, and changes and removes some of them
  /// again.
  Status insert(const char* name, std::uint32_t first, std::uint32_t end,
                std::uint32_t text_bytes_max) {
    const Result<TableId> table = core_.find_table(name);
    if (!table.ok()) return table.status();
    Result<Transaction> transaction = core_.begin(AccessMode::kReadWrite);
    if (!transaction.ok()) return transaction.status();
    for (std::uint32_t id = first; id < end; ++id) {
      const Result<RowId> row = insert_row(*transaction, *table, id, text_bytes_max);
      if (!row.ok()) return row.status();
      rows_.push_back(*row);
    }
    return transaction->commit();
  }

  /// Changes every `step`-th of the rows inserted so far and removes the one behind it.
  Status churn(const char* name, std::uint32_t step) {
    const Result<TableId> table = core_.find_table(name);
    if (!table.ok()) return table.status();
    for (std::size_t i = 0; i + 1 < rows_.size(); i += step) {
      Result<Transaction> transaction = core_.begin(AccessMode::kReadWrite);
      if (!transaction.ok()) return transaction.status();
      const std::string text = text_of(random_, 40);
      const auto column = static_cast<std::uint16_t>(std::strcmp(name, "people") == 0 ? 2 : 1);
      if (std::strcmp(name, "people") == 0) {
        Status s = transaction->update(*table, rows_[i], {{ColumnId(column), Value::string(text)}})
                       .status();
        if (!s.ok()) return s;
      }
      if (Status s = transaction->remove(*table, rows_[i + 1]); !s.ok()) return s;
      if (i % 3 == 0) {
        transaction->abort();
      } else if (Status s = transaction->commit(); !s.ok()) {
        return s;
      }
    }
    rows_.clear();
    return {};
  }

  /// Merges all of a table into row groups.
  Status merge(const char* name) {
    const Result<TableId> table = core_.find_table(name);
    if (!table.ok()) return table.status();
    MergeOptions options;
    options.waste_bytes = std::uint64_t{16} << 10;
    options.scope = MergeScope::kEverything;
    options.threads = 1;
    return core_.merge(*table, options).status();
  }

  /// Adds a column of each encoding that the rows lack, and a key on one of them.
  Status extend_log() {
    const Result<TableId> log = core_.find_table("log");
    if (!log.ok()) return log.status();
    ColumnSchema count;
    count.name = "count";
    count.type = Type::kInt32;
    count.default_value = Constant(Value::int32(7));
    ColumnSchema source;
    source.name = "source";
    source.type = Type::kString;
    source.default_value = Constant(Value::string("a source that is not known any more"));
    ColumnSchema remark = source;
    remark.name = "remark";
    remark.encoding = Encoding::kDirect;
    for (const ColumnSchema& column : {count, source, remark})
      if (Status s = core_.add_column(*log, column).status(); !s.ok()) return s;
    KeySchema by_source;
    by_source.name = "by_source";
    by_source.columns = {"source", "id"};
    return core_.add_key(*log, by_source).status();
  }
  /// Drops a column that rows have values of: otherwise nothing of it would be read any more.
  /// Gives two columns another type while rows in chunks and in groups have their earlier editions.
  Status cut_log() {
    const Result<TableId> log = core_.find_table("log");
    if (!log.ok()) return log.status();
    if (Status s = core_.drop_column(*log, ColumnId(3)); !s.ok()) return s;
    for (const std::uint16_t number : {std::uint16_t{4}, std::uint16_t{5}})
      if (Status s = core_.change_type(*log, ColumnId(number), Type::kBytes); !s.ok()) return s;
    return core_.rename_column(*log, ColumnId(2), "sort");
  }

  Result<RowId> insert_row(Transaction& transaction, TableId table, std::uint32_t id,
                           std::uint32_t text_bytes_max) {
    const std::string text = text_of(random_, text_bytes_max);
    const std::string name = fmt::format("name {} {}", id, text);
    const std::string_view what = core_.table(table)->name();
    const auto number = static_cast<std::int32_t>(id);
    if (what == "people")
      return transaction.insert(
          table, {Value::int32(number), Value::string(name),
                  Value::string(id % 2 == 0 ? "Dresden" : "a city of more than fifteen bytes"),
                  id % 5 == 0 ? Value::null() : Value::int32(number % 70),
                  id % 7 == 0 ? Value::null() : Value::string(text)});
    if (what == "log")
      return transaction.insert(table, {Value::int32(number), Value::string(text),
                                        Value::string(id % 3 == 0 ? "even" : "odd")});
    if (what == "customers") return transaction.insert(table, std::span<const ColumnValue>());
    if (what == "bills")
      return transaction.insert(
          table, {{ColumnId(0), Value::int32(number)},
                  {ColumnId(1), id % 5 == 0 ? Value::null() : Value::int64(1 + id % 7)},
                  {ColumnId(3), id % 4 == 0 ? Value::null() : Value::int32(number - 1)},
                  {ColumnId(4), Value::string(id % 3 == 0 ? "lost on the way" : "paid")}});
    const bool null = id % 6 == 0;
    return transaction.insert(
        table,
        {Value::int64(number), null ? Value::null() : Value::boolean(id % 2 == 0),
         null ? Value::null() : Value::int32(-number), Value::int64(std::int64_t{number} << 33),
         null ? Value::null() : Value::real(number * 0.5),
         Value::decimal_units(std::int64_t{100} * number), Value::date(number / 4),
         Value::timestamp(std::int64_t{number} * 1000003),
         null ? Value::null() : Value::string(text), Value::bytes(name)});
  }

 private:
  DatabaseCore& core_;
  Random random_;
  std::vector<RowId> rows_;
};

struct Kind {
  const char* name;
  std::uint32_t slots;
  std::function<Status(Filler&)> fill;
  bool has_open_transactions = false;
};

Status first_failure(std::initializer_list<Status> all) {
  for (const Status& status : all)
    if (!status.ok()) return status;
  return {};
}

std::vector<Kind> kinds() {
  return {
      {"empty", 4, [](Filler&) { return Status(); }},
      {"small", 4,
       [](Filler& f) {
         return first_failure(
             {f.make(people_schema()), f.insert("people", 0, 40, 30), f.churn("people", 4)});
       }},
      {"types", 8,
       [](Filler& f) {
         return first_failure({f.make(types_schema(false)), f.make(types_schema(true)),
                               f.insert("types", 0, 60, 30), f.churn("types", 9),
                               f.insert("direct", 0, 60, 30), f.churn("direct", 7)});
       }},
      {"without keys", 2,
       [](Filler& f) {
         return first_failure({f.make(log_schema()), f.insert("log", 0, 300, 60),
                               f.insert("log", 300, 310, 20), f.churn("log", 20)});
       }},
      {"large", 4,
       [](Filler& f) {
         return first_failure({f.make(people_schema()), f.make(log_schema()),
                               f.insert("people", 0, 600, 60), f.churn("people", 40),
                               f.insert("log", 0, 20, 6000)});
       }},
      {"merged", 4,
       [](Filler& f) {
         return first_failure({f.make(types_schema(false)), f.make(types_schema(true)),
                               f.insert("types", 0, 60, 30), f.churn("types", 9), f.merge("types"),
                               f.insert("direct", 0, 60, 30), f.merge("direct"),
                               f.churn("direct", 7), f.insert("types", 100, 120, 30)});
       }},
      {"constrained", 4,
       [](Filler& f) {
         return first_failure({f.make(customers_schema()), f.make(bills_schema()),
                               f.insert("customers", 0, 12, 30), f.churn("customers", 20),
                               f.insert("bills", 0, 60, 30), f.churn("bills", 9), f.merge("bills"),
                               f.insert("bills", 100, 110, 30)});
       }},
      {"altered", 4,
       [](Filler& f) {
         return first_failure({f.make(log_schema()), f.insert("log", 0, 60, 60), f.merge("log"),
                               f.insert("log", 60, 90, 60), f.extend_log(),
                               f.insert("log", 100, 140, 60), f.merge("log"),
                               f.insert("log", 140, 145, 60), f.cut_log(),
                               f.insert("log", 145, 150, 60), f.churn("log", 9)});
       }},
      {"crashed", 4,
       [](Filler& f) {
         return first_failure({f.make(people_schema()), f.make(log_schema()),
                               f.insert("people", 0, 80, 30), f.churn("people", 5)});
       },
       true},
  };
}

std::string name_of(const Kind& kind, IndexPlace mode) {
  return fmt::format("{}{}", kind.name, mode == IndexPlace::kPool ? "" : ", rebuild");
}

OpenOptions options_for(const Kind& kind, IndexPlace mode) {
  OpenOptions options;
  options.index_place = mode;
  options.tuning.hint_interval =
      std::chrono::milliseconds(0);  // no thread whose progress could differ
  options.merge_policy.automatic = false;
  options.tuning.clock = CommitClock::kCounter;  // the same on every machine
  options.path = "(memory)";
  options.segment_bytes = kSegmentBytes;
  options.tuning.grow_ahead_bytes = 0;
  options.slots_max = kind.slots;
  options.tuning.recovery_threads = 1;
  return options;
}

/// Transactions in flight: `copy` takes a copy with what a crash leaves of them.
Status copy_in_flight(DatabaseCore& core, Filler& filler, const std::function<void()>& copy) {
  const Result<TableId> people = core.find_table("people");
  const Result<TableId> log = core.find_table("log");
  if (!people.ok() || !log.ok()) return Status(StatusCode::kNotFound, "no such table");
  Result<Transaction> first = core.begin(AccessMode::kReadWrite);
  Result<Transaction> second = core.begin(AccessMode::kReadWrite);
  if (!first.ok() || !second.ok()) return Status(StatusCode::kBusy, "no transaction slot");
  Status status = filler.insert_row(*first, *people, 1000, 40).status();
  for (std::uint32_t id = 0; status.ok() && id < 12; ++id)
    status = filler.insert_row(*second, *log, 2000 + id, 40).status();
  copy();
  return status;
}

/// Notes the remarks of the audit. Fails if the sample is not clean, since that would hide damage.
Status note_audit(const Result<PoolCheckReport>& report, SamplePool& sample) {
  if (!report.ok()) return report.status();
  if (!report->is_clean())
    return Status(StatusCode::kCorrupt,
                  fmt::format("sample {}: {}", sample.name, report->findings.front().message));
  sample.remarks = report->remarks;
  return {};
}

Result<SamplePool> make_memory_sample(const Kind& kind, IndexPlace mode, std::uint64_t seed) {
  SamplePool sample;
  sample.name = name_of(kind, mode);
  const GuardedBuffer buffer(kPoolBytes);
  pmem::PoolOptions pool_options;
  pool_options.segment_bytes = kSegmentBytes;
  pool_options.extent_unit_bytes = 512;
  auto pool = pmem::Pool::create_in_memory(buffer.span(), pool_options);
  if (!pool.ok()) return pool.status();
  auto core = DatabaseCore::open(std::move(*pool), true, options_for(kind, mode));
  if (!core.ok()) return core.status();
  Filler filler(**core, seed);
  Status status = kind.fill(filler);
  const auto copy = [&] { sample.bytes.assign(buffer.span().begin(), buffer.span().end()); };
  if (status.ok() && kind.has_open_transactions) status = copy_in_flight(**core, filler, copy);
  if (!status.ok())
    return Status(status.code(), fmt::format("sample {}: {}", sample.name, status.message()));
  core->reset();
  if (!kind.has_open_transactions) copy();
  sample.regions = map_pool(sample.bytes, 0);
  std::copy(sample.bytes.begin(), sample.bytes.end(), buffer.span().begin());
  if (Status s = note_audit(engine::check_pool_in_memory(buffer.span()), sample); !s.ok()) return s;
  return sample;
}

}  // namespace

Result<std::vector<SamplePool>> make_memory_samples(std::uint64_t seed) {
  std::vector<SamplePool> samples;
  for (const Kind& kind : kinds())
    for (const IndexPlace mode : {IndexPlace::kPool, IndexPlace::kDram}) {
      Result<SamplePool> sample = make_memory_sample(kind, mode, seed);
      if (!sample.ok()) return sample.status();
      samples.push_back(*std::move(sample));
    }
  return samples;
}

namespace {

Status read_file(const std::string& path, std::vector<std::byte>& bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  bytes.resize(static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0)));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (file.good() && !bytes.empty()) return {};
  return Status(StatusCode::kIoError, fmt::format("{}: cannot be read", path));
}

/// The places of libpmemobj's own metadata, by docs/format.md.
void map_object_metadata(SamplePool& sample) {
  constexpr std::uint64_t kLanes = 8192;
  constexpr std::uint64_t kHeap = kLanes + 1024 * 3072;
  constexpr std::uint64_t kZone = kHeap + 1024;
  constexpr std::uint64_t kFirstChunk = kZone + 64 + 65528 * 8;
  const auto add = [&](Part part, std::uint64_t offset, std::uint64_t bytes) {
    sample.regions.push_back({part, false, offset, bytes});
  };
  add(Part::kObjectHeader, 0, 136);
  add(Part::kObjectHeader, 4088, 16);
  add(Part::kObjectHeader, 5120, 24);
  add(Part::kObjectHeader, 6136, 48);
  for (const std::uint64_t lane : {0, 1, 2, 511, 1023})
    for (const std::uint64_t log : {0, 64, 256, 320, 960, 1024})
      add(Part::kLanes, kLanes + lane * 3072 + log, 64);
  add(Part::kObjectHeap, kHeap, 64);
  add(Part::kObjectHeap, kZone, 64 + 64);
  add(Part::kObjectHeap, kFirstChunk, 128);
}

/// Returns nothing for a pool with open transactions on a disk: its file is incomplete without the
/// journal.
Result<std::optional<SamplePool>> make_file_sample(const Kind& kind, std::uint64_t seed,
                                                   const std::string& path) {
  OpenOptions options = options_for(kind, kDefaultIndexPlace);
  options.path = path;
  options.mode = OpenMode::kCreate;
  options.max_bytes = std::uint64_t{8} << 20;
  SamplePool sample;
  sample.name = fmt::format("{}, in a file", kind.name);
  Status status;
  {
    auto core = DatabaseCore::open(options);
    if (!core.ok()) return core.status();
    if (kind.has_open_transactions && (*core)->statistics().medium == "file")
      return std::optional<SamplePool>();
    Filler filler(**core, seed);
    status = kind.fill(filler);
    const auto copy = [&] { status = read_file(path, sample.bytes); };
    if (status.ok() && kind.has_open_transactions) status = copy_in_flight(**core, filler, copy);
  }
  if (status.ok() && !kind.has_open_transactions) status = read_file(path, sample.bytes);
  if (!status.ok()) return status;
  status = note_audit(check_pool({.path = path, .progress = {}}), sample);
  if (!status.ok()) return status;
  std::memcpy(&sample.root, &sample.bytes[6144], sizeof sample.root);
  sample.root = (sample.root + 63) / 64 * 64;
  sample.regions = map_pool(sample.bytes, sample.root);
  map_object_metadata(sample);
  return std::optional<SamplePool>(std::move(sample));
}

}  // namespace

void remove_pool_file(const std::string& path) {
  ::unlink(path.c_str());
  ::unlink((path + ".journal").c_str());
}

Result<std::vector<SamplePool>> make_file_samples(std::uint64_t seed, const std::string& path) {
  std::vector<SamplePool> samples;
  for (const Kind& kind : kinds()) {
    if (std::strcmp(kind.name, "small") != 0 && std::strcmp(kind.name, "crashed") != 0) continue;
    Result<std::optional<SamplePool>> sample = make_file_sample(kind, seed, path);
    remove_pool_file(path);
    if (!sample.ok()) return sample.status();
    if (sample->has_value()) samples.push_back(**std::move(sample));
  }
  return samples;
}

}  // namespace flugs::damage
