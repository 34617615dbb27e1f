#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "flugs/query_result.h"
#include "flugs/status.h"
#include "flugs/value.h"

namespace flugs::query {

struct BatchData;
class StreamState;

/// Texts, numbered from 0 on. Several batches may share one.
///
/// Thread-safety: immutable; any thread.
class TextDictionary {
 public:
  /// Text i lies from byte offsets[i] on and before byte offsets[i + 1]; so there is one offset
  /// more than texts, and the first is 0.
  TextDictionary(std::vector<std::int32_t> offsets, std::string bytes) noexcept
      : offsets_(std::move(offsets)), bytes_(std::move(bytes)) {}

  std::size_t size() const noexcept { return offsets_.size() - 1; }
  /// `code` is below `size`.
  std::string_view operator[](std::uint32_t code) const noexcept {
    const auto begin = static_cast<std::size_t>(offsets_[code]);
    return {bytes_.data() + begin, static_cast<std::size_t>(offsets_[code + 1]) - begin};
  }
  /// Text i begins at byte offsets()[i] and ends before byte offsets()[i + 1].
  std::span<const std::int32_t> offsets() const noexcept { return offsets_; }
  std::string_view bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::int32_t> offsets_;
  std::string bytes_;
};

/// The texts of a column in a batch: codes of a dictionary, or texts side by side. A view, valid as
/// long as a copy of the batch exists.
///
/// Thread-safety: any thread.
class TextColumn {
 public:
  TextColumn() noexcept = default;
  TextColumn(std::span<const std::uint32_t> codes, const TextDictionary* dictionary) noexcept
      : codes_(codes.data()), dictionary_(dictionary), size_(codes.size()) {}
  TextColumn(std::span<const std::int32_t> offsets, const char* bytes) noexcept
      : offsets_(offsets.data()), bytes_(bytes), size_(offsets.size() - 1) {}

  std::size_t size() const noexcept { return size_; }
  /// The text of a row below `size`; empty at a NULL.
  std::string_view operator[](std::size_t row) const noexcept {
    if (dictionary_ != nullptr)
      return dictionary_->size() == 0 ? std::string_view() : (*dictionary_)[codes_[row]];
    const auto begin = static_cast<std::size_t>(offsets_[row]);
    return {bytes_ + begin, static_cast<std::size_t>(offsets_[row + 1]) - begin};
  }
  /// Null: the texts lie side by side.
  const TextDictionary* dictionary() const noexcept { return dictionary_; }
  /// With a dictionary: the code of each row, 0 at a NULL.
  std::span<const std::uint32_t> codes() const noexcept {
    return {codes_, dictionary_ != nullptr ? size_ : 0};
  }
  /// Without a dictionary: the text of row i begins at byte offsets()[i] of `bytes`, and ends
  /// before byte offsets()[i + 1].
  std::span<const std::int32_t> offsets() const noexcept {
    return {offsets_, dictionary_ == nullptr && offsets_ != nullptr ? size_ + 1 : 0};
  }
  const char* bytes() const noexcept { return bytes_; }

 private:
  const std::uint32_t* codes_ = nullptr;
  const TextDictionary* dictionary_ = nullptr;
  const std::int32_t* offsets_ = nullptr;
  const char* bytes_ = nullptr;
  std::size_t size_ = 0;
};
static_assert(std::is_trivially_copyable_v<TextColumn>);

/// Some rows of a stream, column by column. It owns all that it shows, so it stays valid after the
/// stream and the transaction have ended and the database is closed. Copies share. Columns are
/// numbered as in ResultStream::columns.
///
/// Thread-safety: immutable; any thread.
class StreamBatch {
 public:
  /// Rows in a batch at most.
  static constexpr std::size_t kRowsMax = 65536;
  /// A batch has fewer rows if a column's texts would take more bytes than that, unless one text
  /// alone does.
  static constexpr std::size_t kTextBytesMax = std::size_t{16} << 20;
  static_assert(kTextBytesMax <= std::numeric_limits<std::int32_t>::max());  // TextColumn::offsets

  /// No rows and no columns.
  StreamBatch() noexcept = default;
  explicit StreamBatch(std::shared_ptr<const BatchData> data) noexcept : data_(std::move(data)) {}

  std::size_t row_count() const noexcept;
  /// The values of a column, one per row. T is std::int64_t for a column of type bool, int32,
  /// int64, decimal (units), date (days) or timestamp (microseconds), and double for a double. 0
  /// stands at a NULL.
  /// Fails with: kInvalidArgument (no such column, or one of another type; or the stream prefers
  /// Arrow, and this type has another form there: prefer_arrow).
  template <typename T>
    requires(std::same_as<T, std::int64_t> || std::same_as<T, double>)
  Result<std::span<const T>> column(std::size_t column) const;
  /// The values of a column of type string or bytes.
  /// Fails with: kInvalidArgument (no such column, or one of another type).
  Result<TextColumn> texts(std::size_t column) const;
  /// 1 where the value is NULL, else 0; empty when these rows have no NULL, or no such column.
  std::span<const std::uint8_t> nulls(std::size_t column) const noexcept;
  /// The dictionary of the texts of a column, which may be kept; null if it has none. It may have
  /// texts that no row of the snapshot has.
  std::shared_ptr<const TextDictionary> dictionary(std::size_t column) const noexcept;

  const std::shared_ptr<const BatchData>& data() const noexcept { return data_; }

 private:
  std::shared_ptr<const BatchData> data_;
};

template <>
Result<std::span<const std::int64_t>> StreamBatch::column(std::size_t column) const;
template <>
Result<std::span<const double>> StreamBatch::column(std::size_t column) const;

/// The rows of a query that the caller pulls in batches (Query::stream):
///
///     Result<ResultStream> stream = Query::table("sales").select({"item", "price"}).stream(t);
///     for (const StreamBatch& batch : *stream) use(batch);
///     if (!stream->status().ok()) return stream->status();
///
/// Work is done within `next` only, by as many threads as RunOptions says. A stream holds a few
/// batches at a time, however many rows the query has; groups, sorted rows and right sides of joins
/// are held as in Query::run. A column of texts keeps the codes of the table's dictionary until the
/// caller asks for a text.
///
/// The stream shows the rows as they were when `stream` was called. The transaction may write
/// meanwhile, and read. If it had tried to write before `stream` was called, its next write
/// makes the stream read all rows that are left, within RunOptions::memory_bytes_max.
///
/// When the transaction ends, the stream fails. It also fails when the transaction undoes (by
/// rollback_to) a write from before the stream.
///
/// Thread-safety: as the transaction's. It may be destroyed at any time, by the same thread; that
/// ends the work.
class ResultStream {
 public:
  ResultStream(ResultStream&&) noexcept;
  ResultStream& operator=(ResultStream&&) noexcept;
  ~ResultStream();

  const std::vector<ResultColumn>& columns() const noexcept;
  /// Whether batches give the column's texts as codes of a dictionary. The same for all batches.
  /// A table's column with a dictionary of more than 12,288 values has none here when most of the
  /// rows are merged: there, reading the texts is faster than finding their codes.
  bool has_dictionary(std::size_t column) const noexcept;

  /// The next batch, which has at least one row, or null: there is none, or the stream has failed
  /// (`status`). Valid until the next call; a copy stays valid. Batches come in no particular
  /// order, unless the query ends in order_by.
  const StreamBatch* next();
  /// Why `next` gave null: ok at the end of the rows.
  /// Fails with: kInvalidArgument (the transaction has ended), kCancelled, and as Query::run while
  /// it reads rows.
  const Status& status() const noexcept { return status_; }

  /// So far.
  QueryStatistics statistics() const noexcept;
  /// The plan, with the figures of what has been done so far.
  std::string explain() const;

  /// An input iterator: one pass.
  class Iterator {
   public:
    using value_type = StreamBatch;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    const StreamBatch& operator*() const noexcept { return *batch_; }
    const StreamBatch* operator->() const noexcept { return batch_; }
    Iterator& operator++() {
      batch_ = stream_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, std::default_sentinel_t) noexcept {
      return a.batch_ == nullptr;
    }

   private:
    friend class ResultStream;
    explicit Iterator(ResultStream* stream) : stream_(stream), batch_(stream->next()) {}
    ResultStream* stream_;
    const StreamBatch* batch_;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend class Query;
  friend void prefer_arrow(ResultStream& stream) noexcept;
  explicit ResultStream(std::shared_ptr<StreamState> state) noexcept;
  const StreamBatch* finish(Status why);

  std::shared_ptr<StreamState> state_;
  StreamBatch batch_;
  Status status_;
  bool is_finished_ = false;
};
static_assert(!std::is_copy_constructible_v<ResultStream> &&
              std::is_nothrow_move_constructible_v<ResultStream>);

class SharedState;

/// The rows of a query that several threads pull at the same time (Query::share). Each thread has a
/// number, from 0 on and below RunOptions::threads, and gets batches of its own; work is done
/// within `next` only, by the thread that calls. If the rows come in an order, thread 0 gets them
/// all.
///
/// It shows the rows as they were when `share` was called. It must be destroyed before the
/// transaction ends.
///
/// Thread-safety: `next`: any threads, each with its own number. Meanwhile one thread at a time may
/// call Query::share on the transaction, or destroy another shared stream of it. No thread may call
/// anything else of the transaction meanwhile.
class SharedStream {
 public:
  SharedStream(SharedStream&&) noexcept;
  SharedStream& operator=(SharedStream&&) noexcept;
  ~SharedStream();

  const std::vector<ResultColumn>& columns() const noexcept;
  /// As ResultStream::has_dictionary.
  bool has_dictionary(std::size_t column) const noexcept;

  /// The thread's next batch, which has at least one row, or null at the end of the rows. Valid
  /// until the thread's next call; a copy stays valid, and costs the memory of a batch.
  /// Fails with: kInvalidArgument (no such thread; the transaction has ended), kCancelled, and as
  /// Query::run while it reads rows, in one thread or several. Then no more rows come.
  Result<const StreamBatch*> next(std::uint32_t thread);

 private:
  friend class Query;
  explicit SharedStream(std::shared_ptr<SharedState> state) noexcept;

  std::shared_ptr<SharedState> state_;
};
static_assert(std::is_nothrow_move_constructible_v<SharedStream>);

}  // namespace flugs::query
