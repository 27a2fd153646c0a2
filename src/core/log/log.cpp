// spdlog without its own locks and its thread-local variable: the locks may be held for ever in a
// forked child, and the variable needs memory in each new thread. The library's own lock is used
// instead.
#define SPDLOG_NO_THREAD_ID
#include "core/log/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "cache/store/quiet_writes.hpp"
#include "core/config.hpp"
#include "core/log/log_file.hpp"
#include "core/process/per_process.hpp"

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

// The time of a line, in UTC: "2026-01-31 23:59:59.123Z". The C library's calendar has a lock,
// which a forked child may find taken for ever.
class Time : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    namespace chrono = std::chrono;
    const auto day = chrono::floor<chrono::days>(message.time);
    const chrono::year_month_day date(day);
    const chrono::hh_mm_ss time(chrono::floor<chrono::milliseconds>(message.time - day));
    fmt::format_to(std::back_inserter(out), "{}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}Z",
                   static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                   static_cast<unsigned>(date.day()), time.hours().count(), time.minutes().count(),
                   time.seconds().count(), time.subseconds().count());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Time>(); }
};

std::unique_ptr<spdlog::formatter> make_formatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<Time>('~').set_pattern("[%~] [%n] [%l] %v");
  return formatter;
}

spdlog::level::level_enum level() {
  static constinit Once<spdlog::level::level_enum> instance("log level");
  return instance.get([] { return spdlog::level::from_str(config().log_level); });
}

struct Log {
  std::unique_ptr<spdlog::logger> logger;
  bool elsewhere = false;  // log to standard error, because the file cannot be opened now
  bool complained = false;
};

void open(Log& log) {
  const Config& config = kiln::config();
  spdlog::sink_ptr sink;
  std::string complaint;
  if (!config.log_file.empty()) {
    sink = open_log_file(config.log_file, complaint);
  }
  if (!sink) sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
  auto logger = std::make_unique<spdlog::logger>("kiln", sink);
  logger->set_formatter(make_formatter());
  logger->set_error_handler([](const std::string&) {});  // a line that cannot be written is lost
  logger->set_level(level());
  logger->flush_on(spdlog::level::warn);
  log.elsewhere = !complaint.empty();
  if (log.elsewhere && !std::exchange(log.complained, true))
    logger->warn("KILN_LOG_FILE is {}, which cannot be written ({}); the log goes to stderr",
                 config.log_file, complaint);
  log.logger = std::move(logger);
}

// Logs the complaints about environment variables, once.
void tell_complaints() {
  static constinit std::atomic<bool> told{false};
  if (config().complaints.empty() || told.exchange(true)) return;
  for (const std::string& sentence : config().complaints) write(Level::warn, sentence);
}

}  // namespace

bool enabled(Level wanted) {
  const spdlog::level::level_enum least = level();
  tell_complaints();
  return least != spdlog::level::off && to_spdlog(wanted) >= least;
}

void write(Level level, std::string_view message) {
  if (!enabled(level)) return;
  const cache::QuietWrites quiet;  // standard error may be a pipe that nobody reads
  static constinit PerProcess<Log> state("log");
  const auto log = state.lock();
  if (log->logger == nullptr || log->elsewhere) open(*log);
  log->logger->log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace kiln::log
