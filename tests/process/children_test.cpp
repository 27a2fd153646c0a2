// The programs that the library runs, in a host that does with its children what it likes.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "compile/compiler.hpp"
#include "compile/run_program.hpp"
#include "core/process/per_process.hpp"
#include "core/process/temporary_folder.hpp"
#include "folder.hpp"
#include "in_child.hpp"
#include "work.hpp"

namespace test {
namespace {

namespace fs = std::filesystem;

constexpr unsigned long_enough = 60;  // seconds

// As in a process that has not used the library yet.
template <class Body>
int in_new_process(const Body& body) {
  return in_child(long_enough, [&] {
    for (auto* state = kiln::ProcessState::first(); state != nullptr; state = state->next())
      state->forget();
    return body();
  });
}

kiln::ProgramResult shell(const std::string& script) {
  return kiln::run_program({"/bin/sh", "-c", script});
}

// Programs end as they do, and a kernel can be compiled.
int run_some(int number) {
  if (shell("echo done; exit 3").ending != "exit status 3") return 101;
  if (shell("echo done; exit 3").output != "done\n") return 102;
  if (shell("kill -9 $$").ending != "signal 9") return 103;
  for (int i = 0; i < 50; ++i)
    if (!shell("exit 0").succeeded) return 104;
  return do_everything(number);
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& each : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// No descriptor is to be had while this lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{3, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

void make_old(const std::string& path) {
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  utimensat(AT_FDCWD, path.c_str(), long_ago, 0);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(children)

BOOST_AUTO_TEST_CASE(what_a_program_leaves_running_is_not_waited_for) {
  const auto begin = std::chrono::steady_clock::now();
  const kiln::ProgramResult result = shell("echo before; sleep 30 & echo $!");
  BOOST_TEST(result.succeeded);
  BOOST_TEST(result.output.starts_with("before\n"), result.output);
  BOOST_CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  kill(std::stoi(result.output.substr(7)), SIGKILL);
}

BOOST_AUTO_TEST_CASE(no_descriptor_stays_and_none_is_passed_on) {
  const int mine = open("/dev/null", O_RDONLY);  // inherited by what a program runs, as hosts' are
  const int before = open_descriptors();
  BOOST_TEST(shell("ls /proc/self/fd | wc -l").output == "4\n");  // three, and the folder's
  BOOST_TEST(open_descriptors() == before);
  close(mine);
}

BOOST_AUTO_TEST_CASE(while_sigchld_is_ignored) {
  BOOST_TEST(in_new_process([] {
               signal(SIGCHLD, SIG_IGN);
               return run_some(30);
             }) == 0);
}

BOOST_AUTO_TEST_CASE(while_a_handler_reaps_all_children) {
  BOOST_TEST(in_new_process([] {
               signal(SIGCHLD, [](int) {
                 const int before = errno;
                 while (waitpid(-1, nullptr, WNOHANG) > 0) {
                 }
                 errno = before;
               });
               return run_some(31);
             }) == 0);
}

BOOST_AUTO_TEST_CASE(while_a_thread_reaps_all_children) {
  BOOST_TEST(in_new_process([] {
               std::thread([] {
                 for (;;)
                   if (waitpid(-1, nullptr, 0) < 0) std::this_thread::yield();
               }).detach();
               return run_some(32);
             }) == 0);
}

BOOST_AUTO_TEST_CASE(while_all_signals_are_blocked) {
  BOOST_TEST(in_new_process([] {
               sigset_t all;
               sigfillset(&all);
               pthread_sigmask(SIG_SETMASK, &all, nullptr);
               return run_some(33);
             }) == 0);
}

// What fails for want of a descriptor is found when there are some again.
BOOST_AUTO_TEST_CASE(failures_are_not_remembered) {
  BOOST_REQUIRE(do_everything(1) == 0);
  std::string why;
  const auto host = kiln::find_host_compiler(why), nvrtc = kiln::find_nvrtc(why);
  BOOST_REQUIRE(host);
  const int end = in_new_process([&] {
    {
      const NoDescriptors none;
      std::string reason;
      if (kiln::find_host_compiler(reason) || reason.find("open files") == std::string::npos)
        return 1;
      if (nvrtc && kiln::find_nvrtc(reason)) return 2;
      if (do_everything(1) == 0) return 3;
    }
    std::string reason;
    const auto again = kiln::find_host_compiler(reason);
    if (!again || again->identity() != host->identity()) return 4;
    const auto nvrtc_again = kiln::find_nvrtc(reason);
    if (nvrtc && (!nvrtc_again || nvrtc_again->identity() != nvrtc->identity())) return 5;
    return do_everything(1);
  });
  BOOST_TEST(end == 0);
}

// A process that is killed leaves a folder behind; the next removes it, and no living one's.
BOOST_AUTO_TEST_CASE(folders_of_killed_processes_are_removed) {
  const std::string directory = folder() + "/temporary";
  fs::create_directory(directory);
  setenv("TMPDIR", directory.c_str(), 1);
  const auto entries = [&] {
    return std::distance(fs::directory_iterator(directory), fs::directory_iterator());
  };
  make_compiler_slow(true);
  const pid_t killed = ::fork();
  if (killed == 0) {
    alarm(long_enough);
    _exit(do_everything(34));
  }
  wait_until_compiler_begins();
  kill(killed, SIGKILL);
  end_of(killed);
  make_compiler_slow(false);
  BOOST_TEST(entries() == 1);
  const std::string left = fs::directory_iterator(directory)->path();
  const kiln::TemporaryFolder living;
  const std::string neighbour = directory + "/kiln-temporary-file";
  std::ofstream(neighbour).flush();
  for (const std::string& each : {left, living.path(), neighbour}) make_old(each);
  BOOST_TEST(in_new_process([] { return do_everything(35); }) == 0);
  BOOST_TEST(!fs::exists(left));
  BOOST_TEST(fs::exists(living.path()));
  BOOST_TEST(fs::exists(neighbour));
  BOOST_TEST(entries() == 2);
  unsetenv("TMPDIR");
}

// A process is killed while it compiles. Its forked child lives on, and does not keep others from
// compiling the same kernel, who would wait for KILN_COMPILE_WAIT (30 s).
BOOST_AUTO_TEST_CASE(children_of_killed_processes_keep_no_lock) {
  int ready[2];
  BOOST_REQUIRE(pipe(ready) == 0);
  make_compiler_slow(true);
  const pid_t killed = ::fork();
  if (killed == 0) {
    alarm(long_enough);
    std::thread([] { do_everything(36); }).detach();
    wait_until_compiler_begins();
    const pid_t child = ::fork();
    if (child == 0) {
      alarm(long_enough);
      for (;;) pause();
    }
    const bool told = write(ready[1], &child, sizeof child) == sizeof child;
    while (told) pause();
    _exit(1);
  }
  pid_t child = -1;
  BOOST_REQUIRE(read(ready[0], &child, sizeof child) == sizeof child);
  kill(killed, SIGKILL);
  end_of(killed);
  make_compiler_slow(false);
  const auto begin = std::chrono::steady_clock::now();
  BOOST_TEST(in_new_process([] { return do_everything(36); }) == 0);
  BOOST_CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  kill(child, SIGKILL);
  for (const int end : ready) close(end);
}

// What a compiler leaves behind when it is killed is in the folder that is removed.
BOOST_AUTO_TEST_CASE(temporary_files_of_programs_are_in_their_folder) {
  const kiln::TemporaryFolder here;
  const kiln::ProgramResult result =
      kiln::run_program({"/bin/sh", "-c", "echo $TMPDIR; env | grep -c TMPDIR"}, here.path());
  BOOST_TEST(result.output == here.path() + "\n1\n");
}

// Any limit on descriptors: the program is not started, and the reason says what is missing.
BOOST_AUTO_TEST_CASE(few_descriptors) {
  int started = 0;
  for (rlim_t limit = 3; limit < 20; ++limit) {
    const int end = in_child(long_enough, [&] {
      const rlimit few{limit, limit};
      closefrom(3);
      setrlimit(RLIMIT_NOFILE, &few);
      const kiln::ProgramResult result = shell("echo done");
      if (result.started) return result.output == "done\n" ? 1 : 2;
      return result.ending == std::strerror(EMFILE) ? 0 : 3;
    });
    BOOST_TEST((end == 0 || end == 1), "limit " << limit << ": " << end);
    started += end == 1;
  }
  BOOST_TEST(started > 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace test
