// Protocols recycle, reuse_text, sweep, resolve and generation: leftovers of transactions, and
// their reuse.

#include <catch2/catch.hpp>

#include "test/verify/crash/explore.h"

namespace flugs::crash {
namespace {

TEST_CASE("no crash state of using rows again brings a dead row back", "[crash]") {
  must_hold({.protocol = "recycle", .nested_depth = 0, .images_max = 2000});
  must_hold({.protocol = "recycle", .tears_words = true, .nested_depth = 0, .images_max = 2000});
}

TEST_CASE("no crash state of using the place of a text again changes a row", "[crash]") {
  must_hold({.protocol = "reuse_text", .nested_depth = 0, .images_max = 20000});
  must_hold(
      {.protocol = "reuse_text", .tears_words = true, .nested_depth = 0, .images_max = 20000});
}

TEST_CASE("no crash state of rows that recovery freed brings a dead row back", "[crash]") {
  must_hold({.protocol = "sweep"});
  must_hold({.protocol = "sweep", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state makes a stale tag belong to another transaction", "[crash]") {
  must_hold({.protocol = "generations"});
}

}  // namespace
}  // namespace flugs::crash
