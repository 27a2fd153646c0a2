// The folders that are searched for NVRTC, their order, and the release of the library.
#include "compile/nvrtc_search.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// A scratch folder, and environment variables whose values are restored.
struct Scratch {
  fs::path root;
  std::vector<std::pair<std::string, std::string>> before;

  Scratch() {
    std::string name = (fs::temp_directory_path() / "kiln-nvrtc-search-XXXXXX").string();
    BOOST_REQUIRE(mkdtemp(name.data()));
    root = name;
  }
  ~Scratch() {
    for (const auto& [name, value] : before) {
      if (value.empty()) {
        unsetenv(name.c_str());
      } else {
        setenv(name.c_str(), value.c_str(), 1);
      }
    }
    fs::remove_all(root);
  }
  void set(const std::string& name, const fs::path& value) {
    const char* const old = std::getenv(name.c_str());
    before.emplace_back(name, old ? old : "");
    setenv(name.c_str(), value.c_str(), 1);
  }
  // Makes a Python environment below `name`. Returns the folder in which its wheels put NVRTC.
  fs::path environment(const std::string& name, const std::string& python) const {
    const fs::path folder = root / name / "lib" / python / "site-packages/nvidia/cu13/lib";
    fs::create_directories(folder);
    return folder;
  }
};

std::ptrdiff_t place_of(const fs::path& folder) {
  const std::vector<fs::path> folders = kiln::nvrtc_folders();
  const auto found = std::find(folders.begin(), folders.end(), folder);
  return found == folders.end() ? -1 : found - folders.begin();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nvrtc_search)

BOOST_AUTO_TEST_CASE(wheels_of_an_environment_come_before_the_system) {
  Scratch scratch;
  const fs::path in_venv = scratch.environment("venv", "python3.11");
  const fs::path in_conda = scratch.environment("conda", "python3.12");
  scratch.set("VIRTUAL_ENV", scratch.root / "venv");
  scratch.set("CONDA_PREFIX", scratch.root / "conda");
  scratch.set("PYTHONPATH", "/nowhere:" + (scratch.root / "target").string());
  scratch.set("CUDA_HOME", scratch.root / "toolkit");

  const auto toolkit = place_of(scratch.root / "toolkit/lib64");
  const auto path = place_of(scratch.root / "target/nvidia/cu13/lib");
  const auto venv = place_of(in_venv), conda = place_of(in_conda);
  const auto system = place_of("/usr/lib/aarch64-linux-gnu");  // no run path names it
  BOOST_TEST(toolkit >= 0);
  BOOST_TEST(toolkit < path);
  BOOST_TEST(path < venv);
  BOOST_TEST(venv < conda);
  BOOST_TEST(conda < system);
  // CUDA 12's wheel, and conda's own package.
  BOOST_TEST(place_of(scratch.root / "venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib") ==
             venv + 1);
  BOOST_TEST(place_of(scratch.root / "conda/lib") < system);
}

BOOST_AUTO_TEST_CASE(wheels_of_the_python_on_path_and_of_the_user_come_after_the_system) {
  Scratch scratch;
  const fs::path of_path = scratch.environment("python", "python3.9");
  const fs::path newer = scratch.environment("python", "python3.13");
  const fs::path of_user = scratch.environment("home/.local", "python3.11");
  fs::create_directories(scratch.root / "python/bin");
  std::ofstream(scratch.root / "python/bin/python3") << "";
  scratch.set("PATH", scratch.root / "python/bin");
  scratch.set("HOME", scratch.root / "home");

  const auto system = place_of("/usr/lib/aarch64-linux-gnu");
  BOOST_TEST(system >= 0);
  BOOST_TEST(system < place_of(newer));
  BOOST_TEST(place_of(of_path) < place_of(of_user));
}

BOOST_AUTO_TEST_CASE(release_is_read_from_the_library) {
  Scratch scratch;
  const fs::path library = scratch.root / "libnvrtc.so.13";
  BOOST_TEST(kiln::nvrtc_release(library) == "");  // no such file
  std::ofstream(library) << "";
  BOOST_TEST(kiln::nvrtc_release(library) == "");
  std::ofstream(library) << std::string(5000, '\0')
                         << "Cuda compilation tools, release 13.0, V13.0.88" << '\0' << "7";
  BOOST_TEST(kiln::nvrtc_release(library) == "13.0.88");
  std::ofstream(library) << "Cuda compilation tools, release 13.0, V13.0.8";  // ends with the file
  BOOST_TEST(kiln::nvrtc_release(library) == "13.0.8");
}

BOOST_AUTO_TEST_SUITE_END()
