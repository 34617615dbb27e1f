#include "bench/loads/lookup_load.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "bench/support/bulk_load.h"
#include "bench/support/clock.h"
#include "bench/support/random.h"
#include "flugs/prepared.h"
#include "flugs/try.h"

namespace flugs::bench {

namespace {

constexpr ColumnId kLookupBalance{1};
constexpr ColumnId kLookupKind{2};
constexpr std::array kLookupColumns = {kLookupBalance, kLookupKind};

/// A turn is long enough that beginning it does not count, and short enough that a change of the
/// machine's speed meets all forms.
constexpr std::uint64_t kKeysOfTurn = 4096;

using LookupValues = std::array<Value, kLookupColumns.size()>;

std::int64_t lookup_balance(std::uint64_t id) noexcept {
  return static_cast<std::int64_t>(mix64(id) >> 1);
}
std::int32_t lookup_kind(std::uint64_t id) noexcept {
  return static_cast<std::int32_t>(mix64(id) % 1000);
}

bool is_as_loaded(std::uint64_t id, const LookupValues& values) noexcept {
  return !values[0].is_null() && !values[1].is_null() &&
         values[0].as_int64() == lookup_balance(id) && values[1].as_int64() == lookup_kind(id);
}

/// The keys of a turn, and the values that were found for them.
struct LookupTurn {
  std::vector<std::uint64_t> ids;
  std::vector<Value> keys;
  std::vector<LookupValues> read;
  std::vector<unsigned char> are_found;
  std::vector<std::optional<Row>> rows;  ///< of one call

  void take(std::size_t key, const Row& row) {
    row.get_unchecked(kLookupColumns, read[key]);
    are_found[key] = 1;
  }
};

struct LookupTime {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t thread_ns = 0;
};

/// Draws the keys of all turns.
class LookupKeys {
 public:
  LookupKeys(const LookupPlan& plan, std::uint64_t rows)
      : order_(plan.order), rows_(rows), random_(plan.seed) {}

  std::uint64_t next() noexcept {
    if (order_ == LookupOrder::kRandom) return random_.below(rows_);
    const std::uint64_t id = next_;
    next_ = id + 1 == rows_ ? 0 : id + 1;
    return id;
  }

 private:
  LookupOrder order_;
  std::uint64_t rows_;
  Random random_;
  std::uint64_t next_ = 0;
};

/// One call: keys [begin, end) of the turn.
Status look_up(const Transaction& reader, KeyId key, const Prepared& prepared, LookupForm form,
               LookupTurn& turn, std::size_t begin, std::size_t end) {
  const std::span<const Value> keys = std::span(turn.keys).subspan(begin, end - begin);
  switch (form) {
    case LookupForm::kGet: {
      const Result<Row> row = reader.get(key, keys);
      if (row.code() == StatusCode::kNotFound) return {};
      if (!row.ok()) return row.status();
      turn.take(begin, *row);
      return {};
    }
    case LookupForm::kPrepared: {
      Status read = prepared.read(reader, keys, turn.read[begin]);
      if (read.code() == StatusCode::kNotFound) return {};
      turn.are_found[begin] = read.ok() ? 1 : 0;
      return read;
    }
    case LookupForm::kGetMany:
      break;
  }
  const std::span<std::optional<Row>> rows = std::span(turn.rows).first(end - begin);
  FLUGS_TRY(reader.get_many(key, keys, rows));
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i]) turn.take(begin + i, *rows[i]);
  return {};
}

class LookupRun {
 public:
  LookupRun(Database& database, const LookupTable& table, const LookupPlan& plan)
      : database_(database),
        key_(table.key),
        plan_(plan),
        keys_(plan, table.rows),
        clock_(Ticks::instance()) {
    const std::uint64_t calls = (kKeysOfTurn + plan.batch - 1) / plan.batch;
    turn_.ids.resize(calls * plan.batch);
    turn_.read.resize(turn_.ids.size());
    turn_.rows.resize(plan.batch);
  }

  Result<LookupResult> run() {
    FLUGS_ASSIGN(prepared_, database_.prepare(key_, kLookupColumns));
    for (std::uint32_t i = 0; i <= plan_.runs; ++i) FLUGS_TRY(run_once(i > 0));
    return std::move(result_);
  }

 private:
  Status run_once(bool counts) {
    std::array<LookupTime, kLookupForms.size()> times{};
    std::uint64_t looked_up = 0;
    for (std::size_t turn = 0; looked_up < plan_.keys; ++turn) {
      for (std::size_t i = 0; i < kLookupForms.size(); ++i) {
        const std::size_t form = (turn + i) % kLookupForms.size();
        FLUGS_TRY(take_turn(kLookupForms[form], &times[form], nullptr));
        FLUGS_TRY(
            take_turn(kLookupForms[form], nullptr, counts ? &result_[form].call_ns : nullptr));
      }
      looked_up += turn_.ids.size();
    }
    for (std::size_t form = 0; counts && form < kLookupForms.size(); ++form) {
      const auto rows = static_cast<double>(looked_up);
      result_[form].row_ns.push_back(static_cast<double>(times[form].elapsed_ns) / rows);
      result_[form].thread_row_ns.push_back(static_cast<double>(times[form].thread_ns) / rows);
    }
    return {};
  }

  /// Adds the time of all calls to `time`, or the times of single calls to `call_ns`.
  Status take_turn(LookupForm form, LookupTime* time, Histogram* call_ns) {
    draw_keys();
    FLUGS_ASSIGN(Transaction reader, database_.begin(AccessMode::kReadOnly));
    const std::size_t of_call = form == LookupForm::kGetMany ? plan_.batch : 1;
    const std::size_t count = turn_.ids.size();
    const std::uint64_t thread_begin = thread_cpu_ns();
    const std::uint64_t begin = clock_.now();
    std::uint64_t before = begin;
    for (std::size_t i = 0; i < count; i += of_call) {
      FLUGS_TRY(look_up(reader, key_, prepared_, form, turn_, i, i + of_call));
      if (call_ns == nullptr) continue;
      const std::uint64_t now = clock_.now();
      call_ns->add(clock_.to_ns(now - before));
      before = clock_.now();
    }
    if (time != nullptr) {
      time->elapsed_ns += clock_.to_ns(clock_.now() - begin);
      time->thread_ns += thread_cpu_ns() - thread_begin;
    }
    compare(result_[static_cast<std::size_t>(form)]);
    return reader.commit();
  }

  void draw_keys() {
    turn_.keys.clear();
    for (std::uint64_t& id : turn_.ids) {
      id = keys_.next();
      turn_.keys.push_back(Value::int64(static_cast<std::int64_t>(id)));
    }
    std::fill(turn_.read.begin(), turn_.read.end(), LookupValues{});
    turn_.are_found.assign(turn_.ids.size(), 0);
  }

  void compare(LookupFigures& figures) const {
    for (std::size_t i = 0; i < turn_.ids.size(); ++i) {
      if (turn_.are_found[i] == 0)
        ++figures.missing;
      else if (!is_as_loaded(turn_.ids[i], turn_.read[i]))
        ++figures.wrong;
    }
    figures.rows += turn_.ids.size();
  }

  Database& database_;
  KeyId key_;
  const LookupPlan& plan_;
  LookupKeys keys_;
  const Ticks& clock_;
  Prepared prepared_;
  LookupTurn turn_;
  LookupResult result_;
};

}  // namespace

std::string_view to_string(LookupForm form) noexcept {
  switch (form) {
    case LookupForm::kGet:
      return "get";
    case LookupForm::kPrepared:
      return "prepared";
    case LookupForm::kGetMany:
      return "get_many";
  }
  return "";
}

Result<LookupTable> load_lookup_table(Database& database, const LookupLoad& load) {
  TableSchema schema("looked_up");
  schema.column("id", Type::kInt64).column("balance", Type::kInt64).column("kind", Type::kInt32);
  schema.primary_key({"id"});
  FLUGS_ASSIGN(const TableId table, database.create_table(schema));
  const Permutation scattered(load.rows, load.seed);
  BulkLoad bulk;
  bulk.end = load.rows;
  bulk.load_range = [&](std::uint64_t begin, std::uint64_t end, std::uint32_t) -> Status {
    FLUGS_ASSIGN(Transaction writer, database.begin());
    for (std::uint64_t i = begin; i < end; ++i) {
      const std::uint64_t id = load.is_scattered ? scattered(i) : i;
      const std::array<Value, 3> row = {Value::int64(static_cast<std::int64_t>(id)),
                                        Value::int64(lookup_balance(id)),
                                        Value::int32(lookup_kind(id))};
      FLUGS_TRY(writer.insert(table, row).status());
    }
    return writer.commit();
  };
  FLUGS_TRY(load_in_parallel(bulk));
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  if (load.merges) FLUGS_TRY(database.merge(table, everything).status());
  return LookupTable{{table, 0}, load.rows};
}

Result<LookupResult> run_lookups(Database& database, const LookupTable& table,
                                 const LookupPlan& plan) {
  return LookupRun(database, table, plan).run();
}

}  // namespace flugs::bench
