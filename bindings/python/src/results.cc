#include "bindings/python/src/results.h"

#include <nanobind/stl/string.h>

#include <bit>
#include <cerrno>
#include <string>
#include <utility>

#include "bindings/python/src/errors.h"
#include "flugs/arrow_export.h"

namespace flugs::python {

namespace {

// A dictionary with more texts than a batch has rows is not worth a list of objects.
constexpr std::size_t kObjectsMax = query::StreamBatch::kRowsMax;

/// A capsule that releases what it holds, unless a consumer has taken it over.
template <typename Struct>
nb::object own(std::unique_ptr<Struct> held, const char* name) {
  const auto destroy = [](PyObject* capsule) {
    auto* const p = static_cast<Struct*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (p == nullptr) return;
    if (p->release != nullptr) p->release(p);
    delete p;
  };
  nb::object capsule = nb::steal(PyCapsule_New(held.get(), name, destroy));
  if (!capsule.is_valid()) {
    if (held->release != nullptr) held->release(held.get());
    throw nb::python_error();
  }
  static_cast<void>(held.release());
  return capsule;
}

}  // namespace

Stream::Stream(std::shared_ptr<Work> work, bool owns, std::unique_ptr<Interrupt> interrupt,
               query::ResultStream&& rows)
    : work_(std::move(work)),
      owns_(owns),
      interrupt_(std::move(interrupt)),
      columns_(rows.columns()),
      rows_(std::move(rows)),
      lanes_(columns_.size()) {
  work_->add(*this);
}

Stream::~Stream() {
  if (!work_->session().is_of_this_process()) return;
  work_->gate().enter_surely();
  give_up();
  work_->gate().leave();
}

void Stream::end() noexcept { rows_.reset(); }

void Stream::give_up() noexcept {
  work_->remove(*this);
  if (rows_.has_value()) work_->drop(Used{std::move(interrupt_), *std::move(rows_)});
  rows_.reset();
  if (owns_) work_->end(Work::State::kAborted);
}

void Stream::close() {
  if (!work_->session().is_of_this_process()) return;
  const Inside inside(work_->gate());
  if (work_->is_busy())
    raise(Status(StatusCode::kBusy, "a call of the transaction runs: close it later"));
  is_closed_ = !is_finished_;
  give_up();  // but for the batch, of which a row may just be made
}

void Stream::check_not_closed() const {
  if (is_closed_) raise(Status(StatusCode::kInvalidArgument, "the result is closed"));
}

void Stream::finish() noexcept {
  is_finished_ = true;
  try {
    if (rows_.has_value()) plan_ = rows_->explain();
  } catch (const std::bad_alloc&) {
    plan_.clear();
  }
  rows_.reset();
  work_->remove(*this);
  if (owns_) work_->end(Work::State::kCommitted);
}

void Stream::give_dicts() {
  gives_dicts_ = true;
  for (const query::ResultColumn& column : columns_)
    names_.push_back(nb::steal(PyUnicode_InternFromString(column.name.c_str())));
}

/// Reads the next batch; an empty one at the end.
Status Stream::pull(const std::stop_token& stop) {
  const std::stop_callback stops(stop, [this] { interrupt_->stop(); });
  const query::StreamBatch* const next = rows_->next();
  batch_ = next != nullptr ? *next : query::StreamBatch();
  row_ = 0;
  return next != nullptr ? Status() : rows_->status();
}

bool Stream::load() {
  if (is_finished_) return false;
  check_not_closed();
  const Work::Turn turn(*work_);
  try {
    const Work::Busy busy(*work_);
    check(run_long([this](const std::stop_token& stop) { return pull(stop); }));
  } catch (...) {
    finish();
    batch_ = query::StreamBatch();  // it may have come before Ctrl-C
    row_ = 0;
    throw;
  }
  if (batch_.row_count() == 0) finish();
  look_at_batch();
  return !is_finished_;
}

void Stream::look_at_batch() {
  if (batch_.row_count() == 0) return;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Lane& lane = lanes_[i];
    lane.nulls = batch_.nulls(i);
    if (columns_[i].type == Type::kDouble) {
      lane.doubles = take(batch_.column<double>(i)).data();
    } else if (columns_[i].type == Type::kString || columns_[i].type == Type::kBytes) {
      lane.texts = take(batch_.texts(i));
      std::shared_ptr<const query::TextDictionary> dictionary = batch_.dictionary(i);
      if (dictionary == lane.dictionary) continue;
      const bool keeps = dictionary != nullptr && dictionary->size() <= kObjectsMax;
      lane.objects.assign(keeps ? dictionary->size() : 0, nb::object());
      lane.dictionary = std::move(dictionary);
    } else {
      lane.ints = take(batch_.column<std::int64_t>(i)).data();
    }
  }
}

nb::object Stream::value(std::size_t column) {
  Lane& lane = lanes_[column];
  const query::ResultColumn& about = columns_[column];
  if (!lane.nulls.empty() && lane.nulls[row_] != 0) return nb::none();
  if (about.type == Type::kDouble)
    return from_raw(about.type, 0, std::bit_cast<std::int64_t>(lane.doubles[row_]));
  if (about.type != Type::kString && about.type != Type::kBytes)
    return from_raw(about.type, about.scale, lane.ints[row_]);
  if (lane.objects.empty()) return from_text(about.type, lane.texts[row_]);
  nb::object& object = lane.objects[lane.texts.codes()[row_]];
  if (!object.is_valid()) object = from_text(about.type, lane.texts[row_]);
  return object;
}

nb::object Stream::next_row() {
  work_->session().check_open();
  const Inside inside(work_->gate());  // other threads take rows, too
  if (is_given_) throw nb::value_error("the rows of this result have gone to Arrow");
  check_not_closed();
  while (row_ >= batch_.row_count())
    if (!load()) return {};
  if (gives_dicts_) {
    nb::dict row;
    for (std::size_t i = 0; i < columns_.size(); ++i) row[names_[i]] = value(i);
    ++row_;
    return row;
  }
  nb::object row = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(columns_.size())));
  if (!row.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < columns_.size(); ++i)
    PyTuple_SET_ITEM(row.ptr(), static_cast<Py_ssize_t>(i), value(i).release().ptr());
  ++row_;
  return row;
}

nb::object Stream::next_batch() {
  work_->session().check_open();
  const Inside inside(work_->gate());
  if (is_given_) throw nb::value_error("the rows of this result have gone to Arrow");
  if (is_finished_) return nb::none();
  check_not_closed();
  if (row_ != 0 && row_ < batch_.row_count())
    throw nb::value_error("a batch of which rows were taken has others left: take these first");
  auto schema = std::make_unique<ArrowSchema>();
  if (get_schema(*schema) != 0) {
    work_->session().check_open();
    raise(Status(StatusCode::kInvalidArgument, "the transaction has ended"));
  }
  nb::object of_schema = own(std::move(schema), "arrow_schema");
  if (row_ >= batch_.row_count() && !load()) return nb::none();
  auto array = std::make_unique<ArrowArray>();
  query::to_arrow(batch_, *array);
  row_ = batch_.row_count();
  return nb::make_tuple(of_schema, own(std::move(array), "arrow_array"));
}

std::string Stream::explain() {
  if (!work_->session().is_of_this_process()) work_->session().check_open();
  const Inside inside(work_->gate());
  if (!rows_.has_value()) return plan_;
  const Work::Turn turn(*work_);
  return rows_->explain();
}

void Stream::give_to_arrow() {
  const Inside inside(work_->gate());
  if (is_given_ || is_finished_ || batch_.row_count() != 0)
    throw nb::value_error("rows of this result have been taken already");
  const Work::Turn turn(*work_);
  if (rows_.has_value()) query::prefer_arrow(*rows_);
  is_given_ = true;
}

int Stream::fail(Status why) noexcept {
  try {
    error_ = why.to_string();
  } catch (const std::bad_alloc&) {
    error_.clear();
  }
  return query::arrow_error(why.code());
}

int Stream::fail_ended() noexcept {
  const char* why = "the transaction has ended";
  if (is_closed_) why = "the result is closed";
  if (work_->state() == Work::State::kClosed) why = "the database is closed";
  return fail(Status(StatusCode::kInvalidArgument, why));
}

int Stream::get_schema(ArrowSchema& out) noexcept {
  if (!work_->session().is_of_this_process())
    return fail(Status(StatusCode::kInvalidArgument, "the database belongs to another process"));
  const InCall in_call;
  work_->gate().enter_surely();
  int result = 0;
  if (rows_.has_value())
    query::schema_to_arrow(*rows_, out);
  else
    result = fail(Status(StatusCode::kInvalidArgument, "the stream has ended"));
  work_->gate().leave();
  return result;
}

int Stream::get_next(ArrowArray& out) noexcept {
  out = ArrowArray{};
  if (!work_->session().is_of_this_process())
    return fail(Status(StatusCode::kInvalidArgument, "the database belongs to another process"));
  const InCall in_call;  // a handler of a signal must not close the database
  work_->gate().enter_surely();
  int result = 0;
  if (is_finished_) {
    result = error_.empty() ? 0 : EINVAL;
  } else if (!rows_.has_value()) {
    result = fail_ended();
  } else if (work_->gate().is_nested()) {
    result = fail(Status(StatusCode::kInvalidArgument, "the transaction is in a call"));
  } else {
    interrupt_->begin();
    Status status;
    {
      const Work::Busy busy(*work_);
      const Detached detached;
      status = pull({});
    }
    interrupt_->leave_to_python();
    if (!status.ok()) result = fail(std::move(status));
    if (result == 0 && batch_.row_count() != 0) query::to_arrow(batch_, out);
    if (result != 0 || batch_.row_count() == 0) finish();
    batch_ = query::StreamBatch();
  }
  work_->gate().leave();
  return result;
}

std::shared_ptr<Stream> run(const PyQuery& query, query::RunOptions options) {
  const bool owns = query.work == nullptr;
  const std::shared_ptr<Work> work =
      owns ? Work::begin(query.session, AccessMode::kReadOnly) : query.work;
  const Work::Turn turn(*work);
  auto interrupt = std::make_unique<Interrupt>();
  options.progress = interrupt->progress();
  options.stop = interrupt->token();
  std::optional<Result<query::ResultStream>> rows;
  const auto begin = [&](const std::stop_token& stop) {
    const std::stop_callback stops(stop, [&] { interrupt->stop(); });
    rows.emplace(query.query.stream(work->transaction(), options));
    return Status();
  };
  {
    const Work::Busy busy(*work);
    check(run_long(begin));
  }
  return std::make_shared<Stream>(work, owns, std::move(interrupt), take(*std::move(rows)));
}

nb::list fetch(Stream& stream, std::int64_t rows) {
  nb::list result;
  for (std::int64_t i = 0; rows < 0 || i < rows; ++i) {
    const nb::object row = stream.next_row();
    if (!row.is_valid()) break;
    result.append(row);
  }
  return result;
}

}  // namespace flugs::python
