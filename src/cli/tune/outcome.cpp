#include "cli/tune/outcome.hpp"

#include <nlohmann/json.hpp>

#include "cli/bench/row.hpp"
#include "cli/format.hpp"
#include "core/text.hpp"

namespace kiln::cli::tune {
namespace {

std::string microseconds(double value) { return padded(significant(value, 4), 9); }

}  // namespace

const Attempt* Outcome::chosen() const {
  for (const Attempt& attempt : attempts)
    if (attempt.chosen) return &attempt;
  return nullptr;
}

const Attempt* Outcome::best() const {
  const Attempt* best = nullptr;
  for (const Attempt& attempt : attempts)
    if (attempt.times && (best == nullptr || attempt.times->median < best->times->median))
      best = &attempt;
  return best;
}

const Attempt* Outcome::winner() const {
  constexpr double noise = 1.01;
  const Attempt *fastest = best(), *model = chosen();
  if (fastest != nullptr && model != nullptr && model->times &&
      model->times->median <= noise * fastest->times->median)
    return model;
  return fastest;
}

Summary summary_of(std::span<const Outcome> outcomes) {
  Summary summary;
  for (const Outcome& outcome : outcomes) {
    int measured = 0;
    for (const Attempt& attempt : outcome.attempts) measured += attempt.times.has_value();
    if (measured < 2) continue;
    ++summary.problems;
    const Attempt* const chosen = outcome.chosen();
    summary.close += chosen != nullptr && chosen->times &&
                     chosen->times->median <= close_enough * outcome.best()->times->median;
  }
  return summary;
}

std::string text_of(const Summary& summary) {
  return cat("the choice is within 10% of the best in ", summary.close, " of ", summary.problems,
             " problems (", fixed(summary.percent(), 1), "%)");
}

std::string text_of(const Outcome& outcome) {
  std::string text = outcome.problem;
  if (!outcome.failure.empty()) text += cat("\n  failed: ", outcome.failure);
  const Attempt *const best = outcome.best(), *const chosen = outcome.chosen();
  if (best != nullptr && chosen != nullptr && chosen->times)
    text += cat("\n  the choice takes ", fixed(chosen->times->median / best->times->median, 2),
                " times the best's time");
  int left_out = 0;
  for (const Attempt& attempt : outcome.attempts) {
    if (!attempt.times && attempt.note.empty()) {
      ++left_out;
      continue;
    }
    text += cat(
        "\n  ", &attempt == best ? '*' : ' ', attempt.chosen ? '>' : ' ', " predicted ",
        microseconds(attempt.predicted), " us, ",
        attempt.times ? cat("measured ", microseconds(attempt.times->median), " us") : attempt.note,
        attempt.flushed ? cat(", flushed ", microseconds(*attempt.flushed), " us") : "", "  ",
        describe(attempt.name));
  }
  if (left_out > 0) text += cat("\n     ", left_out, " more, predicted too slow to be measured");
  return text;
}

std::string csv_text(std::span<const Outcome> outcomes) {
  std::string text =
      "problem,engine,tile,parts,predicted_us,measured_us,min_us,max_us,samples,flushed_us,chosen,"
      "best,note\n";
  for (const Outcome& outcome : outcomes) {
    const Attempt* const best = outcome.best();
    for (const Attempt& attempt : outcome.attempts) {
      const auto time = [&](double value) { return attempt.times ? significant(value, 6) : ""; };
      const bench::Times times = attempt.times.value_or(bench::Times{});
      text +=
          cat(bench::csv_field(outcome.problem), ",", attempt.name.engine, ",",
              bench::csv_field(attempt.name.tile), ",", attempt.name.parts, ",",
              significant(attempt.predicted, 6), ",", time(times.median), ",", time(times.min), ",",
              time(times.max), ",", times.samples, ",",
              attempt.flushed ? significant(*attempt.flushed, 6) : "", ",", attempt.chosen ? 1 : 0,
              ",", &attempt == best ? 1 : 0, ",", bench::csv_field(attempt.note), "\n");
    }
    if (outcome.attempts.empty())
      text += cat(bench::csv_field(outcome.problem), ",,,,,,,,,,,,",
                  bench::csv_field(outcome.failure), "\n");
  }
  return text;
}

nlohmann::ordered_json json_of(const Outcome& outcome) {
  using nlohmann::ordered_json;
  ordered_json attempts = ordered_json::array();
  const Attempt* const best = outcome.best();
  for (const Attempt& attempt : outcome.attempts) {
    ordered_json json{{"engine", attempt.name.engine}, {"tile", attempt.name.tile},
                      {"parts", attempt.name.parts},   {"predicted_us", attempt.predicted},
                      {"chosen", attempt.chosen},      {"best", &attempt == best}};
    if (attempt.times)
      json["time_us"] = {{"median", attempt.times->median},
                         {"min", attempt.times->min},
                         {"max", attempt.times->max},
                         {"samples", attempt.times->samples}};
    if (attempt.flushed) json["flushed_us"] = *attempt.flushed;
    if (!attempt.note.empty()) json["note"] = attempt.note;
    attempts.push_back(std::move(json));
  }
  return {{"problem", outcome.problem},
          {"failure", outcome.failure},
          {"kept", outcome.kept},
          {"candidates", std::move(attempts)}};
}

}  // namespace kiln::cli::tune
