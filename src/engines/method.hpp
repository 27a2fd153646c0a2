// What the choice takes the least over, by name: engines, which compute a problem, and rewrites,
// which turn it into others and leave these to the choice.
#pragma once

#include <span>
#include <string>

#include "problem/problem.hpp"

namespace kiln {

class Engine;
class Rewrite;

class Method {
 public:
  virtual ~Method() = default;
  // What it is: one of the two, the other is null.
  virtual const Engine* engine() const { return nullptr; }
  virtual const Rewrite* rewrite() const { return nullptr; }

  virtual const char* name() const = 0;
  // Whether the problem belongs to its operation. If not, it is not even listed among the refusals.
  virtual bool is_for(const Problem& problem) const = 0;
  // Whether a convolution's result may have another type than its inputs.
  virtual bool takes_mixed_types() const { return false; }
  // Whether it makes the moments of a convolution's result, where these are asked for.
  virtual bool makes_moments() const { return false; }
  // Whether it multiplies by the gradient of an activation behind a normalization.
  virtual bool takes_gradient() const { return false; }
  // Whether groups of a convolution may lie anywhere (GroupStrides), as matrices of a batch do.
  virtual bool takes_group_strides() const { return false; }
  // Whether its kernels execute in place of chosen ones that are still being compiled; the choice
  // then never takes it.
  virtual bool stands_in() const { return false; }
  // For a problem that it takes: a clause that says why it serves it only when named; "" if the
  // choice may take it.
  virtual std::string only_by_name(const Problem&) const { return {}; }
};

// All engines and rewrites. If estimates are equal, the first of an operation wins.
std::span<const Method* const> methods();

}  // namespace kiln
