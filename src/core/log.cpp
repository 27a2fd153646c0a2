#include "core/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "core/config.hpp"

namespace kiln::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warn: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::shared_ptr<spdlog::logger> make_logger() {
  const Config& config = kiln::config();
  spdlog::sink_ptr sink;
  std::string complaint;
  if (!config.log_file.empty()) {
    try {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(config.log_file);
    } catch (const spdlog::spdlog_ex& error) {
      complaint = error.what();
    }
  }
  if (!sink) sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("kiln", sink);
  logger->set_level(spdlog::level::from_str(config.log_level));
  logger->flush_on(spdlog::level::warn);
  if (!complaint.empty()) {
    logger->warn("KILN_LOG_FILE is unusable ({}); logging to stderr", complaint);
  }
  return logger;
}

spdlog::logger& logger() {
  // Leaked on purpose: log lines written while the process exits must still find it.
  static auto* instance = new std::shared_ptr<spdlog::logger>(make_logger());
  return **instance;
}

}  // namespace

bool enabled(Level level) { return logger().should_log(to_spdlog(level)); }

void write(Level level, std::string_view message) {
  logger().log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace kiln::log
