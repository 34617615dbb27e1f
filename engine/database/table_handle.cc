// Ids by name, and structs as rows.

#include <fmt/format.h>

#include <algorithm>

#include "base/names.h"
#include "flugs/table.h"
#include "flugs/typed_table.h"

namespace flugs {

namespace {

Status misfit(const Table& table, const detail::MemberFacts& member, const std::string& why) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("table {}, member {}: {}", table.name(), member.name, why))
      .with_part(SchemaPart::of(table.name()));
}

}  // namespace

Result<ColumnId> Table::column(std::string_view name) const {
  if (schema_ == nullptr) return Status(StatusCode::kNotFound, "a Table that was not found");
  const auto& columns = schema_->columns;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == name && !columns[i].dropped)
      return ColumnId(static_cast<std::uint16_t>(i));
  return Status(StatusCode::kNotFound, SchemaPart::of(schema_->name),
                fmt::format("no column '{}', it has {}", name, names_of(columns)));
}

Result<KeyId> Table::key(std::string_view name) const {
  if (schema_ == nullptr) return Status(StatusCode::kNotFound, "a Table that was not found");
  const auto& keys = schema_->keys;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].name == name && !keys[i].dropped) return KeyId{id_, static_cast<std::uint16_t>(i)};
  return Status(StatusCode::kNotFound, SchemaPart::of(schema_->name),
                fmt::format("no key '{}', it has {}", name, names_of(keys)));
}

// By its place, since it may have another name.
Result<KeyId> Table::primary_key() const {
  if (schema_ == nullptr) return Status(StatusCode::kNotFound, "a Table that was not found");
  if (schema_->has_primary_key) return KeyId{id_, 0};
  return Status(StatusCode::kNotFound, SchemaPart::of(schema_->name), "has no primary key");
}

namespace detail {

Status no_primary_key(const Table& table) {
  return Status(StatusCode::kInvalidArgument, SchemaPart::of(table.name()),
                "has no primary key; name another key");
}

Status row_of_another_table(const Table& table) {
  return Status(StatusCode::kInvalidArgument, SchemaPart::of(table.name()),
                "the row is of another table");
}

Result<std::vector<ColumnId>> bind_members(const Table& table,
                                           std::span<const MemberFacts> members) {
  std::vector<ColumnId> columns;
  for (const MemberFacts& member : members) {
    const Result<ColumnId> column = table.column(member.name);
    if (!column.ok()) return misfit(table, member, std::string(column.status().message()));
    const ColumnSchema& of = table.schema().columns[column->value()];
    if (!member.wanted.admits(of.type))
      return misfit(table, member,
                    fmt::format("the column is of type {}, the member {}", to_string(of.type),
                                member.wanted.name));
    if (of.nullable && !of.auto_increment && !member.wanted.takes_null)
      return misfit(table, member,
                    fmt::format("the column may hold NULL: make the member std::optional<{}>, or "
                                "the column NOT NULL",
                                member.wanted.name));
    columns.push_back(*column);
  }
  return columns;
}

std::vector<int> places_in_key(const Table& table, std::span<const ColumnId> columns) {
  std::vector<int> places(columns.size(), -1);
  if (!table.schema().has_primary_key) return places;
  const std::vector<std::string>& key = table.schema().keys[0].columns;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto place =
        std::find(key.begin(), key.end(), table.schema().columns[columns[i].value()].name);
    if (place != key.end()) places[i] = static_cast<int>(place - key.begin());
  }
  return places;
}

int numbered_member(const Table& table, std::span<const ColumnId> columns) noexcept {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (table.schema().columns[columns[i].value()].auto_increment) return static_cast<int>(i);
  return -1;
}

Status no_key_in_struct(const Table& table) {
  return Status(StatusCode::kInvalidArgument, SchemaPart::of(table.name()),
                "the struct must have all columns of the primary key, by which the row is found");
}

}  // namespace detail

}  // namespace flugs
