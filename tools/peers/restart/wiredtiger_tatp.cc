#include <array>
#include <string>
#include <utility>

#include "tools/peers/engines/wiredtiger_status.h"
#include "tools/peers/restart/kv_store.h"

namespace flugs::tools {

namespace {

constexpr std::array<const char*, std::size(kKvTables)> kTables = {
    "table:subscriber", "table:number", "table:access_info", "table:special_facility",
    "table:call_forwarding"};

using Cursors = std::array<WT_CURSOR*, kTables.size()>;

/// A session with a cursor for each table. The engine ends both.
class WiredTigerTransaction : public KvTransaction {
 public:
  /// `failure`: why there is no session; each call returns it.
  explicit WiredTigerTransaction(Result<WT_SESSION*> session) {
    if (!session.ok()) {
      failure_ = std::move(session).status();
      return;
    }
    session_ = *session;
    for (std::size_t i = 0; i < kTables.size() && failure_.ok(); ++i)
      failure_ = wiredtiger_status(
          session_->open_cursor(session_, kTables[i], nullptr, "overwrite=true", &cursors_[i]));
  }
  WiredTigerTransaction(const WiredTigerTransaction&) = delete;
  WiredTigerTransaction& operator=(const WiredTigerTransaction&) = delete;
  ~WiredTigerTransaction() override {
    if (session_ != nullptr) session_->close(session_, nullptr);
  }

  Status begin(bool) override {
    if (!failure_.ok()) return failure_;
    const Status status = wiredtiger_status(session_->begin_transaction(session_, nullptr));
    is_open_ = status.ok();
    return status;
  }

  // A snapshot locks nothing. The transaction that writes second gets WT_ROLLBACK.
  Result<std::string_view> get(KvTable table, std::string_view key, bool) override {
    WT_CURSOR* const cursor = at(table, key);
    int error = cursor->search(cursor);
    WT_ITEM value{};
    if (error == 0) error = cursor->get_value(cursor, &value);
    if (error != 0) return wiredtiger_status(error);
    return text_of(value);
  }

  Status scan(KvTable table, std::string_view prefix, const Take& take) override {
    WT_CURSOR* const cursor = cursors_[static_cast<std::size_t>(table)];
    int error = cursor->reset(cursor);
    if (error == 0 && prefix.empty()) {
      error = cursor->next(cursor);
    } else if (error == 0) {
      int order = 0;
      at(table, prefix);
      error = cursor->search_near(cursor, &order);
      if (error == 0 && order < 0) error = cursor->next(cursor);
    }
    while (error == 0) {
      WT_ITEM key{};
      WT_ITEM value{};
      cursor->get_key(cursor, &key);
      cursor->get_value(cursor, &value);
      if (!text_of(key).starts_with(prefix) || !take(text_of(key), text_of(value))) break;
      error = cursor->next(cursor);
    }
    return error == WT_NOTFOUND ? Status() : wiredtiger_status(error);
  }

  Status put(KvTable table, std::string_view key, std::string_view value) override {
    WT_CURSOR* const cursor = at(table, key);
    const WT_ITEM item = item_of(value);
    cursor->set_value(cursor, &item);
    return wiredtiger_status(cursor->insert(cursor));
  }

  Status erase(KvTable table, std::string_view key) override {
    WT_CURSOR* const cursor = at(table, key);
    return wiredtiger_status(cursor->remove(cursor));
  }

  Status commit() override {
    if (!std::exchange(is_open_, false)) return {};
    return wiredtiger_status(session_->commit_transaction(session_, nullptr));
  }

  void abort() override {
    if (std::exchange(is_open_, false)) session_->rollback_transaction(session_, nullptr);
  }

 private:
  WT_CURSOR* at(KvTable table, std::string_view key) {
    WT_CURSOR* const cursor = cursors_[static_cast<std::size_t>(table)];
    const WT_ITEM item = item_of(key);
    cursor->set_key(cursor, &item);
    return cursor;
  }

  Status failure_;
  WT_SESSION* session_ = nullptr;
  Cursors cursors_{};
  bool is_open_ = false;  ///< a transaction is
};

class WiredTigerStore : public KvStore {
 public:
  std::string setup() const override {
    return std::string(
               "a table for each table and one for the numbers; snapshots; as many "
               "writers as users; ") +
           kWiredTigerSetup;
  }
  std::string guarantee() const override { return kWiredTigerGuarantee; }

  Status open(const std::string& directory, bool create) override {
    if (Status s = engine_.open(directory); !s.ok()) return s;
    Result<WT_SESSION*> session = engine_.session();
    if (!session.ok()) return std::move(session).status();
    session_ = *session;
    for (const char* table : kTables) {
      if (!create) break;
      const int error = session_->create(session_, table, "key_format=u,value_format=u");
      if (error != 0) return wiredtiger_status(error);
    }
    return {};
  }

  Status load(KvTable table, std::string_view key, std::string_view value) override {
    const auto i = static_cast<std::size_t>(table);
    if (loading_[i] == nullptr) {
      const int error = session_->open_cursor(session_, kTables[i], nullptr, "bulk", &loading_[i]);
      if (error != 0) return wiredtiger_status(error);
    }
    const WT_ITEM where = item_of(key);
    const WT_ITEM what = item_of(value);
    loading_[i]->set_key(loading_[i], &where);
    loading_[i]->set_value(loading_[i], &what);
    return wiredtiger_status(loading_[i]->insert(loading_[i]));
  }
  Status finish_load() override {
    for (WT_CURSOR*& cursor : loading_) {
      if (cursor == nullptr) continue;
      const int error = cursor->close(std::exchange(cursor, nullptr));
      if (error != 0) return wiredtiger_status(error);
    }
    return wiredtiger_status(session_->checkpoint(session_, nullptr));
  }

  std::unique_ptr<KvTransaction> transactions() override {
    return std::make_unique<WiredTigerTransaction>(engine_.session());
  }

 private:
  WiredTiger engine_;
  WT_SESSION* session_ = nullptr;
  Cursors loading_{};
};

}  // namespace

std::unique_ptr<TatpEngine> make_tatp_engine() {
  return make_kv_tatp(std::make_unique<WiredTigerStore>());
}

}  // namespace flugs::tools
