#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "bindings/duckdb/handles.h"
#include "bindings/duckdb/scan.h"
#include "flugs/stream.h"

namespace flugs::duckdb {

/// The texts of a dictionary as DuckDB has them: 16 bytes each, which point into the dictionary if
/// the text is longer than 12 bytes.
struct DictionaryTexts {
  std::shared_ptr<const query::TextDictionary> dictionary;  ///< null: none yet
  /// A second batch has it, so it is the one that all later batches share. It is kept.
  bool is_shared = false;
  std::vector<duckdb_v2_bytes> texts;
};

/// Writes rows of batches into vectors of DuckDB. Long texts of a dictionary that batches share are
/// not copied: so the writer must outlive all that reads the vectors.
///
/// Thread-safety: one thread.
class VectorWriter {
 public:
  /// `columns` are those of the batches.
  VectorWriter(std::string table, std::vector<ScanColumn> columns);

  /// Rows `first` to `first + count` of column `column` of a batch. Fails with kInvalidArgument (a
  /// text that is no UTF-8), kOverflow (a decimal with more than 18 digits).
  Status write(duckdb_v2_vector_handle vector, const query::StreamBatch& batch, std::size_t column,
               std::size_t first, std::size_t count);

 private:
  Status write_texts(duckdb_v2_vector_handle vector, const query::StreamBatch& batch,
                     std::size_t column, std::size_t first, std::size_t count,
                     duckdb_v2_bytes* out);
  Status write_codes(duckdb_v2_vector_handle vector, const DictionaryTexts& known,
                     std::span<const std::uint32_t> codes, duckdb_v2_bytes* out);
  /// `begins`: these are the first rows of the batch.
  Status read_dictionary(const query::StreamBatch& batch, std::size_t column, bool begins);
  Status write_decimals(const ScanColumn& of, std::span<const std::int64_t> values,
                        std::int64_t* out) const;
  Status bad_text(std::size_t column, std::string_view text) const;

  const std::string table_;
  const std::vector<ScanColumn> columns_;
  std::vector<DictionaryTexts> texts_;  // by column: of the newest dictionary
  std::vector<std::shared_ptr<const query::TextDictionary>> kept_;
};

}  // namespace flugs::duckdb
