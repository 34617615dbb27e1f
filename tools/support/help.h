#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace flugs::tools {

/// The text of `--help`: of a command its options, of a group the list of its commands, one line
/// each. A command with the group "" is left out of lists.
///
/// All commands look alike because the text of an option is made here. A number is N, words to
/// choose from are a|b, and anything else has the placeholder that the option names as its type:
/// POOL, FILE, DIR and so on. What an option accepts and its default stand behind its description.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

/// Whether `app` only holds commands: `flugs` and its groups.
bool is_group(const CLI::App& app);

/// The command or group that the command line named last.
CLI::App& named_last(CLI::App& app);

/// What to say about a word that is no command: the commands of that name in the groups, or how to
/// get the list.
std::string unknown_command(const CLI::App& app, const CLI::App& group, const std::string& word);

}  // namespace flugs::tools
