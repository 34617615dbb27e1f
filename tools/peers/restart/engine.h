#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "bench/restart/restart_data.h"
#include "flugs/status.h"

namespace flugs::tools {

/// A row of the restart benchmark's table as another engine has it: c1 to c4, found by a key.
struct PeerRow {
  std::int64_t id = 0;
  std::array<std::int32_t, bench::kRestartColumns> values{};

  friend bool operator==(const PeerRow&, const PeerRow&) = default;
};

/// An engine as one thread uses it.
class PeerSession {
 public:
  virtual ~PeerSession() = default;

  /// Finds the row whose id `row` has. Fails with kNotFound, kIoError.
  virtual Status find(PeerRow& row) = 0;
  /// One transaction: inserts those rows, and c2 of the row `changed`, unless null, gets the value
  /// that it has there. Durable when: it returns ok, as far as `guarantee` says. Fails with
  /// kIoError.
  virtual Status write(std::span<const PeerRow> inserted, const PeerRow* changed) = 0;
};

/// Another engine, for comparison. Each engine has a program of its own, so that its start costs
/// only what that engine's library costs. It is set up as an expert would for durable commits and a
/// quick start.
class PeerEngine {
 public:
  /// Gives the next row of the bulk load; ids ascend.
  using NextRow = std::function<const PeerRow&()>;

  virtual ~PeerEngine() = default;

  /// How it is set up, and what a commit guarantees; for the report.
  virtual std::string setup() const = 0;
  virtual std::string guarantee() const = 0;

  /// Opens what is in a directory, or makes it. Fails with kIoError.
  virtual Status open(const std::string& directory, bool create) = 0;
  /// Loads `rows` rows into the empty table and leaves no log behind. Fails with kIoError.
  virtual Status load(std::uint64_t rows, const NextRow& next) = 0;
  /// Thread-safety: any thread. Fails with kIoError.
  virtual Result<std::unique_ptr<PeerSession>> session() = 0;
};

/// Name and version of the engine of this program.
std::string peer_engine_name();
std::unique_ptr<PeerEngine> make_peer_engine();

}  // namespace flugs::tools
