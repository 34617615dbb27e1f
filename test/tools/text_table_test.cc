// Tables for people.

#include "tools/support/text_table.h"

#include <catch2/catch.hpp>

namespace flugs::tools {

TEST_CASE("text stands to the left and numbers to the right", "[tools]") {
  TextTable table({"part", "looked at", "state"}, {0, 2});
  table.add({"towns", "7", "unharmed"});
  table.add({"t", "12345", "damaged"});
  CHECK(table.to_string() ==
        "part   looked at  state\n"
        "--------------------------\n"
        "towns          7  unharmed\n"
        "t          12345  damaged\n");
}

TEST_CASE("a table may hold numbers only", "[tools]") {
  TextTable table({"cores", "tps"}, {});
  table.add({"1", "10"});
  table.add({"16", "100 k"});
  CHECK(table.to_string() == "cores    tps\n------------\n    1     10\n   16  100 k\n");
}

TEST_CASE("columns are as wide as the characters of their texts", "[tools]") {
  TextTable table({"town", "rows"});
  table.add({"Köln", "1"});
  table.add({"Bonn", "2"});
  CHECK(table.to_string() == "town  rows\n----------\nKöln     1\nBonn     2\n");
}

}  // namespace flugs::tools
