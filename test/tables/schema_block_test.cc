#include "tables/catalog/schema_block.h"

#include <catch2/catch.hpp>
#include <string>

#include "columns/cells/row_layout.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::uint16_t kEditionsAfterFirst = columns::kEditionsMax - 1;

/// The first columns have all the editions that they can have, until there are `changes`.
engine::StoredSchema with_changes(std::size_t changes) {
  engine::StoredSchema stored;
  stored.changed_columns.resize(changes);
  for (std::size_t i = 0; i < changes; ++i) {
    stored.changed_columns[i].column = static_cast<std::uint16_t>(i / kEditionsAfterFirst);
    stored.changed_columns[i].edition = static_cast<std::uint16_t>(i % kEditionsAfterFirst + 1);
  }
  return stored;
}

}  // namespace

TEST_CASE("a column gets no edition beyond the number that it can have", "[engine]") {
  engine::StoredSchema stored = with_changes(kEditionsAfterFirst - 1);
  must(engine::check_room_for_edition(stored, 0));
  stored = with_changes(kEditionsAfterFirst);
  const Status full = engine::check_room_for_edition(stored, 0);
  CHECK(full.code() == StatusCode::kBusy);
  CHECK(full.message().find("255 editions of the column") != std::string::npos);
  must(engine::check_room_for_edition(stored, 1));
}

// A table of 1,024 columns with 254 further editions each would have four times as many.
TEST_CASE("the columns of a table get no more editions than the schema's block counts",
          "[engine]") {
  constexpr std::uint16_t kOther = 1'000;  // has none of them
  must(engine::check_room_for_edition(with_changes(engine::kChangesMax - 1), kOther));
  const Status full = engine::check_room_for_edition(with_changes(engine::kChangesMax), kOther);
  CHECK(full.code() == StatusCode::kBusy);
  CHECK(full.message().find("65535 changed editions") != std::string::npos);
}

}  // namespace flugs::test
