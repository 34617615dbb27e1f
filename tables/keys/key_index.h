#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/published.h"
#include "flugs/schema.h"
#include "tables/catalog/schema_codec.h"
#include "tables/keys/key_columns.h"
#include "tables/keys/key_entries.h"
#include "tables/keys/row_guess.h"

namespace flugs::engine {

/// One key of a table: its name, its columns, and the indexes with its entries.
/// Thread-safety: any thread, except rebuilding.
class KeyIndex final : public KeyColumns {
 public:
  using Origin = KeyEntries::Origin;

  KeyIndex(KeyKinds kinds, const KeyParts& parts, const std::string& table, const KeySchema& schema,
           std::vector<std::uint16_t> key_columns, Origin origin = Origin::kOpening)
      : KeyColumns(parts.rows, parts.columns, schema, std::move(key_columns)),
        name_(schema.name),
        entries_(*this, kinds, parts, "table " + table + ", key " + schema.name + " index",
                 origin) {
    FLUGS_CHECK(parts.number < kKeysMax);
  }

  const std::string& name() const noexcept { return name_.get(); }
  /// One thread at a time.
  void rename(const std::string& name) {
    if (name != name_.get()) name_.put(name);
  }
  KeyEntries& entries() noexcept { return entries_; }
  const KeyEntries& entries() const noexcept { return entries_; }
  const RowGuess& guess() const noexcept { return guess_; }

 private:
  Published<std::string> name_;
  KeyEntries entries_;
  RowGuess guess_;
};

}  // namespace flugs::engine
