// Versions, statuses and messages; handles.
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <thread>

#include "core/enumeration.hpp"
#include "objects.hpp"

using namespace test;

BOOST_AUTO_TEST_SUITE(status)

BOOST_AUTO_TEST_CASE(versions) {
  BOOST_TEST(kilnGetVersion() == KILN_VERSION);
  succeeds(kilnCheckVersion(KILN_VERSION));
  succeeds(kilnCheckVersion(KILN_VERSION + 1));  // a later patch
  fails(kilnCheckVersion(KILN_VERSION + 10000), KILN_STATUS_VERSION_MISMATCH,
        {"header_version is 10200 (Kiln 1.2.0)", "the library, which is 0.2.0",
         "expected 200 to 299"});
  fails(kilnCheckVersion(KILN_VERSION + 100), KILN_STATUS_VERSION_MISMATCH,
        {"header_version is 300 (Kiln 0.3.0)"});
  fails(kilnCheckVersion(100), KILN_STATUS_VERSION_MISMATCH, {"Kiln 0.1.0"});
  fails(kilnCheckVersion(-1), KILN_STATUS_VERSION_MISMATCH, {"header_version is -1"});
}

BOOST_AUTO_TEST_CASE(every_status_has_a_name_of_its_own) {
  std::set<std::string> names;
  const std::vector<kilnStatus_t> all = kiln::all_of<kilnStatus_t>();
  for (const kilnStatus_t status : all) {
    const std::string name = kilnGetErrorString(status);
    BOOST_TEST(name.rfind("KILN_STATUS_", 0) == 0u, name);
    names.insert(name);
  }
  BOOST_TEST(names.size() == all.size());
  BOOST_TEST(kilnGetErrorString(static_cast<kilnStatus_t>(99)) != nullptr);
  BOOST_TEST(std::string(kilnGetErrorString(KILN_STATUS_BAD_PARAM)) == "KILN_STATUS_BAD_PARAM");
}

BOOST_AUTO_TEST_CASE(the_message_belongs_to_the_thread_and_stays_until_the_next_failure) {
  const TensorDesc tensor;
  bad_param(kilnSetTensor4dDescriptor(tensor, KILN_TENSOR_NCHW, KILN_DATA_FLOAT, 1, 0, 1, 1),
            {"c is 0"});
  std::string fresh = "unset", other;
  std::jthread([&] {
    fresh = kilnGetLastErrorMessage();
    kilnSetTensor4dDescriptor(tensor, KILN_TENSOR_NCHW, KILN_DATA_FLOAT, 1, 1, 0, 1);
    other = kilnGetLastErrorMessage();
  }).join();
  BOOST_TEST(fresh == "");
  BOOST_TEST(other.find("h is 0") != std::string::npos, other);
  succeeds(kilnSetTensor4dDescriptor(tensor, KILN_TENSOR_NCHW, KILN_DATA_FLOAT, 1, 1, 1, 1));
  BOOST_TEST(std::string(kilnGetLastErrorMessage()).find("c is 0") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(handles)

BOOST_AUTO_TEST_CASE(a_handle_keeps_its_stream) {
  const TestHandle handle;
  int token = 0;
  void* stream = &token;
  succeeds(kilnGetStream(handle, &stream));
  BOOST_TEST(stream == nullptr);
  succeeds(kilnSetStream(handle, &token));
  succeeds(kilnGetStream(handle, &stream));
  BOOST_TEST(stream == &token);
  bad_param(kilnSetStream(nullptr, nullptr), {"handle is null; expected a handle from kilnCreate"});
  bad_param(kilnGetStream(nullptr, &stream), {"handle is null"});
  bad_param(kilnGetStream(handle, nullptr), {"stream is null"});
}

BOOST_AUTO_TEST_CASE(wrong_devices_are_named) {
  kilnHandle_t handle = nullptr;
  bad_param(kilnCreate(nullptr, KILN_DEVICE_HOST, 0), {"handle is null"});
  bad_param(kilnCreate(&handle, static_cast<kilnDeviceKind_t>(7), 0),
            {"kind is 7", "KILN_DEVICE_HOST"});
  bad_param(kilnCreate(&handle, KILN_DEVICE_HOST, 1), {"ordinal is 1", "expected 0"});
  bad_param(kilnCreate(&handle, KILN_DEVICE_HOST, -1), {"ordinal is -1"});
  bad_param(kilnCreate(&handle, KILN_DEVICE_CUDA, -1), {"ordinal is -1"});
  const kilnStatus_t far = kilnCreate(&handle, KILN_DEVICE_CUDA, 9999);
  BOOST_TEST((far == KILN_STATUS_BAD_PARAM || far == KILN_STATUS_NO_DEVICE));
  BOOST_TEST(std::string(kilnGetLastErrorMessage()) != "");
  BOOST_TEST(handle == nullptr);
  succeeds(kilnDestroy(nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
