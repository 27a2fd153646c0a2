#include "proof/problems.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "cli/files.hpp"
#include "cli/operation/read_line.hpp"
#include "core/error.hpp"
#include "core/split.hpp"
#include "problem/line/problem_line.hpp"
#include "proof/random_lines.hpp"

namespace proof {
namespace {

using namespace kiln;
namespace fs = std::filesystem;

// The command of a list of tests/problems by its name.
struct Owner {
  std::string_view list, command;
  bool plain = false;  // lines without flags
};
constexpr Owner owners[] = {
    {"alexnet", "conv", true}, {"small", "conv", true}, {"backward", "conv"},
    {"local", "local"},        {"matmul", "matmul"},    {"pooling", "pool"},
    {"activation", "act"},     {"softmax", "softmax"},  {"normalization", "norm"},
    {"tensor", "tensor"},      {"reduction", "tensor"},
};

std::vector<fs::path> files_below(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ending)
      files.push_back(entry.path());
  std::ranges::sort(files);  // not in the order of the disk
  return files;
}

class Problems {
 public:
  void add(const std::string& place, const std::string& line) {
    if (!lines_.insert(line).second) return;  // tables have a row for each candidate
    try {
      add(cli::read_one(line, {}).problem);
    } catch (const Error& error) {
      fail(KILN_STATUS_BAD_PARAM, place, ": ", line, ": ", error.what());
    }
  }

  // The convolution of a line in every pass, each with two of the flags, which take turns.
  void add_plain(const std::string& place, const std::string& line) {
    constexpr const char* flags[] = {"--dt f32",
                                     "--dt f16 --layout nhwc",
                                     "--dt f32 --math tf32 --layout nhwc",
                                     "--dt bf16 --mode conv",
                                     "--dt f32 --math strict --layout nhwc --mode conv",
                                     "--dt f64",
                                     "--dt f16",
                                     "--dt f32 --layout nhwc",
                                     "--dt f32 --math tf32",
                                     "--dt bf16 --layout nhwc",
                                     "--dt f64 --layout nhwc --mode conv"};
    for (const char* pass : {"fwd", "dgrad", "wgrad"})
      for (int turn = 0; turn < 2; ++turn)
        add(place, cat("conv --dir ", pass, " ", flags[turns_++ % std::size(flags)], " ", line));
  }

  // The convolutions of a list in every pass, in 16 bits and TF32 and both layouts.
  void add_layers(const fs::path& path) {
    for (const NumberedLine& line : problem_lines(cli::read_file(path.string())))
      for (const char* pass : {"fwd", "dgrad", "wgrad"})
        for (const char* type : {"--dt f16", "--math tf32"})
          for (const char* layout : {"nhwc", "nchw"})
            add(cat(path.string(), ":", line.number),
                cat("conv --dir ", pass, " ", type, " --layout ", layout, " ", line.text));
  }

  void add_list(const fs::path& path, const Owner& owner) {
    for (const NumberedLine& line : problem_lines(cli::read_file(path.string()))) {
      const std::string place = cat(path.string(), ":", line.number);
      if (owner.plain)
        add_plain(place, line.text);
      else
        add(place, cat(owner.command, " ", line.text));
    }
  }

  // A table has the column `problem` first or last; no problem has a comma.
  void add_table(const fs::path& path) {
    bool head = true, first = false;
    int number = 0;
    const std::string text = cli::read_file(path.string());
    for (std::string_view line : split(text, '\n')) {
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || line.starts_with('#')) continue;
      if (std::exchange(head, false)) {
        first = line.starts_with("problem,");
        if (!first && !line.ends_with(",problem")) return;  // of steps or times of the host
        continue;
      }
      const std::size_t comma = first ? line.find(',') : line.rfind(',');
      const std::string_view problem = first ? line.substr(0, comma) : line.substr(comma + 1);
      if (!problem.empty()) add(cat(path.string(), ":", number), std::string(problem));
    }
  }

  std::vector<Problem> take() { return std::move(problems_); }

 private:
  void add(const Problem& problem) {
    if (texts_.insert(text_of(problem)).second) problems_.push_back(problem);
  }

  std::vector<Problem> problems_;
  std::set<std::string> lines_, texts_;  // as they were given, and as text_of() writes them
  std::size_t turns_ = 0;
};

}  // namespace

std::vector<Problem> all_problems(const std::string& source, std::uint64_t random) {
  Problems problems;
  const fs::path root(source);
  for (const fs::path& path : files_below(root / "tests" / "problems", ".txt")) {
    const auto owner = std::ranges::find(owners, path.stem().string(), &Owner::list);
    if (owner == std::end(owners))
      fail(KILN_STATUS_BAD_PARAM, path.string(),
           " is of no known command; expected it in `owners`");
    problems.add_list(path, *owner);
  }
  for (const fs::path& path : files_below(root / "src" / "cli" / "bench" / "layers", ".txt"))
    problems.add_list(path, {"", "conv", true});
  for (const fs::path& path : files_below(root / "tests" / "bench", ".csv"))
    problems.add_table(path);
  for (std::uint64_t number = 0; number < random; ++number)
    problems.add(cat("random line ", number), random_line(number));
  return problems.take();
}

std::vector<Problem> network_layers(const std::string& source) {
  Problems problems;
  const fs::path root(source);
  for (const fs::path& path : files_below(root / "src" / "cli" / "bench" / "layers", ".txt"))
    problems.add_layers(path);
  problems.add_layers(root / "tests" / "proof" / "layers.txt");
  for (const fs::path& path : files_below(root / "tests" / "bench", ".csv"))
    problems.add_table(path);
  return problems.take();
}

}  // namespace proof
