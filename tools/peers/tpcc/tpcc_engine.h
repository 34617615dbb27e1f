#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/tpcc/tpcc_findings.h"
#include "bench/tpcc/tpcc_population.h"
#include "bench/tpcc/tpcc_session.h"
#include "flugs/status.h"

namespace flugs::tools {

/// TPC-C in another engine, with the same rows, inputs and programs as in flugs. It is set up as an
/// expert would.
class TpccEngine {
 public:
  virtual ~TpccEngine() = default;

  /// Name and version, how it is set up, and what a commit guarantees; for the report.
  virtual std::string name() const = 0;
  virtual std::string setup() const = 0;
  virtual std::string guarantee() const = 0;

  /// Makes a database in an empty directory. `survives_kill_only`: commits need not survive more
  /// than the death of the process. Fails with kIoError.
  virtual Status open(const std::string& directory, bool survives_kill_only) = 0;
  /// Loads the population. Fails with kIoError.
  virtual Status load(const bench::TpccOptions& population, bench::TpccLoad& load) = 0;
  /// Thread-safety: any thread. Fails with kIoError.
  virtual Result<std::unique_ptr<bench::TpccSession>> session() = 0;
  /// Reads all rows; no other thread is at work. Gives whether the indexes have as many entries as
  /// their tables. Fails with kIoError.
  virtual Result<bool> read_all(bench::TpccFindings& findings) = 0;
};

/// The engine of this program.
std::unique_ptr<TpccEngine> make_tpcc_engine();

}  // namespace flugs::tools
