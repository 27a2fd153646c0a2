// What the kernel cache costs beside the compiler: publishing an entry, finding it again in the
// user's cache and in a bundle. Figures, not a test.
//
//   cache_latency [ENTRIES [BYTES]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <vector>

#include "cache/bundle/bundle.hpp"
#include "cache/entry_format.hpp"
#include "cache/store/disk_store.hpp"

namespace {

using namespace kiln::cache;

struct Scratch {
  std::filesystem::path path;
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "kiln-bench-XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    path = name;
  }
  ~Scratch() { std::filesystem::remove_all(path); }
};

Key key(int number) {
  return Key({{"source", std::string(20'000, 's') + std::to_string(number)},
              {"options", "--gpu-architecture=sm_90a"},
              {"architecture", "sm_90a"}},
             "compiler");
}

void measure(const char* what, int count, const std::function<bool(int)>& work) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const bool good = work(i);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    if (!good) {
      std::printf("%s: entry %d failed\n", what, i);
      std::exit(1);
    }
    times.push_back(time.count());
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * (count - 1))];
  };
  std::printf("%-28s p50 %8.1f us   p99 %8.1f us   max %8.1f us\n", what, at(0.5), at(0.99),
              times.back());
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 2000;
  const std::size_t bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 130'000;
  const Scratch scratch;
  const Entry entry{
      {{"binary", std::vector<std::byte>(bytes / 2)}, {"ptx", std::vector<std::byte>(bytes / 2)}}};
  std::vector<Key> keys;
  for (int i = 0; i < count; ++i) keys.push_back(key(i));
  DiskStore store(scratch.path / "cache", nullptr);
  store.set_limit(std::uint64_t{4} << 30);
  std::printf("%d entries of %zu bytes\n", count, encode(keys[0], entry).size());
  const auto of = [&](int i) -> const Key& { return keys[static_cast<std::size_t>(i)]; };
  measure("publish", count, [&](int i) { return store.put(of(i), entry); });
  measure("hit in the user's cache", count,
          [&](int i) { return store.get(of(i)).entry.has_value(); });
  measure("miss", count, [&](int i) { return !store.get(key(count + i)).entry; });

  BundleWriter writer(scratch.path / "bundle");
  for (const Key& each : keys) writer.add(encode(each, entry));
  if (!writer.finish("{}").empty()) return 1;
  std::string why;
  measure("open a bundle", 200,
          [&](int) { return Bundle::open(scratch.path / "bundle", why) != nullptr; });
  const auto bundle = Bundle::open(scratch.path / "bundle", why);
  measure("hit in a bundle", count, [&](int i) { return bundle->get(of(i)).entry.has_value(); });
  return 0;
}
