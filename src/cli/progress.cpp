#include "cli/progress.hpp"

#include <unistd.h>

#include <iostream>

#include "cli/format.hpp"
#include "cli/printable.hpp"
#include "core/text.hpp"

namespace kiln::cli {

Progress::Progress(int total) : total_(total), terminal_(isatty(STDOUT_FILENO)) { draw(); }

Progress::~Progress() { erase(); }

void Progress::done(const std::string& line, bool remarkable) {
  const std::lock_guard lock(mutex_);
  ++done_;
  constexpr std::size_t looked_at = 32;
  latest_.push_back(std::chrono::steady_clock::now());
  if (latest_.size() > looked_at) latest_.pop_front();
  erase();
  if (!terminal_ || remarkable) std::cout << printable_lines(line) << std::endl;
  draw();
}

void Progress::draw() {
  if (!terminal_ || total_ == 0) return;
  constexpr int width = 40;
  const int filled = width * done_ / total_;
  std::string text = cat('[', std::string(filled, '#'), std::string(width - filled, '.'), "] ",
                         done_, '/', total_);
  if (done_ > 0) {
    const std::chrono::duration<double> elapsed = latest_.back() - latest_.front();
    const double each = elapsed.count() / static_cast<double>(latest_.size() - 1);
    text += cat("  ", duration_text(each * (total_ - done_)), " left");
  }
  std::cout << text << std::flush;
}

void Progress::erase() {
  if (terminal_) std::cout << "\r\x1b[K" << std::flush;
}

}  // namespace kiln::cli
