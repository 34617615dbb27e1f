// A table's schema, and how it is replaced.

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <utility>

#include "base/check.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/table_data.h"
#include "tables/table/table_columns.h"
#include "tables/table/table_references.h"

namespace flugs::engine {

namespace {

// Compares all but the changes of columns, which a definition does not have: another definition
// would be one more that stays. Names in foreign keys are those of another table, or the schema's
// own.
bool is_same(const StoredSchema& a, const StoredSchema& b) {
  return a.added_columns == b.added_columns && a.added_keys == b.added_keys &&
         a.key_additions == b.key_additions && a.created_keys == b.created_keys &&
         encode_schema(a.schema) == encode_schema(b.schema);
}

}  // namespace

StoredSchema TableColumns::stored() const {
  StoredSchema now = data_.definition().stored;
  now.changed_columns = changed_;
  return now;
}

// Opening: claims what is outside the table's own extent.
Status TableColumns::claim_schema() {
  const pmem::Extent block = schema_block_of(data_.pool, data_.layout);
  if (block.bytes == 0) return {};
  if (Status s = data_.pool.allocator().claim(block, fmt::format("table {}, schema", data_.name()));
      !s.ok())
    return s;
  data_.pool.rely_on(data_.pool.base() + block.offset, block.bytes);
  return {};
}

// Protocol alter_table. The new schema holds from step 2 on.
//   step  store                            made durable by     power cut just after it: recovery
//   1     a block with the whole schema    flush, fence        extent unreachable: free space; the
//                                                              old schema holds
//   2     the table's pointer to it        persist (8 bytes)   the new schema holds; the old block
//                                                              is free
// Must hold:  1 before 2, else the table could be left without a schema. What the new schema names
//             (columns added) is durable before 2.
// Need not:   anything of rows: the caller has done before what the change demands of them.
Status TableColumns::alter(StoredSchema next, FunctionRef<void()> take_over) {
  Result<TableSchema> completed = complete_schema(std::move(next.schema));
  if (!completed.ok()) return std::move(completed).status();
  next.schema = *std::move(completed);
  if (Status s = data_.pool.medium().check_writable(); !s.ok()) return s;
  pmem::Persister persister(data_.pool.medium());
  const Result<pmem::Extent> block =
      write_schema_block(data_.pool, data_.layout.table_id, next, persister);
  persister.fence("alter_table/1");  // no flush may stay behind unfenced
  if (!block.ok()) return block.status();
  const pmem::Extent before = schema_block_of(data_.pool, data_.layout);
  std::atomic_ref(data_.layout.schema_block).store(block->offset, std::memory_order_relaxed);
  persister.persist(&data_.layout.schema_block, sizeof data_.layout.schema_block, "alter_table/2");
  if (Status s = persister.wait_durable(); !s.ok()) return s;
  if (before.bytes != 0) data_.pool.allocator().release(before);
  take_over();
  changed_ = std::exchange(next.changed_columns, {});
  if (!is_same(next, data_.definition().stored)) data_.define(std::move(next));
  take_names_over();
  return {};
}

void TableColumns::take_names_over() {
  const TableSchema& now = data_.schema();
  FLUGS_CHECK(data_.columns.size() == now.columns.size());
  for (std::size_t i = 0; i < data_.columns.size(); ++i)
    data_.columns[i]->rename(now.columns[i].dropped ? std::to_string(i) : now.columns[i].name,
                             now.name);
  if (numbers_ != nullptr)
    numbers_->rename(
        fmt::format("table {}, column {}", now.name, data_.columns[numbered_]->name()));
  for (std::size_t k = 0; k < now.keys.size(); ++k)
    if (!now.keys[k].dropped) data_.keys[k]->rename(now.keys[k].name);
  references_.take_names_over();
}

void TableColumns::begin_key(std::size_t place, const KeySchema& key) {
  data_.keys.begin_making(
      place, data_.make_key(place, key, kinds_of(key, kModeOfAddedKeys), KeyIndex::Origin::kAdded));
}

Status TableColumns::finish_key(std::size_t place, StoredSchema next) {
  FLUGS_CHECK(place < next.schema.keys.size() && !next.schema.keys[place].dropped);
  next.added_keys |= static_cast<std::uint16_t>(1U << place);
  ++next.key_additions;
  if (Status s = alter(std::move(next)); !s.ok()) return s;
  const StoredSchema& stored = data_.definition().stored;  // has all that `next` left open
  const KeySchema& key = stored.schema.keys[place];
  data_.runs.add_key(place, KeyShape::of(kinds_of(key, kModeOfAddedKeys), key.dropped, true),
                     stored.key_additions);
  data_.keys[place]->entries().finish();
  data_.keys.finish_making(place);
  return {};
}

}  // namespace flugs::engine
