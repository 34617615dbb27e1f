#include "tables/table/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/shown.h"
#include "tables/catalog/schema_codec.h"

namespace flugs::engine {

Table::Table(pmem::Pool& pool, TableLayout& layout, StoredSchema stored)
    : Table(pool, layout, std::exchange(stored.changed_columns, {}), std::move(stored)) {}

Table::Table(pmem::Pool& pool, TableLayout& layout, std::vector<ChangedColumnLayout> changed,
             StoredSchema&& stored)
    : data_(pool, layout, std::move(stored)), columns_(data_, references_, std::move(changed)) {
  columns_.make();
  data_.make_keys();
  if (!definition().checks.empty()) data_.constraints.add(RowConstraints::kChecked);
}

Status Table::load() {
  if (Status s = columns_.claim_schema(); !s.ok()) return s;
  if (Status s = columns_.claim_added(); !s.ok()) return s;
  if (Status s = columns_.load(false); !s.ok()) return s;
  if (Status s = columns_.load_numbers(); !s.ok()) return s;
  for (KeyIndex* key : data_.keys)
    if (Status s = key->entries().load(); !s.ok()) return s;
  if (Status s = data_.rows.load(); !s.ok()) return s;
  if (Status s = columns_.load_former_editions(); !s.ok()) return s;
  if (Status s = columns_.load(true); !s.ok()) return s;
  if (Status s = data_.runs.load(); !s.ok()) return s;
  data_.find_keys_in_runs();
  return {};
}

void Table::load_what_is_whole(
    FunctionRef<void(const std::string& part, const Status& status)> visit) {
  if (data_.layout.schema_block != 0)
    visit(fmt::format("table {}, schema", name()), columns_.claim_schema());
  if (columns_.has_later_layouts())
    visit(fmt::format("table {}, schema", name()), columns_.claim_added());
  for (columns::Column* column : data_.columns)
    if (!column->is_dropped())
      visit(fmt::format("table {}, column {}", name(), column->name()), column->load());
  if (columns_.number_source() != nullptr)
    visit(fmt::format("table {}, column {}", name(),
                      data_.columns[columns_.numbered_column()]->name()),
          columns_.load_numbers());
  for (const auto& key : data_.keys)
    if (key->entries().is_in_pool())
      visit(fmt::format("table {}, key {}", name(), key->name()), key->entries().load());
  const Status rows = data_.rows.load();
  visit(fmt::format("table {}, rows", name()), rows);
  if (rows.ok() && columns_.has_changes())
    visit(fmt::format("table {}, schema", name()), columns_.load_former_editions());
  for (std::size_t i = 0; rows.ok() && i < data_.columns.size(); ++i)
    if (data_.columns[i]->is_dropped())
      visit(fmt::format("table {}, column {}", name(), i), columns_.load_dropped(i));
  // The rows tell whether the chunks that the runs cover are right.
  if (rows.ok() && data_.layout.index_runs != 0)
    visit(fmt::format("table {}, index runs", name()), data_.runs.load());
  data_.find_keys_in_runs();
}

// A record must have one name for all transactions as long as a lock on it is held, whatever keys
// are added or dropped meanwhile. So the name is made of what no change of the schema touches.
//
// In a table with a primary key the name is the hash of that key. A table gets its primary key when
// it is created, and keeps the key and its columns. All versions with one key have one name.
//
// In any other table the name is the row id of the version. While the lock is held only its holder
// writes the record, so others go on to find that version as the newest. No other row gets the id,
// because the holder's snapshot holds it back.
//
// Other unique keys give no name: after such a key is dropped, two records may have equal values in
// it.
LockName Table::lock_name(std::uint32_t row) const noexcept {
  const bool has_primary_key = schema().has_primary_key;
  FLUGS_DCHECK(!has_primary_key || data_.keys[0] != nullptr);
  return {data_.layout.table_id,
          has_primary_key ? data_.keys[0]->record_hash(row) : hash_integer(row)};
}

bool Table::replace_read_texts() {
  const std::size_t before = replaced_texts_.size();
  data_.rows.for_each_group(
      [this](const RowGroup& group) { group.take_read_texts(replaced_texts_); });
  return replaced_texts_.size() != before;
}

void Table::release_replaced() {
  replaced_texts_.clear();
  data_.rows.release_replaced();
  columns_.settle_editions();
  data_.runs.release_replaced();
  for (const std::size_t chunk : data_.runs.take_emptied()) {
    // A merge may have taken the chunk again meanwhile; it has no row, and none is given out.
    if (data_.rows.layout_to_write(data_.rows.first_row_of(chunk)) == nullptr) continue;
    std::vector<std::uint32_t> ids(data_.rows.rows_of(chunk));
    std::iota(ids.begin(), ids.end(), data_.rows.first_row_of(chunk));
    free_rows_.add(ids);
  }
}

void Table::release_all() {
  index_build_.release_opening();
  row_sweep_.forget();
  if (const pmem::Extent block = schema_block_of(data_.pool, data_.layout); block.bytes != 0)
    data_.pool.allocator().release(block);
  data_.columns.for_each_used([](columns::Column& column) { column.release_all(); });
  columns_.release_added();
  data_.runs.release_all();
  data_.rows.release_all();
  data_.keys.release_all();
  free_rows_.release_all();
}

}  // namespace flugs::engine
