// Progress of many similar jobs: on a terminal a bar and the current job's name, elsewhere one line
// per job.
#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::cli {

class Progress {
 public:
  explicit Progress(int total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A job is under way: its name stands behind the bar until it is done. From any thread.
  void begin(const std::string& job);

  // One more job is done. `line` tells of it; on a terminal it appears, above the bar, only if the
  // job is worth reading about. From any thread.
  void done(const std::string& job, const std::string& line, bool remarkable);

 private:
  void draw();
  void erase();

  const int total_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  int done_ = 0;
  std::vector<std::string> under_way_;
  // When the latest jobs were done: what is left is estimated from these, since the first ones of a
  // run that is resumed take no time.
  std::deque<std::chrono::steady_clock::time_point> latest_{start_};
};

}  // namespace kiln::cli
