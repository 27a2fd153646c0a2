#include "cli/usage.hpp"

#include <algorithm>
#include <vector>

#include "core/text.hpp"

namespace kiln::cli {
namespace {

// Insertions, deletions, replacements and exchanges of neighbours that make `a` out of `b` (optimal
// string alignment).
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

// The name that `word` may have been meant for: one that begins it or that it begins, else the
// nearest one, if no more than a third of it differs. "" if there is none.
std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names) {
    if (word.size() > 2 && (word.starts_with(name) || name.starts_with(word))) return name;
    if (const std::size_t apart = distance(word, name); apart < least) least = apart, best = name;
  }
  return best;
}

// The command that the line got to: "kiln cache prune".
const CLI::App& command_of(const CLI::App& app, std::string& path) {
  path += app.get_name();
  const std::vector<CLI::App*> below = app.get_subcommands();
  if (below.empty()) return app;
  path += " ";
  return command_of(*below.back(), path);
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

}  // namespace

std::string usage_sentence(const CLI::App& app, const CLI::ParseError& error) {
  std::string path;
  const CLI::App& command = command_of(app, path);
  const std::string help = cat("; see ", path, " --help");
  const std::vector<std::string> unknown = app.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || unknown.empty())
    return error.what() + help;
  const bool is_option = unknown[0].starts_with('-');
  const std::string word = unknown[0].substr(0, unknown[0].find('='));
  const std::vector<std::string> names = is_option ? option_names(command) : command_names(command);
  const std::string meant = nearest(word, names);
  const char* const kind = is_option ? " is no option of " : " is no command of ";
  if (!is_option && names.empty()) return cat(word, " is one argument too many", help);
  if (meant.empty()) return cat(word, kind, path, help);
  return cat(word, kind, path, "; did you mean ", meant, "? See ", path, " --help");
}

}  // namespace kiln::cli
