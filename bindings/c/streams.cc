#include "bindings/c/streams.h"

#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "flugs/arrow_export.h"
#include "flugs/arrow_import.h"

namespace flugs::c {

namespace {

class ArrowChild final : public Child {
 public:
  ArrowChild(query::ResultStream stream, std::shared_ptr<flugs_transaction> of)
      : Child(std::move(of)) {
    add_child(*this);
    try {
      query::to_arrow(std::move(stream), inner_);
    } catch (...) {
      remove_child(*this);
      throw;
    }
  }
  ~ArrowChild() override { remove_child(*this); }
  void end() noexcept override {
    if (inner_.release != nullptr) inner_.release(&inner_);
    inner_.release = nullptr;
  }
  void abandon() noexcept override { inner_.release = nullptr; }

  /// `call(inner)` in place of a call with the stream.
  template <typename Call>
  int pass(Call&& call) noexcept {
    if (!owner->origin.is_here()) {
      error_ = "the stream belongs to the process that has forked this one";
      return EINVAL;
    }
    const Use use(*owner, Nesting::kAllowed);
    if (!use.ok()) {
      error_ = "a call with the transaction is running in another thread";
      return EBUSY;
    }
    if (inner_.release == nullptr) {
      error_ = "the transaction has ended, or its database is closed";
      return EINVAL;
    }
    const int result = call(inner_);
    error_ = result == 0 ? nullptr : kept_message();
    return result;
  }
  const char* error() const noexcept { return error_; }

 private:
  /// The message of `inner_`, which may end before this stream does.
  const char* kept_message() noexcept {
    const char* message = inner_.get_last_error(&inner_);
    if (message == nullptr) return nullptr;
    try {
      message_ = message;
    } catch (...) {
      return "out of memory";
    }
    return message_.c_str();
  }

  ArrowArrayStream inner_{};  // `release` null: has ended
  std::string message_;
  std::atomic<const char*> error_ = nullptr;  // another thread may be told that it is busy
};

ArrowChild& child_of(ArrowArrayStream* stream) {
  return *static_cast<ArrowChild*>(stream->private_data);
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept {
  return child_of(stream).pass(
      [&](ArrowArrayStream& inner) { return inner.get_schema(&inner, out); });
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) noexcept {
  return child_of(stream).pass(
      [&](ArrowArrayStream& inner) { return inner.get_next(&inner, out); });
}

const char* get_last_error(ArrowArrayStream* stream) noexcept { return child_of(stream).error(); }

void release(ArrowArrayStream* stream) noexcept {
  delete &child_of(stream);
  stream->private_data = nullptr;
  stream->release = nullptr;
}

}  // namespace

void to_arrow(query::ResultStream stream, flugs_transaction& transaction, ArrowArrayStream& out) {
  out.private_data = new ArrowChild(std::move(stream), transaction.self);
  out.get_schema = get_schema;
  out.get_next = get_next;
  out.get_last_error = get_last_error;
  out.release = release;
}

}  // namespace flugs::c

namespace flugs::c {

namespace {

/// Releases a stream that an insert has not.
class Consumed {
 public:
  explicit Consumed(ArrowArrayStream* stream) noexcept : stream_(stream) {}
  Consumed(const Consumed&) = delete;
  Consumed& operator=(const Consumed&) = delete;
  ~Consumed() {
    if (stream_ != nullptr && stream_->release != nullptr) stream_->release(stream_);
  }

 private:
  ArrowArrayStream* stream_;
};

}  // namespace

}  // namespace flugs::c

extern "C" {

flugs_error* flugs_insert_arrow(flugs_transaction* transaction, uint32_t table,
                                struct ArrowArrayStream* stream, uint64_t* out) {
  if (out != nullptr) *out = 0;
  const flugs::c::Consumed consumed(stream);
  return flugs::c::with_transaction(transaction, [&](flugs_transaction& t) -> flugs_error* {
    if (stream == nullptr) return flugs::c::no_pointer("stream");
    if (stream->release == nullptr) return flugs::c::misuse("stream: it has been released");
    const flugs::TableId id(table);
    const flugs::Result<std::uint64_t> rows = flugs::query::insert_arrow(t.core, id, stream);
    if (!rows.ok()) return flugs::c::failed(t, rows.status(), id);
    if (out != nullptr) *out = *rows;
    return nullptr;
  });
}
}
