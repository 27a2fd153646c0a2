// Threads and memory that this program refuses itself.
#pragma once

#include <atomic>

namespace test {

// pthread_create fails with EAGAIN.
extern std::atomic<bool> deny_threads;

// malloc and the like: the nth from now fails, and in all threads every one after it if it is to go
// on. 0: none.
void deny_memory(long nth, bool goes_on);
long memory_requests();             // since deny_memory
extern const bool can_deny_memory;  // not under a sanitizer

}  // namespace test
