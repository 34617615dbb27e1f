#pragma once

#include <string>
#include <utility>

#include "flugs/status.h"
#include "tools/support/cleanup.h"

namespace flugs::tools {

/// Another program that fills the file system of a pool, and frees it again. A file beside the pool
/// takes the space; it is removed at the end, also if the process is interrupted.
class MediumFiller {
 public:
  /// `pool` need not exist yet. Fails with kInvalidArgument if its file system has more than 1 GB:
  /// it should have no other users.
  static Result<MediumFiller> beside(const std::string& pool);

  /// Returns when not even a page is left. Fails with kIoError.
  Status fill();
  void free();

 private:
  explicit MediumFiller(std::string path) : file_(std::move(path)) {}

  TemporaryFile file_;
};

}  // namespace flugs::tools
