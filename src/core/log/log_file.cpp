#define SPDLOG_NO_THREAD_ID  // see log.cpp
#include "core/log/log_file.hpp"

#include <fcntl.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

#include "cache/store/files.hpp"

namespace kiln::log {
namespace {

// It needs no lock of its own, because log.cpp calls it under one.
class LogFile : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LogFile(int descriptor) : descriptor_(descriptor) {}
  ~LogFile() override { close(descriptor_); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    static_cast<void>(
        cache::write_all(descriptor_, std::as_bytes(std::span(line.data(), line.size()))));
  }
  void flush_() override {}  // nothing is buffered

 private:
  int descriptor_;
};

}  // namespace

spdlog::sink_ptr open_log_file(const std::string& path, std::string& why) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  // O_NONBLOCK: opening a FIFO without a reader fails, and writing to a full one.
  constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  int descriptor = -1;
  do {
    descriptor = open(path.c_str(), flags, 0666);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor >= 0) return std::make_shared<LogFile>(descriptor);
  why = errno == ENXIO ? "a FIFO that nobody reads" : std::strerror(errno);
  return nullptr;
}

}  // namespace kiln::log
