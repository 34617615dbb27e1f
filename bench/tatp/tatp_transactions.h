#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "bench/tatp/tatp_request.h"
#include "bench/tatp/tatp_schema.h"
#include "flugs/prepared.h"

namespace flugs::bench {

/// How a transaction ended.
enum class TatpOutcome : std::uint8_t {
  kDone,      ///< found what it asked for, or changed it
  kNotFound,  ///< the row asked for does not exist (for an insert: nor does its parent)
  kExists,    ///< INSERT_CALL_FORWARDING: the key is taken
  kFailed,    ///< anything else: not allowed, see `TatpClient::failure`
};

/// Executes TATP's transactions for one user, each from begin to commit. A conflict is retried with
/// the same inputs until it is none, so a caller that measures sees the whole time.
///
/// Thread-safety: one thread at a time.
class TatpClient {
 public:
  TatpClient(Database& database, const TatpTables& tables,
             Isolation isolation = Isolation::kSnapshot) noexcept
      : database_(database), tables_(tables), isolation_(isolation) {}

  /// How transactions commit from here on.
  void set_commit(const CommitOptions& options) noexcept { commit_options_ = options; }
  /// From here on looks rows up through Database::prepare, instead of by keys (KeyId).
  Status prepare();

  TatpOutcome run(const TatpRequest& request);
  /// Starts fetching what the transaction will look up first.
  void prefetch(const TatpRequest& request) const noexcept;

  /// Time-stamp of the last transaction that wrote something; 0 before.
  std::uint64_t commit_timestamp() const noexcept { return commit_timestamp_; }
  std::uint64_t retries() const noexcept { return retries_; }
  const Status& failure() const noexcept { return failure_; }
  /// Depends on everything that was read, so that reading cannot be left out.
  std::uint64_t checksum() const noexcept { return checksum_; }

 private:
  // Each gives ok with an outcome, or why it failed; kConflict means: again.
  Result<TatpOutcome> attempt(const TatpRequest& request);
  Result<TatpOutcome> get_subscriber_data(const TatpRequest& request);
  Result<TatpOutcome> get_new_destination(const TatpRequest& request);
  Result<TatpOutcome> get_access_data(const TatpRequest& request);
  Result<TatpOutcome> update_subscriber_data(const TatpRequest& request);
  Result<TatpOutcome> update_location(const TatpRequest& request);
  Result<TatpOutcome> insert_call_forwarding(const TatpRequest& request);
  Result<TatpOutcome> delete_call_forwarding(const TatpRequest& request);
  Result<TatpOutcome> commit(Transaction& transaction);
  Result<Row> get(const Transaction& transaction, const Prepared& prepared, KeyId key,
                  std::span<const Value> values) const {
    return is_prepared_ ? prepared.get(transaction, values) : transaction.get(key, values);
  }
  Result<Row> get(const Transaction& transaction, const Prepared& prepared, KeyId key,
                  std::initializer_list<Value> values) const {
    return get(transaction, prepared, key, std::span<const Value>(values.begin(), values.size()));
  }

  void consume(const Value& value) noexcept {
    checksum_ += static_cast<std::uint64_t>(value.raw());
    const std::string_view text = value.as_string();
    if (!text.empty()) checksum_ += text.size() + static_cast<unsigned char>(text.back());
  }

  Database& database_;
  TatpTables tables_;
  Isolation isolation_;
  CommitOptions commit_options_;
  bool is_prepared_ = false;
  Prepared subscriber_;
  Prepared subscriber_by_number_;
  Prepared special_facility_;
  Prepared access_info_;
  Prepared call_forwarding_;
  std::uint64_t checksum_ = 0;
  std::uint64_t commit_timestamp_ = 0;
  std::uint64_t retries_ = 0;
  Status failure_;
};

}  // namespace flugs::bench
