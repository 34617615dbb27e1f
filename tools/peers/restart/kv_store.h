#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "flugs/status.h"
#include "tools/peers/restart/tatp_engine.h"

namespace flugs::tools {

/// TATP's tables in a store of keys and values: the four tables, and the subscribers' numbers. Each
/// number leads to an id.
enum class KvTable : std::uint8_t {
  kSubscriber,
  kNumber,
  kAccessInfo,
  kSpecialFacility,
  kCallForwarding,
};
inline constexpr KvTable kKvTables[] = {KvTable::kSubscriber, KvTable::kNumber,
                                        KvTable::kAccessInfo, KvTable::kSpecialFacility,
                                        KvTable::kCallForwarding};

/// One thread's transactions, one after the other. Keys are in the order of their bytes.
class KvTransaction {
 public:
  /// False ends a scan.
  using Take = std::function<bool(std::string_view key, std::string_view value)>;

  virtual ~KvTransaction() = default;

  virtual Status begin(bool writes) = 0;
  /// The value stays as it is until the next call. `locks`: what is found, or that nothing is,
  /// is kept from others until the end. Fails with kNotFound, kConflict, kIoError.
  virtual Result<std::string_view> get(KvTable table, std::string_view key, bool locks) = 0;
  /// All whose key begins with `prefix`, by ascending key. Fails with kIoError.
  virtual Status scan(KvTable table, std::string_view prefix, const Take& take) = 0;
  // Keys that are written have been locked. These fail with kConflict, kIoError.
  virtual Status put(KvTable table, std::string_view key, std::string_view value) = 0;
  virtual Status erase(KvTable table, std::string_view key) = 0;
  virtual Status commit() = 0;
  /// Ends it without effect; nothing when none is begun.
  virtual void abort() = 0;
};

class KvStore {
 public:
  virtual ~KvStore() = default;

  virtual std::string setup() const = 0;
  virtual std::string guarantee() const = 0;
  virtual void expect_little_memory() {}
  virtual Status open(const std::string& directory, bool create) = 0;
  /// Rows of the bulk load, by table and ascending key. Fails with kIoError.
  virtual Status load(KvTable table, std::string_view key, std::string_view value) = 0;
  virtual Status finish_load() = 0;
  /// Thread-safety: any thread.
  virtual std::unique_ptr<KvTransaction> transactions() = 0;
};

/// TATP on such a store.
std::unique_ptr<TatpEngine> make_kv_tatp(std::unique_ptr<KvStore> store);

}  // namespace flugs::tools
