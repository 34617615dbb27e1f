#include "query/vectors/code_domain.h"

#include <functional>

#include "base/check.h"
#include "base/hash.h"

namespace flugs::query {

const std::int64_t* DictionaryDomain::integers() const {
  if (count_ > kDecodedMax) return nullptr;
  std::call_once(decoded_once_, [&] {
    decoded_.resize(count_);
    for (std::uint32_t code = 0; code < count_; ++code) decoded_[code] = integer(code);
  });
  return decoded_.data();
}

std::uint32_t FixedTexts::intern(std::string_view text) {
  const auto [found, added] = codes_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (added) texts_.push_back(text);
  FLUGS_DCHECK(codes_.size() == texts_.size());
  return found->second;
}

std::uint32_t TextPool::intern(std::string_view text) {
  const auto index = static_cast<std::uint32_t>(hash_text(text) % kShards);
  Shard& shard = shards_[index];
  const std::lock_guard guard(shard.mutex);
  // A code has 32 bits, and kNone is none.
  FLUGS_CHECK(shard.texts.size() < kNone / kShards);
  const auto [found, added] = shard.codes.try_emplace(
      text, static_cast<std::uint32_t>(shard.texts.size()) * kShards + index);
  if (added) shard.texts.push_back(text);
  FLUGS_DCHECK(found->second % kShards == index);
  return found->second;
}

}  // namespace flugs::query
