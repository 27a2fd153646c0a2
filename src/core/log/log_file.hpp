// The file that KILN_LOG_FILE names.
#pragma once

#include <spdlog/common.h>

#include <string>

namespace kiln::log {

// Appends each line in one write, at once; folders on the way are made. Never waits: a FIFO that
// nobody reads is no log file, and what a reader is too slow for is lost, as is what a full disk
// does not take. Null, and a sentence's end in `why`, if the file cannot be opened.
spdlog::sink_ptr open_log_file(const std::string& path, std::string& why);

}  // namespace kiln::log
