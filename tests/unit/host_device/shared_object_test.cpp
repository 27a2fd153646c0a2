// Loaded host kernels: each is a library of its own, and none keeps a descriptor open.
#include "device/host/shared_object.hpp"

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compile/host_compiler.hpp"
#include "core/text.hpp"

using kiln::host::SharedObject;

namespace {

std::vector<std::byte> library_that_answers(int number) {
  std::string why;
  const auto compiler = kiln::find_host_compiler(why);
  BOOST_REQUIRE_MESSAGE(compiler != nullptr, why);
  const std::string text = kiln::cat("int count = ", number,
                                     ";\nextern \"C\" __attribute__((visibility(\"default"
                                     "\"))) int answer() { return count++; }\n");
  return compiler->compile(text, "answer.cpp", {"-shared", "-fPIC"}).binary;
}

int answer(const SharedObject& object) {
  const void* const symbol = object.symbol("answer");
  BOOST_REQUIRE(symbol != nullptr);
  return reinterpret_cast<int (*)()>(const_cast<void*>(symbol))();
}

[[maybe_unused]] std::size_t open_descriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(descriptors), end(descriptors)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shared_object)

// The loader takes a library with a known path for one that it has loaded, and descriptor numbers
// are reused. Each of these libraries has a variable of its own, so they must not be confused.
BOOST_AUTO_TEST_CASE(many_are_loaded_and_no_descriptor_is_held) {
  const std::vector<std::byte> images[] = {library_that_answers(1000), library_that_answers(2000)};
#ifndef KILN_SANITIZE
  const std::size_t before = open_descriptors();
  rlimit limit{};
  BOOST_REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit few{before + 8, limit.rlim_max};
  BOOST_REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
#endif
  std::vector<std::unique_ptr<SharedObject>> objects;
  for (int i = 0; i < 60; ++i) objects.push_back(std::make_unique<SharedObject>(images[i % 2]));
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < objects.size(); ++i)
      BOOST_TEST(answer(*objects[i]) == (i % 2 == 0 ? 1000 : 2000) + round);
  // Some are replaced by others.
  for (std::size_t i = 0; i < objects.size(); i += 3)
    objects[i] = std::make_unique<SharedObject>(images[0]);
  for (std::size_t i = 0; i < objects.size(); i += 3) BOOST_TEST(answer(*objects[i]) == 1000);
  BOOST_TEST(answer(*objects[1]) == 2002);
#ifndef KILN_SANITIZE
  BOOST_TEST(open_descriptors() == before);
  BOOST_TEST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
#endif
}

BOOST_AUTO_TEST_SUITE_END()
