#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/exact_value.h"
#include "base/published.h"
#include "columns/cells/cell.h"
#include "columns/cells/column_layout.h"
#include "columns/cells/row_layout.h"
#include "columns/cells/string_heap.h"
#include "columns/dictionary/dictionary.h"
#include "flugs/function_ref.h"
#include "flugs/schema.h"
#include "flugs/value.h"
#include "pmem/pool/pool.h"

namespace flugs::pmem {
class WarmList;
}

namespace flugs::columns {

class Unflushed;

/// The longest text of a column.
inline constexpr std::size_t kTextBytesMax = std::numeric_limits<std::int32_t>::max();

/// The value with the same payload, or text, of another type; NULL stays NULL.
Value with_type(const Value& value, Type type) noexcept;

/// The one form of a value of a type that is stored and compared: -0.0 becomes 0.0, every NaN one
/// NaN; an int32 becomes an int64 of a column that has become one meanwhile.
Value normalised(const Value& value, Type column_type) noexcept;
/// The payload of that form, for a value that is not NULL and a type that is not of texts.
inline std::int64_t normalised_payload(const Value& value, Type column_type) noexcept {
  FLUGS_DCHECK(!value.is_null());
  if (column_type == Type::kDouble || column_type == Type::kBool)
    return normalised(value, column_type).raw();
  return is_narrow_type(value.type()) ? static_cast<std::int32_t>(value.raw()) : value.raw();
}

/// One column of a table: turns values into cells of rows and back. The table itself maps row
/// positions to rows and knows their visibility.
/// Thread-safety: any thread, except load.
/// Source: SOFORT (DaMoN 2014), section 2 (PColumn).
class Column {
 public:
  /// `layout` is initialised (`initialise`) or comes from the pool; its type, encoding and
  /// nullability agree with the checksummed schema. `hints` is the index of its dictionary; null if
  /// that index is in DRAM.
  Column(pmem::Pool& pool, ColumnLayout& layout, HintIndexLayout* hints, Decoder& decoder,
         const std::string& name, const std::string& table);

  /// Fills the layout of a new column; `schema.encoding` must not be kAuto.
  static void initialise(ColumnLayout& layout, const ColumnSchema& schema) noexcept;
  /// Opening: claims the extents of the column. Fails with kCorrupt.
  Status load();

  const std::string& name() const noexcept { return names_.get().part.name; }
  /// Renames the column or its table. One thread at a time. Messages about damage in parts of the
  /// column keep the name from opening.
  void rename(const std::string& name, const std::string& table);
  Type type() const noexcept { return type_; }
  std::uint8_t scale() const noexcept { return scale_; }
  /// Whether a value is stored as it is: NULL, or of the column's type and scale.
  bool is_own(const Value& value) const noexcept {
    return own_kinds_.has(value) || value.is_null();
  }
  /// The value as the column stores and compares it. The value must stand for one of the column
  /// exactly (exact_value); any other comes back as it is.
  Value fitted(const Value& value) const noexcept {
    return normalised(is_own(value) ? value : exact_value(value, type_, scale_).value_or(value),
                      type_);
  }
  bool nullable() const noexcept { return nullable_; }
  bool is_dictionary() const noexcept { return is_dictionary_; }
  bool is_text() const noexcept { return is_text_; }
  Dictionary& dictionary() noexcept { return dictionary_; }
  const Dictionary& dictionary() const noexcept { return dictionary_; }
  std::uint64_t bytes_in_pool() const {
    return dictionary_.bytes_in_pool() + heap_.bytes_in_pool();
  }

  /// For a column that was added to a table: sets the value of all rows that lack the column. Call
  /// it before any other thread has the column.
  void set_constant(const Cell& cell);
  bool has_constant() const noexcept { return constant_.has_value(); }
  const Cell& constant() const noexcept {
    FLUGS_DCHECK(constant_.has_value());
    return *constant_;
  }
  CellKind cell_kind() const noexcept {
    return is_dictionary_ ? CellKind::kCode : is_text_ ? CellKind::kText : CellKind::kInteger;
  }
  /// The value of the constant.
  Value constant_value() const noexcept;
  /// Whether the constant can be decoded: as `was_plausible_at_opening` of a row's cell.
  bool has_plausible_constant() const noexcept;
  /// Makes this object the newest edition of a column that got another type or began anew. `former`
  /// is the edition before; it reads the existing cells of that edition. A value has the same
  /// payload, or text, in both. `number` is the column's number in its table; no other edition has
  /// the number `edition`. Call it before any other thread has this object.
  void set_former(std::unique_ptr<Column> former, std::size_t number,
                  std::uint16_t edition) noexcept;
  /// Destroys the editions between the first and this one, which have no cells left. Precondition:
  /// all threads read only cells of this edition, and none has a pointer to the others.
  void forget_middle_editions() noexcept;
  /// The same for a column that takes the place of a dropped one and reads nothing.
  void stand_in_for(const Column& dropped) noexcept { edition_ = dropped.edition_; }
  /// Takes ownership of its decoder; otherwise the table owns it.
  void own_decoder(std::unique_ptr<Decoder> decoder) noexcept {
    owned_decoder_ = std::move(decoder);
  }
  const Column* former() const noexcept { return former_.load(std::memory_order_acquire); }
  Column* former() noexcept { return former_.load(std::memory_order_acquire); }
  /// The edition's number: 0 for the first.
  std::uint16_t edition() const noexcept { return edition_; }
  /// Null: no such edition exists yet.
  const Column* at_edition(std::uint16_t edition) const noexcept;
  /// Its part of edition_mark; 0 after it was dropped.
  std::uint64_t mark() const noexcept { return is_dropped() ? 0 : mark_; }
  /// Whether rows may be of this edition: its extents have been claimed.
  bool is_used() const noexcept { return used_.load(std::memory_order_acquire); }
  void set_used(bool used) noexcept { used_.store(used, std::memory_order_release); }
  /// Calls `visit` for this edition, and for all earlier ones in use.
  void for_each_used(FunctionRef<void(Column&)> visit);
  /// Makes `decoder` decode cells of this edition, which has no dictionary, and of no other.
  void describe(Decoder& decoder) const noexcept;
  /// Marks the column dropped. Rows may still have its cells; they must not be read or written.
  void set_dropped() noexcept;
  /// A reader of a chunk or group without values of a dropped column sees the drop here.
  bool is_dropped() const noexcept { return dropped_.load(std::memory_order_acquire); }

  /// Whether the column accepts a value. Its type is, or was a moment ago, `type`. The caller knows
  /// whether it was dropped. kConstraintViolated says why it refuses the value.
  Status check(const Value& value, Type type) const;
  /// A failure with this code. Its message has the values that the column expects, and `value`, and
  /// ends with `purpose`. The type of the column is, or was a moment ago, `type`.
  Status misfit(StatusCode code, const Value& value, Type type,
                std::string_view purpose = {}) const;
  /// The cell for a checked value. Adds to `unflushed` all that must be flushed before a row with
  /// the cell commits. Fails with kOutOfSpace.
  Result<Cell> encode(const Value& value, Unflushed& unflushed, pmem::Persister& persister);
  /// The same for a value that is stored as it is, or has been encoded not long ago, if that takes
  /// no call. Also gives the narrowest width, as bits_for does. False: encode must do it.
  bool encode_at_once(const Value& value, Cell& cell, std::uint8_t& bits) const noexcept {
    if (is_dropped()) return false;
    if (!is_plain_) {
      if (!has_texts_of_rows() || value.is_null() ||
          value.as_string().size() > text_cell::kInlineBytesMax)
        return false;
      cell = text_cell::make_inline(value.as_string());
      bits = 128;
      return true;
    }
    const std::int64_t raw = value.is_null() ? 0 : normalised_payload(value, type_);
    if (is_dictionary_) {
      const std::uint32_t code =
          value.is_null() ? dictionary_.durable_null_code() : dictionary_.encoded_lately(raw);
      if (code == Dictionary::kNone) return false;
      cell = {code, 0, false};
      bits = code_bits_for(std::uint64_t{code} + 1);
      return true;
    }
    cell.low = is_narrow_ ? static_cast<std::uint32_t>(raw) : static_cast<std::uint64_t>(raw);
    cell.high = 0;
    cell.is_null = value.is_null();
    bits = widths_.nearest(integer_bits_for(cell.low));
    return true;
  }
  /// The same for a value from another row of the column: long text that the column already has is
  /// not stored again.
  Result<Cell> encode_stored(const Value& value, Unflushed& unflushed, pmem::Persister& persister);
  /// A text cell for text that this column has in the pool, or for short text.
  Cell cell_of_stored(std::string_view text) const noexcept;
  /// As encode for every `stride`-th of `values`, from `first` on; the cells go to the same places
  /// of `cells`.
  Status encode_many(std::span<const Value> values, std::size_t first, std::size_t stride,
                     std::span<Cell> cells, Unflushed& unflushed, pmem::Persister& persister);
  /// Whether cells may lead to texts that belong to rows, not to entries of a dictionary.
  bool has_texts_of_rows() const noexcept { return is_text_ && !is_dictionary_; }
  /// A number that no other edition of any column has: that of its heap.
  std::uint64_t heap_number() const noexcept { return heap_.number(); }
  /// Whether a cell of this edition leads to a text in its heap.
  bool is_long_text(const Cell& cell) const noexcept {
    return text_cell::tag_of(cell.high) == text_cell::kOutOfLine && has_texts_of_rows();
  }
  /// A text of this edition, which encode has stored, is in no row any more, or only in dead ones
  /// (StringHeap::give_back). Texts of a key stay: its entries may still be compared with them.
  void give_back_text(std::uint64_t offset, std::uint32_t bytes, std::uint64_t since) noexcept {
    if (!is_in_key()) heap_.give_back(offset, bytes, since);
  }
  /// From now on row groups may have these texts: they are never given back (StringHeap::keep).
  void keep_texts(std::span<const Cell> cells) {
    if (has_texts_of_rows()) heap_.keep(cells);
  }
  /// Where the long texts are, for sweeps and statistics.
  StringHeap& heap() noexcept { return heap_; }
  std::uint64_t texts_given_back_until() const { return heap_.given_back_until(); }
  /// A key of the table has, or had in this process, the column.
  void note_in_key() noexcept { in_key_.store(true, std::memory_order_seq_cst); }
  bool is_in_key() const noexcept { return in_key_.load(std::memory_order_seq_cst); }
  /// The narrowest width for the cell.
  std::uint8_t bits_for(const Cell& cell) const noexcept;
  /// What the column needs in the layout of a new chunk: at least `bits`, with room for later
  /// codes, and `more_bits` on top if it has many.
  CellNeed need(std::uint8_t bits, unsigned more_bits = 0) const noexcept;

  Value value(const RowLayout& layout, const std::byte* row, std::size_t index) const noexcept {
    if (__builtin_expect(is_dropped(), 0)) return Value::null();
    if (const Column* former = former_of(layout, index))
      return with_type(former->value(layout, row, index), type_);
    if (is_dictionary_)
      return dictionary_.value(static_cast<std::uint32_t>(layout.load(row, index)));
    return direct_value(layout, row, index);
  }
  bool is_null(const RowLayout& layout, const std::byte* row, std::size_t index) const noexcept {
    if (const Column* former = former_of(layout, index)) return former->is_null(layout, row, index);
    if (!is_dictionary_) return layout.load_null(row, index);
    return layout.load(row, index) == dictionary_.null_code();
  }
  /// Payload of a fixed-width column; 0 for NULL.
  std::int64_t integer(const RowLayout& layout, const std::byte* row,
                       std::size_t index) const noexcept {
    if (const Column* former = former_of(layout, index)) return former->integer(layout, row, index);
    return own_integer(layout, row, index);
  }
  /// The same for a cell of this edition.
  std::int64_t own_integer(const RowLayout& layout, const std::byte* row,
                           std::size_t index) const noexcept {
    const std::uint64_t bits = layout.load(row, index);
    if (!is_dictionary_) return layout.load_null(row, index) ? 0 : from_bits(bits);
    return dictionary_.integer(static_cast<std::uint32_t>(bits));
  }
  /// Starts loading the value's dictionary entry, if it has one.
  void prefetch(const RowLayout& layout, const std::byte* row, std::size_t index) const noexcept {
    if (const Column* former = former_of(layout, index))
      return former->prefetch(layout, row, index);
    own_prefetch(layout, row, index);
  }
  void own_prefetch(const RowLayout& layout, const std::byte* row,
                    std::size_t index) const noexcept {
    if (is_dictionary_) dictionary_.prefetch(static_cast<std::uint32_t>(layout.load(row, index)));
  }
  /// Text of a text column; empty for NULL.
  std::string_view text(const RowLayout& layout, const std::byte* row,
                        std::size_t index) const noexcept {
    if (const Column* former = former_of(layout, index)) return former->text(layout, row, index);
    return own_text(layout, row, index);
  }
  /// The same for a cell of this edition.
  std::string_view own_text(const RowLayout& layout, const std::byte* row,
                            std::size_t index) const noexcept {
    if (is_dictionary_)
      return dictionary_.text(static_cast<std::uint32_t>(layout.load(row, index)));
    return text_cell::view(layout.text_cell(row, index), medium_.base(), medium_.bytes());
  }
  /// Whether the row's value equals a checked, normalised one (NULL equals NULL).
  bool equals(const RowLayout& layout, const std::byte* row, std::size_t index,
              const Value& value) const noexcept {
    // The common key columns: integers that the row holds itself and that are never NULL. No more
    // than these in line: look-ups by key are in one piece thanks to that.
    const DecodeKind kind = decoder_.kind.load(std::memory_order_relaxed);
    if (kind == DecodeKind::kNarrow && !nullable_)
      return static_cast<std::int32_t>(layout.load(row, index)) == value.raw() && !value.is_null();
    if (kind == DecodeKind::kWide && !nullable_)
      return static_cast<std::int64_t>(layout.load(row, index)) == value.raw() && !value.is_null();
    return equals_in_general(layout, row, index, value);
  }

  /// Whether a cell from the pool can be decoded: code below the dictionary's count, text inside
  /// the pool. For audits.
  bool is_plausible(const RowLayout& layout, const std::byte* row,
                    std::size_t index) const noexcept;
  /// Whether the entry named by a plausible cell exists. For audits, when the dictionary is
  /// indexed.
  bool has_whole_entry(const RowLayout& layout, const std::byte* row,
                       std::size_t index) const noexcept;
  /// As is_plausible, for a row that existed at opening: its text lies where strings of this column
  /// lay then.
  bool was_plausible_at_opening(const RowLayout& layout, const std::byte* row,
                                std::size_t index) const noexcept;
  /// The index of the first of `rows`, all of one layout, that fails was_plausible_at_opening; the
  /// number of rows if all pass.
  std::size_t first_implausible(const RowLayout& layout, std::span<const std::byte* const> rows,
                                std::size_t index) const noexcept;
  /// Whether this edition can have cells of this kind and width.
  bool fits(CellKind kind, std::uint8_t bits) const noexcept;
  /// For a column of numbers with a dictionary: the width of direct cells for its youngest values.
  std::uint8_t direct_bits() const noexcept;
  /// The number of dictionary entries from which the column is judged again: whether its dictionary
  /// pays.
  std::uint32_t judged_from() const noexcept {
    return judged_from_.load(std::memory_order_relaxed);
  }
  void set_judged_from(std::uint32_t entries) noexcept {
    judged_from_.store(entries, std::memory_order_relaxed);
  }
  void release_all();
  /// Opening: adds the pages of its dictionary and its texts.
  void add_pages(pmem::WarmList& pages) const;

 private:
  /// The edition of a cell; null: this one.
  const Column* former_of(const RowLayout& layout, std::size_t index) const noexcept {
    if (__builtin_expect(former() == nullptr, 1)) return nullptr;
    const Column* found = at_edition(layout.edition(index));
    return found == this ? nullptr : found;
  }
  bool equals_in_general(const RowLayout& layout, const std::byte* row, std::size_t index,
                         const Value& value) const noexcept;
  bool own_equals(const RowLayout& layout, const std::byte* row, std::size_t index,
                  const Value& value) const noexcept;
  Value direct_value(const RowLayout& layout, const std::byte* row,
                     std::size_t index) const noexcept;
  std::int64_t from_bits(std::uint64_t bits) const noexcept {
    // 32-bit types keep their sign; 64-bit payloads in 32 bits are those from 0 to 2^32 - 1.
    return is_narrow_ ? static_cast<std::int64_t>(static_cast<std::int32_t>(bits))
                      : static_cast<std::int64_t>(bits);
  }

  pmem::Pool& pool_;
  const pmem::Medium& medium_;
  ColumnLayout& layout_;
  Decoder& decoder_;
  struct Names {
    SchemaPart part;
    std::string owner;  // the part as messages name it
  };
  static Names names_of(const std::string& name, const std::string& table);
  const std::string& owner() const noexcept { return names_.get().owner; }
  Published<Names> names_;
  Type type_;
  std::uint8_t scale_;
  OwnKinds own_kinds_;
  bool nullable_;
  bool is_dictionary_;
  bool is_text_;
  bool is_narrow_;
  bool is_plain_;  // of fixed width, and two equal values never have different payloads
  /// Widths of cells in which a row holds integers of the type itself.
  struct Widths {
    std::uint8_t least;
    std::uint8_t most;
    std::uint8_t nearest(std::uint8_t bits) const noexcept { return std::clamp(bits, least, most); }
  };
  Widths widths_;
  std::atomic<bool> dropped_{false};
  // About this many codes need 16 bits, and their entries fill half of a second-level cache. The
  // limit is a little lower, because dictionary and index double at that number.
  std::atomic<std::uint32_t> judged_from_{(1u << kSmallCodeBits) - (1u << 11)};
  std::atomic<bool> used_{true};
  std::atomic<bool> in_key_{false};
  std::uint16_t edition_ = 0;
  std::uint64_t mark_ = 0;
  std::unique_ptr<Decoder> owned_decoder_;
  std::unique_ptr<Column> owned_former_;
  std::atomic<Column*> former_{nullptr};  // points to owned_former_
  std::optional<Cell> constant_;
  StringHeap heap_;
  Dictionary dictionary_;
};

/// Whether every value of type `from` has the same payload, or text, in type `to`; a column's type
/// can change only so (decision 0025).
bool keeps_payloads(Type from, Type to) noexcept;

}  // namespace flugs::columns
