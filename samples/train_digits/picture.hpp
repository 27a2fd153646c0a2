// What the network learned and how, as a PNG.
#pragma once

#include <string>
#include <vector>

#include "common/digits.hpp"

struct Training {
  std::string title;  // device, sizes and result, in a line
  int epochs = 0;
  std::vector<double> losses;    // of each step
  std::vector<float> filters;    // the first layer's, count x 5 x 5
  std::vector<int> predictions;  // of the test digits
};

// The loss of each step, the confusion matrix of the test digits, the first layer's filters, and a
// row of test digits with the prediction below each. Throws std::runtime_error if the file cannot
// be written.
void write_picture(const std::string& path, const Training& training, const Digits& test);
