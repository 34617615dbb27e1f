#pragma once

#include <memory>
#include <string>

#include "bench/ycsb/ycsb_findings.h"
#include "bench/ycsb/ycsb_rows.h"
#include "bench/ycsb/ycsb_session.h"
#include "flugs/status.h"

namespace flugs::tools {

/// YCSB in another engine, with the same rows and operations as in flugs. It is set up as an expert
/// would.
class YcsbEngine {
 public:
  virtual ~YcsbEngine() = default;

  /// Name and version, how it is set up, and what a commit guarantees; for the report.
  virtual std::string name() const = 0;
  virtual std::string setup() const = 0;
  virtual std::string guarantee() const = 0;

  /// Makes a database in an empty directory, and loads the rows. `survives_kill_only`: commits need
  /// not survive more than the death of the process. Fails with kIoError.
  virtual Status open(const std::string& directory, bool survives_kill_only) = 0;
  virtual Status load(const bench::YcsbRows& rows) = 0;
  /// Thread-safety: any thread. Fails with kIoError.
  virtual Result<std::unique_ptr<bench::YcsbSession>> session() = 0;
  /// Reads all rows; no other thread is at work. Fails with kIoError.
  virtual Status read_all(bench::YcsbFindings& findings) = 0;
};

/// The engine of this program.
std::unique_ptr<YcsbEngine> make_ycsb_engine();

}  // namespace flugs::tools
