#include <algorithm>
#include <cstring>

#include "tools/peers/engines/wiredtiger_status.h"
#include "tools/peers/restart/engine.h"

namespace flugs::tools {

namespace {

constexpr const char* kTable = "table:restart";

std::string_view value_of(const PeerRow& row) {
  return {reinterpret_cast<const char*>(row.values.data()), sizeof row.values};
}

int put(WT_CURSOR* cursor, const PeerRow& row) {
  const WT_ITEM value = item_of(value_of(row));
  cursor->set_key(cursor, row.id);
  cursor->set_value(cursor, &value);
  return cursor->insert(cursor);
}

/// The engine ends session and cursor.
class WiredTigerSession : public PeerSession {
 public:
  WiredTigerSession(WT_SESSION* session, WT_CURSOR* cursor) : session_(session), cursor_(cursor) {}
  ~WiredTigerSession() override { session_->close(session_, nullptr); }

  Status find(PeerRow& row) override {
    cursor_->set_key(cursor_, row.id);
    int error = cursor_->search(cursor_);
    WT_ITEM value{};
    if (error == 0) error = cursor_->get_value(cursor_, &value);
    if (error == 0 && value.size == sizeof row.values)
      std::memcpy(row.values.data(), value.data, sizeof row.values);
    cursor_->reset(cursor_);
    return wiredtiger_status(error);
  }

  Status write(std::span<const PeerRow> inserted, const PeerRow* changed) override {
    int error = session_->begin_transaction(session_, nullptr);
    if (error != 0) return wiredtiger_status(error);
    for (std::size_t i = 0; i < inserted.size() && error == 0; ++i)
      error = put(cursor_, inserted[i]);
    if (error == 0 && changed != nullptr) error = put(cursor_, *changed);
    if (error == 0) return wiredtiger_status(session_->commit_transaction(session_, nullptr));
    session_->rollback_transaction(session_, nullptr);
    return wiredtiger_status(error);
  }

 private:
  WT_SESSION* session_;
  WT_CURSOR* cursor_;
};

class WiredTigerEngine : public PeerEngine {
 public:
  std::string setup() const override { return kWiredTigerSetup; }
  std::string guarantee() const override { return kWiredTigerGuarantee; }

  Status open(const std::string& directory, bool create) override {
    if (Status s = engine_.open(directory); !s.ok()) return s;
    Result<WT_SESSION*> session = engine_.session();
    if (!session.ok()) return std::move(session).status();
    session_ = *session;
    if (!create) return {};
    return wiredtiger_status(session_->create(session_, kTable, "key_format=q,value_format=u"));
  }

  Status load(std::uint64_t rows, const NextRow& next) override {
    WT_CURSOR* cursor = nullptr;
    int error = session_->open_cursor(session_, kTable, nullptr, "bulk", &cursor);
    for (std::uint64_t i = 0; i < rows && error == 0; ++i) error = put(cursor, next());
    if (error == 0) error = cursor->close(cursor);
    if (error == 0) error = session_->checkpoint(session_, nullptr);
    return wiredtiger_status(error);
  }

  Result<std::unique_ptr<PeerSession>> session() override {
    Result<WT_SESSION*> session = engine_.session();
    if (!session.ok()) return std::move(session).status();
    WT_CURSOR* cursor = nullptr;
    const int error = (*session)->open_cursor(*session, kTable, nullptr, nullptr, &cursor);
    if (error != 0) return wiredtiger_status(error);
    return std::unique_ptr<PeerSession>(new WiredTigerSession(*session, cursor));
  }

 private:
  WiredTiger engine_;
  WT_SESSION* session_ = nullptr;
};

}  // namespace

std::string peer_engine_name() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  wiredtiger_version(&major, &minor, &patch);
  return "WiredTiger " + std::to_string(major) + "." + std::to_string(minor) + "." +
         std::to_string(patch);
}

std::unique_ptr<PeerEngine> make_peer_engine() { return std::make_unique<WiredTigerEngine>(); }

}  // namespace flugs::tools
