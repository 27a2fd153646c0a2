// The cost model's sanity, over all lists of problems, and against the times that were measured.
#include "engines/cost/cost_model.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "cli/files.hpp"
#include "cli/fit/measured_rows.hpp"
#include "cli/operation/read_line.hpp"
#include "core/error.hpp"
#include "device/device.hpp"
#include "engines/answers.hpp"
#include "engines/choice.hpp"
#include "engines/rewrite/product_views.hpp"
#include "problem/line/problem_line.hpp"
#include "support/problem_lists.hpp"

namespace {

using namespace kiln;

Problem problem_of(const std::string& text) { return cli::read_one(text, {}).problem; }

ConvolutionProblem convolution(const std::string& text, std::int64_t batch = 0) {
  auto problem = std::get<ConvolutionProblem>(problem_of(text));
  if (batch > 0) problem.batch = batch;
  return problem;
}

double estimate(const Problem& problem, const DeviceDescription& device) {
  std::vector<EngineRefusal> refusals;
  return choose(problem, device, {}, refusals, nullptr).seconds;
}

// All problems of the lists, convolutions in three passes and types; products of matrices as the
// convolutions that they are.
std::vector<Problem> all_problems() {
  const std::pair<const char*, const char*> lists[] = {
      {"conv", "small"},     {"conv", "paper"},      {"conv", "resnet50"},
      {"conv", "vgg16"},     {"conv", "alexnet"},    {"conv", "backward"},
      {"local", "local"},    {"matmul", "matmul"},   {"pool", "pooling"},
      {"act", "activation"}, {"softmax", "softmax"}, {"norm", "normalization"},
      {"tensor", "tensor"},  {"tensor", "reduction"}};
  std::vector<Problem> problems;
  for (const auto& [command, list] : lists)
    for (const NumberedLine& line :
         problem_lines(cli::read_file(problem_list_path(cat(list, ".txt"))))) {
      const bool plain = std::string(command) == "conv" && !line.text.starts_with("--");
      const std::vector<std::string> flags =
          plain ? std::vector<std::string>{"", "--dir dgrad --dt f64 ", "--dir wgrad ",
                                           "--dt f16 --layout nhwc "}
                : std::vector<std::string>{""};
      for (const std::string& flag : flags) {
        Problem problem = problem_of(cat(command, " ", flag, line.text));
        if (const auto* product = std::get_if<MatmulProblem>(&problem))
          for (ProductView& view : product_views(*product))
            problems.emplace_back(std::move(view.problem));
        else
          problems.push_back(std::move(problem));
      }
    }
  return problems;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cost_model)

BOOST_AUTO_TEST_CASE(every_estimate_is_a_time) {
  const std::vector<Problem> problems = all_problems();
  BOOST_TEST(problems.size() > 2000u);
  for (const char* chip : {"h200", "a100", "t4", "rtx-4090"}) {
    const DeviceDescription device = known_architecture(chip);
    for (const Problem& problem : problems) {
      int candidates = 0;
      for (const Method* method : methods()) {
        if (!method->is_for(problem)) continue;
        const auto answer = ask(*method, problem, Chooser(device));
        const auto* list = std::get_if<std::vector<Candidate>>(&answer);
        if (list == nullptr) continue;
        BOOST_TEST(!list->empty(), method->name());
        std::set<std::tuple<int, bool, int>> names;
        for (const Candidate& candidate : *list) {
          ++candidates;
          if (!std::isfinite(candidate.seconds) || candidate.seconds < 1e-6 ||
              !names.insert({candidate.kernel, candidate.groups > 1, candidate.parts}).second)
            BOOST_ERROR(chip << " " << text_of(problem) << ": " << method->name() << " "
                             << candidate.kernel << ", " << candidate.parts
                             << " parts: " << candidate.seconds);
        }
      }
      if (candidates == 0) BOOST_ERROR(chip << " " << text_of(problem) << ": no candidate");
    }
  }
}

BOOST_AUTO_TEST_CASE(more_images_take_longer) {
  // More images may allow a larger split count, fill tiles of one output position, and get a kernel
  // that suits them better.
  constexpr double noise = 0.8;
  for (const char* chip : {"h200", "a100", "t4"}) {
    const DeviceDescription device = known_architecture(chip);
    for (const char* flags : {"", "--dir dgrad ", "--dir wgrad ", "--dt f64 ", "--dt f16 "})
      for (const char* line :
           {"ic3ih128oc96oh118kh11ph0", "ic128ih16oc128oh10kh7ph0", "ic128ih13oc384oh11kh3ph0",
            "ic256ih14oc256kh3ph1", "ic64ih56oc256kh1ph0", "g32ic32ih28oc32kh3ph1"})
        // Within each class of batch sizes, which have one kernel.
        for (const auto& [first, last] : {std::pair{1, 32}, std::pair{64, 1024}}) {
          double before = 0;
          for (int batch = first; batch <= last; batch *= 2) {
            const double now = estimate(convolution(cat(flags, line), batch), device);
            BOOST_TEST(now >= noise * before, chip << " " << flags << line << " N=" << batch << ": "
                                                   << now << " after " << before);
            before = now;
          }
        }
  }
}

BOOST_AUTO_TEST_CASE(more_work_costs_more) {
  const DeviceDescription device = known_architecture("h200");
  for (const char* flags : {"", "--dir dgrad ", "--dir wgrad "}) {
    const double base = estimate(convolution(cat(flags, "mb64ic128ih28oc128kh3ph1")), device);
    for (const char* larger :
         {"mb64ic256ih28oc128kh3ph1", "mb64ic128ih28oc256kh3ph1", "mb64ic128ih56oc128kh3ph1",
          "mb64ic128ih28oc128kh5ph2", "mb128ic128ih28oc128kh3ph1"})
      BOOST_TEST(estimate(convolution(cat(flags, larger)), device) > 1.2 * base, flags << larger);
    // DEFAULT is 3xTF32, three products; STRICT is FMA units.
    const double tf32 =
        estimate(convolution(cat("--math tf32 ", flags, "mb64ic128ih28oc128kh3ph1")), device);
    BOOST_TEST(tf32 < base, flags);
  }
  const double less = memory_bound_seconds(1e6, device), more = memory_bound_seconds(1e9, device);
  BOOST_TEST(less < more);
  BOOST_TEST(more > 1e9 / 5e12);
}

BOOST_AUTO_TEST_CASE(fewer_multiprocessors_take_longer) {
  DeviceDescription whole = known_architecture("h200"), half = whole;
  half.multiprocessors /= 2;
  for (const char* line : {"mb128ic96ih64oc128oh56kh9ph0", "--dir wgrad mb16ic128ih16oc128kh7ph0"})
    BOOST_TEST(estimate(convolution(line), half) > 1.3 * estimate(convolution(line), whole), line);
}

// A range of batch sizes has one kernel.
BOOST_AUTO_TEST_CASE(one_kernel_for_a_range_of_batches) {
  const DeviceDescription device = known_architecture("h200");
  std::vector<EngineRefusal> refusals;
  for (const char* flags : {"", "--dir dgrad ", "--dir wgrad "})
    for (const char* line : {"ic128ih16oc128oh10kh7ph0", "ic3ih6oc4kh3ph1", "ic64ih56oc64kh3ph1"}) {
      std::int64_t least = 0;
      for (const BatchRange& range : batch_ranges) {
        const std::int64_t most = std::min<std::int64_t>(range.most, 5000);
        std::set<std::string> kernels;
        for (const std::int64_t batch : {least, least + 1, (least + most) / 2, most}) {
          ConvolutionProblem problem = convolution(cat(flags, line));
          problem.batch = batch;
          const KernelSpec kernel = choose(problem, device, {}, refusals).first().kernel;
          kernels.insert(kernel.engine + " " + kernel.tile);
        }
        BOOST_TEST(kernels.size() == 1u, flags << line << " at " << least << " to " << most);
        least = most + 1;
      }
    }
}

// The measured times that the constants were fitted to: of each problem, that of the candidate with
// the least estimate.
BOOST_AUTO_TEST_CASE(measured_times_are_met) {
  const DeviceDescription device = known_architecture("h200");
  int problems = 0, close = 0;
  for (const char* file :
       {"paper", "resnet50", "vgg16", "diffusion", "dense2d", "conv3d", "grouped", "other"}) {
    std::map<std::string, std::vector<cli::fit::MeasuredRow>> measured;
    for (cli::fit::MeasuredRow& row : cli::fit::read_measured_rows(
             cat(KILN_PROBLEMS, "/../bench/h200/candidates/", file, ".csv")))
      measured[row.problem].push_back(std::move(row));
    for (const auto& [problem, rows] : measured)
      for (const Option& option : all_candidates(problem_of(problem), device, most_workspace)) {
        const auto row = std::ranges::find(rows, option.name, &cli::fit::MeasuredRow::name);
        if (row == rows.end()) continue;
        ++problems;
        const double ratio = option.choice.seconds * 1e6 / row->microseconds;
        close += ratio > 1 / 1.25 && ratio < 1.25;
        break;
      }
  }
  BOOST_TEST(problems >= 150);
  BOOST_TEST(close >= 0.8 * problems, close << " of " << problems << " within 25%");
  BOOST_TEST_MESSAGE(close << " of " << problems << " within 25%");
}

BOOST_AUTO_TEST_SUITE_END()
