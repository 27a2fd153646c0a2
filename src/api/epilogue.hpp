// The operands of epilogues: a caller gives them in the list's order, a plan takes them in its own.
#pragma once

#include <array>
#include <span>

#include "api/api.hpp"
#include "problem/epilogue.hpp"

namespace kiln::api {

// The operands of a list's operations, in its order. Legal lists have at most one operation of each
// kind, whose operands follow each other.
class EpilogueTensors {
 public:
  EpilogueTensors() = default;
  explicit EpilogueTensors(const EpilogueList& list) {
    for (const EpilogueOperation& operation : list)
      for (std::size_t i = operands_of(operation); i > 0 && count_ < kinds_.size(); --i)
        kinds_[count_++] = operation.kind;
  }

  // An execution gives as many addresses. Throws BAD_PARAM.
  void check(int count, const void* const operands[]) const {
    if (count < 0 || static_cast<std::size_t>(count) != count_)
      fail(KILN_STATUS_BAD_PARAM, "operandCount is ", count, "; expected ", count_,
           ", the operands of the epilogue's operations");
    if (count > 0) check_pointer(operands, "operands", "the addresses of the epilogue's operands");
  }

  // Calls body(index) for the kind's addresses in the caller's array.
  template <class Body>
  void each_place(EpilogueOperation::Kind kind, const Body& body) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (kinds_[i] == kind) body(i);
  }

 private:
  std::array<EpilogueOperation::Kind, most_epilogue_operands> kinds_{};
  std::size_t count_ = 0;
};

}  // namespace kiln::api

struct kilnEpilogueStruct {
  static constexpr auto kind = "an epilogue descriptor", creator = "kilnCreateEpilogueDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b6c7408;
  kiln::api::Mark mark{mark_value};
  kiln::EpilogueList list;
};
