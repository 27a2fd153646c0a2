// The host device's memory: shared arrays, asynchronous copies, and errors that the sanitizers
// find. Each planted defect must be found, and the same kernel without the defect must be right.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "unit/host_device/host_device_support.hpp"

namespace kiln::test {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

LaunchShape blocks_of(std::uint32_t threads, std::uint32_t blocks, std::uint32_t shared_memory) {
  LaunchShape shape;
  shape.grid = {blocks, 1, 1};
  shape.block = {threads, 1, 1};
  shape.shared_memory = shared_memory;
  return shape;
}

// The error output of `work` in a child process that dies of it; "" if it does not die.
template <class Work>
std::string death_of(Work work) {
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "exception instead of a death: %s\n", error.what());
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const bool died = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  BOOST_TEST_INFO(text);
  return died ? text : "";
}

boost::test_tools::assertion_result only_sanitized(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(sanitized);
  result.message() << "this build has no sanitizers; configure with -DKILN_SANITIZE=ON";
  return result;
}

// Two stages in flight: tile i is added up while tile i + 1 is being copied.
constexpr std::string_view pipeline = R"(
KILN_KERNEL(test, 64, 1, Params, p) {
  float* stages = shared_array<float, 2 * 256>(0);
  const float* in = static_cast<const float*>(p.in);
  const int tiles = static_cast<int>((p.count + 255) / 256), t = static_cast<int>(thread_x());
  const auto load = [&](int tile) {
    const int first = tile * 256 + 4 * t;
    async_copy<16>(stages + tile % 2 * 256 + 4 * t, in + first, first < p.count);
  };
  load(0);
  async_commit();
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) load(tile + 1);
    if (DEFECT != 1) async_commit();
    if (DEFECT == 0) async_wait<1>();
    if (DEFECT == 1) async_wait<0>();
    if (DEFECT == 3) async_wait<2>();
    block_barrier();
    for (int i = 0; i < 256; ++i) sum += stages[tile % 2 * 256 + i];
    if (DEFECT != 4) block_barrier();
  }
  if (t == 0) static_cast<float*>(p.out)[0] = sum;
})";

float pipeline_sum(int defect) {
  const auto kernel = load_kernel(cat("constexpr int DEFECT = ", defect, ";"), pipeline, 2048);
  return run_kernel<float>(*kernel, blocks_of(64, 1, 2048), numbers(1000), 1)[0];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_device_memory)

BOOST_AUTO_TEST_CASE(an_async_copy_lands_only_when_waited_for) {
  BOOST_TEST(pipeline_sum(0) == 500500.0f);
  BOOST_TEST(std::isnan(pipeline_sum(1)));  // copies are not committed
  BOOST_TEST(std::isnan(pipeline_sum(2)));  // copies are not waited for
  BOOST_TEST(std::isnan(pipeline_sum(3)));  // one group too few is waited for
  BOOST_TEST(std::isnan(pipeline_sum(4)));  // the next copy starts while the stage is read
}

BOOST_AUTO_TEST_CASE(async_copies_of_every_size_and_the_zeros_of_invalid_ones) {
  constexpr std::string_view body = R"(
template <int BYTES>
device_inline void copy(const Params& p, u32 offset) {
  unsigned char* array = shared_array<unsigned char, 32 * BYTES>(offset);
  const u32 first = thread_x() * BYTES;
  async_copy<BYTES>(array + first, static_cast<const unsigned char*>(p.in) + first,
                    first + BYTES <= p.count);
  async_commit();
  async_wait<0>();
  for (u32 i = first; i < first + BYTES; ++i) static_cast<unsigned char*>(p.out)[offset + i] = array[i];
}
KILN_KERNEL(test, 32, 1, Params, p) {
  copy<4>(p, 0);
  copy<8>(p, 128);
  copy<16>(p, 384);
})";
  std::vector<unsigned char> in(112);
  std::iota(in.begin(), in.end(), static_cast<unsigned char>(1));
  const auto out =
      run_kernel<unsigned char>(*load_kernel("", body, 896), blocks_of(32, 1, 896), in, 896);
  std::vector<unsigned char> expected(896, 0);
  for (const std::size_t offset : {0u, 128u, 384u})
    std::copy(in.begin(), in.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
  BOOST_TEST(out == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_async_copy_to_a_wrong_place_is_reported) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 32, 1, Params, p) {
  float* array = shared_array<float, 32>(0);
  async_copy<BYTES>(array + thread_x() * (BYTES / 4) + SHIFT, p.in, false);
})";
  const auto failure = [&](int bytes, int shift) {
    const auto kernel =
        load_kernel(cat("constexpr int BYTES = ", bytes, ", SHIFT = ", shift, ";"), body, 128);
    return failure_of(*kernel, blocks_of(bytes == 4 ? 32 : 16, 1, 128));
  };
  BOOST_TEST(failure(4, 0) == "");
  BOOST_TEST(contains(failure(4, 1), "thread 31: async_copy of 4 bytes to an address outside"),
             failure(4, 1));
  BOOST_TEST(failure(8, 0) == "");
  BOOST_TEST(contains(failure(8, 1), "async_copy of 8 bytes"), failure(8, 1));
}

BOOST_AUTO_TEST_CASE(shared_memory_holds_no_numbers_when_a_block_begins) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 32, 1, Params, p) {
  float* array = shared_array<float, 32>(0);
  static_cast<float*>(p.out)[block_x() * 32 + thread_x()] = array[thread_x()];
  array[thread_x()] = 1;
})";
  for (const float value :
       run_kernel<float>(*load_kernel("", body, 128), blocks_of(32, 20, 128), numbers(1), 640))
    BOOST_REQUIRE(std::isnan(value));
}

BOOST_AUTO_TEST_CASE(all_threads_of_a_block_share_an_array) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 64, 1, Params, p) {
  u64* first = shared_array<u64, 64>(0);
  int* second = shared_array<int, 64>(512);
  first[thread_x()] = thread_x();
  second[63 - thread_x()] = block_x();
  block_barrier();
  static_cast<int*>(p.out)[block_x() * 64 + thread_x()] =
      static_cast<int>(first[63 - thread_x()]) + 1000 * second[thread_x()];
})";
  const auto out =
      run_kernel<int>(*load_kernel("", body, 768), blocks_of(64, 9, 768), numbers(1), 9 * 64);
  for (int i = 0; i < 9 * 64; ++i)
    BOOST_REQUIRE_EQUAL(out[static_cast<std::size_t>(i)], i / 64 * 1000 + 63 - i % 64);
}

BOOST_AUTO_TEST_CASE(shared_arrays_that_do_not_fit_are_reported) {
  const auto failure = [](std::string_view arrays) {
    const auto kernel =
        load_kernel("", cat("KILN_KERNEL(test, 32, 1, Params, p) {", arrays, "}"), 1024);
    return failure_of(*kernel, blocks_of(32, 2, 1024));
  };
  BOOST_TEST(failure("shared_array<int, 128>(0); shared_array<int, 128>(512);") == "");
  std::string why = failure("shared_array<int, 128>(0); shared_array<int, 129>(512);");
  BOOST_TEST(contains(why, "of 516 bytes ends at 1028; the launch has 1024 bytes"), why);
  why = failure("shared_array<int, 128>(0); shared_array<int, 4>(496);");
  BOOST_TEST(contains(why, "shared_array(496) of 16 bytes overlaps shared_array(0)"), why);
  why = failure("shared_array<int, 4>(0); shared_array<int, 8>(0);");
  BOOST_TEST(contains(why, "expected one size for an offset"), why);
  why = failure("shared_array<int, 4>(8);");
  BOOST_TEST(contains(why, "expected a multiple of 16 bytes"), why);
}

BOOST_AUTO_TEST_CASE(launches_that_a_driver_would_refuse_are_refused) {
  const auto kernel = load_kernel("", "KILN_KERNEL(test, 64, 1, Params, p) {}", 100 * 1024);
  const auto failure = [&](auto change) {
    LaunchShape shape = blocks_of(64, 6, 0);
    change(shape);
    return failure_of(*kernel, shape);
  };
  BOOST_TEST(failure([](LaunchShape&) {}) == "");
  BOOST_TEST(failure([](LaunchShape& s) { s.shared_memory = 100 * 1024; }) == "");
  BOOST_TEST(contains(failure([](LaunchShape& s) { s.block = {13, 5, 1}; }), "13x5x1 threads"));
  BOOST_TEST(contains(failure([](LaunchShape& s) { s.grid[1] = 0; }), "grid 6x0x1"));
  BOOST_TEST(contains(failure([](LaunchShape& s) { s.cluster = 4; }), "clusters of 4 blocks"));
  BOOST_TEST(contains(failure([](LaunchShape& s) { s.shared_memory = 101 * 1024; }), "103424"));
  const std::vector<std::byte> wrong(sizeof(Params) + 8);
  BOOST_CHECK_EXCEPTION(kernel->launch(blocks_of(64, 1, 0), wrong, nullptr), Error,
                        [](const Error& e) { return contains(e.what(), "expected 24"); });

  const std::vector<std::byte> garbage(1000);
  BOOST_CHECK_EXCEPTION(open_host_device()->load(garbage, "test", 0), Error,
                        [](const Error& e) { return e.status() == KILN_STATUS_EXECUTION_FAILED; });
  const Compiled compiled =
      compile_for_host(cat(kernel_prelude, "KILN_KERNEL(other, 64, 1, Params, p) {}"));
  BOOST_CHECK_EXCEPTION(open_host_device()->load(compiled.binary, "test", 0), Error,
                        [](const Error& e) { return contains(e.what(), "\"test\""); });
}

BOOST_AUTO_TEST_CASE(many_kernels_of_one_name_are_loaded_at_once) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (int i = 0; i < 8; ++i)
    kernels.push_back(load_kernel(cat("constexpr int NUMBER = ", i, ";"), R"(
KILN_KERNEL(test, 1, 1, Params, p) { static_cast<int*>(p.out)[0] = NUMBER; })"));
  kernels.erase(kernels.begin() + 3);
  kernels.push_back(load_kernel("constexpr int NUMBER = 3;", R"(
KILN_KERNEL(test, 1, 1, Params, p) { static_cast<int*>(p.out)[0] = NUMBER; })"));
  std::vector<int> seen;
  for (const auto& kernel : kernels)
    seen.push_back(run_kernel<int>(*kernel, LaunchShape{}, numbers(1), 1)[0]);
  BOOST_TEST(seen == (std::vector<int>{0, 1, 2, 4, 5, 6, 7, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_read_past_the_end_of_an_operand_is_caught,
                     *boost::unit_test::precondition(only_sanitized)) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 128, 1, Params, p) {
  const int i = static_cast<int>(block_x() * 128 + thread_x());
  block_barrier();
  if (PLANTED || i < p.count) static_cast<float*>(p.out)[i] = static_cast<const float*>(p.in)[i];
})";
  const auto run = [&](const Kernel& kernel) {
    return run_kernel<float>(kernel, blocks_of(128, 2, 0), numbers(255), 256);
  };
  const auto planted = load_kernel("constexpr bool PLANTED = true;", body);
  const auto corrected = load_kernel("constexpr bool PLANTED = false;", body);
  const std::string report = death_of([&] { run(*planted); });
  BOOST_TEST(contains(report, "heap-buffer-overflow"), report);
  BOOST_TEST(contains(report, "0 bytes to the right of") + contains(report, "0 bytes after"),
             report);
  BOOST_TEST(death_of([&] { run(*corrected); }) == "");
  BOOST_TEST(run(*corrected)[254] == 255.0f);
}

BOOST_AUTO_TEST_CASE(an_async_copy_past_the_end_of_an_operand_is_caught,
                     *boost::unit_test::precondition(only_sanitized)) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 64, 1, Params, p) {
  float* array = shared_array<float, 256>(0);
  const u32 first = 4 * thread_x();
  async_copy<16>(array + first, static_cast<const float*>(p.in) + first, PLANTED || first < p.count);
})";
  const auto planted = load_kernel("constexpr bool PLANTED = true;", body, 1024);
  const auto corrected = load_kernel("constexpr bool PLANTED = false;", body, 1024);
  const auto run = [&](const Kernel& kernel) {
    run_kernel<float>(kernel, blocks_of(64, 1, 1024), numbers(252), 1);
  };
  const std::string report = death_of([&] { run(*planted); });
  BOOST_TEST(contains(report, "heap-buffer-overflow"), report);
  BOOST_TEST(death_of([&] { run(*corrected); }) == "");
}

BOOST_AUTO_TEST_CASE(an_overrun_from_one_shared_array_into_the_next_is_caught,
                     *boost::unit_test::precondition(only_sanitized)) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 65, 1, Params, p) {
  float* first = shared_array<float, 64>(0);
  shared_array<float, 64>(256);
  if (PLANTED || thread_x() < 64) first[thread_x()] = 1;
})";
  const auto planted = load_kernel("constexpr bool PLANTED = true;", body, 512);
  const auto corrected = load_kernel("constexpr bool PLANTED = false;", body, 512);
  const std::string report = death_of([&] { launch(*planted, blocks_of(65, 1, 512), {}); });
  BOOST_TEST(contains(report, "heap-buffer-overflow"), report);
  BOOST_TEST(death_of([&] { launch(*corrected, blocks_of(65, 1, 512), {}); }) == "");
}

BOOST_AUTO_TEST_CASE(an_overrun_of_a_local_array_is_caught,
                     *boost::unit_test::precondition(only_sanitized)) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 64, 1, Params, p) {
  float sums[8];
  for (int i = 0; i < 8; ++i) sums[i] = static_cast<float>(i);
  block_barrier();
  const int last = static_cast<int>(p.count) - (PLANTED ? 0 : 1);
  static_cast<float*>(p.out)[thread_x()] = sums[last];
})";
  const auto planted = load_kernel("constexpr bool PLANTED = true;", body);
  const auto corrected = load_kernel("constexpr bool PLANTED = false;", body);
  const auto run = [&](const Kernel& kernel) {
    return run_kernel<float>(kernel, blocks_of(64, 1, 0), numbers(8), 64);
  };
  const std::string report = death_of([&] { run(*planted); });
  BOOST_TEST(contains(report, "test.cu:"), report);
  BOOST_TEST(run(*corrected) == std::vector<float>(64, 7.0f), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(undefined_arithmetic_is_caught,
                     *boost::unit_test::precondition(only_sanitized)) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 1, 1, Params, p) {
  const int big = 2147483647 - (PLANTED ? 0 : 8);
  static_cast<int*>(p.out)[0] = big + static_cast<int>(p.count);
})";
  const auto planted = load_kernel("constexpr bool PLANTED = true;", body);
  const auto corrected = load_kernel("constexpr bool PLANTED = false;", body);
  const auto run = [&](const Kernel& kernel) {
    return run_kernel<int>(kernel, LaunchShape{}, numbers(8), 1)[0];
  };
  const std::string report = death_of([&] { run(*planted); });
  BOOST_TEST(contains(report, "signed integer overflow"), report);
  BOOST_TEST(run(*corrected) == 2147483647);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::test
