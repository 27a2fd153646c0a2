// A program that ends while 30 plans are being finalized in the background, one of which is to be
// executable at once.
//
//   ending HOW MICROSECONDS KERNELS
//
// HOW: return, exit, quick_exit, abort, throw (out of main), thread (exit on another thread) or
// last (exit, at whose end the program has one more plan finalized). KERNELS: how many different
// ones.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "work.hpp"

namespace {

constexpr int plans = 30;

std::vector<std::unique_ptr<test::Work>> works;
kilnHandle_t handle = nullptr;

kilnPlan_t start(int number, kilnStandIn_t stand_in = KILN_STAND_IN_NONE) {
  kilnPlan_t plan = nullptr;
  works.push_back(std::make_unique<test::Work>(number));
  if (works.back()->plan(handle, &plan) != KILN_STATUS_SUCCESS ||
      kilnSetPlanStandIn(plan, stand_in) != KILN_STATUS_SUCCESS ||
      kilnStartFinalizePlan(plan) != KILN_STATUS_SUCCESS)
    std::_Exit(3);
  return plan;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const int kernels = std::atoi(arguments[3]);
  const std::string how = arguments[1];
  if (how == "last") {
    std::atexit([] {
      const kilnPlan_t plan = start(99);  // of a kernel that nobody has yet asked for
      if (kilnWaitFinalizePlan(plan) != KILN_STATUS_SUCCESS) std::_Exit(4);
    });
  }
  if (kilnCreate(&handle, KILN_DEVICE_HOST, 0) != KILN_STATUS_SUCCESS) return 2;
  for (int i = 1; i < plans; ++i) start(100 + i % kernels);
  const kilnPlan_t at_once = start(100, KILN_STAND_IN_ANY);
  if (works.back()->execute(handle, at_once) != KILN_STATUS_SUCCESS || !works.back()->right())
    std::_Exit(5);
  usleep(static_cast<useconds_t>(std::atoi(arguments[2])));
  if (how == "exit" || how == "last") std::exit(0);
  if (how == "quick_exit") std::quick_exit(0);
  if (how == "abort") std::abort();
  if (how == "throw") throw std::runtime_error("out of main");
  if (how == "thread") std::thread([] { std::exit(0); }).join();
  return 0;
}
