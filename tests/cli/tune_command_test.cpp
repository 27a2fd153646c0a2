// `kiln tune`, the winners that it stores, and the plans that use them.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>

#include "cli/operation/read_line.hpp"
#include "cli/tune/outcome.hpp"
#include "core/text.hpp"
#include "device/device.hpp"
#include "plan/tuning.hpp"
#include "run_kiln.hpp"

namespace {

using kiln_test::Finished;
using kiln_test::Kiln;
using namespace kiln::cli::tune;

// Two candidates: too few output channels for tiles.
const std::string tiny = "mb1_ic2ih5_oc2_kh2";
const std::string sizes = "g1mb1_ic2ih5iw5_oc2oh4ow4_kh2kw2_sh1sw1_ph0pw0_dh0dw0",
                  canonical = "conv " + sizes, printed = "conv --arch host " + sizes;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

struct Fixture {
  Kiln kiln;
  std::string cache() { return kiln.environment["KILN_CACHE_DIR"]; }
  std::string tuning() { return cache() + "/tuning"; }

  Finished tune(std::vector<std::string> more) {
    std::vector<std::string> words{"tune", "--device", "host", "--samples", "3", "--warm-up", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return kiln(words);
  }
  // The output of `kiln inspect` for `line`.
  std::string spec(const std::string& line = tiny) {
    return kiln({"inspect", "--arch", "host", line}).out;
  }
  // The winner that would be stored if `engine` were measured as fastest.
  static kiln::TunedKernel measured(const std::string& engine) {
    const kiln::Problem problem = kiln::cli::read_one(canonical, {}).problem;
    const kiln::DeviceDescription device = kiln::open_host_device()->description();
    for (const kiln::Option& option : kiln::all_candidates(problem, device))
      if (option.name.engine == engine) return kiln::tuned_kernel(problem, device, 0, option, 12.5);
    throw std::runtime_error("no candidate of " + engine);
  }
  // Writes a file whose winner is the candidate that the model would not choose.
  std::string let_the_other_win() {
    const bool direct = contains(spec(), "engine         direct\n");
    const std::string other = direct ? "depthwise_fma" : "direct";
    std::filesystem::create_directories(cache());
    std::filesystem::permissions(cache(), std::filesystem::perms::owner_all);
    std::ofstream(tuning(), std::ios::app) << kiln::tuning_line(measured(other)) << '\n';
    return other;
  }
  std::string spec_of(const std::string& engine) {
    const std::string text = kiln({"inspect", "--arch", "host", "--engine", engine, tiny}).out;
    const std::size_t at = text.find("tile           ") + 15;
    return text.substr(at, text.find('\n', at) - at);
  }
};

Attempt attempt(double predicted, double measured, bool chosen = false) {
  Attempt out;
  out.name = {"engine", kiln::cat(predicted), 1};
  out.predicted = predicted;
  if (measured > 0) out.times = kiln::cli::bench::Times{measured, measured, measured, 1};
  out.chosen = chosen;
  return out;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(tune_command, Fixture)

BOOST_AUTO_TEST_CASE(measures_and_remembers) {
  const std::string csv = kiln.directory / "candidates.csv";
  const Finished tuned = tune({tiny, "--csv", csv});
  BOOST_TEST_INFO(tuned.out + tuned.err);
  BOOST_TEST_REQUIRE(tuned.status == 0);
  BOOST_TEST(contains(tuned.out, printed + "\n"));
  BOOST_TEST(contains(tuned.out, "predicted "));
  BOOST_TEST(contains(tuned.out, " us, flushed "));
  BOOST_TEST(contains(tuned.out, "the choice is within 10% of the best in "));
  BOOST_TEST(contains(tuned.out, " of 1 problems ("));
  BOOST_TEST(contains(tuned.out, "1 of 1 problems in "));

  const std::vector<std::string> rows = lines_of(kiln_test::read(csv));
  BOOST_TEST_REQUIRE(rows.size() == 3u);
  BOOST_TEST(rows[0].starts_with("problem,engine,tile,parts,predicted_us,measured_us,"));
  BOOST_TEST(contains(rows[0], ",samples,flushed_us,chosen,"));
  int best = 0, chosen = 0;
  std::string winner;
  for (const std::string& row : {rows[1], rows[2]}) {
    best += row.ends_with(",1,");
    chosen += contains(row, ",1,1,") || contains(row, ",1,0,");
    BOOST_TEST(contains(row, printed));
    if (row.ends_with(",1,")) winner = contains(row, "depthwise") ? "depthwise_fma" : "direct";
  }
  BOOST_TEST(best == 1);

  const std::vector<std::string> remembered = lines_of(kiln_test::read(tuning()));
  BOOST_TEST_REQUIRE(remembered.size() == 2u);
  const auto kernel = kiln::parse_tuning_line(remembered[1]);
  BOOST_TEST_REQUIRE(kernel.has_value());
  BOOST_TEST(kernel->problem == canonical);
  BOOST_TEST(kernel->microseconds > 0);
  BOOST_TEST(contains(spec(), "chosen         as tuned"));
  BOOST_TEST(contains(spec(), "engine         " + kernel->winner.engine + "\n"));
  // Another batch size, type or device was not measured.
  BOOST_TEST(contains(spec("mb3_ic2ih5_oc2_kh2"), "chosen         by the cost model"));
  BOOST_TEST(contains(kiln({"inspect", "--arch", "sm_90a", tiny}).out, "by the cost model"));
}

// Tuning some engines only, with workspace: the winner counts for plans with the same grant.
BOOST_AUTO_TEST_CASE(some_engines_and_workspace) {
  const std::string csv = kiln.directory / "candidates.csv";
  const Finished run = tune(
      {"--engine", "implicit_gemm_fma", "--csv", csv, "--workspace", "4096", "mb1_ic8ih5_oc8_kh2"});
  BOOST_TEST_REQUIRE(run.status == 0, run.err);
  const std::vector<std::string> rows = lines_of(kiln_test::read(csv));
  BOOST_TEST(rows.size() > 2u);
  for (std::size_t i = 1; i < rows.size(); ++i)
    BOOST_TEST(contains(rows[i], ",implicit_gemm_fma,"), rows[i]);
  const auto kept = kiln::parse_tuning_line(lines_of(kiln_test::read(tuning())).at(1));
  BOOST_TEST_REQUIRE(kept.has_value());
  BOOST_TEST(kept->winner.engine == "implicit_gemm_fma");
  BOOST_TEST(
      contains(kiln({"inspect", "--arch", "host", "--workspace", "4096", "mb1_ic8ih5_oc8_kh2"}).out,
               "as tuned"));
  BOOST_TEST(contains(tune({"--engine", "nonsense", tiny}).err, "nonsense"));
}

BOOST_AUTO_TEST_CASE(plans_take_the_winner) {
  const std::string winner = let_the_other_win();
  kiln.environment["KILN_LOG"] = "info";
  const Finished run = kiln({"conv", "--device", "host", "--check", tiny});
  BOOST_TEST_INFO(run.out + run.err);
  BOOST_TEST(run.status == 0);
  BOOST_TEST(contains(run.out, "  " + winner + " "));
  BOOST_TEST(contains(run.err, winner + " (tuned) for host"));
  BOOST_TEST(contains(spec(), "engine         " + winner + "\n"));
  // A named engine is taken, tuned or not; without a cache there is no folder to look into.
  const std::string other = winner == "direct" ? "depthwise_fma" : "direct";
  const Finished named = kiln({"conv", "--device", "host", "--engine", other, tiny});
  BOOST_TEST(contains(named.err, other + " for host"));
  kiln.environment["KILN_CACHE"] = "readonly";
  BOOST_TEST(contains(spec(), "as tuned"));
  kiln.environment["KILN_CACHE"] = "off";
  BOOST_TEST(contains(spec(), "by the cost model"));
}

BOOST_AUTO_TEST_CASE(prewarm_and_bundles_carry_it) {
  const std::string winner = let_the_other_win(), bundle = kiln.directory / "kernels.bundle";
  const std::string merged = kiln.directory / "merged.bundle";
  const std::string manifest = kiln.directory.write("manifest", tiny + "\n");
  const Finished made = kiln({"prewarm", manifest, "--arch", "host", "--bundle", bundle});
  BOOST_TEST_REQUIRE(made.status == 0);
  BOOST_TEST(kiln({"bundle", "verify", bundle}).status == 0);
  BOOST_TEST(kiln({"bundle", "merge", bundle, bundle, "-o", merged}).status == 0);
  kiln.environment["KILN_CACHE_DIR"] = kiln.directory / "another";
  BOOST_TEST(contains(spec(), "by the cost model"));
  for (const std::string& file : {bundle, merged}) {
    kiln.environment["KILN_BUNDLE_PATH"] = file;
    BOOST_TEST(contains(spec(), "as tuned"));
    BOOST_TEST(contains(spec(), "engine         " + winner + "\n"));
  }
  kiln.environment["KILN_CACHE"] = "strict";
  BOOST_TEST(kiln({"conv", "--device", "host", "--check", tiny}).status == 0);
  // The user's own measurement comes first.
  kiln.environment["KILN_CACHE"] = "on";
  const Finished tuned = tune({tiny});
  BOOST_TEST_REQUIRE(tuned.status == 0);
  const auto own = kiln::parse_tuning_line(lines_of(kiln_test::read(tuning())).at(1));
  BOOST_TEST(contains(spec(), "engine         " + own->winner.engine + "\n"));
}

// A damaged file gives one warning and no failure; writing it repairs it.
BOOST_AUTO_TEST_CASE(damaged_lines_are_passed_over) {
  const std::string winner = let_the_other_win();
  const std::string line = lines_of(kiln_test::read(tuning())).at(0);
  std::string changed = line, cut = line.substr(0, line.size() / 2);
  changed[changed.find("12.5")] = '9';
  std::ofstream(tuning(), std::ios::app) << "nonsense\n"
                                         << changed << '\n'
                                         << cut << '\n'
                                         << "\x01\xff\t\t\t\t\t\t\t" << '\n';
  const Finished run = kiln({"conv", "--device", "host", "--check", tiny, "mb1ic2ih6oc2kh2"});
  BOOST_TEST(run.status == 0);
  BOOST_TEST(contains(run.out, "  " + winner + " "));
  BOOST_TEST(contains(run.err, "4 lines that are damaged or of another make"), run.err);
  const std::string told = "are damaged";
  BOOST_TEST(run.err.find(told) == run.err.rfind(told));  // once

  // A winner that is no candidate any more is as good as none.
  kiln::TunedKernel gone = Fixture::measured("direct");
  gone.winner = {"direct", "1000x1000", 3};
  std::ofstream(tuning(), std::ios::app) << kiln::tuning_line(gone) << '\n';
  BOOST_TEST(contains(spec(), "by the cost model"));

  BOOST_TEST(tune({tiny}).status == 0);
  const std::vector<std::string> after = lines_of(kiln_test::read(tuning()));
  BOOST_TEST(after.size() == 2u);
  BOOST_TEST(contains(spec(), "as tuned"));
  // A folder in its place, or a link, is no file.
  std::filesystem::remove(tuning());
  std::filesystem::create_directory(tuning());
  BOOST_TEST(kiln({"conv", "--device", "host", tiny}).status == 0);
}

// Several processes at once lose none of each other's winners.
BOOST_AUTO_TEST_CASE(concurrent_writers_are_merged) {
  std::vector<std::pair<int, std::string>> running;
  for (int i = 4; i < 8; ++i) {
    const std::string name = kiln::cat("writer", i);
    running.emplace_back(
        kiln.start_apart({"tune", "--device", "host", "--samples", "1", "--warm-up", "0", "-j", "1",
                          kiln::cat("mb1ic1ih", i, "oc1kh1"), kiln::cat("mb2ic1ih", i, "oc1kh2")},
                         name),
        name);
  }
  for (const auto& [process, name] : running) BOOST_TEST(kiln.wait_for(process, name).status == 0);
  // Those with a filter of one tap have one candidate, and nothing to measure.
  std::vector<std::string> lines = lines_of(kiln_test::read(tuning()));
  BOOST_TEST(lines.size() == 5u);
  for (std::size_t i = 1; i < lines.size(); ++i)
    BOOST_TEST(kiln::parse_tuning_line(lines[i]).has_value(), lines[i]);
}

BOOST_AUTO_TEST_CASE(wrong_use) {
  const auto usage = [&](const Finished& finished, const std::string& part) {
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(contains(finished.err, part), finished.err);
  };
  usage(tune({}), "no problem to tune; expected PROBLEM..., --batch FILE or --suite NAME");
  usage(tune({"ic3ih5oc4kq3"}), "PROBLEM:1: ic3ih5oc4kq3: ");
  usage(tune({"--suite", "paper", "--layers", "none of them"}), "no problem is left");
  usage(tune({"--batch", "/dev/null/absent"}), "/dev/null/absent");
  usage(kiln({"tune", tiny}), "--device host");  // no GPU
  kiln.environment["KILN_CACHE"] = "readonly";
  usage(tune({tiny}), "KILN_CACHE is readonly; expected on");
}

// A winner counts while its own kernel's text is the measured one; edits of other kernels do not
// matter.
BOOST_AUTO_TEST_CASE(a_winner_whose_kernel_has_changed) {
  const std::string other = let_the_other_win();
  BOOST_TEST(contains(spec(), "engine         " + other + "\n"));
  kiln::TunedKernel stale = measured(other);
  BOOST_TEST(stale.kernel_text !=
             measured(other == "direct" ? "depthwise_fma" : "direct").kernel_text);
  stale.kernel_text = "0123456789abcdef";
  std::ofstream(tuning(), std::ios::app) << kiln::tuning_line(stale) << '\n';
  BOOST_TEST(contains(spec(), "by the cost model"));
}

BOOST_AUTO_TEST_CASE(a_list_of_all_operations) {
  const std::string batch = kiln.directory.write(
      "batch",
      "# two operations\npool --dir bwd mb1ic2ih6oh3kh2sh2ph0\nconv " + tiny + "\n" + tiny);
  const Finished tuned = tune({"--batch", batch, "--mb", "1,2"});
  BOOST_TEST_INFO(tuned.out + tuned.err);
  BOOST_TEST(tuned.status == 0);
  BOOST_TEST(contains(tuned.out, "4 of 4 problems in "));  // each once
}

BOOST_AUTO_TEST_CASE(lines_round_trip) {
  const kiln::TunedKernel kernel{"conv --dt f16 mb1",
                                 "sm_90a, 132",
                                 "0.1.0-ab",
                                 {"wgrad_implicit_gemm_mma", "64x64x32, 3 stages", 4},
                                 81.0625};
  const std::string line = kiln::tuning_line(kernel);
  const auto back = kiln::parse_tuning_line(line);
  BOOST_TEST_REQUIRE(back.has_value());
  BOOST_TEST(back->key() == kernel.key());
  BOOST_TEST((back->winner == kernel.winner));
  BOOST_TEST(back->microseconds == kernel.microseconds);
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::string damaged = line;
    damaged[i] = damaged[i] == 'x' ? 'y' : 'x';
    BOOST_TEST(!kiln::parse_tuning_line(damaged).has_value(), damaged);
    BOOST_TEST(!kiln::parse_tuning_line(line.substr(0, i)).has_value());
  }
}

// Three channels with a stride are for the direct engine alone.
BOOST_AUTO_TEST_CASE(tells_of_the_only_candidate) {
  const Finished tuned = tune({"conv --dir dgrad ic3ih9oc2kh3sh2"});
  BOOST_TEST(contains(tuned.out, " us, the only candidate  direct "), tuned.out + tuned.err);
}

BOOST_AUTO_TEST_CASE(summary_arithmetic) {
  Outcome good, bad, alone, failed, tie;
  good.attempts = {attempt(1, 109, true), attempt(2, 100), attempt(3, 0)};
  bad.attempts = {attempt(1, 111, true), attempt(2, 100)};
  alone.attempts = {attempt(1, 50, true), attempt(2, 0)};  // nothing to choose
  failed.failure = "no memory";
  tie.attempts = {attempt(1, 100.5, true), attempt(2, 100)};
  const std::vector<Outcome> all{good, bad, alone, failed};
  BOOST_TEST(text_of(summary_of(all)) ==
             "the choice is within 10% of the best in 1 of 2 problems (50.0%)");
  BOOST_TEST(text_of(summary_of({})) ==
             "the choice is within 10% of the best in 0 of 0 problems (100.0%)");
  BOOST_TEST(bad.best()->predicted == 2);
  BOOST_TEST(bad.winner()->predicted == 2);
  BOOST_TEST(tie.best()->predicted == 2);
  BOOST_TEST(tie.winner()->predicted == 1);  // within the noise: no other kernel for that
  BOOST_TEST((failed.best() == nullptr && failed.winner() == nullptr));
  BOOST_TEST(contains(text_of(bad), "1.11 times the best's time"));
  BOOST_TEST(contains(text_of(good), "1 more, predicted too slow"));
  const std::vector<std::string> rows = lines_of(csv_text(all));
  BOOST_TEST(rows.size() == 1u + 3 + 2 + 2 + 1);
  const auto commas = [](const std::string& row) {
    return std::count(row.begin(), row.end(), ',');
  };
  for (const std::string& row : rows) BOOST_TEST(commas(row) == commas(rows[0]), row);
}

BOOST_AUTO_TEST_SUITE_END()
