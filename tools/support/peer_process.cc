#include "tools/support/peer_process.h"

#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "bench/support/shared_file.h"
#include "tools/support/child_process.h"
#include "tools/support/cleanup.h"
#include "tools/support/exit_status.h"
#include "tools/support/pool_file.h"

namespace flugs::tools {

Result<std::string> peer_program(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = self.parent_path() / ("flugs-peer-" + name);
  if (!std::filesystem::exists(program, error))
    return Status(StatusCode::kNotFound,
                  program + " was not built: its library was not there (tools/setup --figures)");
  return program;
}

Result<bool> run_peer_process(const std::string& program, const std::string& directory,
                              std::span<std::byte> exchange) {
  std::error_code error;
  if (!std::filesystem::create_directory(directory, error))
    return Status(StatusCode::kIoError,
                  directory + ": " + (error ? error.message() : "exists already"));
  const TemporaryFile database(directory);
  const TemporaryFile file(fresh_shared_path(".exchange", exchange.size()));
  Result<bench::SharedFile> shared =
      bench::SharedFile::create(file.path(), bench::whole_pages(exchange.size()));
  if (!shared.ok()) return std::move(shared).status();
  std::memcpy(shared->data(), exchange.data(), exchange.size());
  Result<ChildProcess> child = ChildProcess::start({file.path()}, program);
  if (!child.ok()) return std::move(child).status();
  child->wait();
  if (child->exit_status() != kExitOk && child->exit_status() != kExitCheckFailed)
    return Status(child->exit_status() < 0 ? StatusCode::kCorrupt : StatusCode::kIoError,
                  program + " " + child->describe_end());
  std::memcpy(exchange.data(), shared->data(), exchange.size());
  return child->exit_status() == kExitOk;
}

}  // namespace flugs::tools
