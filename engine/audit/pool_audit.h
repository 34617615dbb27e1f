#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/pool_check.h"
#include "mvcc/transaction_slots.h"
#include "pmem/kinds/pool_image.h"
#include "tables/catalog/catalog_layout.h"
#include "tables/table/table.h"

namespace flugs::engine {

/// Collects findings by part.
class AuditReport {
 public:
  explicit AuditReport(PoolCheckReport& report) : report_(report) {}

  /// The part of that name, new or known.
  CheckedPart& part(const std::string& name);
  void damage(const std::string& part, const std::string& message);
  void remark(const std::string& part, const std::string& message);
  /// Notes a part that was checked; a status that is not ok is damage, and hides the rest of the
  /// part.
  void note(const std::string& part, const Status& status);

 private:
  void add(PoolFinding::Kind kind, const std::string& part, const std::string& message);

  PoolCheckReport& report_;
  std::map<std::string, std::size_t> index_;
  std::map<std::string, std::size_t> kept_;
};

/// Audits a pool from the application root on. Each layer checks its own layouts with the same code
/// as opening. The audit calls these checks, and adds those that opening leaves out. What recovery
/// would repair is repaired in the image.
class PoolAudit {
 public:
  /// `caller` must outlive the object.
  PoolAudit(pmem::Pool& pool, PoolCheckReport& report, const CallOptions& caller)
      : pool_(pool), report_(report), audit_(report), caller_(caller) {}

  /// Ends early, with an incomplete report, when the caller asks to stop.
  void run(const std::vector<pmem::ImageFinding>& head);

 private:
  void load_catalog();
  void load_table(std::uint64_t offset);
  void load_slots(std::uint64_t& offset);
  void audit_dictionaries(Table& table);
  void audit_constants(const Table& table);
  void audit_rows(Table& table);
  bool audit_stamps(const Table& table, std::uint32_t row, const std::string& part);
  void audit_groups(const Table& table, const std::string& part);
  void audit_cells(const Table& table, std::uint32_t row);
  void audit_unique_key(const Table& table, KeyIndex& key, const std::vector<std::uint32_t>& live);
  void link_foreign_keys();
  void audit_foreign_keys(const Table& table);
  void audit_index_runs(const Table& table, bool has_whole_rows);
  void tell(std::string_view part, std::uint64_t done, std::uint64_t total) const;
  bool is_stopped() const noexcept { return caller_.stop.stop_requested(); }

  pmem::Pool& pool_;
  PoolCheckReport& report_;
  AuditReport audit_;
  const CallOptions& caller_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::map<std::uint32_t, Table*> by_id_;
  std::map<const Table*, std::vector<std::uint32_t>>
      live_;  // of tables with foreign keys on either side
  std::unique_ptr<mvcc::TransactionSlots> slots_;
  std::uint64_t timestamp_limit_ = mvcc::kTimestampMax;
  bool knows_slots_ = false;
};

/// Audits a pool in a buffer, and changes the buffer: for tests, on a copy.
Result<PoolCheckReport> check_pool_in_memory(std::span<std::byte> pool);

}  // namespace flugs::engine
