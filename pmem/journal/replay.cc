#include "pmem/journal/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "pmem/journal/read_ahead.h"
#include "pmem/medium/persist.h"

namespace flugs::pmem {

namespace {

/// The bytes from `place` on: all of the record that begins there, if there is one.
Result<std::span<std::byte>> record_at(ReadAhead& reader, JournalPlace place) {
  Result<std::span<std::byte>> begin = reader.from(place, sizeof(RecordHead));
  if (!begin.ok()) return begin;
  RecordHead head;
  std::memcpy(&head, begin->data(), sizeof head);
  return head.bytes <= begin->size() ? begin : reader.from(place, head.bytes);
}

RecordHead head_of(std::span<const std::byte> record) noexcept {
  RecordHead head;
  std::memcpy(&head, record.data(), sizeof head);
  return head;
}

/// The first record of a later opening, which begins with the page behind `end`.
struct Resumption {
  JournalPlace place;
  std::uint64_t bytes;
  std::uint64_t epoch;
};

Result<std::optional<Resumption>> find_resumption(ReadAhead& reader, const JournalHead& head,
                                                  const ReplayEnd& end) {
  const JournalPlace place = page_end(end.place);
  constexpr std::uint64_t kBytes = sizeof(RecordHead) + sizeof(ResumeBody);
  const Result<std::span<std::byte>> bytes = record_at(reader, place);
  if (!bytes.ok()) return bytes.status();
  const RecordHead record = head_of(*bytes);
  if (record.kind != RecordKind::kResume || record.bytes != kBytes)
    return std::optional<Resumption>();
  ResumeBody body;
  std::memcpy(&body, bytes->data() + sizeof record, sizeof body);
  const bool is_next = body.continues == end.place && body.epoch > end.epoch &&
                       body.epoch <= head.epoch &&
                       is_record(*bytes, {head.journal_id, place, body.epoch});
  if (!is_next) return std::optional<Resumption>();
  return std::optional<Resumption>({place, kBytes, body.epoch});
}

bool is_revoked_run(RecordKind kind, std::uint64_t offset, std::uint64_t bytes) noexcept {
  return kind == RecordKind::kRevoke && offset % kPageBytes == 0 && bytes % kPageBytes == 0;
}

/// Replays the record that begins at `place`.
Status take_record(std::span<const std::byte> record, const ReplayMemory& memory,
                   const std::string& where, JournalPlace place) {
  const RecordHead head = head_of(record);
  const bool has_images = head.kind == RecordKind::kLines;
  std::span<const std::byte> rest = record.subspan(sizeof head);
  for (std::uint32_t i = 0; i < head.runs; ++i) {
    RunHead run{};
    if (rest.size() >= sizeof run) std::memcpy(&run, rest.data(), sizeof run);
    const std::uint64_t offset = run.line * kLineBytes;
    const std::uint64_t bytes = run.lines * kLineBytes;
    const std::uint64_t image_bytes = has_images ? bytes : 0;
    const std::uint64_t pool_bytes = memory.pool.size();
    if (rest.size() < sizeof run + image_bytes || offset > pool_bytes ||
        bytes > pool_bytes - offset || (!has_images && !is_revoked_run(head.kind, offset, bytes)))
      return Status(
          StatusCode::kCorrupt,
          fmt::format("{}: record at {}, kind {}: {} bytes at offset {} of the pool, which has {}; "
                      "{} bytes of the record are left",
                      where, place, static_cast<unsigned>(head.kind), bytes, offset, pool_bytes,
                      rest.size()));
    if (has_images) {
      std::memcpy(memory.pool.data() + offset, rest.data() + sizeof run, bytes);
      memory.stored(offset, bytes);
    } else if (Status s = memory.revoked(offset, bytes); !s.ok()) {
      return s;
    }
    rest = rest.subspan(sizeof run + image_bytes);
  }
  return {};
}

}  // namespace

Result<ReplayEnd> replay(const JournalFile& journal, const ReplayMemory& memory) {
  const JournalHead& head = journal.head();
  ReadAhead reader(journal, head.tail);
  ReplayEnd end{.place = head.tail, .epoch = head.tail_epoch};
  while (end.place - head.tail < head.data_bytes) {
    const Result<std::span<std::byte>> bytes = record_at(reader, end.place);
    if (!bytes.ok()) return bytes.status();
    if (!is_record(*bytes, {head.journal_id, end.place, end.epoch})) {
      const Result<std::optional<Resumption>> next = find_resumption(reader, head, end);
      if (!next.ok()) return next.status();
      if (!next->has_value()) break;
      end = {.place = (*next)->place + (*next)->bytes, .epoch = (*next)->epoch};
      continue;
    }
    const std::span<const std::byte> record = bytes->first(head_of(*bytes).bytes);
    if (Status s = take_record(record, memory, journal.path(), end.place); !s.ok()) return s;
    end.place += record.size();
  }
  if (end.place < head.needed)
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: the records end at {}, expected them up to {} at least: the "
                              "journal is damaged, and the pool's file needs it",
                              journal.path(), end.place, head.needed));
  return end;
}

Result<JournalPlace> replay_left(const RecordRing& ring, const JournalFile& journal,
                                 const ReplayMemory& memory) {
  return ring.for_each_record(journal.head(),
                              [&](JournalPlace place, std::span<const std::byte> record) {
                                return take_record(record, memory, journal.path(), place);
                              });
}

}  // namespace flugs::pmem
