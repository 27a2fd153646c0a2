// Counts the calling thread's allocations by the C library's allocator and by operator new, in the
// program and in all shared libraries. Link allocation_count.cpp into the program.
#pragma once

#include <cstddef>

namespace test {

// False in a sanitized build, which has the sanitizer's allocator, and without the GNU C library.
extern const bool counts_allocations;

// The number of allocations of the calling thread so far; 0 if they are not counted.
long allocation_count();
// The bytes that those asked for.
std::size_t allocated_bytes();

}  // namespace test
