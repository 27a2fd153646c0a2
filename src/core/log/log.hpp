// Logging, over spdlog (which stays inside log.cpp and log_file.cpp). Level from KILN_LOG (off,
// error, warn, info, debug, trace; default warn), destination from KILN_LOG_FILE (default stderr).
#pragma once

#include <string_view>

namespace kiln::log {

enum class Level { debug, info, warn, error };

bool enabled(Level level);
void write(Level level, std::string_view message);

inline void debug(std::string_view message) { write(Level::debug, message); }
inline void info(std::string_view message) { write(Level::info, message); }
inline void warn(std::string_view message) { write(Level::warn, message); }
inline void error(std::string_view message) { write(Level::error, message); }

}  // namespace kiln::log
