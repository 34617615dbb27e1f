#include "verify/crash/scripts/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "verify/crash/rig/probe.h"
#include "verify/crash/scripts/tables.h"

namespace flugs::crash {

namespace {

constexpr std::int32_t kTurnIdMin = 50000;
constexpr std::uint32_t kTurnIds = 48;
// Salts of the probes are below; salt * 100,000 must fit into an int32.
constexpr std::uint32_t kTurnSaltMin = 1000;
constexpr std::uint32_t kTurnSalts = 20000;
constexpr std::size_t kTablesMax = 4;
constexpr std::size_t kColumnsMax = 10;
constexpr std::size_t kOpenMax = 1;  // the rig has two slots
/// Bytes that one turn may take, besides chunks of string heaps.
constexpr std::uint64_t kTurnBytes = std::uint64_t{24} << 10;

class Turns {
 public:
  Turns(CrashRig& rig, std::uint64_t seed) : rig_(rig), random_(seed) {}

  void take(const TurnMix& mix) {
    const std::array<std::pair<std::uint8_t, void (Turns::*)()>, 17> kinds{{
        {mix.insert, &Turns::insert_one},
        {mix.update, &Turns::update_one},
        {mix.remove, &Turns::remove_one},
        {mix.multi, &Turns::write_several},
        {mix.abort, &Turns::abort_several},
        {mix.partly, &Turns::write_partly},
        {mix.interleave, &Turns::begin_or_end},
        {mix.columns, &Turns::insert_by_column},
        {mix.large, &Turns::write_many},
        {mix.text, &Turns::write_text},
        {mix.tables, &Turns::change_tables},
        {mix.alter, &Turns::alter_table},
        {mix.merge, &Turns::merge_table},
        {mix.reopen, &Turns::reopen},
        {mix.crash, &Turns::crash},
        {mix.kill, &Turns::kill},
        {mix.kill_midway, &Turns::kill_midway},
    }};
    std::uint32_t sum = 0;
    for (const auto& [weight, turn] : kinds) sum += weight;
    std::uint32_t drawn = below(sum);
    for (const auto& [weight, turn] : kinds) {
      if (drawn < weight) return (this->*turn)();
      drawn -= weight;
    }
  }

  /// Whether there is space for a turn, and for judging the states after it; also with that table
  /// added.
  bool is_room_left(const std::optional<TableSchema>& another = {}) {
    return rig_.has_room(kTurnBytes, another);
  }

  void end() {
    while (!open_.empty()) end_oldest(true);
  }

 private:
  struct Open {
    std::size_t number;
    Writes writes;
  };

  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(random_() % std::max(bound, 1U));
  }
  std::uint32_t salt() { return kTurnSaltMin + below(kTurnSalts); }
  const TableSchema& schema_of(const std::string& table) {
    return rig_.core().table(*rig_.core().find_table(table))->schema();
  }
  /// Empty when there is no table.
  std::string any_table() {
    const DatabaseState& state = rig_.state();
    if (state.empty()) return {};
    return std::next(state.begin(), below(static_cast<std::uint32_t>(state.size())))->first;
  }

  void add_insert(const std::string& table, Writes& writes, bool is_long = false) {
    const std::int32_t id = kTurnIdMin + static_cast<std::int32_t>(below(kTurnIds));
    if (rig_.state().at(table).contains(id) || !busy_.emplace(table, id).second) return;
    std::vector<Value> row = probe_row(schema_of(table), id, salt());
    if (is_long) lengthen(row);
    writes.push_back(insert(table, std::move(row)));
  }
  void lengthen(std::vector<Value>& row) {
    for (Value& value : row)
      if (!value.is_null() && (value.type() == Type::kString || value.type() == Type::kBytes))
        value = Value::from_bytes(
            value.type(),
            keep(fmt::format("{}{}", value.as_string(),
                             std::string(40 + below(1500), static_cast<char>('a' + below(26))))));
  }
  void add_change(const std::string& table, Writes& writes, bool is_removal) {
    const TableRows& rows = rig_.state().at(table);
    if (rows.empty()) return add_insert(table, writes);
    const std::int32_t id =
        std::next(rows.begin(), below(static_cast<std::uint32_t>(rows.size())))->first;
    if (!busy_.emplace(table, id).second) return;
    if (is_removal) {
      writes.push_back(remove(table, id));
      return;
    }
    std::vector<ColumnValue> changes = probe_changes(schema_of(table), id, salt());
    if (below(2) == 0 && changes.size() > 1) changes.erase(changes.begin() + below(2));
    if (!changes.empty()) writes.push_back(update(table, id, std::move(changes)));
  }
  void release(const Writes& writes) {
    for (const RowWrite& write : writes) busy_.erase({write.table, write.id});
  }
  void commit(const Writes& writes) {
    if (!writes.empty()) rig_.commit(writes);
    release(writes);
  }
  /// New rows of one table, as one batch; at most one of them has long texts.
  void add_batch(const std::string& table, std::uint32_t count, Writes& writes) {
    const std::size_t first = writes.size();
    const std::uint32_t longest = below(3 * count);
    for (std::uint32_t i = 0; i < count; ++i) add_insert(table, writes, i == longest);
    for (std::size_t i = first; i < writes.size(); ++i) writes[i].by_column = true;
  }
  Writes several() {
    Writes writes;
    if (const std::string table = any_table(); !table.empty() && below(4) == 0)
      add_batch(table, 1 + below(4), writes);
    const std::uint32_t count = 2 + below(4);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string table = any_table();
      if (table.empty()) return writes;
      const std::uint32_t kind = below(5);
      if (kind < 2) {
        add_insert(table, writes);
      } else {
        add_change(table, writes, kind == 2);
      }
    }
    return writes;
  }

  void insert_one() {
    const std::string table = any_table();
    if (table.empty()) return change_tables();
    Writes writes;
    add_insert(table, writes);
    commit(writes);
  }
  void insert_by_column() {
    const std::string table = any_table();
    if (table.empty()) return change_tables();
    Writes writes;
    add_batch(table, 1 + below(12), writes);
    commit(writes);
  }
  void update_one() {
    const std::string table = any_table();
    if (table.empty()) return change_tables();
    Writes writes;
    add_change(table, writes, false);
    commit(writes);
  }
  void remove_one() {
    const std::string table = any_table();
    if (table.empty()) return change_tables();
    Writes writes;
    add_change(table, writes, true);
    commit(writes);
  }
  void write_several() { commit(several()); }
  void abort_several() {
    const Writes writes = several();
    if (!writes.empty()) rig_.abort(writes);
    release(writes);
  }
  // The undone writes change rows that were written before, and anticipate later writes.
  void write_partly() {
    const Writes before = several();
    const Writes after = several();
    Writes undone = after;
    for (const RowWrite& write : before) {
      const TableSchema& schema = schema_of(write.table);
      if (write.kind == RowWrite::Kind::kRemove) {
        undone.push_back(insert(write.table, probe_row(schema, write.id, salt())));
      } else if (below(2) == 0) {
        undone.push_back(remove(write.table, write.id));
      } else {
        undone.push_back(update(write.table, write.id, probe_changes(schema, write.id, salt())));
      }
    }
    if (!undone.empty()) rig_.commit_partly(before, undone, after);
    release(before);
    release(after);
  }
  void begin_or_end() {
    if (open_.size() == kOpenMax) return end_oldest(below(4) != 0);
    Writes writes = several();
    if (writes.empty()) return;
    const std::size_t number = rig_.begin(writes);
    open_.push_back({number, std::move(writes)});
  }
  void end_oldest(bool commits) {
    const Open open = std::move(open_.front());
    open_.erase(open_.begin());
    if (commits) {
      rig_.commit(open.number);
    } else {
      rig_.abort(open.number);
    }
    release(open.writes);
  }
  void write_many() {
    const std::string table = any_table();
    if (table.empty()) return change_tables();
    Writes writes;
    const std::uint32_t count = 4 + below(16);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (below(2) == 0) {
        add_insert(table, writes);
      } else {
        add_change(table, writes, below(2) == 0);
      }
    }
    commit(writes);
  }
  void write_text() {
    const std::string table = any_table();
    if (table.empty()) return change_tables();
    Writes writes;
    add_insert(table, writes, true);
    commit(writes);
  }
  void change_tables() {
    end();
    if (rig_.is_done()) return;
    const DatabaseState& state = rig_.state();
    const std::string name = fmt::format("turn{}", below(8));
    if (state.size() >= kTablesMax || (state.size() > 1 && below(2) == 0)) {
      rig_.drop_table(any_table());
    } else if (!state.contains(name)) {
      TableSchema schema = below(2) == 0 ? log_schema(name) : people_schema();
      schema.name = name;
      if (is_room_left(schema)) rig_.create_table(schema);
    }
  }
  /// Adds or drops a column; does nothing if it cannot.
  void draw_column(TableSchema& to, const std::string& name) {
    const std::size_t last = to.columns.size() - 1;
    const auto in_key = [&](const KeySchema& key) {
      return std::find(key.columns.begin(), key.columns.end(), to.columns[last].name) !=
             key.columns.end();
    };
    if (below(2) == 0 && last != 0 && !to.columns[last].dropped &&
        std::none_of(to.keys.begin(), to.keys.end(), in_key)) {
      drop_column(to, last);
    } else if (to.columns.size() < kColumnsMax) {
      to.column(name, below(2) == 0 ? Type::kInt32 : Type::kString);
      if (below(2) == 0) to.direct();
      if (below(2) == 0)
        to.with_default(to.columns.back().type == Type::kInt32 ? Value::int32(7)
                                                               : Value::string("by default"));
    }
  }
  /// The schema of a table with one name or one column changed.
  Alteration drawn_alteration(const std::string& table) {
    Alteration alteration{table, schema_of(table)};
    TableSchema& to = alteration.to;
    const std::uint32_t drawn = below(5);
    const std::string name = fmt::format("name{}", below(1000));
    if (shape_of(to).find(name) != std::string::npos) return alteration;
    if (drawn > 2) {
      draw_column(to, name);
    } else if (drawn == 0 && !rig_.state().contains(name)) {
      to.name = name;
    } else if (drawn == 1) {
      constexpr std::size_t kKeysOfTurns = 5;
      const std::string& column =
          to.columns[below(static_cast<std::uint32_t>(to.columns.size()))].name;
      if (to.keys.size() < kKeysOfTurns && !column.empty())
        to = with_key(to, name, {column}, false);
    } else if (drawn <= 3 && to.keys.size() > 1) {
      const std::size_t place = 1 + below(static_cast<std::uint32_t>(to.keys.size() - 1));
      if (to.keys[place].dropped) {
        to = with_key(to, name, {to.columns[0].name}, true);
      } else if (drawn == 2) {
        to.keys[place].name = name;
      } else {
        to = without_key(to, place);
      }
    } else {
      std::string& column = to.columns[below(static_cast<std::uint32_t>(to.columns.size()))].name;
      if (column.empty()) return alteration;
      for (KeySchema& key : to.keys)
        std::replace(key.columns.begin(), key.columns.end(), column, name);
      column = name;
    }
    return alteration;
  }
  void alter_table() {
    end();
    const std::string table = any_table();
    if (table.empty() || rig_.is_done()) return;
    const Alteration alteration = drawn_alteration(table);
    if (shape_of(alteration.to) == shape_of(schema_of(table)) && alteration.to.name == table)
      return;
    rig_.alter_table(table, alteration.to);
  }
  void merge_table() {
    if (const std::string table = any_table(); !table.empty()) rig_.merge(table);
  }
  void reopen() {
    end();
    rig_.reopen(2 + below(2));
  }
  void kill() {
    open_.clear();
    busy_.clear();
    rig_.kill();
  }
  void kill_midway() {
    const std::uint32_t flush = below(2) == 0 ? below(4) : below(32);
    Step step;
    if (const std::uint32_t kind = below(6); kind < 4) {
      step.writes = several();
    } else {
      end();
      if (rig_.is_done()) return;
      const std::string table = any_table();
      const std::string name = fmt::format("turn{}", below(8));
      TableSchema schema = log_schema();
      schema.name = name;
      if (kind == 4 && !table.empty()) {
        step.merged = table;
      } else if (rig_.state().size() > 1 && below(2) == 0) {
        step.dropped = table;
      } else if (!rig_.state().contains(name) && is_room_left(schema)) {
        step.created = {schema};
      }
    }
    // A step that does nothing commits nothing, and gets no time-stamp.
    if (step.does_nothing()) return kill();
    rig_.kill_within(std::move(step), flush);
    open_.clear();
    busy_.clear();
  }
  void crash() {
    open_.clear();
    busy_.clear();
    rig_.crash(below(1000));
  }

  CrashRig& rig_;
  std::mt19937_64 random_;
  std::set<std::pair<std::string, std::int32_t>> busy_;  // rows of the writes in `open_`
  std::vector<Open> open_;
};

}  // namespace

void run_turns(CrashRig& rig, const TurnMix& mix, std::uint64_t seed, std::uint32_t turns_max) {
  if (rig.is_done()) return;
  Turns turns(rig, seed);
  for (std::uint32_t turn = 0; turn < turns_max && !rig.is_done() && turns.is_room_left(); ++turn)
    turns.take(mix);
  if (!rig.is_done()) turns.end();
}

}  // namespace flugs::crash
