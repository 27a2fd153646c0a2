// The file that KILN_LOG_FILE names.
#pragma once

#include <spdlog/common.h>

#include <string>

namespace kiln::log {

// Appends each line in one write, without buffering, and creates missing folders. Never blocks: a
// FIFO without a reader is refused, and lines that a slow reader or a full disk cannot take are
// dropped. Returns null if the file cannot be opened; `why` is then the end of a sentence.
spdlog::sink_ptr open_log_file(const std::string& path, std::string& why);

}  // namespace kiln::log
