// The checks of mvcc/ fire.

#include "mvcc/commit.h"
#include "mvcc/transaction_slots.h"
#include "test/support/check_fires.h"
#include "test/support/test_slots.h"

namespace flugs::test {

TEST_CASE("the checks of transaction slots and of commit fire", "[mvcc]") {
  TestSlots slots(3);
  FLUGS_CHECK_FIRES("slot_count <= kSlotsMax", slots->create(0));
  FLUGS_CHECK_FIRES("slot_count <= kSlotsMax", slots->create(mvcc::kSlotsMax + 1));
  FLUGS_CHECK_FIRES("slot_count_ != 0", slots->start(0));
  FLUGS_CHECK_FIRES("before != 0", slots->release_opening());
  FLUGS_CHECK_FIRES("held_snapshot_", slots->end_hold());
  mvcc::Slot& slot = *slots->acquire();
  slots->begin_snapshot(slot);
  FLUGS_CHECK_FIRES("slot.generation_limit_", slots.commit(slot, {}));
  slots->begin_writing(slot);
  const mvcc::Write write = slots.insert(slot, 1);
  FLUGS_CHECK_FIRES("flushed <= writes.size()", mvcc::Commit(*slots).run(
                                                    slot, {write}, 2, [](pmem::Persister&) {},
                                                    [] {}, [](std::uint64_t) { return true; }));
  FLUGS_CHECK_FIRES("in_use", [] {
    const mvcc::OtherThread other(1);
    TestSlots others(1);
    others->acquire();
    return 0;
  }());
  if (kHasDebugChecks) {
    FLUGS_CHECK_FIRES("table <= 0x1FFFFFFFu", mvcc::make_intent(false, 0x40000000u, 1));
    FLUGS_CHECK_FIRES("is_tag(own_tag)",
                      mvcc::Visibility::at_commit(slots->mirrors(), 1, mvcc::kNoStamp));
    mvcc::Write short_write = write;
    short_write.row_bytes = 8;
    FLUGS_CHECK_FIRES("write.row_bytes", slots.commit(slot, {short_write}));
  }
  CHECK(slots.commit(slot, {write}).ok());
  slots->release(slot);
}

}  // namespace flugs::test
