#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "columns/dictionary/dictionary.h"
#include "flugs/value.h"
#include "query/vectors/delta_kernels.h"

namespace flugs::query {

/// The values of a column's codes throughout a query. Grouping and joining can carry codes, and
/// values are fetched at the end. Equal values have equal codes.
///
/// Thread-safety: const, any thread.
class CodeDomain {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  explicit CodeDomain(Type type) : type_(type) {}
  virtual ~CodeDomain() = default;
  CodeDomain(const CodeDomain&) = delete;
  CodeDomain& operator=(const CodeDomain&) = delete;

  Type type() const noexcept { return type_; }
  /// Codes in rows are below it; 0 when the bound is unknown, because the domain grows.
  virtual std::uint32_t count() const noexcept = 0;
  /// Payload (for a double its bits); 0 for NULL.
  virtual std::int64_t integer(std::uint32_t code) const noexcept = 0;
  virtual std::string_view text(std::uint32_t code) const noexcept = 0;
  /// The code of NULL; kNone if it has none.
  virtual std::uint32_t null_code() const noexcept { return kNone; }
  /// All payloads side by side, if the domain is small enough to keep them; else null.
  virtual const std::int64_t* integers() const { return nullptr; }

 private:
  Type type_;
};

/// The delta's dictionary as it was when the query began: later ValueIDs are in no visible row.
class DictionaryDomain : public CodeDomain {
 public:
  explicit DictionaryDomain(const columns::Dictionary& dictionary, Type type)
      : CodeDomain(type),
        dictionary_(dictionary),
        count_(dictionary.count()),
        bases_(dictionary.chunk_bases(count_)) {}

  std::uint32_t count() const noexcept override { return count_; }
  std::int64_t integer(std::uint32_t code) const noexcept override {
    FLUGS_DCHECK(code < count_);
    return code == null_code() ? 0 : dictionary_.integer(code);
  }
  std::string_view text(std::uint32_t code) const noexcept override {
    FLUGS_DCHECK(code < count_);
    return code == null_code() ? std::string_view() : dictionary_.text(code);
  }
  std::uint32_t null_code() const noexcept override { return dictionary_.null_code(); }
  const std::int64_t* integers() const override;
  const columns::Dictionary& dictionary() const noexcept { return dictionary_; }
  /// Places of the entries of codes below count(); no bases where the entries cannot be read that
  /// way.
  DictionaryEntries entries() const noexcept { return {bases_, dictionary_.entry_bytes()}; }

 private:
  // Half of a second-level cache.
  static constexpr std::uint32_t kDecodedMax = 1u << 16;

  const columns::Dictionary& dictionary_;
  std::uint32_t count_;
  std::vector<std::uint64_t> bases_;
  mutable std::once_flag decoded_once_;
  mutable std::vector<std::int64_t> decoded_;
};

/// Computed texts, each under one code; codes are dense. Made by one thread.
class FixedTexts : public CodeDomain {
 public:
  using CodeDomain::CodeDomain;
  std::uint32_t intern(std::string_view text);
  std::uint32_t count() const noexcept override {
    return static_cast<std::uint32_t>(texts_.size());
  }
  std::int64_t integer(std::uint32_t) const noexcept override { return 0; }
  std::string_view text(std::uint32_t code) const noexcept override {
    return code < texts_.size() ? texts_[code] : std::string_view();
  }

 private:
  std::vector<std::string_view> texts_;
  std::unordered_map<std::string_view, std::uint32_t> codes_;
};

}  // namespace flugs::query
