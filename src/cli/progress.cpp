#include "cli/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "cli/format.hpp"
#include "cli/printable.hpp"
#include "core/text.hpp"

namespace kiln::cli {
namespace {

// The terminal's width. Longer lines would wrap, and could not be erased.
std::size_t columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string shortened(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

}  // namespace

Progress::Progress(int total) : total_(total), terminal_(isatty(STDOUT_FILENO)) { draw(); }

Progress::~Progress() { erase(); }

void Progress::begin(const std::string& job) {
  const std::lock_guard lock(mutex_);
  under_way_.push_back(job);
  erase();
  draw();
}

void Progress::done(const std::string& job, const std::string& line, bool remarkable) {
  const std::lock_guard lock(mutex_);
  ++done_;
  if (const auto at = std::find(under_way_.begin(), under_way_.end(), job); at != under_way_.end())
    under_way_.erase(at);
  constexpr std::size_t looked_at = 32;
  latest_.push_back(std::chrono::steady_clock::now());
  if (latest_.size() > looked_at) latest_.pop_front();
  erase();
  if (!terminal_ || remarkable) std::cout << printable_lines(line) << std::endl;
  draw();
}

void Progress::draw() {
  if (!terminal_ || total_ == 0) return;
  constexpr int width = 20;
  const int filled = width * done_ / total_;
  std::string text = cat('[', std::string(filled, '#'), std::string(width - filled, '.'), "] ",
                         done_, '/', total_);
  if (done_ > 0) {
    const std::chrono::duration<double> elapsed = latest_.back() - latest_.front();
    const double each = elapsed.count() / static_cast<double>(latest_.size() - 1);
    text += cat("  ", duration_text(each * (total_ - done_)), " left");
  }
  if (!under_way_.empty()) {
    text += cat("  ", under_way_.front());
    if (under_way_.size() > 1) text += cat(" (and ", under_way_.size() - 1, " more)");
  }
  std::cout << shortened(text, columns() - 1) << std::flush;
}

void Progress::erase() {
  if (terminal_) std::cout << "\r\x1b[K" << std::flush;
}

}  // namespace kiln::cli
