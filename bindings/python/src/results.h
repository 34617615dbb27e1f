#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bindings/python/src/classes.h"
#include "flugs/arrow_abi.h"
#include "flugs/stream.h"

namespace flugs::python {

/// The rows of a query that runs, taken once: as objects, or as an Arrow stream. It ends with its
/// transaction.
class Stream : public Child, public std::enable_shared_from_this<Stream> {
 public:
  /// `owns`: the transaction is for this query only, and ends with it.
  Stream(std::shared_ptr<Work> work, bool owns, std::unique_ptr<Interrupt> interrupt,
         query::ResultStream&& rows);
  ~Stream();
  void end() noexcept override;
  /// Gives up the rows that are left. Throws Busy in the handler of a signal that interrupts a call
  /// of the same transaction. Does nothing in a process that was forked.
  void close();

  const std::vector<query::ResultColumn>& columns() const noexcept { return columns_; }
  /// Rows come as dicts instead of tuples.
  void give_dicts();
  /// The next row, or null.
  nb::object next_row();
  /// Empty if the rows were given up, or their transaction ended, before the last one was taken.
  std::string explain();

  /// The next batch as two capsules of Arrow, "arrow_schema" and "arrow_array"; or None.
  nb::object next_batch();
  /// Once: the rows go one way only. Throws.
  void give_to_arrow();
  // For Arrow, also in threads that have no interpreter. Both give a number as errno does.
  int get_schema(ArrowSchema& out) noexcept;
  /// A released array at the end.
  int get_next(ArrowArray& out) noexcept;
  const char* last_error() const noexcept { return error_.empty() ? nullptr : error_.c_str(); }

 private:
  /// What lives as long as the engine may use it.
  struct Used {
    std::unique_ptr<Interrupt> interrupt;
    query::ResultStream rows;
  };

  /// The values of a column in the batch.
  struct Lane {
    const std::int64_t* ints = nullptr;
    const double* doubles = nullptr;
    query::TextColumn texts;
    std::span<const std::uint8_t> nulls;
    std::shared_ptr<const query::TextDictionary> dictionary;
    std::vector<nb::object> objects;  ///< of its codes, each made when it is needed
  };

  /// Within the gate.
  void give_up() noexcept;
  bool load();
  void check_not_closed() const;
  void look_at_batch();
  Status pull(const std::stop_token& stop);
  void finish() noexcept;
  nb::object value(std::size_t column);
  int fail(Status why) noexcept;
  int fail_ended() noexcept;

  const std::shared_ptr<Work> work_;
  const bool owns_;
  std::unique_ptr<Interrupt> interrupt_;  // outlives rows_
  std::vector<query::ResultColumn> columns_;
  std::optional<query::ResultStream> rows_;  // empty: at the end, or ended
  bool is_finished_ = false;
  std::string plan_;  // of rows that are finished
  bool is_closed_ = false;
  bool is_given_ = false;
  bool gives_dicts_ = false;
  std::vector<nb::object> names_;
  query::StreamBatch batch_;
  std::size_t row_ = 0;
  std::vector<Lane> lanes_;
  std::string error_;
};

/// Throws what the query fails with.
std::shared_ptr<Stream> run(const PyQuery& query, query::RunOptions options);
/// So many rows at most; below 0: all.
nb::list fetch(Stream& stream, std::int64_t rows);
/// A capsule "arrow_array_stream".
nb::object arrow_capsule(const std::shared_ptr<Stream>& stream);

}  // namespace flugs::python
