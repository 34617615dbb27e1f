#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "columns/cells/unflushed.h"
#include "columns/column/column.h"
#include "columns/index/hint_index.h"
#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"
#include "recovery/phases.h"
#include "recovery/rebuild_dictionaries.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

/// One column in a buffer, its layout in the application root. Main thread only.
class TestColumn {
 public:
  explicit TestColumn(const ColumnSchema& schema, std::size_t bytes = std::size_t{8} << 20,
                      bool has_hints = false)
      : buffer_(bytes), has_hints_(has_hints) {
    pmem::PoolOptions options;
    options.segment_bytes = std::uint64_t{1} << 20;
    auto made = pmem::Pool::create_in_memory(buffer_.span(), options);
    REQUIRE(made.ok());
    pool_ = std::move(*made);
    columns::Column::initialise(layout(), schema);
    make_column();
  }
  ~TestColumn() { close(); }

  columns::Column& operator*() { return *column_; }
  columns::Column* operator->() { return &*column_; }
  pmem::Pool& pool() { return *pool_; }
  pmem::Persister& persister() { return *persister_; }
  columns::ColumnLayout& layout() {
    return *reinterpret_cast<columns::ColumnLayout*>(pool_->application_root());
  }
  columns::HintIndexLayout* hints() {
    if (!has_hints_) return nullptr;
    return reinterpret_cast<columns::HintIndexLayout*>(&layout() + 1);
  }
  const RecoveryReport& report() const { return report_; }

  /// The cell, made durable as a commit would make it.
  Result<columns::Cell> encode(const Value& value) {
    columns::Unflushed unflushed;
    Result<columns::Cell> cell =
        column_->encode(columns::normalised(value, column_->type()), unflushed, *persister_);
    if (!cell.ok()) return cell;
    unflushed.flush(*persister_, "commit/1");
    persister_->fence("commit/1");
    unflushed.mark_durable();
    return cell;
  }

  Status reopen(std::uint32_t threads = 1) {
    Status status = reopen_unindexed();
    if (!status.ok() || !column_->is_dictionary()) return status;
    Status indexed = index(threads);
    if (indexed.ok()) enter_hints();
    return indexed;
  }
  /// The dictionary's index is left to be made by `index`.
  Status reopen_unindexed() {
    close();
    auto opened = pmem::Pool::open_in_memory(buffer_.span(), pmem::PoolOptions{});
    if (!opened.ok()) return std::move(opened).status();
    pool_ = std::move(*opened);
    make_column();
    if (Status s = column_->load(); !s.ok()) return s;
    pool_->allocator().finish_claims();
    return column_->is_dictionary() ? column_->dictionary().begin_rebuild() : Status();
  }
  Status index(std::uint32_t threads = 1) {
    report_ = {};
    recovery::Phases phases(report_, threads, {});
    return recovery::rebuild_dictionaries({&column_->dictionary()}, *pool_, "dictionary indexes",
                                          phases, report_)
        .status();
  }
  /// As a power cut may: those of entries from `first` on. To be reopened.
  void lose_hints(std::uint32_t first) {
    close();
    auto opened = pmem::Pool::open_in_memory(buffer_.span(), pmem::PoolOptions{});
    REQUIRE(opened.ok());
    pool_ = std::move(*opened);
    columns::HintIndex index(*pool_, *hints(), "lost hints");
    REQUIRE(index.load().ok());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lost;
    index.for_each([&](std::uint32_t fingerprint, std::uint32_t id) {
      if (id >= first) lost.emplace_back(fingerprint, id);
    });
    for (const auto& [fingerprint, id] : lost) index.erase(std::uint64_t{fingerprint} << 32, id);
  }
  /// Those that opening left.
  void enter_hints() {
    columns::DictionaryHints* hints = column_->dictionary().hints();
    while (hints != nullptr && hints->enter_left(*persister_)) {
    }
  }

 private:
  void make_column() {
    decoder_ = std::make_unique<columns::Decoder>();
    column_.emplace(*pool_, layout(), hints(), *decoder_, "c", "t");
    persister_ = std::make_unique<pmem::Persister>(pool_->medium());
  }
  void close() {
    column_.reset();
    if (persister_ != nullptr) persister_->fence("commit/1");
    persister_.reset();
    pool_.reset();
  }

  PoolBuffer buffer_;
  const bool has_hints_;
  std::unique_ptr<pmem::Pool> pool_;
  std::unique_ptr<columns::Decoder> decoder_;
  std::optional<columns::Column> column_;
  std::unique_ptr<pmem::Persister> persister_;
  RecoveryReport report_;
};

inline ColumnSchema column_schema(Type type, Encoding encoding = Encoding::kDictionary) {
  ColumnSchema schema;
  schema.name = "c";
  schema.type = type;
  schema.encoding = encoding;
  return schema;
}

}  // namespace flugs::test
