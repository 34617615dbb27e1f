#!/usr/bin/env python3
"""Mistakes in the sources of pmem/journal that the explorer of crash states must find.

    mutations.py --list           NAME:FILE:EXPECTED, a line for each
    mutations.py NAME OUT         writes the source with the mistake to OUT
"""

import os
import sys

SOURCES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "pmem", "journal")


class Mutation:
    """Replaces each old text, which must occur once, by the new one."""

    def __init__(self, name, file, breaks, *replacements, harmless=None, checked=None):
        self.name = name
        self.file = file
        self.breaks = breaks  # the step of a protocol
        self.replacements = replacements
        self.harmless = harmless  # why no power cut, and no kill, shows it
        self.checked = checked    # which check of the library ends the process instead

    def expected(self):
        if self.harmless:
            return "harmless"
        return "checked" if self.checked else "caught"

    def apply(self):
        with open(os.path.join(SOURCES, self.file), encoding="utf-8") as file:
            text = file.read()
        for old, new in self.replacements:
            if text.count(old) != 1:
                raise SystemExit(f"{self.name}: {text.count(old)} times in {self.file}: {old}")
            text = text.replace(old, new)
        return text


MARK = """  for (const LineRun& run : part) {
    FLUGS_DCHECK(run.begin >= base_);
    dirty_.mark(static_cast<std::uint64_t>(run.begin - base_), run.lines * kLineBytes);
  }
"""
RECORD = """  std::byte* const record = ring_.at(tail_);
  write_record(record, part, base_);
  seal(record, bytes);
"""
ROOM = "  if (!make_room(lock, bytes)) return;\n"
CLEAR = "    if (!dirty_.clear(page)) continue;\n"
COPY = ("    copy_words(copies_.data() + batch_.size() * kPageBytes, base_ + page * kPageBytes, "
        "kPageBytes);\n")
WAIT_OF_BATCH = """  if (Status s = journal_.wait_between_work(end_of_journal); !s.ok()) return s;
"""
WAIT_OF_RUN = "  if (status.ok()) status = journal_.wait_between_work(head.needed);\n"
SYNC_OF_RUN = "  if (status.ok()) status = pool_file_.sync_data();\n  if (status.ok()) status = j"
HEAD_OF_RUN = "  if (status.ok()) status = journal_file_.write_head(head);\n"
WRITE_BATCH = "  const Status status = file_.write(begin, {ring_.at(begin), end - begin});\n"
NOTE = "    ring_.note_durable(end);\n"
STORE_DURABLE = "    durable_.store(end, std::memory_order_release);\n"
SYNC_OF_FOUND = "  if (Status s = target.file.sync_data(); !s.ok()) return s;\n"
GOES_ON = "  if (!goes_on(*ring, file_, end)) return {};\n"
WRITE_LEFT = ("    if (Status s = file_.write(place, {(*ring)->at(place), part - place}); !s.ok()) "
              "return s;\n")
LEFT_SEGMENT = "  const std::uint64_t segment_bytes = file_.head().segment_bytes;\n  for"

REVOKE = "  const JournalPlace place = journal_.revoke(offset, pages.size());\n"
WAIT_OF_REVOKE = ("  if (!journal_.wait_between_work(place).ok() || journal_.has_failed()) "
                  "return false;\n")
WRITE_THROUGH = "  if (!pool_file_.write_through(offset, pages).ok()) return false;\n"

MUTATIONS = (
    # Protocol journal, step 3.
    Mutation("no_mark", "journal.cc", "journal 3: a page is not marked", (MARK, "")),
    Mutation("mark_behind_record", "journal.cc", "journal 3: the mark behind place and images",
             (MARK, ""), (RECORD, RECORD + MARK),
             harmless="the mutex is held over all of step 3: no checkpoint begins in between"),
    Mutation("image_before_place", "journal.cc", "journal 3: the images before the place",
             (ROOM, """  std::vector<std::byte> image(bytes);
  write_record(image.data(), part, base_);
""" + ROOM), ("  write_record(record, part, base_);\n",
              "  std::memcpy(record, image.data(), bytes);\n")),
    Mutation("no_checksum_of_place", "journal_format.cc", "journal 4: a record of a former lap",
             ("(identity.place * 0x9E3779B97F4A7C15u)", "0")),
    Mutation("no_checksum_of_epoch", "journal_format.cc", "journal 4: a record of a former opening",
             ("(identity.epoch * 0xC2B2AE3D27D4EB4Fu)", "0")),
    Mutation("no_checksum_of_id", "journal_format.cc", "journal 4: a record of a former journal",
             ("return identity.journal_id ^ ", "return ")),
    Mutation("no_checksum", "journal_format.cc", "journal 4: a torn record",
             ("return head.checksum == checksum_of(bytes.first(head.bytes), identity);",
              "return head.kind == RecordKind::kLines && identity.place != 1;")),
    Mutation("page_written_twice", "journal.cc", "journal 4: no pad, the page is written again",
             ("  if (tail_ < end_max) pad_to(page_end(tail_));\n", ""),
             ("  const JournalPlace begin = durable();\n",
              "  const JournalPlace begin = durable() / kPageBytes * kPageBytes;\n"),
             (WRITE_BATCH, """  const JournalPlace page = page_end(end);
  const Status status = file_.write(begin, {ring_.at(begin), page - begin});
""")),
    Mutation("durable_before_write", "journal.cc", "journal 4 before 5",
             (WRITE_BATCH, "  durable_.store(end, std::memory_order_release);\n" + WRITE_BATCH)),
    Mutation("one_write", "journal.cc", "journal 5: a batch of two segments",
             ("is_first = true; durable() < place;",
              "is_first = true; is_first && durable() < place;")),
    Mutation("half_a_batch", "journal.cc", "journal 4: less is written than is called durable",
             (WRITE_BATCH,
              "  const Status status = file_.write(begin, {ring_.at(begin), kPageBytes});\n")),
    Mutation("failed_write_durable", "journal.cc", "journal 4: a failed write",
             ("  if (status.ok()) {\n    ring_",
              "  if (status.ok() || !status.ok()) {\n    ring_")),
    Mutation("no_wait_for_room", "journal.cc", "journal 3: the wait for room",
             ("(end - recycled_ > data_bytes_)", "(end - recycled_ > 2 * data_bytes_)")),
    Mutation("no_room_for_pad", "journal.cc", "journal 3: room for the pad of the batch",
             ("(left < bytes ? left : 0) + bytes + kPageBytes;",
              "(left < bytes ? left : 0) + bytes;")),
    # Protocol checkpoint.
    Mutation("tail_at_end", "checkpointer.cc", "checkpoint 1 before 2",
             (WAIT_OF_RUN, WAIT_OF_RUN + "  head.tail = journal_.durable();\n"
              "  head.needed = head.tail;\n")),
    Mutation("clear_behind_copy", "checkpointer.cc", "checkpoint 2: the mark behind the copy",
             (CLEAR, ""), (COPY, COPY + CLEAR)),
    Mutation("clear_behind_write", "checkpointer.cc", "checkpoint 2: the mark behind the write",
             (CLEAR, ""),
             ("  return write_copies();\n", """  const Status status = write_copies();
  for (const std::uint64_t written : batch_) dirty_.clear(written);
  return status;
""")),
    Mutation("no_wait_for_copies", "checkpointer.cc", "checkpoint 3: the wait",
             (WAIT_OF_BATCH, "")),
    Mutation("no_wait_before_head", "checkpointer.cc", "checkpoint: the wait of all batches",
             (WAIT_OF_RUN, ""),
             checked="recycle: no space before a tail that is not durable"),
    Mutation("wait_before_copies", "checkpointer.cc", "checkpoint 3: the wait before the copies",
             ("  batch_.clear();\n", "  batch_.clear();\n  if (Status s = "
              "journal_.wait_between_work(journal_.end()); !s.ok()) return s;\n"),
             (WAIT_OF_BATCH, "")),
    Mutation("no_sync", "checkpointer.cc", "checkpoint 4",
             (SYNC_OF_RUN, "  if (status.ok()) status = j")),
    Mutation("sync_behind_head", "checkpointer.cc", "checkpoint 4 before 5",
             (SYNC_OF_RUN, "  if (status.ok()) status = j"),
             (HEAD_OF_RUN, HEAD_OF_RUN + "  if (status.ok()) status = pool_file_.sync_data();\n")),
    Mutation("recycle_before_head", "checkpointer.cc", "checkpoint 5 before 6",
             (HEAD_OF_RUN, "  if (status.ok()) journal_.recycle(head.tail);\n" + HEAD_OF_RUN)),
    Mutation("old_epoch_of_tail", "checkpointer.cc", "checkpoint 5: the epoch of the tail",
             ("  head.tail_epoch = head.epoch;\n", "")),
    Mutation("failure_forgotten", "checkpointer.cc", "checkpoint: pages of a failed one",
             ("  } else {\n    mark_all_again();\n  }\n", "  }\n")),
    Mutation("batch_forgotten", "checkpointer.cc", "checkpoint: pages of a failed batch",
             ("  written_.insert(written_.end(), batch_.begin(), batch_.end());\n", ""),
             ("  return write_copies();\n", """  const Status status = write_copies();
  if (status.ok()) written_.insert(written_.end(), batch_.begin(), batch_.end());
  return status;
""")),
    Mutation("written_now_forgotten", "checkpointer.cc", "checkpoint: pages of write_now",
             ("  mark_all_again();  // the journal's tail has not passed them\n", ""),
             harmless="the pages are in the file, durably, with all that the journal has of them; "
             "only a write_now that fails would leave some out, and the pool is not used then"),
    Mutation("no_sync_of_written_now", "checkpointer.cc", "journal-begin 3",
             ("end, needed);\n  if (status.ok()) status = pool_file_.sync_data();\n",
              "end, needed);\n")),
    # Protocol hole-punch.
    Mutation("no_wait_to_punch", "checkpointer.cc", "hole-punch 2: what made the space free",
             ("  if (Status s = journal_.wait_all_durable(); !s.ok()) return s;\n", "")),
    Mutation("punch_in_a_batch", "checkpointer.cc", "hole-punch 2: copies on their way",
             ("!s.ok()) return s;\n  const std::scoped_lock lock(batch_mutex_);\n  clear_marks",
              "!s.ok()) return s;\n  clear_marks"),
             harmless="one thread punches between batches; test/pmem/journal_test.cc has two"),
    Mutation("punched_pages_dirty", "checkpointer.cc", "hole-punch 2: the marks",
             ("  clear_marks(offset, bytes);\n  return work();\n",
              "  clear_marks(offset, bytes - bytes);\n  return work();\n"),
             harmless="the pages are zeros in memory, too: a checkpoint only fills the hole"),
    # The head.
    Mutation("heads_in_one_page", "journal_file.cc", "the head: two copies",
             ("next.sequence % 2 * kPageBytes", "0 * kPageBytes")),
    Mutation("older_head", "journal_format.cc", "the head: the newer copy counts",
             ("copy.sequence > best->sequence", "copy.sequence < best->sequence")),
    Mutation("head_without_checksum", "journal_format.cc", "the head: a torn copy",
             (" || copy.checksum != checksum_of(copy)", "")),
    # Direct writes.
    Mutation("no_revoke", "direct_writer.cc", "direct 1",
             (REVOKE, "  const JournalPlace place = journal_.end();\n")),
    Mutation("revoke_not_waited_for", "direct_writer.cc", "direct 1 before 3",
             (WAIT_OF_REVOKE, "  if (place == 1) return false;\n")),
    Mutation("revoke_behind_write", "direct_writer.cc", "direct 1 before 3",
             (REVOKE, "  const JournalPlace place = journal_.end();\n"),
             (WRITE_THROUGH, WRITE_THROUGH +
              "  if (!journal_.wait_between_work(journal_.revoke(offset, pages.size())).ok()) "
              "return false;\n"),
             harmless="the record that made the pages free is durable, so nobody asks for them, "
             "and their images are revoked before the pointer to them is stored"),
    Mutation("copies_shown_before_write", "direct_writer.cc", "direct 3 before 4",
             (WRITE_THROUGH, "  static_cast<void>(pool_file_.show_again(offset, pages));\n" +
              WRITE_THROUGH)),
    Mutation("revoke_not_replayed", "replay.cc", "direct 1: replay",
             ("    } else if (Status s = memory.revoked(offset, bytes); !s.ok()) {\n",
              "    } else if (Status s = memory.revoked(offset, 0); !s.ok()) {\n")),
    Mutation("revoked_page_dirty", "pool_journal.cc", "direct 1: replay, the page's mark",
             ("    found->dirty_.clear_all(offset, bytes);\n", ""),
             harmless="the page reads as the pool's file does, and a checkpoint writes it once "
             "more"),
    # Replay.
    Mutation("past_torn_record", "replay.cc", "journal 4: replay ends at the first torn record",
             ("      if (!next->has_value()) break;\n", """      if (!next->has_value()) {
        end.place = page_end(end.place + 1);
        continue;
      }
""")),
    Mutation("no_needed", "replay.cc", "replay: the records that the pool's file needs",
             ("  if (end.place < head.needed)", "  if (end.place > ~head.needed)"),
             harmless="it finds a damaged journal; test/pmem/journal_test.cc damages one"),
    Mutation("replayed_not_marked", "pool_journal.cc", "replay: what it stores is dirty",
             ("found->dirty_.mark(offset, bytes);",
              "if (offset == ~bytes) found->dirty_.mark(offset, bytes);")),
    Mutation("mark_if_different", "replay.cc", "replay: pages that read as they should",
             ("      memory.stored(offset, bytes);\n", ""),
             ("      std::memcpy(memory.pool.data() + offset, rest.data() + sizeof run, "
              "bytes);\n",
                """      std::byte* const to = memory.pool.data() + offset;
      if (std::memcmp(to, rest.data() + sizeof run, bytes) != 0) memory.stored(offset, bytes);
      std::memcpy(to, rest.data() + sizeof run, bytes);
""")),
    Mutation("any_resumption", "replay.cc", "journal-resume 2: where the former records ended",
             ("body.continues == end.place && ", ""),
             harmless="the page of the torn record is never written again, so every replay ends "
             "there at the same place"),
    # Protocol journal-resume.
    Mutation("no_resumption", "journal.cc", "journal-resume 2",
             ("  if (end.epoch != 0) resume_behind(end.place);\n", "")),
    Mutation("same_epoch", "pool_journal.cc", "journal-resume 1: the epoch",
             ("  head.epoch += is_new ? 0 : 1;\n", "")),
    Mutation("same_epoch_when_emptied", "pool_journal.cc", "make_room: the epoch of the tail",
             ("  head.epoch += 1;\n", "")),
    Mutation("no_sync_when_emptied", "pool_journal.cc", "make_room: checkpoint 4",
             ("  if (Status s = target.file.sync_data(); !s.ok()) return s;\n  head.tail = place;",
              "  head.tail = place;")),
    Mutation("emptied_without_pages", "pool_journal.cc", "make_room: checkpoint 3",
             ("target.file.write(offset, {target.pool.data() + offset, kPageBytes})",
              "offset != ~std::uint64_t{0} ? Status() : Status(StatusCode::kIoError, \"\")")),
    # Protocol journal-ring.
    Mutation("ring_not_taken", "pool_journal.cc", "journal-ring 1",
             (GOES_ON, GOES_ON.replace("(!", "(file_.head().epoch != 0 || !"))),
    Mutation("ring_not_written", "pool_journal.cc", "journal-ring 1: the pages", (WRITE_LEFT, "")),
    Mutation("ring_written_in_part", "pool_journal.cc", "journal-ring 1: the last page",
             ("place < *left_end;) {", "place < *left_end / kPageBytes * kPageBytes;) {"),
             ("std::min(page_end(*left_end), ", "std::min(*left_end / kPageBytes * kPageBytes, ")),
    Mutation("ring_not_marked", "pool_journal.cc", "journal-ring 1: what it stores is dirty",
             ("replay_left(**ring, file_, memory);\n",
              "replay_left(**ring, file_,\n{memory.pool, [](std::uint64_t, std::uint64_t) {}, "
              "memory.revoked});\n")),
    Mutation("end_of_ring_forgotten", "pool_journal.cc", "journal-ring 1: where the records end",
             ("  if (*left_end > end.place) end = {", "  if (*left_end == 0) end = {")),
    Mutation("end_of_empty_ring", "pool_journal.cc", "journal-ring 1: a ring without a record",
             ("  if (*left_end == (*ring)->waits_from()) return {};\n", "")),
    Mutation("head_before_ring", "pool_journal.cc", "journal-ring 1 before 2",
             (LEFT_SEGMENT, """  JournalHead early = file_.head();
  early.epoch += 1;
  if (Status s = file_.write_head(early); !s.ok()) return s;
""" + LEFT_SEGMENT)),
    Mutation("ring_removed_first", "pool_journal.cc", "journal-ring 1 before 3",
             (GOES_ON, GOES_ON + "  remove_ring();\n")),
    Mutation("ring_not_removed", "pool_journal.cc", "journal-ring 3",
             ("  if (!target.has_crash_ring) remove_ring();\n", ""),
             harmless="its epoch is not the head's: nobody reads it; test/api looks for the file"),
    Mutation("ring_not_replaced", "record_ring.cc", "journal-ring 3",
             ("  remove_ring_of(journal);\n", "")),
    Mutation("ring_waits_from_tail", "pool_journal.cc", "journal-ring: where records wait from",
             ("named(file_, page_end(end.place))", "named(file_, head.tail)")),
    Mutation("durable_not_noted", "journal.cc", "journal-ring: what is durable is noted",
             (NOTE, "")),
    Mutation("durable_noted_before_write", "journal.cc", "journal-ring: no gap",
             (WRITE_BATCH, NOTE + WRITE_BATCH)),
    Mutation("durable_noted_late", "journal.cc", "journal-ring: noted before the memory is used",
             (NOTE + STORE_DURABLE, STORE_DURABLE + NOTE),
             harmless="the mutex is held over both: nobody uses the memory in between"),
    Mutation("any_record_of_ring", "record_ring.cc", "journal-ring: a record that is not whole",
             ("    if (!is_record(copy, {head.journal_id, end, head.epoch})) break;\n",
              "    if (copy.size() < sizeof record || head.data_bytes == 0) break;\n")),
    Mutation("ring_of_any_opening", "record_ring.cc", "journal-ring: the opening",
             ("head_->epoch == journal.epoch && ", ""),
             harmless="the checksums of its records have the epoch, too"),
    Mutation("ring_of_any_journal", "record_ring.cc", "journal-ring: the journal",
             ("head_->journal_id == journal.journal_id &&\n", "\n"),
             harmless="the name has the id, and so have the checksums of its records"),
    Mutation("ring_of_any_start", "record_ring.cc", "journal-ring: the start of the system",
             ("head_->boot == boot_id() && ", ""),
             harmless="a power cut leaves no ring here; test/api damages the word"),
    Mutation("ring_behind_gap", "pool_journal.cc", "journal-ring: no gap",
             ("ring->waits_from() <= page_end(end.place)", "ring->waits_from() <= ~end.epoch"),
             harmless="only files that were set back have a gap; test/api makes one"),
    Mutation("ring_before_tail", "pool_journal.cc", "journal-ring: an old ring",
             ("ring->waits_from() >= journal.head().tail &&",
              "ring->waits_from() >= journal.head().tail % kPageBytes &&"),
             harmless="only files that were set back have one: what is durable is noted before it "
             "is a tail"),
    # Protocols journal-begin and journal-end, after a kill.
    Mutation("begin_without_sync", "pool_journal.cc", "journal-begin: the file before 1",
             ("begins anew now.\n" + SYNC_OF_FOUND, "begins anew now.\n")),
    Mutation("use_without_sync", "pool_journal.cc", "journal-begin: the file before a promise",
             ("name this journal yet.\n" + SYNC_OF_FOUND, "name this journal yet.\n")),
    # Protocol journal-end.
    Mutation("never_closed", "pool_journal.cc", "journal-end 2",
             ("head.is_closed = is_closed ? 1 : 0;",
              "static_cast<void>(is_closed);\n  head.is_closed = 0;")),
)


def main():
    if sys.argv[1:] == ["--list"]:
        for mutation in MUTATIONS:
            mutation.apply()
            print(f"{mutation.name}:{mutation.file}:{mutation.expected()}")
        return 0
    name, out = sys.argv[1:]
    mutation = next(m for m in MUTATIONS if m.name == name)
    with open(out, "w", encoding="utf-8") as file:
        file.write(mutation.apply())
    return 0


if __name__ == "__main__":
    sys.exit(main())
