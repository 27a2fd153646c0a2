// Work that is done when the process ends by exit() or by returning from main. With quick_exit,
// _exit and abort it is not done.
#pragma once

namespace kiln {

// The kinds of work, in the order in which they are done, whichever was registered first.
enum class AtEnd { background_threads, use_log };

// Registers `work`, which is called once. Throws std::bad_alloc.
void at_process_end(AtEnd what, void (*work)());

// To be called after opening a library that a background thread goes on to use. Such a library
// registers its own exit handlers when it is opened, and handlers run in reverse order: without
// this call the library would be torn down while that thread still runs in it.
void put_process_end_first();

}  // namespace kiln
