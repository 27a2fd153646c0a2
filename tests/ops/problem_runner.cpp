// Runs problems on the host device and compares them with the reference, as `kiln COMMAND --check`
// does, through the same code and with the same last line. The sanitized build has it in place of
// the program, most of whose time to compile goes into commands that no problem needs.
//
//   problem_runner COMMAND [OPTION...] [FLAG...] PROBLEM
//   problem_runner COMMAND [OPTION...] [FLAG...] --batch FILE
//
// COMMAND: conv, local, pool, act, softmax, norm or tensor. FLAG: those of `kiln COMMAND` that
// describe a problem; a line of FILE may have others of its own. OPTION: --device host, --check
// (what it does anyway), --alpha, --beta, --alpha2, --engine, --workspace, --seed. Exit status: 0
// if all passed, 1 if not, 2 if the question was wrong.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/format.hpp"
#include "cli/operation/operation.hpp"
#include "cli/operation/read_line.hpp"
#include "cli/operation/run.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"

namespace {

using namespace kiln;

struct Question {
  std::unique_ptr<cli::Operation> operation;
  cli::RunSettings settings;
  std::string problem, batch;
  std::vector<std::string> flags;  // each with its value: "--dt f16"
};

struct Item {
  std::string place, text;  // "FILE:12: ", and the line with the command's flags
};

template <class Number>
void read_number(const std::string& option, const std::string& text, Number& out) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  if (error != std::errc() || stop != end)
    fail(KILN_STATUS_BAD_PARAM, option, " is ", text, "; expected a number");
}

// The options are taken out of `words`; what is left describes problems.
Question read_question(const std::vector<std::string>& words) {
  if (words.size() < 2)
    fail(KILN_STATUS_BAD_PARAM, "expected COMMAND [OPTION...] [FLAG...] PROBLEM or --batch FILE");
  Question question;
  for (std::unique_ptr<cli::Operation>& operation : cli::operations())
    if (words[0] == operation->command()) question.operation = std::move(operation);
  if (!question.operation)
    fail(KILN_STATUS_BAD_PARAM, "the command is ", words[0], "; expected ", cli::operation_names());
  cli::RunSettings& settings = question.settings;
  settings.check = true;
  settings.seed = std::random_device()();
  std::vector<std::string> rest;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) fail(KILN_STATUS_BAD_PARAM, word, " has no value");
      return words[++i];
    };
    if (word == "--device") {
      if (const std::string& device = value(); device != "host")
        fail(KILN_STATUS_BAD_PARAM, "--device is ", device, "; expected host");
    } else if (word == "--batch") {
      question.batch = value();
    } else if (word == "--alpha") {
      read_number(word, value(), settings.scalars.alpha);
    } else if (word == "--beta") {
      read_number(word, value(), settings.scalars.beta);
    } else if (word == "--alpha2") {
      read_number(word, value(), settings.scalars.alpha2);
    } else if (word == "--seed") {
      read_number(word, value(), settings.seed);
    } else if (word != "--check") {
      rest.push_back(word);
    }
  }
  if (question.batch.empty()) {
    if (rest.empty()) fail(KILN_STATUS_BAD_PARAM, "no problem to run");
    question.problem = rest.back();
    rest.pop_back();
  }
  for (const std::string& word : rest) {
    if (word.starts_with("--") || question.flags.empty())
      question.flags.push_back(word);
    else
      question.flags.back() += ' ' + word;
  }
  return question;
}

// The line behind the command's flags, but for those that the line gives itself.
std::string with_flags(const Question& question, const std::string& line) {
  std::string text;
  for (const std::string& flag : question.flags)
    if (line.find(flag.substr(0, flag.find(' ')) + ' ') == line.npos) text += flag + ' ';
  return text + line;
}

std::vector<Item> items_of(const Question& question) {
  if (question.batch.empty()) return {{"", with_flags(question, question.problem)}};
  std::ifstream file(question.batch, std::ios::binary);
  if (!file) fail(KILN_STATUS_BAD_PARAM, "cannot read ", question.batch);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<Item> items;
  for (const auto& [number, line] : problem_lines(text))
    items.push_back({cat(question.batch, ":", number, ": "), with_flags(question, line)});
  return items;
}

cli::RunResult run(const Item& item, const Question& question,
                   const std::shared_ptr<Device>& device) {
  try {
    const cli::ReadLine line = cli::read_one(item.text, {.own = question.operation.get()});
    cli::RunSettings settings = question.settings;
    settings.finalize.grant = line.grant;
    return cli::run_problem(device, line.problem, settings);
  } catch (const Error& error) {
    cli::RunResult refused;
    cli::set_error(refused, error);
    return refused;
  }
}

void print(const Item& item, const cli::RunResult& result, const Question& question) {
  std::string text = cli::padded(cli::name_of(result.status), 9);
  if (result.status == cli::Status::passed) {
    text += cat(item.text, "  ", result.engine, "  rel ",
                cli::scientific(result.comparison->relative_rms, 1));
  } else {
    text += cat(item.place, item.text, ": ", result.reason);
    const Scalars& scalars = question.settings.scalars;
    if (result.comparison)
      text += cat("\nagain: ", result.command, " --seed ", question.settings.seed, " --alpha ",
                  scalars.alpha, " --beta ", scalars.beta, " --alpha2 ", scalars.alpha2, " ",
                  result.problem);
  }
  std::puts(text.c_str());
  std::fflush(stdout);  // lest a sanitizer's report end the program before
}

int run_all(const Question& question) {
  std::array<int, 4> counts{};
  const std::shared_ptr<Device> device = open_host_device();
  const std::vector<Item> items = items_of(question);
  for (const Item& item : items) {
    const cli::RunResult result = run(item, question, device);
    ++counts[static_cast<std::size_t>(result.status)];
    print(item, result, question);
  }
  const auto count = [&](cli::Status status) { return counts[static_cast<std::size_t>(status)]; };
  const int passed = count(cli::Status::passed), failed = count(cli::Status::failed),
            refused = count(cli::Status::refused);
  std::printf("%d passed, %d failed, %d refused\n", passed, failed, refused);
  return failed + refused == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_all(read_question({argv + 1, argv + argc}));
  } catch (const Error& error) {
    std::fprintf(stderr, "problem_runner: %s\n", error.what());
    return 2;
  }
}
