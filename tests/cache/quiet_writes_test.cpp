// A failed write is reported as an error and never by a signal, whatever signal handlers the
// program has.
#include "cache/store/quiet_writes.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "cache/bundle/bundle.hpp"
#include "cache/store/file_lock.hpp"
#include "cache/store/files.hpp"
#include "support.hpp"

namespace kiln::cache::test {

namespace fs = std::filesystem;

namespace {

volatile std::sig_atomic_t signals = 0;

// Runs `body` in a child in which files may not exceed 1,000 bytes. Both signals first kill the
// child, then are counted by a handler; neither may occur.
int limited(const std::function<int()>& body) {
  return in_child([&] {
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    for (const auto handler : {SIG_DFL, +[](int) { signals = signals + 1; }}) {
      std::signal(SIGXFSZ, handler);
      std::signal(SIGPIPE, handler);
      if (const int status = body()) return status;
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      if (sigismember(&blocked, SIGXFSZ) || sigismember(&blocked, SIGPIPE)) return 100;
      if (signals != 0) return 101;
    }
    return 0;
  });
}

struct Fixture {
  ScratchDirectory scratch;
  const Bytes large = Bytes(2000);

  Fixture() { fs::create_directory(scratch.path()); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(quiet_writes, Fixture)

BOOST_AUTO_TEST_CASE(every_writer_of_the_cache) {
  const std::string folder = scratch.path(), file = scratch.path("file");
  BOOST_TEST(limited([&] { return publish_file(folder, "name", large) == EFBIG ? 0 : 1; }) == 0);
  BOOST_TEST(fs::is_empty(folder));
  BOOST_TEST(limited([&] { return append_to_file(file, large) == ENOSPC ? 0 : 1; }) == 0);
  BOOST_TEST(fs::file_size(file) == 0u);  // what arrived of it was taken back
  BOOST_TEST(limited([&] {
               if (append_to_file(file, Bytes(1000 - fs::file_size(file))) != 0) return 1;
               return append_to_file(file, Bytes(1)) == EFBIG ? 0 : 2;
             }) == 0);
  BOOST_TEST(limited([&] {
               const FileLock lock(folder + "/lock");
               lock.write(large);
               return 0;
             }) == 0);
  fs::remove(folder + "/lock");
  BOOST_TEST(limited([&] {
               BundleWriter writer(folder + "/kernels.bundle");
               return writer.finish(std::string(2000, ' ')) == error_text(EFBIG) ? 0 : 1;
             }) == 0);
  BOOST_TEST(fs::is_empty(folder));
}

BOOST_AUTO_TEST_CASE(a_pipe_without_a_reader) {
  BOOST_TEST(limited([&] {
               int ends[2];
               if (pipe(ends) != 0) return 1;
               close(ends[0]);
               const int error = write_all(ends[1], large);
               close(ends[1]);
               return error == EPIPE ? 0 : 2;
             }) == 0);
}

// A signal that was pending before, because the program blocks it, stays pending.
BOOST_AUTO_TEST_CASE(what_was_pending_stays) {
  BOOST_TEST(in_child([&] {
               sigset_t both, pending;
               sigemptyset(&both);
               sigaddset(&both, SIGXFSZ);
               sigaddset(&both, SIGPIPE);
               pthread_sigmask(SIG_BLOCK, &both, nullptr);
               raise(SIGPIPE);
               const rlimit limit{1000, 1000};
               setrlimit(RLIMIT_FSIZE, &limit);
               if (publish_file(scratch.path(), "name", large) != EFBIG) return 1;
               sigpending(&pending);
               if (!sigismember(&pending, SIGPIPE)) return 2;
               if (sigismember(&pending, SIGXFSZ)) return 3;
               return 0;
             }) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
