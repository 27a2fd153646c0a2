// Threads, memory and programs that this program refuses itself.
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

// Of the calls by which a program is started (posix_spawn and what prepares it, memfd_create): the
// nth from now fails for want of memory. 0: none.
void deny_spawn(long nth);
long spawn_calls();  // since deny_spawn

}  // namespace test
