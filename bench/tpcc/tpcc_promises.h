#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/tpcc/tpcc_findings.h"
#include "bench/tpcc/tpcc_witness.h"

namespace flugs::bench {

/// Compares what a database holds with what its users were promised, kill after kill. Each
/// acknowledged New-Order, Payment and Delivery must be there; one in flight must be there wholly
/// or not at all; and nothing else. How far orders, deliveries and payments had come by the audit
/// before is remembered, so that the whole of them is accounted for although logs are of one life.
///
/// Thread-safety: one thread.
class TpccPromises {
 public:
  explicit TpccPromises(const TpccOptions& population);

  /// The rows of a snapshot taken when no user worked (TpccFindings::check has been called), and
  /// the logs since the audit before. Notes problems in `report`.
  void audit(const TpccWitness& witness, const TpccFindings& findings, TpccReport& report);

  std::uint64_t audited() const noexcept { return audited_; }      ///< acknowledged transactions
  std::uint64_t completed() const noexcept { return completed_; }  ///< in flight, and there
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  /// How far a district had come.
  struct District {
    std::uint32_t next = 1;  ///< d_next_o_id
    std::uint32_t open = 1;  ///< o_id of the oldest open order, or `next`
  };
  /// What this life's transactions account for in a district.
  struct Claims {
    std::vector<const TpccEntry*> orders;      ///< by o_id from District::next on; null: none yet
    std::vector<const TpccEntry*> deliveries;  ///< by o_id from District::open on
  };

  void begin_audit(const TpccFindings& findings, TpccReport& report);
  void acknowledged(const TpccEntry& entry, const TpccFindings& findings, TpccReport& report);
  void in_flight(const TpccEntry& entry, const TpccFindings& findings, TpccReport& report);
  void acknowledged_delivery(const TpccEntry& entry, const TpccFindings& findings,
                             TpccReport& report);
  bool claim_order(const TpccEntry& entry, std::uint32_t o, const TpccFindings& findings);
  bool claim_delivery(const TpccEntry& entry, std::uint32_t d, std::uint32_t o,
                      const TpccFindings& findings);
  /// A payment found that is this one, and no other entry's.
  bool claim_payment(const TpccEntry& entry);
  bool order_in_flight(const TpccEntry& entry, const TpccFindings& findings);
  bool delivery_in_flight(const TpccEntry& entry, const TpccFindings& findings, TpccReport& report);
  void end_audit(const TpccFindings& findings, TpccReport& report);
  void lose(const TpccEntry& entry, TpccReport& report);
  std::size_t place(std::uint32_t w, std::uint32_t d) const noexcept {
    return std::size_t{w - 1} * kDistrictsPerWarehouse + d - 1;
  }

  std::uint32_t warehouses_;
  std::vector<District> base_;
  std::vector<District> now_;
  std::vector<Claims> claims_;
  std::multimap<std::int64_t, TpccHistoryRow> payments_;  ///< by time, those not claimed yet
  std::uint64_t base_payments_ = 0;
  std::uint64_t audited_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace flugs::bench
