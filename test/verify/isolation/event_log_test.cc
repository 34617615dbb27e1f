#include "verify/isolation/checker/event_log.h"

#include <array>
#include <catch2/catch.hpp>

namespace flugs::test {
namespace {

using isolation::EventLog;
using isolation::EventLogLayout;
using isolation::History;
using isolation::OperationKind;
using isolation::Outcome;

struct Log {
  EventLogLayout layout;
  std::array<std::uint32_t, 256> words{};
  EventLog log{layout, words};

  std::span<const std::uint32_t> written() const {
    return std::span(words).first(layout.words.load());
  }
};

}  // namespace

TEST_CASE("a log returns its events, session by session", "[history]") {
  Log log;
  const std::array<std::uint32_t, 3> elements = {4, 5, 6};
  constexpr std::uint64_t kLate = (std::uint64_t{7} << 40) + 3;
  log.log.begin(0, 10);
  log.log.begin(1, 11);
  log.log.append(0, 20, 1);
  log.log.read_list(1, 20, elements, true);
  log.log.commit(0);
  log.log.read_register(1, 21, 9, false);
  log.log.end(0, true, 15);
  log.log.write(1, 21, 2);
  log.log.end(1, false, kLate);
  CHECK(log.log.operations() == 4);
  CHECK(!log.log.is_full());

  History history;
  REQUIRE(isolation::read_log(log.written(), {5, 100}, history).ok());
  REQUIRE(history.transactions().size() == 2);
  const isolation::Transaction& first = history.transactions()[0];
  CHECK(first.process == 5);
  CHECK(first.outcome == Outcome::kCommitted);
  CHECK(first.begin_ns == 10);
  CHECK(first.end_ns == 15);
  const isolation::Transaction& second = history.transactions()[1];
  CHECK(second.process == 6);
  CHECK(second.outcome == Outcome::kAborted);
  CHECK(second.end_ns == kLate);
  const auto operations = history.operations(second);
  REQUIRE(operations.size() == 3);
  CHECK(operations[0].kind == OperationKind::kReadList);
  CHECK(operations[0].is_predicate);
  CHECK(history.elements(operations[0])[2] == 6);
  CHECK(operations[1].value == 9);
  CHECK(!operations[1].is_predicate);
  CHECK(operations[2].kind == OperationKind::kWrite);
  CHECK(history.key_limit() == 22);
  CHECK(history.value_limit() == 3);
}

TEST_CASE("after a kill only transactions that had asked to commit are unknown", "[history]") {
  Log log;
  log.log.begin(0, 10);
  log.log.append(0, 1, 1);
  log.log.begin(1, 11);
  log.log.append(1, 1, 2);
  log.log.commit(1);
  log.log.killed(50);
  log.log.begin(1, 60);
  log.log.end(1, true, 70);
  History history;
  REQUIRE(isolation::read_log(log.written(), {0, 100}, history).ok());
  REQUIRE(history.transactions().size() == 3);
  CHECK(history.transactions()[0].outcome == Outcome::kAborted);
  CHECK(history.transactions()[1].outcome == Outcome::kUnknown);
  CHECK(history.transactions()[1].end_ns == 50);
  // The session of another process.
  CHECK(history.transactions()[2].process == 101);
}

TEST_CASE("a log that is cut off at any word is refused, or ends with an event", "[history]") {
  Log log;
  log.log.begin(0, 10);
  log.log.append(0, 1, 1);
  log.log.commit(0);
  log.log.end(0, true, 20);
  const auto words = log.written();
  for (std::size_t length = 1; length < words.size(); ++length) {
    History history;
    CHECK(isolation::read_log(words.first(length), {}, history).code() == StatusCode::kCorrupt);
  }
  History history;
  CHECK(isolation::read_log(words, {}, history).ok());
}

TEST_CASE("impossible events are refused", "[history]") {
  const auto refused = [](const Log& log) {
    History history;
    return isolation::read_log(log.written(), {}, history).code() == StatusCode::kCorrupt;
  };
  Log twice;
  twice.log.begin(0, 1);
  twice.log.begin(0, 2);
  CHECK(refused(twice));
  Log outside;
  outside.log.append(0, 1, 1);
  CHECK(refused(outside));
  Log unknown;
  unknown.words[0] = 0xF0000000U;
  unknown.layout.words.store(1);
  CHECK(refused(unknown));
}

TEST_CASE("a log that is full says so and stays whole", "[history]") {
  EventLogLayout layout;
  std::array<std::uint32_t, 8> words{};
  EventLog log(layout, words);
  log.begin(0, 1);
  log.append(0, 1, 1);
  CHECK(!log.is_full());
  log.append(0, 1, 2);
  CHECK(log.is_full());
  CHECK(layout.words.load() == 6);
  CHECK(layout.operations.load() == 1);
}

}  // namespace flugs::test
