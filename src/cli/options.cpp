#include "cli/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "cli/printable.hpp"
#include "cli/usage.hpp"
#include "cli/usage_error.hpp"
#include "core/split.hpp"
#include "core/text.hpp"

namespace kiln::cli {
namespace {

void parse_in_order(CLI::App& app, std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());  // CLI11 takes the last word first
  app.parse(words);
}

// The command that the line got to, and its names: "kiln cache prune".
const CLI::App& command_of(const CLI::App& app, std::string& path) {
  path += app.get_name();
  const std::vector<CLI::App*> below = app.get_subcommands();
  if (below.empty()) return app;
  path += " ";
  return command_of(*below.back(), path);
}

// `app` is the whole program, whose parse threw `error`.
Misuse misuse_of(const CLI::App& app, const CLI::ParseError& error) {
  Misuse misuse{.fault = error.what()};
  const CLI::App& command = command_of(app, misuse.command);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    misuse.unknown = app.remaining(true);
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) misuse.options.push_back("--" + name);
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; }))
    misuse.commands.push_back(each->get_name());
  return misuse;
}

}  // namespace

CommandOption CommandOption::required() const { return CommandOption(option_->required()); }
CommandOption CommandOption::expected(int count) const {
  return CommandOption(option_->expected(count));
}
CommandOption CommandOption::expected(int least, int most) const {
  return CommandOption(option_->expected(least, most));
}
CommandOption CommandOption::delimiter(char between) const {
  return CommandOption(option_->delimiter(between));
}
CommandOption CommandOption::single() const {
  return CommandOption(option_->allow_extra_args(false));
}
CommandOption CommandOption::type_name(const std::string& name) const {
  return CommandOption(option_->type_name(name));
}
CommandOption CommandOption::environment(const std::string& name) const {
  return CommandOption(option_->envname(name));
}
CommandOption CommandOption::show_default() const {
  return CommandOption(option_->capture_default_str());
}

CommandOption CommandOption::one_of(const std::vector<std::string>& names) const {
  return CommandOption(option_->check(CLI::IsMember(names)));
}

CommandOption CommandOption::each_of(const std::vector<std::string>& names) const {
  const CLI::Validator one = CLI::IsMember(names);
  const auto check = [one](std::string& list) {
    for (const std::string_view name : split(list, ':'))
      if (std::string fault = one(std::string(name)); !fault.empty()) return fault;
    return std::string();
  };
  return CommandOption(option_->check(CLI::Validator(check, one.get_description())));
}

CommandOption CommandOption::range(int least, int most) const {
  return CommandOption(option_->check(CLI::Range(least, most)));
}
CommandOption CommandOption::range(double least, double most) const {
  return CommandOption(option_->check(CLI::Range(least, most)));
}
CommandOption CommandOption::positive() const {
  return CommandOption(option_->check(CLI::PositiveNumber));
}
CommandOption CommandOption::not_negative() const {
  return CommandOption(option_->check(CLI::NonNegativeNumber));
}

CommandOption CommandOption::replace(std::function<std::string(const std::string&)> value) const {
  return CommandOption(option_->transform(std::move(value), ""));
}

bool CommandOption::given() const { return option_->count() > 0; }

Command Command::add_command(const std::string& name, const std::string& summary) const {
  return Command(app_->add_subcommand(name, summary));
}

void Command::footer(const std::string& text) const { app_->footer(text); }

template <class T>
CommandOption Command::add_option(const std::string& name, T& value,
                                  const std::string& help) const {
  return CommandOption(app_->add_option(name, value, help));
}

void Command::add_flag(const std::string& name, bool& value, const std::string& help) const {
  app_->add_flag(name, value, help);
}

void Command::add_flag(const std::string& name, std::function<void()> action,
                       const std::string& help) const {
  app_->add_flag_callback(name, std::move(action), help);
}

void Command::at_most_one_command() const { app_->require_subcommand(0, 1); }
void Command::pass_unknown_to_parent() const { app_->fallthrough(); }
void Command::when_parsed(std::function<void()> action) const { app_->callback(std::move(action)); }
bool Command::names_command() const { return !app_->get_subcommands().empty(); }

CommandLine::CommandLine(const std::string& name, const std::string& summary,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(summary)) {
  app_->name(name);
  app_->set_version_flag("--version", version, "Print version, commit and CUDA toolkit, and exit");
  app_->set_help_all_flag("--help-all", "Print the help of every command and exit");
}

CommandLine::~CommandLine() = default;

bool CommandLine::parse(std::vector<std::string> words) {
  try {
    parse_in_order(*app_, std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw UsageError(usage_sentence(misuse_of(*app_, error)));
    app_->exit(error);  // prints --help, --version
    return false;
  }
  return true;
}

namespace {

// A sentence about words that no option takes.
std::string unknown_words(const std::string& what, const CLI::App& app) {
  constexpr std::size_t most = 60;
  const std::string word = printable(app.remaining().front().substr(0, most));
  if (!word.starts_with('-')) return cat("\"", word, "\" is one word too many for ", what);
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
  return cat(word, " is no word of ", what, "; expected ", join(known, ", "));
}

}  // namespace

void parse_words(const std::string& what, const std::function<void(Command)>& declare,
                 std::vector<std::string> words) {
  CLI::App app;
  app.set_help_flag();  // removes --help
  declare(Command(&app));
  try {
    parse_in_order(app, std::move(words));
  } catch (const CLI::ExtrasError& error) {
    throw UsageError(app.remaining().empty() ? error.what() : unknown_words(what, app));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
}

template CommandOption Command::add_option(const std::string&, std::string&,
                                           const std::string&) const;
template CommandOption Command::add_option(const std::string&, std::vector<std::string>&,
                                           const std::string&) const;
template CommandOption Command::add_option(const std::string&, std::pair<std::string, std::string>&,
                                           const std::string&) const;
template CommandOption Command::add_option(const std::string&, int&, const std::string&) const;
template CommandOption Command::add_option(const std::string&, std::int64_t&,
                                           const std::string&) const;
template CommandOption Command::add_option(const std::string&, std::vector<std::int64_t>&,
                                           const std::string&) const;
template CommandOption Command::add_option(const std::string&, std::uint64_t&,
                                           const std::string&) const;
template CommandOption Command::add_option(const std::string&, double&, const std::string&) const;
template CommandOption Command::add_option(const std::string&, std::optional<double>&,
                                           const std::string&) const;

}  // namespace kiln::cli
