#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "tools/peers/engines/rocksdb_options.h"
#include "tools/peers/restart/engine.h"

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
  std::string_view text() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::array<char, 8> bytes_;
};

std::string_view value_of(const PeerRow& row) {
  return {reinterpret_cast<const char*>(row.values.data()), sizeof row.values};
}

class RocksdbSession : public PeerSession {
 public:
  explicit RocksdbSession(rocksdb_t* database) : database_(database) {}

  Status find(PeerRow& row) override {
    const Key key(row.id);
    RocksdbError error;
    const RocksdbValue value(
        rocksdb_get_pinned(database_, reads_.get(), key.text().data(), key.text().size(), error));
    if (Status s = error.status(); !s.ok()) return s;
    if (value == nullptr) return Status(StatusCode::kNotFound);
    const std::string_view text = rocksdb_text(value);
    if (text.size() == sizeof row.values) std::memcpy(row.values.data(), text.data(), text.size());
    return {};
  }

  Status write(std::span<const PeerRow> inserted, const PeerRow* changed) override {
    rocksdb_writebatch_clear(batch_.get());
    for (const PeerRow& row : inserted) put(row);
    if (changed != nullptr) put(*changed);
    RocksdbError error;
    rocksdb_write(database_, synced_.get(), batch_.get(), error);
    return error.status();
  }

 private:
  void put(const PeerRow& row) {
    const Key key(row.id);
    rocksdb_writebatch_put(batch_.get(), key.text().data(), key.text().size(), value_of(row).data(),
                           value_of(row).size());
  }

  rocksdb_t* database_;
  RocksdbReads reads_{rocksdb_readoptions_create()};
  RocksdbWrites synced_ = rocksdb_writes(true);
  Rocksdb<rocksdb_writebatch_t, rocksdb_writebatch_destroy> batch_{rocksdb_writebatch_create()};
};

class RocksdbEngine : public PeerEngine {
 public:
  std::string setup() const override {
    return "big-endian keys, values of 16 bytes; " + std::string(kRocksdbOptions) +
           "; a transaction is a WriteBatch";
  }
  std::string guarantee() const override {
    return "commit: WriteBatch in the log, which is synced";
  }

  Status open(const std::string& directory, bool create) override {
    directory_ = directory;
    RocksdbError error;
    database_.reset(
        rocksdb_open(rocksdb_options(create).get(), (directory + "/db").c_str(), error));
    return error.status();
  }

  Status load(std::uint64_t rows, const NextRow& next) override {
    std::vector<std::string> files;
    for (std::uint64_t begin = 0; begin < rows; begin += kRowsPerFile) {
      files.push_back(directory_ + "/load-" + std::to_string(begin) + ".sst");
      RocksdbFile file;
      if (Status s = file.open(files.back()); !s.ok()) return s;
      const std::uint64_t end = std::min(rows, begin + kRowsPerFile);
      for (std::uint64_t i = begin; i < end; ++i) {
        const PeerRow& row = next();
        if (Status s = file.put(Key(row.id).text(), value_of(row)); !s.ok()) return s;
      }
      if (Status s = file.finish(); !s.ok()) return s;
    }
    return rocksdb_ingest(database_.get(), files);
  }

  Result<std::unique_ptr<PeerSession>> session() override {
    return std::unique_ptr<PeerSession>(new RocksdbSession(database_.get()));
  }

 private:
  std::string directory_;
  Rocksdb<rocksdb_t, rocksdb_close> database_;
};

}  // namespace

std::string peer_engine_name() { return "RocksDB " + rocksdb::GetRocksVersionAsString(true); }

std::unique_ptr<PeerEngine> make_peer_engine() { return std::make_unique<RocksdbEngine>(); }

}  // namespace flugs::tools
