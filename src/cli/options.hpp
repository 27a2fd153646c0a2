// Commands and their options, declared here and parsed by CLI11. Only options.cpp includes CLI11,
// which takes a compiler longer than an ordinary file does.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kiln::cli {

// A declared option, to be told more about; each function returns the same option.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}

  CommandOption required() const;
  CommandOption expected(int count) const;  // values
  CommandOption expected(int least, int most) const;
  CommandOption delimiter(char between) const;  // of several values in one word
  CommandOption single() const;  // takes one word at a time: another argument may follow
  CommandOption type_name(const std::string& name) const;  // in the help
  CommandOption show_default() const;                      // the value that the variable has now
  // The name of an environment variable that gives it where the line does not.
  CommandOption environment(const std::string& name) const;

  // What each value must be.
  CommandOption one_of(const std::vector<std::string>& names) const;
  CommandOption each_of(const std::vector<std::string>& names) const;  // a list such as "f32:f16"
  CommandOption range(int least, int most) const;
  CommandOption range(double least, double most) const;
  CommandOption positive() const;
  CommandOption not_negative() const;

  // What a value is replaced by before it is stored.
  CommandOption replace(std::function<std::string(const std::string&)> value) const;

  bool given() const;  // on the line that was parsed

 private:
  CLI::Option* option_;
};

// A command that is being declared; it belongs to its CommandLine. The variables that its options
// are stored in must outlive the parsing.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command add_command(const std::string& name, const std::string& summary) const;
  void footer(const std::string& text) const;  // the end of --help

  // "--name", "-n", or "NAME" for an argument without a flag. T is one of those at the end of
  // options.cpp.
  template <class T>
  CommandOption add_option(const std::string& name, T& value, const std::string& help = "") const;
  void add_flag(const std::string& name, bool& value, const std::string& help) const;
  void add_flag(const std::string& name, std::function<void()> action,
                const std::string& help) const;

  void at_most_one_command() const;     // of those added; more are an error
  void pass_unknown_to_parent() const;  // options that it does not have
  void when_parsed(std::function<void()> action) const;
  bool names_command() const;  // whether the line that was parsed names one of those added

 private:
  CLI::App* app_;
};

// The command line of the program.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& summary, const std::string& version);
  ~CommandLine();

  Command program() const { return Command(app_.get()); }

  // Parses the words after the program's name. False if they ask for help or the version, which is
  // printed then. Throws UsageError, and what the actions of commands and flags throw.
  bool parse(std::vector<std::string> words);

 private:
  std::unique_ptr<CLI::App> app_;
};

// Parses words by options that stand outside of any command line, such as those of a line in a
// file; they have no --help. Throws UsageError, which names a word that is unknown. `what`: whose
// words they are, as in "conv lines".
void parse_words(const std::string& what, const std::function<void(Command)>& declare,
                 std::vector<std::string> words);

}  // namespace kiln::cli
