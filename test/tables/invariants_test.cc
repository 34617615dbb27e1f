// The checks of tables/ fire: those of its parts, which need no table.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "tables/batches/block_column.h"
#include "tables/catalog/schema_bytes.h"
#include "tables/keys/deferred_rows.h"
#include "tables/keys/key_prefix.h"
#include "tables/keys/table_keys.h"
#include "tables/transactions/dead_rows.h"
#include "tables/transactions/ending_state.h"
#include "tables/transactions/left_texts.h"
#include "tables/transactions/savepoints.h"
#include "tables/transactions/write_list.h"
#include "test/support/check_fires.h"

namespace flugs::test {

TEST_CASE("the checks of a transaction's lists fire", "[engine]") {
  std::atomic<std::uint32_t> attention{0};
  const std::atomic<std::uint64_t> asked_to_end{0};
  engine::EndingState ending;
  ending.connect(attention, asked_to_end);
  FLUGS_CHECK_FIRES("attention_ == nullptr", (ending.connect(attention, asked_to_end), 0));
  if (!kHasDebugChecks) return;
  FLUGS_CHECK_FIRES("id != 0", (ending.begin(0, 1), 0));
  ending.begin(1, 1);
  FLUGS_CHECK_FIRES("current_", (ending.begin(2, 1), 0));

  engine::WriteList writes;
  FLUGS_CHECK_FIRES("i < writes_.size()", writes[0]);
  FLUGS_CHECK_FIRES("!empty()", writes.back());
  FLUGS_CHECK_FIRES("!empty()", (writes.pop(), 0));

  engine::Savepoints savepoints;
  FLUGS_CHECK_FIRES("!marks_.empty()", savepoints.newest());
  static_cast<void>(savepoints.add({}));
  FLUGS_CHECK_FIRES("i < marks_.size()", savepoints[1]);
  FLUGS_CHECK_FIRES("count <= marks_.size()", (savepoints.keep(2), 0));

  engine::DeadRowQueue dead;
  FLUGS_CHECK_FIRES("i < size_", dead.front());
  FLUGS_CHECK_FIRES("!empty()", (dead.pop(), 0));
  engine::DeadRow row(nullptr, 0, 0, 0, 0);
  FLUGS_CHECK_FIRES("key < kHashesKept", (row.keep_hash(engine::DeadRow::kHashesKept, 1), 0));

  engine::LeftTexts texts;
  FLUGS_CHECK_FIRES("first <= written_.size()", texts.written_since(1));
  FLUGS_CHECK_FIRES("count <= written_.size()", (texts.keep_written(1), 0));
  FLUGS_CHECK_FIRES("count <= left_.size()", (texts.keep_left(1), 0));
  FLUGS_CHECK_FIRES("!none_waits()", texts.next());
  FLUGS_CHECK_FIRES("!none_waits()", (texts.pop(), 0));
}

TEST_CASE("the checks of keys, schemas and batches fire", "[engine]") {
  engine::DeferredRows deferred(100, 1);
  FLUGS_CHECK_FIRES("end <= end_", (deferred.note_entered(101), 0));
  deferred.note_entered(50);
  FLUGS_CHECK_FIRES("end >= entered_", (deferred.note_entered(49), 0));

  engine::TableKeys keys;
  FLUGS_CHECK_FIRES("key != nullptr", (keys.begin_making(0, nullptr), 0));
  FLUGS_CHECK_FIRES("kept() & bit(place)", (keys.finish_making(0), 0));
  FLUGS_CHECK_FIRES("kept() & bit(place)", (keys.withdraw(3), 0));

  engine::SchemaWriter schema;
  FLUGS_CHECK_FIRES("v.size() <= 0xFF", (schema.name(std::string(256, 'n')), 0));
  if (!kHasDebugChecks) return;
  FLUGS_CHECK_FIRES("place < kKeysMax", keys[engine::kKeysMax]);
  engine::KeyPrefix prefix;
  FLUGS_CHECK_FIRES("Lane::kText", (prefix.add_payload(1, Type::kString), 0));
  const auto block = std::make_unique<engine::BlockColumn>();
  FLUGS_CHECK_FIRES("row < kBlockRows", block->is_null_at(engine::kBlockRows));
}

}  // namespace flugs::test
