#include "query/vectors/code_domain.h"

#include "base/check.h"

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

}  // namespace flugs::query
