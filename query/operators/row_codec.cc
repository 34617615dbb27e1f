#include "query/operators/row_codec.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace flugs::query {

RowCodec::RowCodec(const Schema& schema)
    : null_words_(schema.size() / 64 + 1), words_(null_words_) {
  for (const ColumnInfo& column : schema) {
    columns_.push_back({column.form(), words_});
    words_ += column.form() == Form::kText ? 2 : 1;
  }
}

void RowCodec::write(const Batch& batch, std::uint64_t* records) const {
  FLUGS_CHECK(batch.columns.size() >= columns_.size());
  for (std::size_t i = 0; i < batch.rows; ++i) std::fill_n(records + i * words_, null_words_, 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const ColumnView& from = batch.columns[c];
    std::uint64_t* to = records + columns_[c].at;
    switch (columns_[c].form) {
      case Form::kText:
        for (std::size_t i = 0; i < batch.rows; ++i) {
          to[i * words_] = reinterpret_cast<std::uint64_t>(from.texts()[i].data());
          to[i * words_ + 1] = from.texts()[i].size();
        }
        break;
      case Form::kCode:
        for (std::size_t i = 0; i < batch.rows; ++i) to[i * words_] = from.codes()[i];
        break;
      case Form::kInt:
      case Form::kReal:
        for (std::size_t i = 0; i < batch.rows; ++i)
          std::memcpy(to + i * words_, static_cast<const std::byte*>(from.data) + i * 8, 8);
    }
    if (from.nulls == nullptr) continue;
    for (std::size_t i = 0; i < batch.rows; ++i)
      records[i * words_ + c / 64] |= std::uint64_t{from.nulls[i] != 0} << c % 64;
  }
}

void RowCodec::read(const std::uint64_t* records, std::size_t rows, std::vector<Vec>& out,
                    Batch& batch) const {
  FLUGS_CHECK(out.size() <= columns_.size() && rows <= kBatchRows);
  batch.rows = rows;
  batch.columns.resize(out.size());
  for (std::size_t c = 0; c < out.size(); ++c) {
    const std::uint64_t* from = records + columns_[c].at;
    switch (columns_[c].form) {
      case Form::kText: {
        std::string_view* texts = out[c].texts(kBatchRows);
        for (std::size_t i = 0; i < rows; ++i) texts[i] = text(records + i * words_, c);
        break;
      }
      case Form::kCode: {
        std::uint32_t* codes = out[c].codes(kBatchRows);
        for (std::size_t i = 0; i < rows; ++i)
          codes[i] = static_cast<std::uint32_t>(from[i * words_]);
        break;
      }
      case Form::kInt:
      case Form::kReal: {
        auto* words = static_cast<std::byte*>(out[c].reserve(kBatchRows * 8));
        for (std::size_t i = 0; i < rows; ++i) std::memcpy(words + i * 8, from + i * words_, 8);
      }
    }
    std::uint8_t* nulls = out[c].nulls(kBatchRows);
    std::uint8_t any = 0;
    for (std::size_t i = 0; i < rows; ++i) any |= nulls[i] = is_null(records + i * words_, c);
    batch.columns[c] = out[c].view(any != 0);
  }
}

}  // namespace flugs::query
