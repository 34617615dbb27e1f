#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flugs/arrow_abi.h"

namespace flugs::test {

/// How often the release functions of made structs were called.
struct ArrowReleases {
  int schemas = 0;
  int arrays = 0;
  int streams = 0;
};

/// One column that a test makes by hand: its fields may be damaged before the struct is made.
struct ArrowColumn {
  std::string name;
  std::string format;
  std::int64_t length = 0;
  std::int64_t offset = 0;
  std::int64_t null_count = 0;
  std::vector<std::shared_ptr<std::string>> buffers;  ///< null: a null pointer
  std::shared_ptr<ArrowColumn> dictionary = {};
  bool has_schema_dictionary = true;  ///< with a dictionary: whether the schema has it, too

  template <typename T>
  static std::shared_ptr<std::string> bytes_of(const std::vector<T>& values) {
    auto bytes = std::make_shared<std::string>(values.size() * sizeof(T), '\0');
    if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
    return bytes;
  }
  static std::shared_ptr<std::string> bits_of(const std::vector<bool>& bits) {
    auto bytes = std::make_shared<std::string>((bits.size() + 7) / 8, '\0');
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i]) (*bytes)[i / 8] = static_cast<char>((*bytes)[i / 8] | 1 << (i % 8));
    return bytes;
  }
  template <typename T>
  static ArrowColumn numbers(std::string name, std::string format, const std::vector<T>& values) {
    return {std::move(name),
            std::move(format),
            static_cast<std::int64_t>(values.size()),
            0,
            0,
            {nullptr, bytes_of(values)}};
  }
  template <typename Offset>
  static ArrowColumn texts(std::string name, std::string format,
                           const std::vector<std::string>& values) {
    std::vector<Offset> offsets = {0};
    auto all = std::make_shared<std::string>();
    for (const std::string& value : values) {
      *all += value;
      offsets.push_back(static_cast<Offset>(all->size()));
    }
    return {std::move(name),
            std::move(format),
            static_cast<std::int64_t>(values.size()),
            0,
            0,
            {nullptr, bytes_of(offsets), all}};
  }
  static ArrowColumn views(std::string name, std::string format,
                           const std::vector<std::string>& values) {
    std::vector<std::int32_t> views;
    auto all = std::make_shared<std::string>();
    for (const std::string& value : values) {
      char view[16] = {};
      const auto size = static_cast<std::int32_t>(value.size());
      const std::int32_t place[2] = {0, static_cast<std::int32_t>(all->size())};
      std::memcpy(view, &size, 4);
      std::memcpy(view + 4, value.data(), std::min<std::size_t>(value.size(), 12));
      if (value.size() > 12) {
        std::memcpy(view + 8, place, 8);
        *all += value;
      }
      for (int word = 0; word < 4; ++word) {
        std::int32_t part = 0;
        std::memcpy(&part, view + word * 4, 4);
        views.push_back(part);
      }
    }
    const auto bytes = static_cast<std::int64_t>(all->size());
    return {std::move(name),
            std::move(format),
            static_cast<std::int64_t>(values.size()),
            0,
            0,
            {nullptr, bytes_of(views), all, bytes_of(std::vector<std::int64_t>{bytes})}};
  }
  ArrowColumn& nulls(const std::vector<bool>& valid) {
    buffers[0] = bits_of(valid);
    null_count = -1;
    return *this;
  }
  ArrowColumn& part(std::int64_t from, std::int64_t count) {
    offset = from;
    length = count;
    return *this;
  }
};

/// Gives columns out as the structs of the Arrow C data interface, and counts their releases.
class ArrowMaker {
 public:
  explicit ArrowMaker(ArrowReleases& releases) : releases_(releases) {}

  std::int64_t rows = 0;    ///< of the struct array
  std::int64_t offset = 0;  ///< of the struct array
  std::int64_t null_count = 0;
  std::shared_ptr<std::string> validity = {};  ///< of the struct array

  ArrowSchema schema(const std::vector<ArrowColumn>& columns) {
    auto* const kept = new Schemas{&releases_, {}, {}, {}};
    ArrowSchema root = {};
    root.format = "+s";
    for (const ArrowColumn& column : columns) kept->children.push_back(kept->add(column));
    root.n_children = static_cast<std::int64_t>(kept->children.size());
    root.children = kept->children.data();
    root.private_data = kept;
    root.release = [](ArrowSchema* self) {
      auto* const of = static_cast<Schemas*>(self->private_data);
      ++of->releases->schemas;
      self->release = nullptr;
      delete of;
    };
    return root;
  }

  ArrowArray array(const std::vector<ArrowColumn>& columns) {
    auto* const kept = new Arrays{
        &releases_, {}, {}, {}, {}, {validity.get() == nullptr ? nullptr : validity->data()}};
    kept->owned.push_back(validity);
    ArrowArray root = {};
    for (const ArrowColumn& column : columns) kept->children.push_back(kept->add(column));
    root.length = rows;
    root.offset = offset;
    root.null_count = null_count;
    root.n_buffers = 1;
    root.buffers = kept->root_buffers;
    root.n_children = static_cast<std::int64_t>(kept->children.size());
    root.children = kept->children.data();
    root.private_data = kept;
    root.release = [](ArrowArray* self) {
      auto* const of = static_cast<Arrays*>(self->private_data);
      ++of->releases->arrays;
      self->release = nullptr;
      delete of;
    };
    return root;
  }

  /// A stream of these arrays, after which get_next fails with `error` if that is not 0. It owns
  /// the arrays.
  ArrowArrayStream stream(const std::vector<ArrowColumn>& columns, std::vector<ArrowArray> arrays,
                          int error = 0) {
    auto* const kept = new Stream{this, columns, std::move(arrays), 0, error};
    ArrowArrayStream made = {};
    made.private_data = kept;
    made.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
      auto* const of = static_cast<Stream*>(self->private_data);
      *out = of->maker->schema(of->columns);
      return 0;
    };
    made.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
      auto* const of = static_cast<Stream*>(self->private_data);
      *out = {};
      if (of->next == of->arrays.size()) return of->error;
      *out = std::exchange(of->arrays[of->next++], {});
      return 0;
    };
    made.get_last_error = [](ArrowArrayStream*) { return "the source is gone"; };
    made.release = [](ArrowArrayStream* self) {
      auto* const of = static_cast<Stream*>(self->private_data);
      ++of->maker->releases_.streams;
      for (ArrowArray& array : of->arrays)
        if (array.release != nullptr) array.release(&array);
      self->release = nullptr;
      delete of;
    };
    return made;
  }

 private:
  struct Schemas {
    ArrowReleases* releases;
    std::deque<ArrowSchema> schemas;
    std::deque<std::string> texts;
    std::vector<ArrowSchema*> children;
    ArrowSchema* add(const ArrowColumn& column) {
      ArrowSchema& schema = schemas.emplace_back();
      schema.name = texts.emplace_back(column.name).c_str();
      schema.format = texts.emplace_back(column.format).c_str();
      schema.flags = ARROW_FLAG_NULLABLE;
      if (column.dictionary && column.has_schema_dictionary)
        schema.dictionary = add(*column.dictionary);
      return &schema;
    }
  };
  struct Arrays {
    ArrowReleases* releases;
    std::deque<ArrowArray> arrays;
    std::deque<std::vector<const void*>> buffers;
    std::vector<std::shared_ptr<std::string>> owned;
    std::vector<ArrowArray*> children;
    const void* root_buffers[1];
    ArrowArray* add(const ArrowColumn& column) {
      ArrowArray& array = arrays.emplace_back();
      std::vector<const void*>& pointers = buffers.emplace_back();
      for (const auto& buffer : column.buffers) {
        pointers.push_back(buffer ? buffer->data() : nullptr);
        owned.push_back(buffer);
      }
      array.length = column.length;
      array.offset = column.offset;
      array.null_count = column.null_count;
      array.n_buffers = static_cast<std::int64_t>(pointers.size());
      array.buffers = pointers.data();
      if (column.dictionary) array.dictionary = add(*column.dictionary);
      return &array;
    }
  };
  struct Stream {
    ArrowMaker* maker;
    std::vector<ArrowColumn> columns;
    std::vector<ArrowArray> arrays;
    std::size_t next;
    int error;
  };

  ArrowReleases& releases_;
};

}  // namespace flugs::test
