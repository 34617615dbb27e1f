#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "bench/tatp/tatp_schema.h"
#include "tools/peers/restart/kv_rows.h"
#include "tools/peers/restart/kv_store.h"

namespace flugs::tools {

using bench::TatpOutcome;
using bench::TatpRequest;

namespace {

constexpr std::uint64_t kRowsPerProgress = 4096;

/// Ends the transaction that is under way with its owner.
class AbortAtEnd {
 public:
  explicit AbortAtEnd(KvTransaction& transaction) : transaction_(transaction) {}
  AbortAtEnd(const AbortAtEnd&) = delete;
  AbortAtEnd& operator=(const AbortAtEnd&) = delete;
  ~AbortAtEnd() { transaction_.abort(); }

 private:
  KvTransaction& transaction_;
};

class KvTatpSession : public TatpSession {
 public:
  KvTatpSession(std::unique_ptr<KvTransaction> transaction, CommitStamps& stamps)
      : transaction_(std::move(transaction)), stamps_(stamps) {}

  Result<TatpOutcome> run(const TatpRequest& request) override {
    Status status = transaction_->begin(bench::writes(request.type));
    if (!status.ok()) return status;
    const AbortAtEnd abort_at_end(*transaction_);
    status = execute(request);
    if (status.ok()) return TatpOutcome::kDone;
    if (status.code() == StatusCode::kNotFound) return TatpOutcome::kNotFound;
    if (status.code() == StatusCode::kAlreadyExists) return TatpOutcome::kExists;
    return status;
  }

  std::uint64_t stamp() const override { return stamp_; }

 private:
  Status execute(const TatpRequest& request) {
    switch (request.type) {
      case bench::TatpType::kGetSubscriberData:
        return read(KvTable::kSubscriber, KvKey(request.s_id));
      case bench::TatpType::kGetNewDestination:
        return get_new_destination(request);
      case bench::TatpType::kGetAccessData:
        return read(KvTable::kAccessInfo, KvKey(request.s_id, request.sub_type));
      case bench::TatpType::kUpdateSubscriberData:
        return update_subscriber_data(request);
      case bench::TatpType::kUpdateLocation:
        return update_location(request);
      case bench::TatpType::kInsertCallForwarding:
        return insert_call_forwarding(request);
      case bench::TatpType::kDeleteCallForwarding:
        return delete_call_forwarding(request);
    }
    return Status(StatusCode::kInvalidArgument, "no such TATP transaction");
  }

  /// A whole row: all of its columns are used.
  Status read(KvTable table, const KvKey& key) {
    Result<std::string_view> value = transaction_->get(table, key.text(), false);
    if (!value.ok()) return std::move(value).status();
    consume(*value);
    return {};
  }

  template <typename V>
  Status get(KvTable table, std::string_view key, bool locks, V& value) {
    Result<std::string_view> bytes = transaction_->get(table, key, locks);
    return bytes.ok() ? decode(*bytes, value) : std::move(bytes).status();
  }

  Status find_number(std::uint32_t s_id, std::uint32_t& found) {
    NumberValue value{};
    Status status = get(KvTable::kNumber, bench::SubNbr(s_id).text(), false, value);
    found = value.s_id;
    return status;
  }

  Status get_new_destination(const TatpRequest& request) {
    const KvKey key(request.s_id, request.sub_type);
    FacilityValue facility{};
    Status status = get(KvTable::kSpecialFacility, key.text(), false, facility);
    if (!status.ok()) return status;
    if (facility.is_active == 0) return Status(StatusCode::kNotFound);
    bool is_found = false;
    status = transaction_->scan(
        KvTable::kCallForwarding, key.text(), [&](std::string_view full, std::string_view bytes) {
          ForwardingValue value{};
          const auto start = static_cast<std::uint8_t>(full.back());
          if (start > request.start_time) return false;
          if (decode(bytes, value).ok() && request.end_time < value.end_time) {
            consume(text_of(value.numberx));
            is_found = true;
          }
          return true;
        });
    if (!status.ok() || is_found) return status;
    return Status(StatusCode::kNotFound);
  }

  Status update_subscriber_data(const TatpRequest& request) {
    const KvKey subscriber_key(request.s_id);
    const KvKey facility_key(request.s_id, request.sub_type);
    SubscriberValue subscriber{};
    FacilityValue facility{};
    Status status = get(KvTable::kSubscriber, subscriber_key.text(), true, subscriber);
    if (!status.ok()) return status;
    subscriber.small[0] = request.bit;
    status = transaction_->put(KvTable::kSubscriber, subscriber_key.text(), bytes_of(subscriber));
    if (status.ok()) status = get(KvTable::kSpecialFacility, facility_key.text(), true, facility);
    if (!status.ok()) return status;
    facility.data_a = request.data_a;
    status = transaction_->put(KvTable::kSpecialFacility, facility_key.text(), bytes_of(facility));
    return status.ok() ? commit() : status;
  }

  Status update_location(const TatpRequest& request) {
    std::uint32_t s_id = 0;
    Status status = find_number(request.s_id, s_id);
    if (!status.ok()) return status;
    const KvKey key(s_id);
    SubscriberValue subscriber{};
    status = get(KvTable::kSubscriber, key.text(), true, subscriber);
    if (!status.ok()) return status;
    subscriber.vlr_location = request.vlr_location;
    status = transaction_->put(KvTable::kSubscriber, key.text(), bytes_of(subscriber));
    return status.ok() ? commit() : status;
  }

  Status insert_call_forwarding(const TatpRequest& request) {
    std::uint32_t s_id = 0;
    Status status = find_number(request.s_id, s_id);
    if (!status.ok()) return status;
    status = transaction_->scan(KvTable::kSpecialFacility, KvKey(s_id).text(),
                                [this](std::string_view key, std::string_view) {
                                  consume(key);
                                  return true;
                                });
    // The foreign key: what was just read is ignored, the parent of this very row is looked up.
    // No facility is ever deleted, so it needs no lock.
    if (status.ok()) status = read(KvTable::kSpecialFacility, KvKey(s_id, request.sub_type));
    if (!status.ok()) return status;
    const KvKey key(s_id, request.sub_type, request.start_time);
    const Result<std::string_view> taken =
        transaction_->get(KvTable::kCallForwarding, key.text(), true);
    if (taken.ok()) return Status(StatusCode::kAlreadyExists);
    if (taken.code() != StatusCode::kNotFound) return taken.status();
    const ForwardingValue value{request.end_time, digits_of(request.numberx)};
    status = transaction_->put(KvTable::kCallForwarding, key.text(), bytes_of(value));
    return status.ok() ? commit() : status;
  }

  Status delete_call_forwarding(const TatpRequest& request) {
    std::uint32_t s_id = 0;
    Status status = find_number(request.s_id, s_id);
    if (!status.ok()) return status;
    const KvKey key(s_id, request.sub_type, request.start_time);
    const Result<std::string_view> there =
        transaction_->get(KvTable::kCallForwarding, key.text(), true);
    if (!there.ok()) return there.status();
    status = transaction_->erase(KvTable::kCallForwarding, key.text());
    return status.ok() ? commit() : status;
  }

  Status commit() {
    stamp_ = stamps_.draw();
    return transaction_->commit();
  }

  /// Depends on everything that was read, so that reading cannot be left out.
  void consume(std::string_view bytes) {
    for (const char byte : bytes) checksum_ += static_cast<unsigned char>(byte);
    asm volatile("" : : "r"(checksum_));
  }

  std::unique_ptr<KvTransaction> transaction_;
  CommitStamps& stamps_;
  std::uint64_t stamp_ = 0;
  std::uint64_t checksum_ = 0;
};

class KvTatp : public TatpEngine {
 public:
  explicit KvTatp(std::unique_ptr<KvStore> store) : store_(std::move(store)) {}

  std::string setup() const override { return store_->setup(); }
  std::string guarantee() const override { return store_->guarantee(); }
  void expect_little_memory() override { store_->expect_little_memory(); }
  Status open(const std::string& directory, bool create) override {
    return store_->open(directory, create);
  }

  Status load(const bench::Population& population, const Progress& progress) override {
    std::uint64_t rows = 0;
    for (const KvTable table : kKvTables) {
      const TatpTable source = table_of(table);
      Status status = for_each_row(
          population, source, [&](const bench::SubscriberRecord& record, const TatpRowId& row) {
            if (table != KvTable::kNumber && ++rows % kRowsPerProgress == 0) progress(rows);
            return load_row(table, record, row);
          });
      if (!status.ok()) return status;
    }
    progress(rows);
    return store_->finish_load();
  }

  Result<std::unique_ptr<TatpSession>> session(CommitStamps& stamps) override {
    return std::unique_ptr<TatpSession>(new KvTatpSession(store_->transactions(), stamps));
  }

  Status read_all(bench::TatpFindings& findings) override {
    const std::unique_ptr<KvTransaction> transaction = store_->transactions();
    for (const KvTable table : kKvTables) {
      Status status = transaction->begin(false);
      if (!status.ok()) return status;
      const AbortAtEnd abort_at_end(*transaction);
      Status row_status;
      status = transaction->scan(table, {}, [&](std::string_view key, std::string_view value) {
        row_status = add(findings, table, key, value);
        return row_status.ok();
      });
      if (status.ok()) status = row_status;
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  static TatpTable table_of(KvTable table) {
    switch (table) {
      case KvTable::kAccessInfo:
        return TatpTable::kAccessInfo;
      case KvTable::kSpecialFacility:
        return TatpTable::kSpecialFacility;
      case KvTable::kCallForwarding:
        return TatpTable::kCallForwarding;
      default:
        return TatpTable::kSubscriber;
    }
  }

  Status load_row(KvTable table, const bench::SubscriberRecord& record, const TatpRowId& row) {
    const std::uint32_t s_id = record.s_id;
    switch (table) {
      case KvTable::kSubscriber:
        return store_->load(
            table, KvKey(s_id).text(),
            bytes_of(SubscriberValue{
                record.msc_location, record.vlr_location, digits_of(s_id), record.small, {}}));
      case KvTable::kNumber:
        return store_->load(table, bench::SubNbr(s_id).text(), bytes_of(NumberValue{s_id}));
      case KvTable::kAccessInfo: {
        const bench::AccessInfoRecord& access = record.access[row.type - 1];
        return store_->load(
            table, KvKey(s_id, row.type).text(),
            bytes_of(AccessValue{access.data1, access.data2, access.data3, access.data4}));
      }
      case KvTable::kSpecialFacility: {
        const bench::FacilityRecord& facility = record.facilities[row.type - 1];
        return store_->load(table, KvKey(s_id, row.type).text(),
                            bytes_of(FacilityValue{facility.is_active, facility.error_control,
                                                   facility.data_a, facility.data_b}));
      }
      case KvTable::kCallForwarding: {
        const bench::ForwardingRecord& forwarding =
            record.facilities[row.type - 1].forwarding[row.slot];
        return store_->load(
            table, KvKey(s_id, row.type, bench::kStartTimes[row.slot]).text(),
            bytes_of(ForwardingValue{forwarding.end_time, digits_of(forwarding.numberx)}));
      }
    }
    return Status(StatusCode::kInvalidArgument, "no such table");
  }

  /// Fails with kIoError: a key or value is of another size.
  static Status add(bench::TatpFindings& findings, KvTable table, std::string_view key,
                    std::string_view value) {
    constexpr std::size_t kKeyBytes[] = {4, bench::kSubNbrDigits, 5, 5, 6};
    if (key.size() != kKeyBytes[static_cast<std::size_t>(table)])
      return Status(StatusCode::kIoError, "a key of " + std::to_string(key.size()) + " bytes");
    switch (table) {
      case KvTable::kSubscriber:
        return add_subscriber(findings, key, value);
      case KvTable::kNumber: {
        NumberValue number{};
        Status status = decode(value, number);
        if (status.ok()) findings.add_number(key, number.s_id);
        return status;
      }
      case KvTable::kAccessInfo: {
        AccessValue access{};
        Status status = decode(value, access);
        if (status.ok())
          findings.add_access(s_id_of(key), key[4], access.data1, access.data2,
                              text_of(access.data3), text_of(access.data4));
        return status;
      }
      case KvTable::kSpecialFacility: {
        FacilityValue facility{};
        Status status = decode(value, facility);
        const std::array<std::int64_t, 3> numbers = {facility.is_active, facility.error_control,
                                                     facility.data_a};
        if (status.ok())
          findings.add_facility(s_id_of(key), key[4], numbers, text_of(facility.data_b));
        return status;
      }
      case KvTable::kCallForwarding: {
        ForwardingValue forwarding{};
        Status status = decode(value, forwarding);
        if (status.ok())
          findings.add_forwarding(s_id_of(key), key[4], key[5], forwarding.end_time,
                                  text_of(forwarding.numberx));
        return status;
      }
    }
    return {};
  }

  static Status add_subscriber(bench::TatpFindings& findings, std::string_view key,
                               std::string_view value) {
    SubscriberValue subscriber{};
    Status status = decode(value, subscriber);
    if (!status.ok()) return status;
    std::array<std::int64_t, 30> small{};
    std::copy(subscriber.small.begin(), subscriber.small.end(), small.begin());
    findings.add_subscriber(s_id_of(key), text_of(subscriber.number), small,
                            subscriber.msc_location, subscriber.vlr_location);
    return {};
  }

  std::unique_ptr<KvStore> store_;
};

}  // namespace

std::unique_ptr<TatpEngine> make_kv_tatp(std::unique_ptr<KvStore> store) {
  return std::make_unique<KvTatp>(std::move(store));
}

}  // namespace flugs::tools
