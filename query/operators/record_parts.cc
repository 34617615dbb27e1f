#include "query/operators/record_parts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "query/vectors/vec.h"

namespace flugs::query {

namespace {

// The first chunk of a part is small, since there are many parts, and all of them must have one
// before the first spill; the last ones are long enough for reading and writing them one after the
// other.
constexpr std::size_t kFirstRecordsMax = 32;
constexpr std::size_t kChunkRecordsMax = kBatchRows;
// Records that are read back at a time: several pages, and little beside a small budget.
constexpr std::size_t kReadRecords = 512;

}  // namespace

RecordParts::RecordParts(std::size_t words, RunContext& context, std::string owner,
                         std::uint64_t bytes_max)
    : context_(context), owner_(std::move(owner)), words_(words), bytes_max_(bytes_max) {
  FLUGS_CHECK(words != 0);
  const std::uint64_t records = bytes_max / (kParts * words * sizeof(std::uint64_t)) / 2;
  first_records_ = std::clamp<std::uint64_t>(records, 1, kFirstRecordsMax);
  chunk_records_ = std::clamp<std::uint64_t>(records / 2, first_records_, kChunkRecordsMax);
}

RecordParts::~RecordParts() {
  for (std::size_t part = 0; part < kParts; ++part) release(part);
}

std::size_t RecordParts::used(const Part& part, const Chunk& chunk) noexcept {
  return &chunk == &part.chunks.back() ? static_cast<std::size_t>(part.next - chunk.words.get())
                                       : chunk.word_count;
}

void RecordParts::grow(Part& part) {
  const std::size_t records =
      part.chunks.empty() ? first_records_
                          : std::min(part.chunks.back().word_count / words_ * 2, chunk_records_);
  const std::uint64_t bytes = records * words_ * sizeof(std::uint64_t);
  if (bytes_ + bytes > bytes_max_ || !context_.budget.try_take(bytes)) {
    spill();
    context_.budget.take(bytes, owner_);
  }
  part.bytes += bytes;
  bytes_ += bytes;
  part.chunks.push_back(
      {std::make_unique_for_overwrite<std::uint64_t[]>(records * words_), records * words_});
  part.next = part.chunks.back().words.get();
  part.end = part.next + records * words_;
}

void RecordParts::spill() {
  if (bytes_ == 0) return;
  if (!file_) file_.emplace(context_.temporary_folder);
  for (std::size_t p = 0; p < kParts; ++p) {
    Part& part = parts_[p];
    if (part.chunks.empty()) continue;
    for (const Chunk& chunk : part.chunks) {
      const std::size_t count = used(part, chunk);
      const std::uint64_t offset = file_->append(chunk.words.get(), count * sizeof(std::uint64_t));
      if (!part.units.empty() &&
          part.units.back().offset + part.units.back().word_count * 8 == offset)
        part.units.back().word_count += count;
      else
        part.units.push_back({offset, count});
    }
    part.chunks.clear();
    part.next = part.end = nullptr;
    context_.budget.give_back(std::exchange(part.bytes, 0));
  }
  bytes_ = 0;
  context_.check_stop();
}

void RecordParts::visit_held(std::size_t part_index,
                             FunctionRef<void(std::uint64_t* records, std::size_t count)> take) {
  FLUGS_CHECK(part_index < kParts);
  const Part& part = parts_[part_index];
  for (const Chunk& chunk : part.chunks) take(chunk.words.get(), used(part, chunk) / words_);
}

void RecordParts::visit(std::size_t part_index,
                        FunctionRef<void(std::uint64_t* records, std::size_t count)> take) {
  visit_held(part_index, take);
  const Part& part = parts_[part_index];
  const std::size_t batch_words = kReadRecords * words_;
  if (part.units.empty()) return;
  Charge charge(context_.budget, owner_);
  charge.set(batch_words * sizeof(std::uint64_t));
  const auto buffer = std::make_unique_for_overwrite<std::uint64_t[]>(batch_words);
  for (const ScanUnit& unit : part.units)
    for (std::size_t done = 0; done < unit.word_count; done += batch_words) {
      const std::size_t count = std::min(batch_words, unit.word_count - done);
      file_->read(unit.offset + done * sizeof(std::uint64_t), buffer.get(),
                  count * sizeof(std::uint64_t));
      take(buffer.get(), count / words_);
    }
}

std::uint64_t RecordParts::held_records(std::size_t part_index) const noexcept {
  const Part& part = parts_[part_index];
  std::uint64_t words = 0;
  for (const Chunk& chunk : part.chunks) words += used(part, chunk);
  return words / words_;
}

std::uint64_t RecordParts::records(std::size_t part_index) const noexcept {
  std::uint64_t words = 0;
  for (const ScanUnit& unit : parts_[part_index].units) words += unit.word_count;
  return words / words_ + held_records(part_index);
}

std::uint64_t RecordParts::records() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t part = 0; part < kParts; ++part) sum += records(part);
  return sum;
}

void RecordParts::release_held(std::size_t part_index) noexcept {
  FLUGS_CHECK(part_index < kParts);
  Part& part = parts_[part_index];
  part.chunks.clear();
  part.next = part.end = nullptr;
  FLUGS_CHECK(bytes_ >= part.bytes);
  bytes_ -= part.bytes;
  context_.budget.give_back(std::exchange(part.bytes, 0));
}

void RecordParts::release(std::size_t part_index) noexcept {
  FLUGS_CHECK(part_index < kParts);
  Part& part = parts_[part_index];
  part.chunks.clear();
  part.units.clear();
  part.next = part.end = nullptr;
  context_.budget.give_back(std::exchange(part.bytes, 0));
}

}  // namespace flugs::query
