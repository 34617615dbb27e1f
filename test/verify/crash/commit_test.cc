// Protocols commit and intent_block.

#include <catch2/catch.hpp>

#include "test/verify/crash/explore.h"

namespace flugs::crash {
namespace {

TEST_CASE("no crash state of an insert loses or tears a transaction", "[crash]") {
  must_hold({.protocol = "insert", .nested_depth = 2});
  must_hold({.protocol = "insert", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state of rows given by column loses or tears a transaction", "[crash]") {
  must_hold({.protocol = "by_column"});
  must_hold({.protocol = "by_column", .hints = true});
  must_hold({.protocol = "by_column", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state of an update or a delete loses or tears a transaction", "[crash]") {
  must_hold({.protocol = "update", .nested_depth = 2});
  must_hold({.protocol = "update", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state of a transaction with a partial rollback loses or tears it", "[crash]") {
  must_hold({.protocol = "savepoints"});
  must_hold({.protocol = "savepoints", .hints = true});
  must_hold({.protocol = "savepoints", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state of a transaction of many rows loses or tears it", "[crash]") {
  must_hold({.protocol = "large_commit"});
  must_hold({.protocol = "forgotten_intents"});
  must_hold({.protocol = "interleaved_intents", .nested_depth = 0});
}

TEST_CASE("no crash state of rows whose columns are apart loses or tears a transaction",
          "[crash]") {
  must_hold({.protocol = "in_columns"});
  must_hold({.protocol = "in_columns", .hints = true});
  must_hold({.protocol = "in_groups"});
  must_hold({.protocol = "in_columns", .tears_words = true, .nested_depth = 0});
  must_hold({.protocol = "large_in_columns", .nested_depth = 0});
  must_hold({.protocol = "layouts", .nested_depth = 0});
  must_hold({.protocol = "layouts", .hints = true, .nested_depth = 0});
}

TEST_CASE("no crash state of a slot that is used again and again loses a transaction", "[crash]") {
  must_hold({.protocol = "slot_turns"});
  must_hold({.protocol = "slot_turns", .tears_words = true});
  must_hold({.protocol = "crashed_slots"});
}

}  // namespace
}  // namespace flugs::crash
