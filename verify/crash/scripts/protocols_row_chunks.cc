// Protocols row_chunk and chunk_list.

#include "verify/crash/scripts/scripts.h"

namespace flugs::crash {

namespace {

constexpr std::int64_t kWide = std::int64_t{1} << 40;

/// 32 rows of 64 bytes to a chunk, or of 32 while values are small.
TableSchema widths_schema() {
  TableSchema schema("widths");
  schema.column("id", Type::kInt32)
      .column("a", Type::kInt64)
      .direct()
      .column("b", Type::kInt64)
      .direct()
      .primary_key({"id"});
  return schema;
}

std::vector<Value> widths_row(std::int32_t id, std::int64_t a, std::int64_t b) {
  return {Value::int32(id), Value::int64(a), Value::int64(b)};
}

/// Uses up rows without leaving any: the next transaction begins a new chunk.
void use_up_wide_chunk(CrashRig& rig, std::int32_t first) {
  Writes inserts;
  Writes removes;
  for (std::int32_t i = 0; i < 16; ++i) {
    inserts.push_back(insert("wide", wide_row(first + i)));
    removes.push_back(remove("wide", first + i));
  }
  rig.commit(inserts);
  rig.commit(removes);
}

}  // namespace

void script_row_chunks(CrashRig& rig) {
  rig.create_table(log_schema());
  Writes writes;
  for (std::int32_t id = 1; id <= 62; ++id) writes.push_back(insert("log", log_entry(id, id)));
  rig.commit(writes);
  rig.watch();
  for (std::int32_t id = 100; id < 106; ++id)
    rig.commit({insert("log", log_entry(id, id)), insert("log", log_entry(id + 100, id))});
}

// Each transaction begins a chunk of its own, and the later one commits first.
void script_chunks_of_two(CrashRig& rig) {
  rig.create_table(wide_schema());
  rig.watch();
  const std::size_t first = rig.begin({insert("wide", wide_row(1))});
  rig.commit({insert("wide", wide_row(2))});
  rig.commit(first);
  const std::size_t second = rig.begin({insert("wide", wide_row(3)), remove("wide", 1)});
  rig.crash(0);
  static_cast<void>(second);
  rig.commit({insert("wide", wide_row(4))});
}

// Chunks that a crash leaves unused, each wider in another column: rows go through all of them.
void script_widening(CrashRig& rig) {
  rig.create_table(widths_schema());
  rig.commit({insert("widths", widths_row(1, 1, 1)), insert("widths", widths_row(2, 2, 2))});
  rig.watch();
  rig.begin({insert("widths", widths_row(3, kWide, 1))});
  rig.crash(0);
  rig.begin({insert("widths", widths_row(3, 1, kWide))});
  rig.crash(0);
  for (std::int32_t i = 0; i < 5; ++i) {
    Writes writes;
    for (std::int32_t id = 0; id < 20; ++id)
      writes.push_back(insert("widths", widths_row(100 * (i + 1) + id, i < 2 ? 1 : kWide + id, 3)));
    rig.commit(writes);
  }
  rig.commit({update("widths", 1, {set(2, Value::int64(kWide))})});
  rig.commit({update("widths", 2, {set(1, Value::null()), set(2, Value::int64(-1))})});
}

// The seventh chunk needs a root page and a leaf page; the eighth finds them.
void script_chunk_pages(CrashRig& rig) {
  rig.create_table(wide_schema());
  rig.commit({insert("wide", wide_row(1))});
  for (std::int32_t chunk = 0; chunk < 5; ++chunk) use_up_wide_chunk(rig, 100 * chunk + 100);
  rig.watch();
  for (std::int32_t i = 0; i < 20 && !rig.is_done(); ++i) {
    rig.commit({insert("wide", wide_row(2 + i)), insert("wide", wide_row(50))});
    rig.commit({remove("wide", 2 + i), remove("wide", 50)});
  }
}

// Two transactions add chunks whose pointers lie in different lines, and the later one commits
// first.
void script_chunk_lines(CrashRig& rig) {
  rig.create_table(wide_schema());
  for (std::int32_t chunk = 0; chunk < 13; ++chunk) use_up_wide_chunk(rig, 100 * chunk + 100);
  rig.watch();
  const std::size_t first = rig.begin({insert("wide", wide_row(1))});
  rig.commit({insert("wide", wide_row(2))});
  rig.commit(first);
}

}  // namespace flugs::crash
