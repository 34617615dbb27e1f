#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "tools/peers/engine.h"
#include "tools/peers/rocksdb_options.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kRowsPerFile = 4'000'000;

/// Big-endian, so that its order of bytes is that of the numbers; none is negative.
class Key {
 public:
  explicit Key(std::int64_t id) {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<char>(static_cast<std::uint64_t>(id) >> (56 - 8 * i));
  }
  rocksdb::Slice slice() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::array<char, 8> bytes_;
};

rocksdb::Slice value_of(const PeerRow& row) {
  return {reinterpret_cast<const char*>(row.values.data()), sizeof row.values};
}

class RocksdbSession : public PeerSession {
 public:
  explicit RocksdbSession(rocksdb::DB* database) : database_(database) { synced_.sync = true; }

  Status find(PeerRow& row) override {
    rocksdb::PinnableSlice value;
    const rocksdb::Status status =
        database_->Get({}, database_->DefaultColumnFamily(), Key(row.id).slice(), &value);
    if (status.ok() && value.size() == sizeof row.values)
      std::memcpy(row.values.data(), value.data(), value.size());
    return rocksdb_status(status);
  }

  Status write(std::span<const PeerRow> inserted, const PeerRow* changed) override {
    rocksdb::WriteBatch batch;
    rocksdb::Status status;
    for (std::size_t i = 0; i < inserted.size() && status.ok(); ++i)
      status = batch.Put(Key(inserted[i].id).slice(), value_of(inserted[i]));
    if (status.ok() && changed != nullptr)
      status = batch.Put(Key(changed->id).slice(), value_of(*changed));
    if (status.ok()) status = database_->Write(synced_, &batch);
    return rocksdb_status(status);
  }

 private:
  rocksdb::DB* database_;
  rocksdb::WriteOptions synced_;
};

class RocksdbEngine : public PeerEngine {
 public:
  std::string setup() const override {
    return "big-endian keys, values of 16 bytes; options as they come, but for: no compression, "
           "allow_mmap_reads, Bloom filters of 10 bits, skip_stats_update_on_db_open; "
           "bulk load by ingested SST files; a transaction is a "
           "WriteBatch";
  }
  std::string guarantee() const override {
    return "commit: WriteBatch in the log, which is synced";
  }

  Status open(const std::string& directory, bool create) override {
    directory_ = directory;
    rocksdb::DB* database = nullptr;
    const rocksdb::Status status =
        rocksdb::DB::Open(rocksdb_options(create), directory + "/db", &database);
    database_.reset(database);
    return rocksdb_status(status);
  }

  Status load(std::uint64_t rows, const NextRow& next) override {
    std::vector<std::string> files;
    rocksdb::Status status;
    for (std::uint64_t begin = 0; begin < rows && status.ok(); begin += kRowsPerFile) {
      files.push_back(directory_ + "/load-" + std::to_string(begin) + ".sst");
      rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), rocksdb_options(true));
      status = writer.Open(files.back());
      const std::uint64_t end = std::min(rows, begin + kRowsPerFile);
      for (std::uint64_t i = begin; i < end && status.ok(); ++i) {
        const PeerRow& row = next();
        status = writer.Put(Key(row.id).slice(), value_of(row));
      }
      if (status.ok()) status = writer.Finish();
    }
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    if (status.ok()) status = database_->IngestExternalFile(files, ingest);
    return rocksdb_status(status);
  }

  Result<std::unique_ptr<PeerSession>> session() override {
    return std::unique_ptr<PeerSession>(new RocksdbSession(database_.get()));
  }

 private:
  std::string directory_;
  std::unique_ptr<rocksdb::DB> database_;
};

}  // namespace

std::string peer_engine_name() { return "RocksDB " + rocksdb::GetRocksVersionAsString(); }

std::unique_ptr<PeerEngine> make_peer_engine() { return std::make_unique<RocksdbEngine>(); }

}  // namespace flugs::tools
