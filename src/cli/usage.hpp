// The error message for a command line that cannot be parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kiln::cli {

// A sentence: what is wrong, with the name that may have been meant, and whose --help to ask.
// `app` is the whole program, whose parse threw `error`.
std::string usage_sentence(const CLI::App& app, const CLI::ParseError& error);

}  // namespace kiln::cli
