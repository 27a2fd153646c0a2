// What the network saw and what it learned, as a PNG.
#pragma once

#include <string>
#include <vector>

#include "digits.hpp"

// The first layer's filters (count x 5 x 5), and below them a row of digits with the prediction for
// each: green if right, red if wrong. Throws std::runtime_error if the file cannot be written.
void write_picture(const std::string& path, const std::vector<float>& filters, const Digits& digits,
                   const std::vector<int>& predictions);
