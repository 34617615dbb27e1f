#include "bench/tatp/tatp_transactions.h"

#include <sched.h>

#include <span>
#include <utility>

#include "bench/support/integer.h"

namespace flugs::bench {

namespace {

/// Attempts that spin before the thread yields to the holder of the row.
constexpr std::uint64_t kSpinsMax = 4;

/// What is not found is an outcome; everything else goes up.
Result<TatpOutcome> not_found_or(Status status) {
  if (status.code() == StatusCode::kNotFound) return TatpOutcome::kNotFound;
  return status;
}

}  // namespace

Status TatpClient::prepare() {
  const std::pair<Prepared*, KeyId> all[] = {{&subscriber_, tables_.subscriber_by_id},
                                             {&subscriber_by_number_, tables_.subscriber_by_number},
                                             {&special_facility_, tables_.special_facility_key},
                                             {&access_info_, tables_.access_info_key},
                                             {&call_forwarding_, tables_.call_forwarding_key}};
  for (const auto& [prepared, key] : all) {
    Result<Prepared> made = database_.prepare(key);
    if (!made.ok()) return std::move(made).status();
    *prepared = *std::move(made);
  }
  is_prepared_ = true;
  return {};
}

TatpOutcome TatpClient::run(const TatpRequest& request) {
  for (std::uint64_t attempts = 1;; ++attempts) {
    Result<TatpOutcome> outcome = attempt(request);
    if (outcome.ok()) return *outcome;
    if (outcome.code() != StatusCode::kConflict) {
      failure_ = std::move(outcome).status();
      return TatpOutcome::kFailed;
    }
    ++retries_;
    if (attempts > kSpinsMax) sched_yield();
  }
}

Result<TatpOutcome> TatpClient::attempt(const TatpRequest& request) {
  switch (request.type) {
    case TatpType::kGetSubscriberData:
      return get_subscriber_data(request);
    case TatpType::kGetNewDestination:
      return get_new_destination(request);
    case TatpType::kGetAccessData:
      return get_access_data(request);
    case TatpType::kUpdateSubscriberData:
      return update_subscriber_data(request);
    case TatpType::kUpdateLocation:
      return update_location(request);
    case TatpType::kInsertCallForwarding:
      return insert_call_forwarding(request);
    case TatpType::kDeleteCallForwarding:
      return delete_call_forwarding(request);
  }
  return Status(StatusCode::kInvalidArgument, "no such TATP transaction");
}

void TatpClient::prefetch(const TatpRequest& request) const noexcept {
  const std::array<Value, 2> key = {integer(request.s_id), integer(request.sub_type)};
  switch (request.type) {
    case TatpType::kGetSubscriberData:
      database_.prefetch(tables_.subscriber_by_id, {key[0]});
      break;
    case TatpType::kGetNewDestination:
      database_.prefetch(tables_.special_facility_key, key);
      database_.prefetch(tables_.call_forwarding_key, key);
      break;
    case TatpType::kGetAccessData:
      database_.prefetch(tables_.access_info_key, key);
      break;
    case TatpType::kUpdateSubscriberData:
      database_.prefetch(tables_.subscriber_by_id, {key[0]});
      database_.prefetch(tables_.special_facility_key, key);
      break;
    case TatpType::kUpdateLocation:
    case TatpType::kInsertCallForwarding:
    case TatpType::kDeleteCallForwarding:
      database_.prefetch(tables_.subscriber_by_number,
                         {Value::string(SubNbr(request.s_id).text())});
      break;
  }
}

Result<TatpOutcome> TatpClient::commit(Transaction& transaction) {
  Status status = transaction.commit(commit_options_);
  if (!status.ok()) return status;
  if (transaction.commit_timestamp() != 0) commit_timestamp_ = transaction.commit_timestamp();
  return TatpOutcome::kDone;
}

Result<TatpOutcome> TatpClient::get_subscriber_data(const TatpRequest& request) {
  Result<Transaction> transaction = database_.begin(AccessMode::kReadOnly, isolation_);
  if (!transaction.ok()) return std::move(transaction).status();
  const Result<Row> row =
      get(*transaction, subscriber_, tables_.subscriber_by_id, {integer(request.s_id)});
  if (!row.ok()) return not_found_or(row.status());
  std::array<Value, TatpColumns::kSubscriberColumns> values;
  row.value().get_all(values);
  for (const Value& value : values) consume(value);
  return commit(*transaction);
}

Result<TatpOutcome> TatpClient::get_new_destination(const TatpRequest& request) {
  const std::array<Value, 2> facility_key = {integer(request.s_id), integer(request.sub_type)};
  Result<Transaction> transaction = database_.begin(AccessMode::kReadOnly, isolation_);
  if (!transaction.ok()) return std::move(transaction).status();
  const Result<Row> facility =
      get(*transaction, special_facility_, tables_.special_facility_key, facility_key);
  if (!facility.ok()) return not_found_or(facility.status());
  if (facility.value().get_unchecked<std::int32_t>(TatpColumns::kIsActive) != 1)
    return TatpOutcome::kNotFound;
  std::size_t matches = 0;
  Status status =
      transaction->rows(tables_.call_forwarding_key, facility_key, [&](const Row& forwarding) {
        if (forwarding.get_unchecked<std::int32_t>(TatpColumns::kStartTime) <= request.start_time &&
            request.end_time < forwarding.get_unchecked<std::int32_t>(TatpColumns::kEndTime)) {
          ++matches;
          consume(forwarding.get_unchecked(TatpColumns::kNumberx));
        }
        return true;
      });
  if (!status.ok()) return status;
  if (matches == 0) return TatpOutcome::kNotFound;
  return commit(*transaction);
}

Result<TatpOutcome> TatpClient::get_access_data(const TatpRequest& request) {
  const std::array<Value, 2> access_key = {integer(request.s_id), integer(request.sub_type)};
  Result<Transaction> transaction = database_.begin(AccessMode::kReadOnly, isolation_);
  if (!transaction.ok()) return std::move(transaction).status();
  const Result<Row> row = get(*transaction, access_info_, tables_.access_info_key, access_key);
  if (!row.ok()) return not_found_or(row.status());
  static constexpr std::array<ColumnId, 4> kColumns = {
      TatpColumns::kAccessData1, TatpColumns::kAccessData2, TatpColumns::kAccessData3,
      TatpColumns::kAccessData4};
  std::array<Value, 4> values;
  row.value().get_unchecked(kColumns, values);
  for (const Value& value : values) consume(value);
  return commit(*transaction);
}

// The bit is set first, as the description has it; without the facility's row it is taken back.
Result<TatpOutcome> TatpClient::update_subscriber_data(const TatpRequest& request) {
  const std::array<Value, 2> facility_key = {integer(request.s_id), integer(request.sub_type)};
  Result<Transaction> transaction = database_.begin(AccessMode::kReadWrite, isolation_);
  if (!transaction.ok()) return std::move(transaction).status();
  const Result<Row> subscriber =
      get(*transaction, subscriber_, tables_.subscriber_by_id, {facility_key[0]});
  if (!subscriber.ok()) return not_found_or(subscriber.status());
  const Result<RowId> changed = transaction->update(tables_.subscriber, subscriber.value().id(),
                                                    {{TatpColumns::kBit1, integer(request.bit)}});
  if (!changed.ok()) return changed.status();
  const Result<Row> facility =
      get(*transaction, special_facility_, tables_.special_facility_key, facility_key);
  if (!facility.ok()) return not_found_or(facility.status());
  const Result<RowId> changed_too =
      transaction->update(tables_.special_facility, facility.value().id(),
                          {{TatpColumns::kDataA, integer(request.data_a)}});
  if (!changed_too.ok()) return changed_too.status();
  return commit(*transaction);
}

Result<TatpOutcome> TatpClient::update_location(const TatpRequest& request) {
  const SubNbr number(request.s_id);
  Result<Transaction> transaction = database_.begin(AccessMode::kReadWrite, isolation_);
  if (!transaction.ok()) return std::move(transaction).status();
  const Result<Row> row = get(*transaction, subscriber_by_number_, tables_.subscriber_by_number,
                              {Value::string(number.text())});
  if (!row.ok()) return not_found_or(row.status());
  const Result<RowId> changed =
      transaction->update(tables_.subscriber, row.value().id(),
                          {{TatpColumns::kVlrLocation, Value::int64(request.vlr_location)}});
  if (!changed.ok()) return changed.status();
  return commit(*transaction);
}

Result<TatpOutcome> TatpClient::insert_call_forwarding(const TatpRequest& request) {
  const SubNbr number(request.s_id);
  const SubNbr numberx(request.numberx);
  Result<Transaction> transaction = database_.begin(AccessMode::kReadWrite, isolation_);
  if (!transaction.ok()) return std::move(transaction).status();
  const Result<Row> subscriber = get(*transaction, subscriber_by_number_,
                                     tables_.subscriber_by_number, {Value::string(number.text())});
  if (!subscriber.ok()) return not_found_or(subscriber.status());
  const Value s_id =
      Value::int32(subscriber.value().get_unchecked<std::int32_t>(TatpColumns::kSubscriberId));
  const Value sf_type = integer(request.sub_type);
  transaction->prefetch(tables_.special_facility_key, {s_id});
  transaction->prefetch(tables_.call_forwarding_key, {s_id, sf_type});
  Status status = transaction->rows(tables_.special_facility_key, {s_id}, [&](const Row& facility) {
    consume(facility.get_unchecked(TatpColumns::kFacilityType));
    return true;
  });
  if (!status.ok()) return status;
  // The foreign key: what was just read is ignored, the parent of this very row is looked up.
  const Result<Row> parent =
      get(*transaction, special_facility_, tables_.special_facility_key, {s_id, sf_type});
  if (!parent.ok()) return not_found_or(parent.status());
  const Result<RowId> row = transaction->insert(
      tables_.call_forwarding, {s_id, sf_type, integer(request.start_time),
                                integer(request.end_time), Value::string(numberx.text())});
  if (row.code() == StatusCode::kAlreadyExists) return TatpOutcome::kExists;
  if (!row.ok()) return row.status();
  return commit(*transaction);
}

Result<TatpOutcome> TatpClient::delete_call_forwarding(const TatpRequest& request) {
  const SubNbr number(request.s_id);
  Result<Transaction> transaction = database_.begin(AccessMode::kReadWrite, isolation_);
  if (!transaction.ok()) return std::move(transaction).status();
  const Result<Row> subscriber = get(*transaction, subscriber_by_number_,
                                     tables_.subscriber_by_number, {Value::string(number.text())});
  if (!subscriber.ok()) return not_found_or(subscriber.status());
  const Value s_id =
      Value::int32(subscriber.value().get_unchecked<std::int32_t>(TatpColumns::kSubscriberId));
  const Result<Row> forwarding =
      get(*transaction, call_forwarding_, tables_.call_forwarding_key,
          {s_id, integer(request.sub_type), integer(request.start_time)});
  if (!forwarding.ok()) return not_found_or(forwarding.status());
  Status status = transaction->remove(tables_.call_forwarding, forwarding.value().id());
  if (!status.ok()) return status;
  return commit(*transaction);
}

}  // namespace flugs::bench
