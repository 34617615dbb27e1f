#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/status.h"
#include "tools/peers/engines/rocksdb_api.h"

namespace flugs::tools {

/// Owns what a function of RocksDB made, until `destroy`.
template <auto destroy>
struct RocksdbDestroy {
  template <typename T>
  void operator()(T* object) const {
    destroy(object);
  }
};
template <typename T, auto destroy>
using Rocksdb = std::unique_ptr<T, RocksdbDestroy<destroy>>;

using RocksdbOptions = Rocksdb<rocksdb_options_t, rocksdb_options_destroy>;
using RocksdbReads = Rocksdb<rocksdb_readoptions_t, rocksdb_readoptions_destroy>;
using RocksdbWrites = Rocksdb<rocksdb_writeoptions_t, rocksdb_writeoptions_destroy>;
using RocksdbValue = Rocksdb<rocksdb_pinnableslice_t, rocksdb_pinnableslice_destroy>;

/// Where a call puts its error.
class RocksdbError {
 public:
  ~RocksdbError() { rocksdb_free(text_); }
  RocksdbError() = default;
  RocksdbError(const RocksdbError&) = delete;
  RocksdbError& operator=(const RocksdbError&) = delete;

  operator char**() noexcept { return &text_; }
  Status status() const {
    if (text_ == nullptr) return {};
    const std::string_view text = text_;
    if (text.starts_with("NotFound")) return Status(StatusCode::kNotFound);
    // Another transaction has the lock, or had it.
    if (text.starts_with("Resource busy") || text.starts_with("Operation timed out") ||
        text.starts_with("Operation failed. Try again"))
      return Status(StatusCode::kConflict);
    return Status(StatusCode::kIoError, "RocksDB: " + std::string(text));
  }

 private:
  char* text_ = nullptr;
};

inline std::string_view rocksdb_text(const RocksdbValue& value) {
  std::size_t bytes = 0;
  const char* text = rocksdb_pinnableslice_value(value.get(), &bytes);
  return {text, bytes};
}

/// What rocksdb_options sets, for the report.
inline constexpr std::string_view kRocksdbOptions =
    "options as they come, but for: no compression, allow_mmap_reads, Bloom filters of 10 bits, "
    "skip_stats_update_on_db_open; bulk load by ingested SST files";

inline RocksdbOptions rocksdb_options(bool create) {
  constexpr int kNoCompression = 0;
  constexpr double kBloomBits = 10;
  RocksdbOptions options(rocksdb_options_create());
  rocksdb_options_set_create_if_missing(options.get(), create);
  rocksdb_options_set_compression(options.get(), kNoCompression);
  rocksdb_options_set_allow_mmap_reads(options.get(), true);
  rocksdb_options_set_skip_stats_update_on_db_open(options.get(), true);
  const Rocksdb<rocksdb_block_based_table_options_t, rocksdb_block_based_options_destroy> table(
      rocksdb_block_based_options_create());
  rocksdb_block_based_options_set_filter_policy(table.get(),
                                                rocksdb_filterpolicy_create_bloom_full(kBloomBits));
  rocksdb_options_set_block_based_table_factory(options.get(), table.get());
  return options;
}

/// `synced`: every commit is. Otherwise it is handed to the kernel.
inline RocksdbWrites rocksdb_writes(bool synced) {
  RocksdbWrites writes(rocksdb_writeoptions_create());
  rocksdb_writeoptions_set_sync(writes.get(), synced);
  return writes;
}

/// A file of pairs, by ascending key, which a database takes over.
class RocksdbFile {
 public:
  Status open(const std::string& path) {
    RocksdbError error;
    rocksdb_sstfilewriter_open(writer_.get(), path.c_str(), error);
    return error.status();
  }
  Status put(std::string_view key, std::string_view value) {
    RocksdbError error;
    rocksdb_sstfilewriter_put(writer_.get(), key.data(), key.size(), value.data(), value.size(),
                              error);
    return error.status();
  }
  Status finish() {
    RocksdbError error;
    rocksdb_sstfilewriter_finish(writer_.get(), error);
    return error.status();
  }

 private:
  RocksdbOptions options_ = rocksdb_options(true);
  Rocksdb<rocksdb_envoptions_t, rocksdb_envoptions_destroy> environment_{
      rocksdb_envoptions_create()};
  Rocksdb<rocksdb_sstfilewriter_t, rocksdb_sstfilewriter_destroy> writer_{
      rocksdb_sstfilewriter_create(environment_.get(), options_.get())};
};

inline Status rocksdb_ingest(rocksdb_t* database, const std::vector<std::string>& files) {
  std::vector<const char*> paths;
  for (const std::string& file : files) paths.push_back(file.c_str());
  const Rocksdb<rocksdb_ingestexternalfileoptions_t, rocksdb_ingestexternalfileoptions_destroy>
      options(rocksdb_ingestexternalfileoptions_create());
  rocksdb_ingestexternalfileoptions_set_move_files(options.get(), true);
  RocksdbError error;
  rocksdb_ingest_external_file(database, paths.data(), paths.size(), options.get(), error);
  return error.status();
}

}  // namespace flugs::tools
