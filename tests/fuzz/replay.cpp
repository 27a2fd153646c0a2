// Drives a fuzz target without libFuzzer, the same way every time: each file of its corpus, then
// `count` inputs that are random bytes or a corpus file with a few of its bytes changed.
//
//   replay_TARGET CORPUS count [FULL]      FULL: the count with KILN_TEST_FULL=1
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "support/counts.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Generator {
 public:
  explicit Generator(const std::vector<Bytes>& corpus) : corpus_(corpus) {}

  Bytes next() {
    if (corpus_.empty() || below(2) == 0) {
      Bytes out(below(200));
      for (auto& byte : out) byte = static_cast<std::uint8_t>(below(256));
      return out;
    }
    Bytes out = corpus_[below(corpus_.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(out);
    return out;
  }

 private:
  void change(Bytes& bytes) {
    const auto at = static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
    const auto value = static_cast<std::uint8_t>(below(256));
    const auto left = static_cast<std::ptrdiff_t>(bytes.size()) - at;
    switch (below(4)) {
      case 0: bytes.insert(bytes.begin() + at, value); break;
      case 1:
        if (left > 0) bytes.erase(bytes.begin() + at);
        break;
      case 2:
        if (left > 0) bytes[static_cast<std::size_t>(at)] = value;
        break;
      default:  // a piece of another input in place of the rest
        bytes.resize(static_cast<std::size_t>(at));
        const Bytes& other = corpus_[below(corpus_.size())];
        const auto from = static_cast<std::ptrdiff_t>(below(other.size() + 1));
        bytes.insert(bytes.end(), other.begin() + from, other.end());
    }
  }

  std::size_t below(std::size_t limit) { return random_() % limit; }

  const std::vector<Bytes>& corpus_;
  std::mt19937_64 random_{20};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: %s CORPUS COUNT [FULL]\n", argv[0]);
    return 2;
  }
  const std::vector<Bytes> corpus = read_corpus(argv[1]);
  const long count = std::atol(argv[argc == 4 && kiln_test::full_counts() ? 3 : 2]);
  for (const Bytes& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  Generator generator(corpus);
  for (long i = 0; i < count; ++i) {
    const Bytes input = generator.next();
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu corpus files, %ld inputs made from them\n", corpus.size(), count);
  return 0;
}
