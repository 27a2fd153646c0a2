// What the key of a kernel depends on within a process, and what it does not depend on.
#include <boost/test/unit_test.hpp>
#include <locale>
#include <set>
#include <thread>

#include "codegen/source.hpp"
#include "engines/choice.hpp"
#include "plan/kernel_store.hpp"
#include "problem/line/problem_line.hpp"

namespace {

using namespace kiln;

const Problem problem = make_convolution(parse_convolution_line("mb2ic1000ih16oc2000kh3ph1"),
                                         KILN_DATA_FLOAT, KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);

std::string key_on(const DeviceDescription& device) {
  std::vector<EngineRefusal> refusals;
  return key_of(choose(problem, device, {}, refusals).first().kernel, device.kind, device.arch)
      .text();
}

// A locale that separates groups of two digits, so that no compiler could read its numbers.
struct Grouped : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\2"; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(kernel_key)

BOOST_AUTO_TEST_CASE(every_letter_of_the_architecture_counts) {
  const DeviceDescription device = known_architecture("sm_90");
  std::vector<EngineRefusal> refusals;
  const KernelSpec spec = choose(problem, device, {}, refusals).first().kernel;
  std::set<std::string> seen;
  for (const char* arch : {"sm_90", "sm_90a", "sm_90f", "sm_9", "compute_90"})
    seen.insert(key_of(spec, KILN_DEVICE_CUDA, arch).content_hash());
  BOOST_TEST(seen.size() == 5u);
}

BOOST_AUTO_TEST_CASE(each_constant_counts) {
  std::vector<EngineRefusal> refusals;
  const KernelSpec spec = choose(problem, known_architecture("sm_80"), {}, refusals).first().kernel;
  std::set<std::string> seen = {key_of(spec, KILN_DEVICE_CUDA, "sm_80").content_hash()};
  std::size_t changes = 1;
  for (std::size_t i = 0; i < spec.constants.size(); ++i) {
    KernelSpec changed = spec;
    auto* const value = std::get_if<std::int64_t>(&changed.constants[i].value);
    if (!value) continue;
    *value += 1;
    seen.insert(key_of(changed, KILN_DEVICE_CUDA, "sm_80").content_hash());
    ++changes;
  }
  BOOST_TEST(changes > 10u);
  BOOST_TEST(seen.size() == changes);
}

BOOST_AUTO_TEST_CASE(ordinal_name_and_memory_of_the_device_do_not_count) {
  DeviceDescription device = known_architecture("sm_90a");
  const std::string before = key_on(device);
  device.ordinal = 7;
  device.name = "another of the kind";
  device.memory_bytes += 1 << 30;
  BOOST_TEST(key_on(device) == before);
}

BOOST_AUTO_TEST_CASE(neither_thread_nor_global_locale_counts) {
  const DeviceDescription device = known_architecture("sm_90a");
  const std::string before = key_on(device);
  std::string elsewhere;
  std::thread([&] { elsewhere = key_on(device); }).join();
  BOOST_TEST(elsewhere == before);
  const std::locale old = std::locale::global(std::locale(std::locale::classic(), new Grouped));
  const std::string in_another_language = key_on(device);
  std::locale::global(old);
  BOOST_TEST(in_another_language == before);
}

BOOST_AUTO_TEST_SUITE_END()
