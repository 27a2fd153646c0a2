#include "plan/compile_slots.hpp"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(compile_slots)

BOOST_AUTO_TEST_CASE(no_more_at_once_than_were_asked_for) {
  const int before = kiln::compile_threads();
  for (const int limit : {1, 3}) {
    kiln::set_compile_threads(limit);
    std::atomic<int> inside{0}, most{0}, done{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 12; ++i)
      threads.emplace_back([&] {
        const kiln::CompileSlot slot;
        const int now = ++inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        --inside;
        ++done;
      });
    threads.clear();  // joins them
    BOOST_TEST(done == 12);
    BOOST_TEST(most == limit);
  }
  kiln::set_compile_threads(before);
}

BOOST_AUTO_TEST_SUITE_END()
