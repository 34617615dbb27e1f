#pragma once

#include <sys/prctl.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include "bench/support/shared_file.h"
#include "flugs/status.h"
#include "tools/support/exit_status.h"

namespace flugs::tools {

/// As much of the text as there is room for, and a zero.
template <std::size_t size>
void fill_text(const std::string& text, char (&out)[size]) {
  out[text.copy(out, size - 1)] = '\0';
}

/// Space that the files below a directory take on the medium.
inline std::uint64_t bytes_taken(const std::string& directory) {
  constexpr std::uint64_t kBlockBytes = 512;
  std::uint64_t bytes = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, none)) {
    struct stat info{};
    if (stat(entry.path().c_str(), &info) == 0)
      bytes += static_cast<std::uint64_t>(info.st_blocks) * kBlockBytes;
  }
  return bytes;
}

/// Opens the engine as the exchange says, and describes it there.
template <typename Engine, typename Exchange>
Status open_engine(Engine& engine, Exchange& exchange) {
  fill_text(engine.name(), exchange.engine);
  if (Status s = engine.open(exchange.directory, exchange.survives_kill_only); !s.ok()) return s;
  fill_text(engine.setup(), exchange.setup);
  fill_text(engine.guarantee(), exchange.guarantee);
  return {};
}

/// A program that does what the exchange in a shared file says, and dies with its parent:
///
///   flugs-peer-NAME EXCHANGE --spawned-at NS
///
/// `run` gives whether all that was checked did hold.
template <typename Exchange, typename Run>
int run_exchange_program(std::span<char*> arguments, const Run& run) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: see tools/peers/engines/exchange_program.h\n");
    return kExitCouldNotRun;
  }
  Result<bench::SharedFile> file = bench::SharedFile::open(arguments[1], sizeof(Exchange));
  Status status = file.status();
  if (file.ok()) {
    const Result<bool> good = run(*reinterpret_cast<Exchange*>(file->data()));
    if (good.ok()) return *good ? kExitOk : kExitCheckFailed;
    status = good.status();
  }
  std::fprintf(stderr, "flugs: %s\n", status.to_string().c_str());
  return kExitCouldNotRun;
}

}  // namespace flugs::tools
