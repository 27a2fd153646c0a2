// The names that the library has: all of cuDNN 9, and those that it is said to have.
#include <dlfcn.h>

#include <fstream>
#include <set>

#include "cli/doctor/cudnn_functions.hpp"
#include "cli/doctor/cudnn_use.hpp"
#include "cudnn/objects.hpp"

using namespace test;

BOOST_AUTO_TEST_SUITE(symbols)

// This program is linked with libcudnn.so.9, and what the loader found is Kiln's.
BOOST_AUTO_TEST_CASE(the_library_is_kilns) {
  void* const library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  BOOST_TEST_REQUIRE((library != nullptr), "no library of that name is loaded");
  BOOST_TEST((dlsym(library, "kilnCudnnMarker") != nullptr));
  BOOST_TEST(cudnnGetVersion() / 10000 == 9u);
  int major = 0;
  succeeds(cudnnGetProperty(MAJOR_VERSION, &major));
  BOOST_TEST(major == CUDNN_MAJOR);
  BOOST_TEST(cudnnGetVersion() == static_cast<std::size_t>(CUDNN_VERSION));
}

// names.txt: what `nm -D` lists of libcudnn.so.9, release 9.28.
BOOST_AUTO_TEST_CASE(every_name_of_version_9_is_there) {
  void* const library = dlopen(KILN_CUDNN_LIBRARY, RTLD_NOW);
  BOOST_TEST_REQUIRE((library != nullptr), dlerror());
  std::ifstream names(KILN_CUDNN_NAMES);
  std::size_t count = 0;
  for (std::string name; names >> name; ++count) {
    BOOST_TEST((dlvsym(library, name.c_str(), "libcudnn.so.9") != nullptr), name);
    BOOST_TEST((kiln::cli::cudnn_function(name) != nullptr), name << " is in neither list");
  }
  BOOST_TEST(count > 240u);
  dlclose(library);
}

// served.def and refused.def, which `kiln doctor` goes by, are what the library exports.
BOOST_AUTO_TEST_CASE(the_lists_are_the_librarys) {
  std::set<std::string> listed;
  for (const kiln::cli::CudnnFunction& function : kiln::cli::cudnn_functions())
    BOOST_TEST(listed.emplace(function.name).second, function.name << " is listed twice");
  const std::set<std::string> exported = kiln::cli::cudnn_use_of(KILN_CUDNN_LIBRARY).carried;
  BOOST_TEST(listed == exported, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
