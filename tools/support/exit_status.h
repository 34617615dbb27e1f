#pragma once

namespace flugs::tools {

/// Exit statuses of every command, as `flugs --help` says.
inline constexpr int kExitOk = 0;           ///< every check held
inline constexpr int kExitCheckFailed = 1;  ///< a check failed
inline constexpr int kExitCouldNotRun = 2;  ///< bad usage, or it could not run

}  // namespace flugs::tools
