#include "tools/support/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace flugs::tools {

namespace {

constexpr std::size_t kWidth = 96;
constexpr std::size_t kOptionWidthMax = 30;  ///< a longer one has its description below it

constexpr std::size_t kChoicesWidthMax = 40;  ///< more are named in the description

/// Words of a line of a list or of options, and their description.
using Line = std::pair<std::string, std::string>;

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (column != indent && column + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column != indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

std::string described(const std::vector<Line>& lines) {
  std::size_t width = 0;
  for (const Line& line : lines)
    if (line.first.size() <= kOptionWidthMax) width = std::max(width, line.first.size());
  std::string text;
  for (const auto& [words, description] : lines) {
    text += "  " + words;
    text += words.size() > width ? "\n" + std::string(width + 4, ' ')
                                 : std::string(width + 2 - words.size(), ' ');
    text += wrapped(description, width + 4) + "\n";
  }
  return text;
}

/// "a|b" of the type "TEXT:{a,b}"; empty: it is none of these.
std::string choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}');
  if (begin == type.npos || end == type.npos) return {};
  std::string choices = type.substr(begin + 1, end - begin - 1);
  std::replace(choices.begin(), choices.end(), ',', '|');
  return choices;
}

std::string placeholder_of(const CLI::Option& option) {
  if (option.get_type_size() == 0) return {};
  const std::string type = option.get_type_name();
  if (const std::string choices = choices_of(option); choices.size() > kChoicesWidthMax)
    return "NAME";
  else if (!choices.empty())
    return choices + (option.get_delimiter() == '\0' ? "" : ",...");
  for (const char* number : {"UINT", "INT", "FLOAT"})
    if (type.starts_with(number)) return "N";
  return type.substr(0, type.find(":FILE"));
}

/// "1 to 16, default 4": of "UINT:UINT in [1 - 16]" and the default. Many choices are named here.
std::string accepted_by(const CLI::Option& option) {
  if (option.get_type_size() == 0) return {};
  std::string text;
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find("in [");
  const std::size_t middle = type.find(" - ", begin);
  const std::size_t end = type.find(']', middle);
  if (begin != type.npos && middle != type.npos && end != type.npos)
    text = fmt::format("{} to {}", type.substr(begin + 4, middle - begin - 4),
                       type.substr(middle + 3, end - middle - 3));
  if (std::string choices = choices_of(option); choices.size() > kChoicesWidthMax) {
    for (std::size_t at = 0; (at = choices.find('|', at)) != choices.npos; at += 2)
      choices.replace(at, 1, ", ");
    text = choices;
  }
  std::string value = option.get_default_str();
  if (value.starts_with('[')) value = value.substr(1, value.size() - 2);  // of several numbers
  if (!value.empty()) text += fmt::format("{}default {}", text.empty() ? "" : ", ", value);
  return text;
}

Line line_of(const CLI::Option& option) {
  std::string words =
      option.get_positional() ? option.get_name(true, false) : option.get_name(false, true);
  words = words.substr(0, words.find('{'));  // "--no-check{false}"
  if (const std::size_t comma = words.find(','); comma != words.npos) words.insert(comma + 1, " ");
  if (!option.get_positional())
    if (const std::string placeholder = placeholder_of(option); !placeholder.empty())
      words += " " + placeholder;
  std::string description = option.get_description();
  if (const std::string accepted = accepted_by(option); !accepted.empty())
    description += fmt::format(" ({})", accepted);
  return {std::move(words), std::move(description)};
}

std::vector<Line> options_of(const CLI::App& app, bool positional) {
  std::vector<Line> lines;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty() && option->get_positional() == positional)
      lines.push_back(line_of(*option));
  return lines;
}

std::vector<const CLI::App*> listed(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

/// A heading and a line for each command, with the whole name, as it can be typed.
std::string list_of(const CLI::App& app, const std::string& name) {
  std::vector<std::pair<std::string, std::vector<Line>>> parts(1);
  for (const CLI::App* sub : listed(app)) {
    const std::string full = name + " " + sub->get_name();
    if (!is_group(*sub)) {
      parts.front().second.emplace_back(full, sub->get_description());
      continue;
    }
    auto& part = parts.emplace_back(sub->get_description(), std::vector<Line>());
    for (const CLI::App* command : listed(*sub))
      part.second.emplace_back(full + " " + command->get_name(), command->get_description());
  }
  std::size_t width = 0;
  for (const auto& part : parts)
    for (const Line& line : part.second) width = std::max(width, line.first.size());
  std::string text;
  for (auto& [heading, lines] : parts) {
    if (lines.empty()) continue;
    for (Line& line : lines) line.first.resize(width, ' ');
    text += "\n" + (heading.empty() ? "" : heading + ":\n") + described(lines);
  }
  return text;
}

}  // namespace

bool is_group(const CLI::App& app) {
  return !app.get_subcommands([](const CLI::App*) { return true; }).empty();
}

CLI::App& named_last(CLI::App& app) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  return named.empty() ? app : named_last(*named.front());
}

std::string unknown_command(const CLI::App& app, const CLI::App& group, const std::string& word) {
  const std::string within =
      &group == &app ? app.get_name() : app.get_name() + " " + group.get_name();
  std::string text = fmt::format("'{} {}' is no command", within, word);
  std::string others;
  for (const CLI::App* sub : listed(app)) {
    if (!is_group(*sub) && sub->get_name() == word)
      others += fmt::format("{}'{} {}'", others.empty() ? "" : ", ", app.get_name(), word);
    for (const CLI::App* command : listed(*sub))
      if (command->get_name() == word)
        others += fmt::format("{}'{} {} {}'", others.empty() ? "" : ", ", app.get_name(),
                              sub->get_name(), word);
  }
  if (!others.empty()) return text + "; there is " + others;
  return text + fmt::format("; '{}' lists all", within);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode /*mode*/) const {
  std::string text = wrapped(app->get_description(), 0) + "\n\nUsage: " + name;
  if (is_group(*app)) {
    text += " COMMAND [OPTIONS]\n" + list_of(*app, name);
  } else {
    const std::vector<Line> positionals = options_of(*app, true);
    for (const Line& line : positionals) text += " " + line.first;
    text += " [OPTIONS]\n";
    if (!positionals.empty()) text += "\n" + described(positionals);
  }
  text += "\nOptions:\n" + described(options_of(*app, false));
  if (is_group(*app) && !app->get_footer().empty()) text += "\n" + app->get_footer() + "\n";
  return text;
}

}  // namespace flugs::tools
