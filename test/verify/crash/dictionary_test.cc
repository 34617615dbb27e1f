// Protocols dictionary, string_heap and rebuild_dictionary.

#include <catch2/catch.hpp>

#include "test/verify/crash/explore.h"

namespace flugs::crash {
namespace {

TEST_CASE("no crash state of entering values loses one or gives it two ValueIDs", "[crash]") {
  must_hold({.protocol = "new_values", .nested_depth = 2});
  must_hold({.protocol = "new_values", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no commit depends on stores that a killed process had not flushed", "[crash]") {
  must_hold({.protocol = "killed", .nested_depth = 2});
  must_hold({.protocol = "killed", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no durable commit depends on a value that is not durable", "[crash]") {
  must_hold({.protocol = "shared_values"});
  must_hold({.protocol = "shared_values", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state of a growing dictionary loses a value", "[crash]") {
  must_hold({.protocol = "dictionary_chunks"});
}

TEST_CASE("no crash state of long texts loses, tears or overwrites one", "[crash]") {
  must_hold({.protocol = "long_texts", .images_max = 6000});
  must_hold({.protocol = "shared_reservation"});
}

}  // namespace
}  // namespace flugs::crash
