// Protocols create_database, create_table, alter_table, drop_table and slot_array, and the reuse of
// space from a former owner.

#include <catch2/catch.hpp>

#include "test/verify/crash/explore.h"

namespace flugs::crash {
namespace {

TEST_CASE("no crash state of creating and dropping tables leaves half of one", "[crash]") {
  must_hold({.protocol = "create_drop_table", .nested_depth = 2});
  must_hold({.protocol = "create_drop_table", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("every crash state of creating several tables has all of them or none", "[crash]") {
  must_hold({.protocol = "create_tables", .nested_depth = 2});
  must_hold({.protocol = "create_tables", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("every crash state of altering a table has the old schema or the new one", "[crash]") {
  must_hold({.protocol = "alter_table", .nested_depth = 2});
  must_hold({.protocol = "alter_table", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state of adding and dropping columns leaves half a column", "[crash]") {
  must_hold({.protocol = "add_drop_column", .nested_depth = 2});
  must_hold({.protocol = "change_type", .nested_depth = 2});
  must_hold({.protocol = "add_drop_column", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state of columns that begin anew loses a value", "[crash]") {
  must_hold({.protocol = "renew", .images_max = 2500});
}

TEST_CASE("no crash state of adding or dropping a key leaves a part of one", "[crash]") {
  must_hold({.protocol = "alter_keys", .images_max = 2500});
}

TEST_CASE("every crash state of adding a constraint has the old schema or the new one", "[crash]") {
  must_hold({.protocol = "constraints", .nested_depth = 2});
  must_hold({.protocol = "constraints", .tears_words = true, .nested_depth = 0});
}

TEST_CASE("no crash state gives a number a second time", "[crash]") {
  must_hold({.protocol = "auto_increment", .nested_depth = 2});
  must_hold({.protocol = "auto_increment", .tears_words = true});
}

TEST_CASE("no crash state shows former contents of the space", "[crash]") {
  must_hold({.protocol = "used_space", .images_max = 2500});
}

TEST_CASE("no crash state of more slots loses a transaction", "[crash]") {
  must_hold({.protocol = "slot_array"});
  must_hold({.protocol = "slot_array", .tears_words = true});
}

TEST_CASE("a crash while a database is created leaves a database or none", "[crash]") {
  Exploration exploration{
      .protocol = "create_database", .nested_depth = 2, .combinations_max = 256};
  must_hold(exploration);
  exploration.tears_words = true;
  exploration.nested_depth = 1;
  must_hold(exploration);
}

}  // namespace
}  // namespace flugs::crash
