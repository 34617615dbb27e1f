// Steps that add constraints to tables with rows, and take them away.
#include <algorithm>
#include <deque>

#include "bench/random/random_schema.h"
#include "bench/random/random_steps.h"
#include "test/model/exerciser.h"

namespace flugs::test {

namespace {

constexpr std::size_t kConstraintsMax = 6;  // of each kind
constexpr std::size_t kKeysForForeign = 10;

bool has_name(const std::vector<std::string>& columns, const std::string& column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

bool sets_null(const ForeignKeySchema& foreign) {
  return foreign.on_delete == ReferenceAction::kSetNull ||
         foreign.on_update == ReferenceAction::kSetNull;
}

bool is_in_primary_key(const TableSchema& schema, std::size_t column) {
  return schema.has_primary_key && has_name(schema.keys[0].columns, schema.columns[column].name);
}

/// Columns of `table` that may refer to the key, each of its type; empty if there are none.
std::vector<std::string> referring_columns(const TableSchema& table, const TableSchema& parent,
                                           const KeySchema& key, Random& random) {
  std::vector<std::string> columns;
  for (const std::string& name : key.columns) {
    const ColumnSchema& to = parent.columns[position_of(parent, name)];
    std::vector<std::string> fit;
    for (const ColumnSchema& from : table.columns)
      if (!from.dropped && !from.auto_increment && from.type == to.type && from.scale == to.scale &&
          !has_name(columns, from.name))
        fit.push_back(from.name);
    if (fit.empty()) return {};
    columns.push_back(fit[random.below(fit.size())]);
  }
  return columns;
}

}  // namespace

// With transactions open, or without.
void Exerciser::loosen(ModelTable& table) {
  const std::uint64_t what = random_.below(4);
  if (what == 0) return drop_check(table);
  if (what == 1) return drop_foreign_key(table);
  if (what == 2) return set_not_null(table, false);
  set_default(table);
}

// These wait for open transactions.
void Exerciser::tighten(ModelTable& table) {
  const std::uint64_t what = random_.below(3);
  if (what == 0) return add_check(table);
  if (what == 1) return set_not_null(table, true);
  for (int tries = 0; tries < 5; ++tries) add_foreign_key(pick_table());
}

void Exerciser::add_check(ModelTable& table) {
  if (table.schema.checks.size() >= kConstraintsMax) return;
  const bool has_column = std::any_of(
      table.schema.columns.begin(), table.schema.columns.end(),
      [](const ColumnSchema& column) { return !column.dropped && !column.auto_increment; });
  if (!has_column) return;
  CheckSchema check = bench::draw_check(fresh_name("check "), table.schema, schema_random_);
  Outcomes expected;
  if (model_.breaks(table, check.condition)) expected = StatusCode::kConstraintViolated;
  if (random_.chance(5) && !table.schema.checks.empty()) {
    check.name = table.schema.checks.back().name;
    expected = StatusCode::kAlreadyExists;
  }
  calls_.add(Call::kAddCheck);
  const Status added = database_->add_check(table.id, check);
  expect_code(expected, added, "add_check " + check.condition.to_string());
  if (added.ok()) {
    const Result<TableSchema> now = database_->schema(table.id);
    if (now.ok()) table.schema.checks.push_back(now->checks.back());
  }
  note_change(table, added.code());
}

void Exerciser::drop_check(ModelTable& table) {
  std::vector<CheckSchema>& checks = table.schema.checks;
  if (checks.empty() && random_.chance(80)) return;
  const std::size_t number = random_.below(checks.size() + 1);
  const bool is_there = number < checks.size();
  const std::string name = is_there ? checks[number].name : "none of that name";
  calls_.add(Call::kDropCheck);
  const Status dropped = database_->drop_check(table.id, name);
  expect_code(is_there ? StatusCode::kOk : StatusCode::kNotFound, dropped, "drop_check");
  if (dropped.ok()) checks.erase(checks.begin() + static_cast<std::ptrdiff_t>(number));
  note_change(table, dropped.code());
}

void Exerciser::set_not_null(ModelTable& table, bool not_null) {
  const std::size_t column = random_.below(table.schema.columns.size() + 1);
  Outcomes expected;
  if (column == table.schema.columns.size() || table.schema.columns[column].dropped) {
    expected = StatusCode::kNotFound;
  } else {
    const ColumnSchema& schema = table.schema.columns[column];
    const bool is_set_null = std::any_of(
        table.schema.foreign_keys.begin(), table.schema.foreign_keys.end(),
        [&](const auto& f) { return sets_null(f) && has_name(f.columns, schema.name); });
    if (schema.nullable && not_null) {
      if (is_set_null || (schema.default_value && schema.default_value->is_null()))
        expected = StatusCode::kInvalidArgument;
      else if (model_.has_null(table, column))
        expected = StatusCode::kConstraintViolated;
    } else if (!schema.nullable && !not_null) {
      // After many changes without a merge, rows of all editions exist.
      expected = expected | StatusCode::kBusy;
      if (schema.auto_increment || is_in_primary_key(table.schema, column))
        expected = StatusCode::kConstraintViolated;
    }
  }
  calls_.add(not_null ? Call::kSetNotNull : Call::kSetNull);
  const Status done = database_->set_not_null(table.id, column_id(column), not_null);
  expect_code(expected, done, not_null ? "set_not_null" : "set_not_null false");
  if (done.ok()) table.schema.columns[column].nullable = !not_null;
  note_change(table, done.code());
}

void Exerciser::set_default(ModelTable& table) {
  const auto column = pick_column(table);
  if (!column) return;
  ColumnSchema& schema = table.schema.columns[*column];
  std::optional<Value> value;
  std::deque<std::string> texts;
  Outcomes expected;
  const std::uint64_t what = random_.below(10);
  if (what < 5) {
    value = bench::random_value(schema, schema_random_.next(), texts).with_scale(schema.scale);
  } else if (what == 5) {
    value = Value::null();
  } else if (what == 6) {
    const bool is_of_text = is_text(schema.type);
    value = is_of_text ? Value::int32(1) : Value::string("no value of such a column");
    expected = StatusCode::kInvalidArgument;
  }
  if (value && value->is_null() && !schema.nullable) expected = StatusCode::kInvalidArgument;
  if (value && schema.auto_increment) expected = StatusCode::kInvalidArgument;
  calls_.add(Call::kSetDefault);
  const Status done = database_->set_default(table.id, column_id(*column), value);
  expect_code(expected, done, "set_default");
  if (done.ok()) {
    schema.default_value.reset();
    if (value) schema.default_value = Constant(*value);
  }
  note_change(table, done.code());
}

/// Whether the table has a key for the rows that refer, or room for one.
bool Exerciser::has_room_for_key(const ModelTable& table, const ForeignKeySchema& foreign) const {
  std::size_t there = 0;
  for (const KeySchema& key : table.schema.keys) {
    if (key.dropped) continue;
    ++there;
    if (key.ordered && key.columns == foreign.columns) return true;
  }
  return there < kKeysForForeign;
}

void Exerciser::add_foreign_key(ModelTable& table) {
  if (table.foreign_keys.size() >= kConstraintsMax) return;
  const ModelTable& parent = pick_table();
  ForeignKeySchema foreign;
  foreign.name = fresh_name("foreign ");
  foreign.table = parent.schema.name;
  foreign.on_delete = static_cast<ReferenceAction>(random_.below(3));
  foreign.on_update = static_cast<ReferenceAction>(random_.below(3));
  const auto key = pick_key(parent, true, false);
  if (!key) return;
  foreign.key = parent.schema.keys[*key].name;
  foreign.columns =
      referring_columns(table.schema, parent.schema, parent.schema.keys[*key], random_);
  if (foreign.columns.empty() || !has_room_for_key(table, foreign)) return;
  std::vector<std::size_t> columns;
  for (const std::string& name : foreign.columns)
    columns.push_back(position_of(table.schema, name));
  Outcomes expected;
  if (model_.lacks_parent(table, columns, parent, *key)) expected = StatusCode::kConstraintViolated;
  if (!expected.ok() && random_.chance(80)) return;  // most are
  const bool has_not_null = std::any_of(columns.begin(), columns.end(), [&](std::size_t column) {
    return !table.schema.columns[column].nullable;
  });
  if (sets_null(foreign) && has_not_null) expected = StatusCode::kInvalidArgument;
  if (random_.chance(5)) {
    foreign.key = "none of that name";
    expected = StatusCode::kInvalidArgument;
  }
  calls_.add(Call::kAddForeignKey);
  const Status added = database_->add_foreign_key(table.id, foreign);
  expect_code(expected, added, "add_foreign_key");
  const Result<TableSchema> now = database_->schema(table.id);
  if (added.ok() && now.ok()) {
    for (std::size_t place = 0; place < now->keys.size(); ++place)
      if (now->keys[place].name == foreign.name) model_.add_key(table, place, now->keys[place]);
    model_.add_foreign_key(table, now->foreign_keys.back());
  }
  note_change(table, added.code());
}

void Exerciser::drop_foreign_key(ModelTable& table) {
  if (table.foreign_keys.empty() && random_.chance(80)) return;
  const std::size_t number = random_.below(table.foreign_keys.size() + 1);
  const bool is_there = number < table.foreign_keys.size();
  const std::string name = is_there ? table.schema.foreign_keys[number].name : "none of that name";
  calls_.add(Call::kDropForeignKey);
  const Status dropped = database_->drop_foreign_key(table.id, name);
  expect_code(is_there ? StatusCode::kOk : StatusCode::kNotFound, dropped, "drop_foreign_key");
  if (dropped.ok()) model_.drop_foreign_key(table, number);
  note_change(table, dropped.code());
}

}  // namespace flugs::test
