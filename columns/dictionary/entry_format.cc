#include "columns/dictionary/entry_format.h"

#include "base/hash.h"
#include "base/types.h"

namespace flugs::columns {

namespace {

constexpr std::uint64_t kNullSalt = 0x4e554c4c4e554c4cu;

std::uint64_t proof_of(std::uint64_t content_hash, std::uint32_t id, std::uint64_t salt) noexcept {
  return mix64(content_hash ^ salt ^ (std::uint64_t{id} * 0x9e3779b97f4a7c15u)) | 1;
}

void store_word(std::byte* address, std::uint64_t word) noexcept {
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(address), word, __ATOMIC_RELEASE);
}

}  // namespace

EntryFormat::EntryFormat(Type type, const pmem::Medium& medium) noexcept
    : medium_(medium),
      type_(type),
      is_text_(is_text_type(type)),
      bytes_(facts_of(type).entry_bytes) {
  FLUGS_CHECK(is_text_ == (bytes_ == 32) && bytes_ % 8 == 0);
}

std::uint64_t EntryFormat::hash_of(const Value& value) const noexcept {
  if (is_text_) return hash_text(value.as_string());
  return bytes_ == 8 ? exact_hash32(static_cast<std::int32_t>(value.raw()))
                     : hash_integer(value.raw());
}

void EntryFormat::store(std::byte* entry, std::uint32_t id, const Cell& cell,
                        std::uint64_t hash) const noexcept {
  store_words(entry, cell, proof_of(hash, id, cell.high));
}

void EntryFormat::store_null(std::byte* entry, std::uint32_t id) const noexcept {
  store_words(entry, is_text_ ? text_cell::make_inline({}) : Cell{}, proof_of(0, id, kNullSalt));
}

void EntryFormat::store_words(std::byte* entry, const Cell& cell,
                              std::uint64_t proof) const noexcept {
  FLUGS_DCHECK(entry != nullptr && proof != 0);
  if (bytes_ == 8) {
    store_word(entry, (cell.low & 0xFFFFFFFFu) | (proof << 32));
    return;
  }
  store_word(entry, cell.low);
  if (is_text_) store_word(entry + 8, cell.high);
  store_word(entry + (is_text_ ? 16 : 8), proof);
}

void EntryFormat::clear(std::byte* entry) const noexcept {
  for (std::uint32_t byte = 0; byte < bytes_; byte += 8) store_word(entry + byte, 0);
}

EntryFormat::Proof EntryFormat::prove(const std::byte* entry, std::uint32_t id,
                                      std::uint64_t& hash) const noexcept {
  FLUGS_DCHECK(entry != nullptr);
  const std::uint64_t low = load_word(entry);
  if (bytes_ == 8) {
    if (low == 0) return Proof::kAbsent;
    const std::uint64_t found = low >> 32;
    hash = exact_hash32(static_cast<std::int32_t>(low));
    if (found == (proof_of(hash, id, 0) & 0xFFFFFFFFu)) return Proof::kValue;
    const bool is_null =
        (low & 0xFFFFFFFFu) == 0 && found == (proof_of(0, id, kNullSalt) & 0xFFFFFFFFu);
    return is_null ? Proof::kNull : Proof::kTorn;
  }
  const std::uint64_t high = is_text_ ? load_word(entry + 8) : 0;
  const std::uint64_t proof = load_word(entry + (is_text_ ? 16 : 8));
  if (low == 0 && high == 0 && proof == 0) return Proof::kAbsent;
  if (proof == 0) return Proof::kTorn;
  if (proof == proof_of(0, id, kNullSalt))
    return low == 0 && high == 0 ? Proof::kNull : Proof::kTorn;
  if (!is_text_) {
    hash = hash_integer(static_cast<std::int64_t>(low));
    return proof == proof_of(hash, id, 0) ? Proof::kValue : Proof::kTorn;
  }
  if (!text_cell::is_plausible(low, high, medium_.bytes())) return Proof::kTorn;
  // The words that were read: the writer of the entry may have gone on meanwhile.
  const std::uint64_t words[] = {low, high};
  const std::string_view bytes = text(reinterpret_cast<const std::byte*>(words));
  // The proof covers text and upper word; the padding of the lower word must be zero.
  if (text_cell::tag_of(high) != text_cell::kOutOfLine && low != text_cell::make_inline(bytes).low)
    return Proof::kTorn;
  hash = hash_text(bytes);
  return proof == proof_of(hash, id, high) ? Proof::kValue : Proof::kTorn;
}

}  // namespace flugs::columns
