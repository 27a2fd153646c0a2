// What the library does when the process ends by exit() or by returning from main. After
// quick_exit, _exit and abort nothing is done.
#pragma once

namespace kiln {

// In the order in which they are done, whoever asked first.
enum class AtEnd { background_threads, use_log };

// `work` is called once. Throws std::bad_alloc.
void at_process_end(AtEnd what, void (*work)());

// To be called after a library was opened that a background thread goes on to use. What such a
// library does at the end, it asks for when it is opened, and the last to ask is the first to be
// called: without this its code would be taken down under that thread.
void put_process_end_first();

}  // namespace kiln
