// Progress of many like jobs: a bar on a terminal, a line a job elsewhere.
#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <string>

namespace kiln::cli {

class Progress {
 public:
  explicit Progress(int total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One more job is done. `line` tells of it; on a terminal it appears, above the bar, only if the
  // job is worth reading about. From any thread.
  void done(const std::string& line, bool remarkable);

 private:
  void draw();
  void erase();

  const int total_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  int done_ = 0;
  // When the latest jobs were done: what is left is estimated from these, since the first ones of a
  // run that is resumed take no time.
  std::deque<std::chrono::steady_clock::time_point> latest_{start_};
};

}  // namespace kiln::cli
