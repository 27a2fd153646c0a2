// `kiln fit`: the cost model beside measured candidates, and constants fitted to them.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <set>

#include "cli/fit/candidates.hpp"
#include "cli/fit/constants.hpp"
#include "cli/fit/descent.hpp"
#include "cli/fit/model.hpp"
#include "cli/operation/read_line.hpp"
#include "core/text.hpp"
#include "run_kiln.hpp"

namespace {

using namespace kiln;
using namespace kiln::cli::fit;
using kiln_test::Finished;
using kiln_test::Kiln;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string narrow = "conv --dir wgrad --dt f16 --layout nhwc mb32_ic64ih56oc64kh3ph1",
                  wide = "conv --dir wgrad --dt f16 --layout nhwc mb128_ic512ih28oc512kh3ph1";

// All candidates of the dense filter gradient, each as long as the model says.
MeasuredSet as_estimated(const DeviceDescription& device) {
  std::vector<MeasuredRow> rows;
  for (const std::string& line : {narrow, wide}) {
    const Problem problem = cli::read_one(line, {}).problem;
    for (const Option& option : all_candidates(problem, device, most_workspace))
      if (option.name.engine == "wgrad_dense_nhwc_wgmma")
        rows.push_back({"made", line, option.name, option.choice.seconds * 1e6});
  }
  return candidates_of(rows, device);
}

// A file of `kiln tune --csv`, with what a fit does not read.
std::string tuned(const std::vector<std::string>& rows) {
  return "problem,engine,tile,parts,predicted_us,measured_us,min_us,max_us,samples,chosen,best,"
         "note\n" +
         join(rows, "\n") + "\n";
}

std::string percent_within(const std::string& out) {  // of the line "all", the problems and those
  std::istringstream line(out.substr(out.rfind("\n  all ") + 6));
  std::string candidates, error, problems, close;
  line >> candidates >> error >> problems >> close;
  return cat(close, " of ", problems);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fit_command)

// The definition in the library's source is what the program would write of its constants.
BOOST_AUTO_TEST_CASE(the_file_in_the_tree_is_as_written) {
  const DeviceDescription device = known_architecture("h200");
  const std::string file =
      kiln_test::read(cat(KILN_PROBLEMS, "/../../src/engines/cost/fitted_", device.arch, ".inc"));
  BOOST_TEST(file.starts_with("// Written by `kiln fit`; do not edit."));
  BOOST_TEST(file.substr(file.find("\nconstexpr") + 1) ==
             definition_of(fitted_of(device), device.arch));
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const NamedConstant& constant : all_constants())
    names.insert({constant.family, constant.name});
  BOOST_TEST(names.size() == all_constants().size());
}

BOOST_AUTO_TEST_CASE(descent) {
  std::vector<double> constants{1, 200, 0, 7, -1};
  const double least = descend(constants, [](const std::vector<double>& at) {
    return std::pow(std::log(at[0] / 2), 2) + std::pow(std::log(at[1] / 150), 2) +
           std::pow(std::log(at[4] / -1e6), 2) / 100 + at[2];
  });
  BOOST_TEST(std::abs(constants[0] / 2 - 1) < 0.02);
  BOOST_TEST(std::abs(constants[1] / 150 - 1) < 0.02);
  BOOST_TEST(constants[2] == 0);   // has no size to change
  BOOST_TEST(constants[3] == 7);   // nothing depends on it
  BOOST_TEST(constants[4] >= -3);  // no further than a factor of three
  BOOST_TEST(constants[4] < -2.9);
  BOOST_TEST(least < 2);
}

// The candidates of the whole tree, as they are today.
BOOST_AUTO_TEST_CASE(the_choice_is_close_to_the_best_of_the_measured_ones) {
  const DeviceDescription device = known_architecture("h200");
  std::vector<MeasuredRow> rows;
  for (const auto& file :
       std::filesystem::directory_iterator(cat(KILN_PROBLEMS, "/../bench/h200/candidates")))
    if (file.path().extension() == ".csv")
      for (MeasuredRow& row : read_measured_rows(file.path().string()))
        rows.push_back(std::move(row));
  const MeasuredSet set = candidates_of(rows, device);
  int problems = 0, close = 0;
  for (const MeasuredProblem& item : set.problems)
    if (item.compares()) {
      ++problems;
      close += item.regret() <= 0.1;
    }
  BOOST_TEST(problems >= 100);
  BOOST_TEST(close >= 0.9 * problems, close << " of " << problems << " within 10%");
}

BOOST_AUTO_TEST_CASE(a_report) {
  const DeviceDescription device = known_architecture("h200");
  MeasuredSet set = as_estimated(device);
  BOOST_REQUIRE(set.problems.size() == 2u);
  BOOST_TEST(set.unmatched.empty());
  // The choice for one problem takes half as long again as another candidate; a row of an engine
  // that is gone; a candidate measured twice, whose later time counts.
  MeasuredProblem& lost = set.problems[0];
  const std::size_t choice = lost.choice();
  lost.candidates[choice].measured *= 2;
  std::vector<MeasuredRow> rows = set.rows();
  rows.insert(rows.begin(), {"", lost.line, lost.candidates[choice].name, 1e-3});
  rows.push_back({"", lost.line, {"gone", "1x1", 1}, 3});
  const Kiln kiln;
  const std::string file = kiln.directory.write("made.csv", "# a comment\n" + text_of(rows));
  const std::string kept = kiln.directory / "kept.csv";
  Finished finished = kiln({"fit", file, "--rows", kept});
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 0);
  BOOST_TEST(contains(
      finished.out, cat(rows.size() - 2,
                        " candidates of 2 problems\nrows that match no candidate of today: 1\n")));
  BOOST_TEST(percent_within(finished.out) == "1 of 2");
  BOOST_TEST(contains(finished.out, "\n  made.csv "));
  BOOST_TEST(contains(finished.out, "\n  dense_wgrad "));
  BOOST_TEST(!contains(finished.out, "\n  wgmma "));
  BOOST_TEST(contains(finished.out, "more than 10% lost"));
  BOOST_TEST(contains(finished.out, "  > predicted"));
  BOOST_TEST(!contains(finished.out, "left out"));
  // What was kept has all that matched, and no longer what did not.
  BOOST_TEST(kiln_test::read(kept).starts_with("problem,engine,tile,parts,measured_us\n"));
  finished = kiln({"fit", kept, "--leave-out", "oc512"});
  BOOST_TEST(contains(finished.out, "match no candidate of today: 0\n"));
  BOOST_TEST(contains(finished.out, "\npart of the fit "));
  BOOST_TEST(contains(finished.out, "\nleft out of the fit "));
}

// Times that another constant would give are found again.
BOOST_AUTO_TEST_CASE(a_fit) {
  const DeviceDescription device = known_architecture("h200");
  MeasuredSet set = as_estimated(device);
  Model model(set, device, 1);
  const Engines& engines = model.engines_of("dense_wgrad");
  BOOST_REQUIRE(engines.size() == 1u);
  BOOST_TEST(model.engines_of("depthwise").empty());
  FittedConstants other = fitted_of(device);
  other.dense_wgrad.of_16_bits.step_share *= 1.5;
  model.estimate(other, engines);
  for (MeasuredProblem& item : set.problems)
    for (MeasuredCandidate& candidate : item.candidates) candidate.measured = candidate.estimated;
  const Kiln kiln;
  const std::string file = kiln.directory.write("made.csv", text_of(set.rows()));
  const std::string out = kiln.directory / "fitted.inc";
  const Finished finished =
      kiln({"fit", file, "--family", "dense_wgrad,wgmma", "--out", out, "--leave-out", "oc64"});
  BOOST_TEST_INFO(finished.out << finished.err);
  BOOST_TEST(finished.status == 0);
  const std::string text = kiln_test::read(out);
  BOOST_TEST(text.starts_with("// Written by `kiln fit`; do not edit. "));
  BOOST_TEST(contains(text, "// Fitted: dense_wgrad, loss "));
  BOOST_TEST(contains(text, "// Left out of the fit: what matches oc64."));
  BOOST_TEST(contains(text, "// left out of the fit "));
  BOOST_TEST(!contains(text, "in turn"));
  // All but that family is as it was.
  const std::string own = definition_of(fitted_of(device), device.arch);
  const std::string definition = text.substr(text.find("\nconstexpr") + 1);
  const auto before = [](const std::string& all) {
    return all.substr(0, all.find("    .dense_wgrad"));
  };
  const auto after = [](const std::string& all) { return all.substr(all.find("    .depthwise")); };
  BOOST_TEST(before(definition) == before(own));
  BOOST_TEST(after(definition) == after(own));
  const std::string field = ".of_16_bits = {\n            .step_share = ";
  const double found = std::stod(definition.substr(definition.find(field) + field.size()));
  BOOST_TEST(std::abs(found / other.dense_wgrad.of_16_bits.step_share - 1) < 0.1);
  // Without a pattern each file is left out once.
  std::vector<std::string> command{"fit", "--family", "dense_wgrad", "--out", out};
  for (const MeasuredProblem& item : set.problems) {
    MeasuredSet one;
    one.problems = {item};
    command.push_back(kiln.directory.write(cat(command.size(), ".csv"), text_of(one.rows())));
  }
  BOOST_TEST(kiln(command).status == 0);
  const std::string both = kiln_test::read(out);
  BOOST_TEST(contains(both, "// Left out of the fit: nothing."));
  BOOST_TEST(contains(both, "// each left out in turn "));
}

BOOST_AUTO_TEST_CASE(what_is_no_file_of_candidates) {
  const Kiln kiln;
  const std::string row =
      "conv mb1_ic2ih5_oc2_kh2,direct,\"1 output a thread, 256 threads\",1,2,3,3,3,1,1,1,";
  const std::pair<std::string, const char*> files[] = {
      {"", "empty"},
      {"problem,engine\n", "1: no column tile"},
      {tuned({"conv a,b"}), "2: 2 fields; expected 12"},
      {tuned({row, "conv mb1_ic2ih5_oc2_kh2,direct,t,0,2,3,3,3,1,1,1,"}), "3: parts is \"0\""},
      {tuned({"conv mb1_ic2ih5_oc2_kh2,direct,t,1,2,-3,3,3,1,1,1,"}), "2: measured_us is \"-3\""},
      {tuned({"conv mb1_ic2ih5_oc2_kh2,direct,t,1,2,nan,3,3,1,1,1,"}), "measured_us is \"nan\""},
      {tuned({"conv nonsense,direct,t,1,2,3,3,3,1,1,1,"}), "the problem \"conv nonsense\""},
      {tuned({"conv mb1_ic2ih5_oc2_kh2,gone,t,1,2,3,3,3,1,1,1,"}), "no row matches"},
  };
  for (const auto& [text, expected] : files) {
    const Finished finished = kiln({"fit", kiln.directory.write("bad.csv", text)});
    BOOST_TEST_INFO(finished.err);
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(contains(finished.err, expected), expected);
  }
  const std::string good = kiln.directory.write("good.csv", tuned({row}));
  BOOST_TEST(kiln({"fit", good}).status == 0);
  const std::pair<std::vector<std::string>, const char*> commands[] = {
      {{"fit"}, "CANDIDATES"},
      {{"fit", kiln.directory / "none.csv"}, "none.csv"},
      {{"fit", good, "--family", "wgma"}, "--family is wgma; expected shared, gathered_gemm"},
      {{"fit", good, "--leave-out", "("}, "--leave-out is \"(\""},
      {{"fit", good, "--chip", "h2000"}, "h2000"},
      {{"fit", good, "--out", "/dev/null/x"}, "cannot write /dev/null/x"},
  };
  for (const auto& [arguments, expected] : commands) {
    const Finished finished = kiln(arguments);
    BOOST_TEST_INFO(finished.err);
    BOOST_TEST(finished.status == 2);
    BOOST_TEST(contains(finished.err, expected), expected);
  }
}

BOOST_AUTO_TEST_SUITE_END()
