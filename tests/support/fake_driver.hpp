// What the driver of fake_driver.cpp has seen, from its function `fake_driver_state`.
#pragma once

struct FakeDriverState {
  int loaded = 0;    // modules, now
  int launches = 0;  // of functions of loaded modules
  int faults = 0;    // calls that a driver would refuse, or that would end in undefined behaviour
  bool capturing = false;  // set by tests: another thread captures a stream in global mode
};
