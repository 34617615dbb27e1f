// Streams and their batches as structs of the Arrow C data interface.
//
// Ownership, as the Arrow specification has it: each schema and array has a `release` that frees it
// and its children that the consumer has not moved away. A consumer may move a child, so each child
// keeps for itself what it needs (`Exported`).

#include "flugs/arrow_export.h"

#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "query/arrow/arrow_buffers.h"
#include "query/plan/stream_state.h"
#include "query/stream/batch_data.h"

namespace flugs::query {

namespace {

// Digits of the largest int64.
constexpr int kDecimalDigits = 19;
static_assert(kDecimalDigits == std::numeric_limits<std::int64_t>::digits10 + 1);
static_assert(Value::kScaleMax <= kDecimalDigits);  // as Arrow wants it

std::string format_of(const ResultColumn& column) {
  switch (column.type) {
    case Type::kBool:
      return "b";
    case Type::kInt32:
      return "i";
    case Type::kInt64:
      return "l";
    case Type::kDouble:
      return "g";
    case Type::kDecimal:
      return "d:" + std::to_string(kDecimalDigits) + "," + std::to_string(column.scale);
    case Type::kDate:
      return "tdD";
    case Type::kTimestamp:
      return "tsu:";
    case Type::kString:
      return "u";
    case Type::kBytes:
      return "z";
  }
  FLUGS_CHECK(false);
}

/// Releases a child that has not been moved away, in case its parent cannot be made.
struct Releasing {
  template <typename Struct>
  void operator()(Struct* child) const noexcept {
    if (child->release != nullptr) child->release(child);
    delete child;
  }
};
template <typename Struct>
using OwnedStruct = std::unique_ptr<Struct, Releasing>;
template <typename Struct>
OwnedStruct<Struct> new_struct() {
  return OwnedStruct<Struct>(new Struct{});
}

/// What a schema needs as long as it is not released.
struct ExportedSchema {
  std::string format;
  std::string name;
  std::vector<OwnedStruct<ArrowSchema>> children;
  std::vector<ArrowSchema*> child_pointers;
  OwnedStruct<ArrowSchema> dictionary;
};

void release_schema(ArrowSchema* schema) {
  delete static_cast<ExportedSchema*>(schema->private_data);
  schema->release = nullptr;
}

void finish_schema(std::unique_ptr<ExportedSchema> exported, std::int64_t flags,
                   ArrowSchema& out) noexcept {
  FLUGS_CHECK(exported->child_pointers.size() == exported->children.size());
  out = {};
  out.format = exported->format.c_str();
  out.name = exported->name.c_str();
  out.flags = flags;
  out.n_children = static_cast<std::int64_t>(exported->children.size());
  out.children = exported->child_pointers.data();
  out.dictionary = exported->dictionary.get();
  out.release = release_schema;
  out.private_data = exported.release();
}

void export_field(const ResultColumn& column, bool has_dictionary, ArrowSchema& out) {
  FLUGS_CHECK(!has_dictionary || lane_of(column.type) == Lane::kText);
  auto exported = std::make_unique<ExportedSchema>();
  exported->name = column.name;
  exported->format = format_of(column);
  if (has_dictionary) {
    auto values = std::make_unique<ExportedSchema>();
    values->format = std::exchange(exported->format, "i");
    exported->dictionary = new_struct<ArrowSchema>();
    finish_schema(std::move(values), 0, *exported->dictionary);
  }
  finish_schema(std::move(exported), ARROW_FLAG_NULLABLE, out);
}

/// What an array needs as long as it is not released: the batch whose memory its buffers show, or
/// buffers of its own.
struct Exported {
  std::shared_ptr<const BatchData> batch;
  std::shared_ptr<const TextDictionary> texts;
  ArrowBuffer validity;
  ArrowBuffer values;
  std::array<const void*, 3> buffers{};
  std::vector<OwnedStruct<ArrowArray>> children;
  std::vector<ArrowArray*> child_pointers;
  OwnedStruct<ArrowArray> dictionary;
};

void release_array(ArrowArray* array) {
  delete static_cast<Exported*>(array->private_data);
  array->release = nullptr;
}

void finish_array(std::unique_ptr<Exported> exported, std::size_t length, std::size_t null_count,
                  std::int64_t buffer_count, ArrowArray& out) noexcept {
  FLUGS_CHECK(static_cast<std::size_t>(buffer_count) <= exported->buffers.size());
  FLUGS_CHECK(exported->child_pointers.size() == exported->children.size());
  out = {};
  out.length = static_cast<std::int64_t>(length);
  out.null_count = static_cast<std::int64_t>(null_count);
  out.n_buffers = buffer_count;
  out.buffers = exported->buffers.data();
  out.n_children = static_cast<std::int64_t>(exported->children.size());
  out.children = exported->child_pointers.data();
  out.dictionary = exported->dictionary.get();
  out.release = release_array;
  out.private_data = exported.release();
}

void export_dictionary(std::shared_ptr<const TextDictionary> texts, ArrowArray& out) {
  auto exported = std::make_unique<Exported>();
  exported->buffers = {nullptr, texts->offsets().data(), texts->bytes().data()};
  const std::size_t size = texts->size();
  FLUGS_CHECK(static_cast<std::size_t>(texts->offsets()[size]) == texts->bytes().size());
  exported->texts = std::move(texts);
  finish_array(std::move(exported), size, 0, 3, out);
}

void export_texts(const BatchData& batch, std::size_t column, Exported& to) {
  const BatchValues& from = batch.columns[column];
  to.buffers[1] = from.values.view(false).data;
  if (from.dictionary == nullptr) {
    const auto end = static_cast<std::size_t>(batch.texts(column).offsets()[batch.rows]);
    FLUGS_CHECK(end == from.bytes.size());  // a consumer reads this number of bytes
    to.buffers[2] = from.bytes.data();
    return;
  }
  to.dictionary = new_struct<ArrowArray>();
  export_dictionary(from.dictionary, *to.dictionary);
}

void export_numbers(const BatchData& batch, std::size_t column, Exported& to) {
  const BatchValues& from = batch.columns[column];
  const ColumnView view = from.values.view(false);
  const Type type = (*batch.schema)[column].type;
  FLUGS_CHECK(from.ints == IntForm::kInt64 || from.ints == arrow_form(type));
  if (type == Type::kBool) {
    to.values = bits_of(std::span(view.ints(), batch.rows));
  } else if (arrow_form(type) != from.ints) {
    to.values = in_form(arrow_form(type), std::span(view.ints(), batch.rows));
  } else {
    to.buffers[1] = view.data;
    return;
  }
  to.buffers[1] = to.values.get();
}

void export_column(const std::shared_ptr<const BatchData>& batch, std::size_t column,
                   ArrowArray& out) {
  auto exported = std::make_unique<Exported>();
  exported->batch = batch;
  std::size_t null_count = 0;
  if (const auto nulls = batch->columns[column].nulls(batch->rows); !nulls.empty()) {
    exported->validity = validity_of(nulls, null_count);
    exported->buffers[0] = exported->validity.get();
  }
  const bool is_text = lane_of((*batch->schema)[column].type) == Lane::kText;
  if (is_text)
    export_texts(*batch, column, *exported);
  else
    export_numbers(*batch, column, *exported);
  const bool has_bytes = is_text && exported->dictionary == nullptr;
  finish_array(std::move(exported), batch->rows, null_count, has_bytes ? 3 : 2, out);
}

/// A stream under way. `batch` is the one that the next array shows: if there is no memory for the
/// array, it is not lost.
struct ExportedStream {
  explicit ExportedStream(ResultStream of) noexcept : stream(std::move(of)) {}
  ResultStream stream;
  std::optional<StreamBatch> batch;
  std::string error;
};

// No exception may leave a function that C calls.
template <typename Work>
int guarded_call(ExportedStream& exported, Work&& work) noexcept {
  try {
    exported.error.clear();
    const Status status = work();
    if (status.ok()) return 0;
    exported.error = status.to_string();
    return arrow_error(status.code());
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int stream_schema(ArrowArrayStream* arrow, ArrowSchema* out) {
  auto& exported = *static_cast<ExportedStream*>(arrow->private_data);
  return guarded_call(exported, [&] {
    schema_to_arrow(exported.stream, *out);
    return Status();
  });
}

int stream_next(ArrowArrayStream* arrow, ArrowArray* out) {
  auto& exported = *static_cast<ExportedStream*>(arrow->private_data);
  return guarded_call(exported, [&] {
    *out = {};
    if (!exported.batch) {
      const StreamBatch* next = exported.stream.next();
      if (next == nullptr) return exported.stream.status();
      exported.batch = *next;
    }
    to_arrow(*exported.batch, *out);
    exported.batch.reset();
    return Status();
  });
}

const char* stream_error(ArrowArrayStream* arrow) {
  const auto& exported = *static_cast<const ExportedStream*>(arrow->private_data);
  return exported.error.empty() ? nullptr : exported.error.c_str();
}

void release_stream(ArrowArrayStream* arrow) {
  delete static_cast<ExportedStream*>(arrow->private_data);
  arrow->release = nullptr;
}

}  // namespace

int arrow_error(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kCancelled:
      return ECANCELED;
    case StatusCode::kOutOfMemory:
      return ENOMEM;
    case StatusCode::kInvalidArgument:
      return EINVAL;
    default:
      return EIO;
  }
}

void schema_to_arrow(const ResultStream& stream, ArrowSchema& arrow) {
  auto exported = std::make_unique<ExportedSchema>();
  exported->format = "+s";
  const std::vector<ResultColumn>& columns = stream.columns();
  exported->child_pointers.reserve(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    exported->children.push_back(new_struct<ArrowSchema>());
    export_field(columns[c], stream.has_dictionary(c), *exported->children.back());
    exported->child_pointers.push_back(exported->children.back().get());
  }
  finish_schema(std::move(exported), 0, arrow);
}

void to_arrow(const StreamBatch& batch, ArrowArray& arrow) {
  auto exported = std::make_unique<Exported>();
  const std::shared_ptr<const BatchData>& data = batch.data();
  const std::size_t columns = data == nullptr ? 0 : data->columns.size();
  FLUGS_CHECK(columns == 0 || data->schema->size() == columns);
  exported->child_pointers.reserve(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    exported->children.push_back(new_struct<ArrowArray>());
    export_column(data, c, *exported->children.back());
    exported->child_pointers.push_back(exported->children.back().get());
  }
  finish_array(std::move(exported), batch.row_count(), 0, 1, arrow);
}

void prefer_arrow(ResultStream& stream) noexcept { stream.state_->sink().prefer_arrow(); }

void to_arrow(ResultStream stream, ArrowArrayStream& arrow) {
  prefer_arrow(stream);
  auto exported = std::make_unique<ExportedStream>(std::move(stream));
  arrow = {stream_schema, stream_next, stream_error, release_stream, exported.release()};
}

}  // namespace flugs::query
