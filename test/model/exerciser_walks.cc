// Rows that are pulled one by one, while the transaction writes.
#include <algorithm>
#include <deque>

#include "test/model/exerciser.h"

namespace flugs::test {

namespace {

// The rows as they are now, in the order of the key, and by id where keys are equal.
std::vector<SeenRow> in_order(std::vector<SeenRow> rows, const ModelKey& key) {
  std::sort(rows.begin(), rows.end(), [&](const SeenRow& a, const SeenRow& b) {
    for (const std::size_t column : key.columns)
      if (const int sign = compare((*a.row)[column], (*b.row)[column]); sign != 0) return sign < 0;
    return a.id < b.id;
  });
  return rows;
}

}  // namespace

// What the walk must give, whatever the transaction does meanwhile.
std::vector<SeenRow> Exerciser::expected_walk(Open& open, ModelTable& table, const ModelKey& key,
                                              const Bounds& bounds) {
  std::vector<SeenRow> expected;
  for (const SeenRow& row : model_.see_all(*open.model, table)) {
    const int to_low = bounds.low.empty() ? 0 : compare_key(key, *row.row, bounds.low);
    const int to_high = bounds.high.empty() ? 0 : compare_key(key, *row.row, bounds.high);
    if (to_low < 0 || (to_low == 0 && !bounds.low.empty() && !bounds.low_inclusive)) continue;
    if (to_high > 0 || (to_high == 0 && !bounds.high.empty() && !bounds.high_inclusive)) continue;
    expected.push_back(row);
  }
  return in_order(std::move(expected), key);
}

Exerciser::Bounds Exerciser::draw_bounds(Open& open, ModelTable& table, const ModelKey& key) {
  Bounds bounds;
  if (random_.chance(50) || !key.ordered) {
    const std::size_t least = key.ordered ? 0 : key.hashed;
    bounds.is_prefix = true;
    bounds.low =
        key_values(open, table, key, least + random_.below(key.columns.size() - least + 1));
    bounds.high = bounds.low;
    return bounds;
  }
  bounds.low = key_values(open, table, key, random_.below(key.columns.size() + 1));
  bounds.high = key_values(open, table, key, random_.below(key.columns.size() + 1));
  bounds.low_inclusive = random_.chance(50);
  bounds.high_inclusive = random_.chance(50);
  return bounds;
}

Rows Exerciser::begin_walk(Open& open, KeyId key, const Bounds& bounds) {
  const std::vector<Value> low = values_of(bounds.low);
  const std::vector<Value> high = values_of(bounds.high);
  calls_.add(bounds.is_prefix ? Call::kWalk : Call::kWalkRange);
  if (bounds.is_prefix) return open.real->rows(key, low);
  return open.real->rows(key, {low, bounds.low_inclusive}, {high, bounds.high_inclusive});
}

void Exerciser::write_meanwhile(Open& open, ModelTable& table) {
  switch (random_.below(5)) {
    case 0:
      return insert(open, table);
    case 1:
      return insert_or_change(open, table);
    case 2:
      return remove(open, table);
    default:
      return update(open, table);
  }
}

// Adds the rows of a batch of the walk; false: there are none. The transaction has not written
// since the walk began, so it sees each row under the id that the batch gives.
bool Exerciser::read_walk_batch(Open& open, const ModelTable& table, Rows& rows,
                                std::vector<Row>& found, const std::string& what) {
  calls_.add(Call::kRowsNextBatch);
  const TableId id = table.id;
  std::vector<ColumnId> columns;
  for (std::size_t c = 0; c < table.schema.columns.size(); ++c)
    if (!table.schema.columns[c].dropped) columns.emplace_back(static_cast<std::uint16_t>(c));
  const ScanBatch* batch = rows.next_batch(columns);
  if (batch == nullptr) return false;
  expect(batch->row_count() != 0 && batch->row_count() <= ScanBatch::kRowsMax, "size of " + what);
  for (std::size_t i = 0; i < batch->row_count(); ++i) {
    const Result<Row> row = open.real->get(id, batch->row_ids()[i]);
    expect_code({}, row.status(), "row of a batch of " + what);
    if (!row.ok()) return false;
    for (std::size_t c = 0; c < columns.size(); ++c)
      expect(batch->get_unchecked(c, i) == row->get_unchecked(columns[c]),
             "value of a batch of " + what);
    found.push_back(*row);
  }
  return true;
}

void Exerciser::walk(Open& open, ModelTable& table) {
  const auto index = pick_key(table, false, false);
  if (!index) return;
  const ModelKey key = table.keys[*index];
  const Bounds bounds = draw_bounds(open, table, key);
  model_.note_read(*open.model, table);
  std::vector<SeenRow> expected = expected_walk(open, table, key, bounds);
  std::deque<ModelRow> kept;  // the model may change its rows
  for (SeenRow& row : expected) row.row = &kept.emplace_back(*row.row);

  Rows rows = begin_walk(open, key_id(table, *index), bounds);
  if (key.ordered && random_.chance(50)) {
    calls_.add(Call::kRowsReverse);
    rows = std::move(rows).reverse();
    std::reverse(expected.begin(), expected.end());
  }
  if (key.ordered && random_.chance(40)) {
    const std::size_t limit = random_.below(expected.size() + 2);
    calls_.add(Call::kRowsLimit);
    rows = std::move(rows).limit(limit);
    if (expected.size() > limit) expected.resize(limit);
  }
  const std::string what = "walk by key " + std::to_string(*index) + " in " + table.schema.name;
  const bool writes = random_.chance(70);
  std::size_t until_write = writes ? random_.below(expected.size() + 2) : ~std::size_t{0};
  std::vector<Row> found;
  for (const Row* row = nullptr; complaint_.empty();) {
    if (until_write-- == 0) {
      for (std::uint64_t i = random_.below(3) + 1; i > 0; --i) write_meanwhile(open, pick_table());
      until_write = random_.chance(50) ? random_.below(20) : ~std::size_t{0};
    }
    if (!writes && random_.chance(20)) {
      if (!read_walk_batch(open, table, rows, found, what)) break;
      continue;
    }
    calls_.add(Call::kRowsNext);
    row = rows.next();
    if (row == nullptr) break;
    found.push_back(*row);
    if (key.ordered && found.size() <= expected.size())
      expect_row(expected[found.size() - 1], *row, what);
  }
  calls_.add(Call::kRowsStatus);
  expect_code({}, rows.status(), what);
  if (complaint_.empty()) expect_rows(table, std::move(expected), found, nullptr, what);
}

}  // namespace flugs::test
