// Each anomaly in a hand-made history: found, named, and forbidden by the right levels.
#include "verify/isolation/checker/checker.h"

#include <catch2/catch.hpp>

#include "test/verify/isolation/story.h"

namespace flugs::test {
namespace {

using isolation::Anomaly;
using isolation::Level;
using isolation::Outcome;

constexpr Level kLevels[] = {Level::kReadCommitted, Level::kSnapshot, Level::kStrongSnapshot,
                             Level::kSerializable, Level::kStrictSerializable};

/// The story has the anomaly, and levels below `first_to_forbid` forbid nothing in it.
void expect(const Story& story, Anomaly anomaly, Level first_to_forbid) {
  for (const Level level : kLevels) {
    const isolation::Report report = judge(story, level);
    INFO(isolation::to_string(level));
    for (const std::string& words : report.words) UNSCOPED_INFO(words);
    if (level < first_to_forbid) {
      CHECK(report.forbidden == 0);
    } else {
      CHECK(report.forbidden > 0);
      CHECK(forbidden(report, anomaly) > 0);
      CHECK(!report.words.empty());
    }
  }
}

}  // namespace

TEST_CASE("histories that any order explains pass every level", "[history]") {
  Story story;
  story.t(0, 10).append(kListX, 1).sees(kRegisterX, 0).write(kRegisterX, 2);
  story.t(11, 20).reads(kListX, {1}).append(kListX, 3).reads(kListX, {1, 3});
  story.t(21, 30)
      .reads(kListX, {1, 3})
      .sees(kRegisterX, 2)
      .write(kRegisterX, 4)
      .sees(kRegisterX, 4);
  story.t(31, 40).reads(kListX, {1, 3}).sees(kRegisterX, 4).reads(kListY, {});
  for (const Level level : kLevels) {
    const isolation::Report report = judge(story, level);
    CHECK(report.forbidden == 0);
    CHECK(report.transactions == 4);
    CHECK(report.committed == 4);
    CHECK(report.dependencies > 0);
  }
}

TEST_CASE("values without a writer are found", "[history]") {
  expect(Story().t().reads(kListX, {7}), Anomaly::kGarbage, Level::kReadCommitted);
  expect(Story().t().sees(kRegisterX, 7), Anomaly::kGarbage, Level::kReadCommitted);
  // Written to another object.
  expect(Story().t().append(kListX, 1).t().reads(kListY, {1}), Anomaly::kGarbage,
         Level::kReadCommitted);
  // Read before it was written.
  expect(Story().t().sees(kRegisterX, 1).write(kRegisterX, 1), Anomaly::kGarbage,
         Level::kReadCommitted);
}

TEST_CASE("elements that are there twice, or in another order, are found", "[history]") {
  expect(Story().t().append(kListX, 1).t().reads(kListX, {1, 1}), Anomaly::kDuplicate,
         Level::kReadCommitted);
  expect(Story()
             .t()
             .append(kListX, 1)
             .t()
             .append(kListX, 2)
             .t()
             .reads(kListX, {1, 2})
             .t()
             .reads(kListX, {2, 1}),
         Anomaly::kIncompatibleOrder, Level::kReadCommitted);
}

TEST_CASE("an acknowledged append that later reads miss is lost", "[history]") {
  expect(Story().t(0, 10).append(kListX, 1).t(11, 20).reads(kListX, {}), Anomaly::kLost,
         Level::kReadCommitted);
  // As long as it may be unacknowledged, it may come later.
  const isolation::Report report = judge(
      Story().t(0, 10).append(kListX, 1).t(9, 20).reads(kListX, {}), Level::kStrictSerializable);
  CHECK(report.forbidden == 0);
}

TEST_CASE("a transaction that does not see its own writes is found", "[history]") {
  expect(Story().t().append(kListX, 1).reads(kListX, {}), Anomaly::kInternal,
         Level::kReadCommitted);
  expect(Story().t().sees(kRegisterX, 0).write(kRegisterX, 1).sees(kRegisterX, 0),
         Anomaly::kInternal, Level::kReadCommitted);
}

TEST_CASE("G0: writes of two transactions lie between each other", "[history]") {
  Story story;
  story.t().append(kListX, 1).append(kListY, 2);
  story.t().append(kListX, 3).append(kListY, 4);
  story.t().reads(kListX, {1, 3}).reads(kListY, {4, 2});
  expect(story, Anomaly::kG0, Level::kReadCommitted);
}

TEST_CASE("G1a: a value of an aborted transaction is read", "[history]") {
  expect(Story().aborted().append(kListX, 1).t().reads(kListX, {1}), Anomaly::kG1a,
         Level::kReadCommitted);
  expect(Story().aborted().write(kRegisterX, 1).t().sees(kRegisterX, 1), Anomaly::kG1a,
         Level::kReadCommitted);
}

TEST_CASE("G1b: a value that its writer overwrote is read", "[history]") {
  expect(Story()
             .t()
             .append(kListX, 1)
             .append(kListX, 2)
             .t()
             .reads(kListX, {1})
             .t()
             .reads(kListX, {1, 2}),
         Anomaly::kG1b, Level::kReadCommitted);
  expect(Story().t().write(kRegisterX, 1).write(kRegisterX, 2).t().sees(kRegisterX, 1),
         Anomaly::kG1b, Level::kReadCommitted);
}

TEST_CASE("G1c: two transactions read each other's writes", "[history]") {
  Story story;
  story.t().append(kListX, 1).reads(kListY, {2});
  story.t().append(kListY, 2).reads(kListX, {1});
  expect(story, Anomaly::kG1c, Level::kReadCommitted);
  expect(Story()
             .t()
             .write(kRegisterX, 1)
             .sees(kRegisterY, 2)
             .t()
             .write(kRegisterY, 2)
             .sees(kRegisterX, 1),
         Anomaly::kG1c, Level::kReadCommitted);
}

TEST_CASE("P4: an update is lost", "[history]") {
  // In a register: two versions in the place of one.
  expect(Story()
             .t()
             .sees(kRegisterX, 0)
             .write(kRegisterX, 1)
             .t()
             .sees(kRegisterX, 0)
             .write(kRegisterX, 2),
         Anomaly::kLostUpdate, Level::kSnapshot);
  expect(Story()
             .t()
             .reads(kListX, {})
             .append(kListX, 1)
             .t()
             .reads(kListX, {})
             .append(kListX, 2)
             .t()
             .reads(kListX, {1, 2}),
         Anomaly::kLostUpdate, Level::kSnapshot);
}

TEST_CASE("OTV: a transaction that was seen vanishes", "[history]") {
  Story story;
  story.t().append(kListX, 1).append(kListY, 2);
  story.t().reads(kListX, {1}).reads(kListY, {});
  story.t().reads(kListY, {2});
  expect(story, Anomaly::kOtv, Level::kSnapshot);
}

TEST_CASE("PMP: a read by a condition misses a row that was seen otherwise", "[history]") {
  Story story;
  story.t().append(kListX, 1).append(kListY, 2);
  story.t().reads(kListY, {}, true).reads(kListX, {1});
  story.t().reads(kListY, {2});
  expect(story, Anomaly::kPmp, Level::kSnapshot);
}

TEST_CASE("G-single: reads of two moments", "[history]") {
  Story story;
  story.t().append(kListX, 1).append(kListY, 2);
  story.t().reads(kListY, {}).reads(kListX, {1});
  story.t().reads(kListY, {2});
  expect(story, Anomaly::kGSingle, Level::kSnapshot);
  // A read that cannot be repeated.
  Story again;
  again.t().append(kListX, 1);
  again.t().reads(kListX, {}).reads(kListX, {1});
  expect(again, Anomaly::kGSingle, Level::kSnapshot);
}

TEST_CASE("G-nonadjacent: two readers disagree about the order of two writers", "[history]") {
  Story story;
  story.t().append(kListX, 1);
  story.t().append(kListY, 2);
  story.t().reads(kListX, {1}).reads(kListY, {});
  story.t().reads(kListX, {}).reads(kListY, {2});
  story.t().reads(kListX, {1}).reads(kListY, {2});
  expect(story, Anomaly::kGNonadjacent, Level::kSnapshot);
}

TEST_CASE("G2-item: write skew", "[history]") {
  Story story;
  story.t().reads(kListX, {}).append(kListY, 1);
  story.t().reads(kListY, {}).append(kListX, 2);
  story.t().reads(kListX, {2}).reads(kListY, {1});
  expect(story, Anomaly::kG2Item, Level::kSerializable);
  CHECK(allowed(judge(story, Level::kStrongSnapshot), Anomaly::kG2Item) == 1);
  Story registers;
  registers.t().sees(kRegisterX, 0).sees(kRegisterY, 0).write(kRegisterX, 1);
  registers.t().sees(kRegisterX, 0).sees(kRegisterY, 0).write(kRegisterY, 2);
  expect(registers, Anomaly::kG2Item, Level::kSerializable);
}

TEST_CASE("G2: write skew by a condition", "[history]") {
  Story story;
  story.t().reads(kListX, {}, true).append(kListY, 1);
  story.t().reads(kListY, {}, true).append(kListX, 2);
  story.t().reads(kListX, {2}).reads(kListY, {1});
  expect(story, Anomaly::kG2, Level::kSerializable);
}

TEST_CASE("a snapshot older than its transaction violates strong snapshot isolation", "[history]") {
  Story story;
  story.t(0, 10).append(kListX, 1);
  story.t(11, 20).reads(kListX, {});
  story.t(21, 30).reads(kListX, {1});
  for (const Level level : {Level::kReadCommitted, Level::kSnapshot, Level::kSerializable})
    CHECK(judge(story, level).forbidden == 0);
  for (const Level level : {Level::kStrongSnapshot, Level::kStrictSerializable}) {
    const isolation::Report report = judge(story, level);
    CHECK(forbidden(report, Anomaly::kGSingle) == 1);
    CHECK(report.words.front().find("real time") != std::string::npos);
  }
}

TEST_CASE("strict serializability finds write skew that follows from real time only", "[history]") {
  // T0 misses T1's write, T1 had its answer before T2 began, T2 misses T0's write.
  Story story;
  story.t(0, 50).reads(kListX, {}).append(kListY, 1);
  story.t(10, 20).append(kListX, 2);
  story.t(21, 50).reads(kListY, {}).reads(kListZ, {});
  story.t(60, 70).reads(kListX, {2}).reads(kListY, {1});
  for (const Level level :
       {Level::kReadCommitted, Level::kSnapshot, Level::kStrongSnapshot, Level::kSerializable})
    CHECK(judge(story, level).forbidden == 0);
  CHECK(judge(story, Level::kStrictSerializable).forbidden == 1);
}

TEST_CASE("a transaction killed before its answer has happened when another one saw it",
          "[history]") {
  Story unseen;
  unseen.killed().append(kListX, 1);
  unseen.t(201, 300).reads(kListX, {});
  CHECK(judge(unseen, Level::kStrictSerializable).forbidden == 0);

  Story seen;
  seen.killed().append(kListX, 1).append(kListY, 2);
  seen.t(201, 300).reads(kListX, {1}).reads(kListY, {2});
  const isolation::Report report = judge(seen, Level::kStrictSerializable);
  CHECK(report.forbidden == 0);
  CHECK(report.unknown == 1);
  CHECK(report.unknown_happened == 1);

  Story torn;
  torn.killed().append(kListX, 1).append(kListY, 2);
  torn.t(201, 300).reads(kListX, {1}).reads(kListY, {});
  expect(torn, Anomaly::kLost, Level::kReadCommitted);

  // Seen by a transaction that was itself killed, and seen.
  Story chain;
  chain.killed().append(kListX, 1);
  chain.killed().reads(kListX, {1}).append(kListY, 2);
  chain.t(201, 300).reads(kListY, {2}).reads(kListX, {});
  expect(chain, Anomaly::kGSingle, Level::kSnapshot);
}

TEST_CASE("an invalid history is refused", "[history]") {
  const auto refused = [](const Story& story) {
    return isolation::check(story.history(), {}).code() == StatusCode::kInvalidArgument;
  };
  CHECK(refused(Story().t().append(kListX, 1).t().append(kListY, 1)));
  CHECK(refused(Story().t().append(kListX, 0)));
  CHECK(refused(Story().t().append(kListX, 1).t().sees(kListX, 0)));
  CHECK(refused(Story().t().append(kListX, 4'000'000'000U)));
  CHECK(isolation::check(Story().history(), {}).ok());
}

TEST_CASE("levels have names, and unknown ones are refused", "[history]") {
  CHECK(*isolation::level_named("read-committed") == Level::kReadCommitted);
  CHECK(*isolation::level_named("snapshot") == Level::kStrongSnapshot);
  CHECK(*isolation::level_named("serializable") == Level::kStrictSerializable);
  CHECK(isolation::level_named("repeatable-read").code() == StatusCode::kInvalidArgument);
}

}  // namespace flugs::test
