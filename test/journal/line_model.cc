#include "test/journal/line_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace flugs::test {

LineModel::LineModel(std::span<const std::byte> pool, std::uint64_t first_store)
    : begin_(pool.size() / sizeof(std::uint64_t)),
      first_store_(first_store),
      index_(pool.size() / pmem::kLineBytes),
      punched_(pool.size() / pmem::kPageBytes) {
  std::memcpy(begin_.data(), pool.data(), pool.size());
}

void LineModel::skip_to(std::uint64_t next_store) {
  if (stores_.empty()) first_store_ = next_store;
  stores_.resize(next_store - first_store_, {kNoLine, 0, 0});
}

LineModel::Line& LineModel::touched(std::uint32_t line) {
  if (index_[line] == 0) {
    Line& made = touched_.emplace_back();
    made.line = line;
    for (std::uint64_t word = 0; word < kWordsOfLine; ++word) made.now[word] = begin_of(line, word);
    index_[line] = static_cast<std::uint32_t>(touched_.size());
  }
  return touched_[index_[line] - 1];
}

std::uint64_t LineModel::store(std::uint32_t line, std::uint8_t words) {
  const std::uint64_t number = next_store();
  stores_.push_back({line, words, fences_.size()});
  Line& stored = touched(line);
  for (std::uint64_t word = 0; word < kWordsOfLine; ++word)
    if ((words >> word & 1) != 0) stored.now[word] = number;
  return number;
}

void LineModel::punch(std::uint64_t page, std::uint64_t fences) {
  constexpr std::uint64_t kLinesOfPage = pmem::kPageBytes / pmem::kLineBytes;
  punched_[page] = next_store();
  stores_.push_back({kNoLine, 0, fences});
  for (std::uint64_t i = 0; i < kLinesOfPage; ++i)
    touched(static_cast<std::uint32_t>(page * kLinesOfPage + i)).now.fill(punched_[page]);
}

/// Whether this store was made to this word.
bool LineModel::is_made(std::uint64_t store, std::uint32_t line, std::uint64_t word) const {
  if (store < first_store_ || store >= next_store()) return false;
  const Store& made = stores_[store - first_store_];
  return store == punched(line) || (made.line == line && (made.words >> word & 1) != 0);
}

std::vector<LineModel::Captured> LineModel::capture(std::span<const std::uint32_t> lines) const {
  std::vector<Captured> captured;
  for (const std::uint32_t line : lines)
    if (index_[line] != 0) captured.push_back({line, touched_[index_[line] - 1].now});
  return captured;
}

void LineModel::fence(std::span<const Captured> captured, pmem::JournalPlace place) {
  fences_.push_back(place);
  for (const Captured& line : captured)
    for (std::uint64_t word = 0; word < kWordsOfLine; ++word) {
      std::vector<Capture>& captures = touched(line.line).captures[word];
      const std::uint64_t before =
          captures.empty() ? begin_of(line.line, word) : captures.back().store;
      if (line.words[word] > before) captures.push_back({fences_.size(), line.words[word]});
    }
}

void LineModel::free(std::span<const std::uint32_t> lines) {
  for (const std::uint32_t line : lines)
    for (std::vector<Capture>& captures : touched(line).captures)
      captures.push_back({fences_.size(), 0});
}

void LineModel::promise(pmem::JournalPlace place) {
  while (promised_ < fences_.size() && fences_[promised_] <= place) ++promised_;
}

void LineModel::kill(std::span<const std::byte> pool, Kept kept) {
  if (kept == Kept::kPromised) fences_.resize(promised_);
  for (Line& line : touched_) {
    std::memcpy(line.now.data(), pool.data() + line.line * pmem::kLineBytes, pmem::kLineBytes);
    for (std::uint64_t& word : line.now) word = shown(line.line, word);
    for (std::vector<Capture>& captures : line.captures)
      std::erase_if(captures, [&](const Capture& capture) { return capture.fence > ended(); });
  }
}

/// Into `fences`: how many fences are durable, and into `because` the store that says so, or 0.
std::string LineModel::durable_fences(const std::uint64_t* pool, std::uint64_t& fences,
                                      std::uint64_t& because) const {
  for (const Line& line : touched_)
    for (std::uint64_t word = 0; word < kWordsOfLine; ++word) {
      const std::uint64_t found = pool[line.line * kWordsOfLine + word];
      if (found == begin_of(line.line, word)) continue;
      const std::uint64_t store = shown(line.line, found);
      if (store < first_store_) continue;  // judge says whether the word may be so old
      if (!is_made(store, line.line, word))
        return fmt::format("line {}, word {} shows {}, which was not stored there", line.line, word,
                           store);
      const std::uint64_t before = stores_[store - first_store_].fences;
      if (before <= fences) continue;
      fences = before;
      because = store;
    }
  return {};
}

std::string LineModel::judge(std::span<const std::byte> pool, Kept kept) const {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(pool.data());
  for (std::uint32_t line = 0; line < index_.size(); ++line) {
    if (line == kHeaderLine || index_[line] != 0) continue;
    const std::uint64_t at = line * kWordsOfLine;
    if (std::memcmp(words + at, begin_.data() + at, pmem::kLineBytes) == 0) continue;
    return fmt::format("line {} has changed, though nothing was stored there", line);
  }
  std::uint64_t fences = kept == Kept::kEnded ? ended() : promised_;
  std::uint64_t because = 0;
  if (std::string wrong = durable_fences(words, fences, because); !wrong.empty()) return wrong;
  for (const Line& line : touched_)
    for (std::uint64_t word = 0; word < kWordsOfLine; ++word) {
      const std::vector<Capture>& captures = line.captures[word];
      auto newest = captures.rbegin();
      while (newest != captures.rend() && newest->fence > fences) ++newest;
      const std::uint64_t found = words[line.line * kWordsOfLine + word];
      // A hole may not be there before the fences that allow it.
      const std::uint64_t hole = shown(line.line, found);
      const bool is_hole = hole != found && stores_[hole - first_store_].fences <= fences;
      const std::uint64_t store = is_hole ? hole : found;
      const auto is_free = [](const Capture& capture) { return capture.store == 0; };
      if (hole < first_store_ && found != begin_of(line.line, word) &&
          std::none_of(newest, captures.rend(), is_free))
        return fmt::format("line {}, word {} shows {}, which was not stored there", line.line, word,
                           found);
      if (newest == captures.rend() || store >= newest->store) continue;
      return fmt::format("line {}, word {} shows {}, but fence {} captured {}, and fence {} {}",
                         line.line, word, store, newest->fence, newest->store, fences,
                         because == 0 ? std::string("must be there")
                                      : fmt::format("is before store {}, which is shown", because));
    }
  return {};
}

}  // namespace flugs::test
