// Protocols row_chunk and chunk_list.

#include <catch2/catch.hpp>

#include "test/verify/crash/explore.h"

namespace flugs::crash {
namespace {

TEST_CASE("no crash state of a table that grows loses rows or space", "[crash]") {
  must_hold({.protocol = "row_chunks"});
  must_hold({.protocol = "chunks_of_two", .nested_depth = 2});
}

TEST_CASE("no crash state of widening cells loses rows or space", "[crash]") {
  must_hold({.protocol = "widening", .images_max = 6000});
}

TEST_CASE("no crash state of the pages of a chunk list loses rows or space", "[crash]") {
  must_hold({.protocol = "chunk_pages", .nested_one_in = 256});
  must_hold({.protocol = "chunk_lines", .nested_one_in = 256});
}

}  // namespace
}  // namespace flugs::crash
