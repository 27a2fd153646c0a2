// The operands of epilogues: a caller gives them in the list's order, a plan takes them in its own.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "api/api.hpp"
#include "problem/epilogue.hpp"

namespace kiln::api {

// The operands of a list's operations, in its order. Legal lists have at most one of each kind.
class EpilogueTensors {
 public:
  EpilogueTensors() = default;
  explicit EpilogueTensors(const EpilogueList& list) {
    for (const EpilogueOperation& operation : list)
      if (has_operand(operation) && count_ < kinds_.size()) kinds_[count_++] = operation.kind;
  }

  // An execution gives as many addresses. Throws BAD_PARAM.
  void check(int count, const void* const operands[]) const {
    if (count < 0 || static_cast<std::size_t>(count) != count_)
      fail(KILN_STATUS_BAD_PARAM, "operandCount is ", count, "; expected ", count_,
           ", the operations of the epilogue that have an operand");
    if (count > 0) check_pointer(operands, "operands", "the addresses of the epilogue's operands");
  }

  // The index of a kind's address in the caller's array; -1 if the list has none.
  int place_of(EpilogueOperation::Kind kind) const {
    const auto end = kinds_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto found = std::find(kinds_.begin(), end, kind);
    return found == end ? -1 : static_cast<int>(found - kinds_.begin());
  }

 private:
  std::array<EpilogueOperation::Kind, most_epilogue_operations> kinds_{};
  std::size_t count_ = 0;
};

}  // namespace kiln::api

struct kilnEpilogueStruct {
  static constexpr auto kind = "an epilogue descriptor", creator = "kilnCreateEpilogueDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b6c7408;
  kiln::api::Mark mark{mark_value};
  kiln::EpilogueList list;
};
