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

}  // namespace

std::string usage_sentence(const Misuse& misuse) {
  const std::string help = cat("; see ", misuse.command, " --help");
  if (misuse.unknown.empty()) return misuse.fault + help;
  const bool is_option = misuse.unknown[0].starts_with('-');
  const std::string word = misuse.unknown[0].substr(0, misuse.unknown[0].find('='));
  const std::vector<std::string>& names = is_option ? misuse.options : misuse.commands;
  const std::string meant = nearest(word, names);
  const char* const kind = is_option ? " is no option of " : " is no command of ";
  if (!is_option && names.empty()) return cat(word, " is one argument too many", help);
  if (meant.empty()) return cat(word, kind, misuse.command, help);
  return cat(word, kind, misuse.command, "; did you mean ", meant, "? See ", misuse.command,
             " --help");
}

}  // namespace kiln::cli
