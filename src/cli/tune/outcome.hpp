// Results of tuning: predicted and measured times, and how good the cost model's choices were.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/bench/measurement.hpp"
#include "engines/choice.hpp"

namespace kiln::cli::tune {

struct Attempt {
  Winner name;
  double predicted = 0;               // microseconds
  std::optional<bench::Times> times;  // measured back to back, on buffers that rotate
  std::optional<double> flushed;      // microseconds of a single execution, L2 flushed before it
  bool chosen = false;                // the cost model's choice
  std::string note;                   // why it was not measured, or why its result is wrong
};

struct Outcome {
  std::string problem;
  std::vector<Attempt> attempts;  // the least prediction first
  std::string failure;            // "" if there is a winner, or only one candidate
  bool kept = false;              // the winner was written to the tuning file

  const Attempt* chosen() const;
  const Attempt* best() const;  // the fastest one measured; null if none was
  // The candidate to remember: the fastest, or the model's choice if that is as fast within noise.
  const Attempt* winner() const;
};

// How often the model's choice came close to the best, among problems with at least two candidates.
struct Summary {
  int problems = 0, close = 0;
  double percent() const { return problems == 0 ? 100 : 100.0 * close / problems; }
};
inline constexpr double close_enough = 1.1;  // times the time of the best
Summary summary_of(std::span<const Outcome> outcomes);
std::string text_of(const Summary& summary);

// The problem, then one line per measured candidate: predicted and measured time.
std::string text_of(const Outcome& outcome);

std::string csv_text(std::span<const Outcome> outcomes);

// One object: the problem, every candidate, what failed.
nlohmann::ordered_json json_of(const Outcome& outcome);

}  // namespace kiln::cli::tune
