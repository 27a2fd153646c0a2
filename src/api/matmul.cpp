// Products of matrices.
#include "api/epilogue_plan.hpp"

using kiln::api::checked;
using kiln::api::create_list_plan;
using kiln::api::execute_list;
using kiln::api::run_list_at_once;
using kiln::api::tensor_of;

namespace {

// Makes the problem of a list; the descriptors are read when it is called.
auto product(kilnMatmulDescriptor_t matmulDesc, kilnTensorDescriptor_t aDesc,
             kilnTensorDescriptor_t bDesc, kilnTensorDescriptor_t dDesc) {
  return [=](const kiln::EpilogueList& list) {
    const kiln::MatmulSpec spec =
        matmulDesc == nullptr ? kiln::MatmulSpec{} : checked(matmulDesc, "matmulDesc").spec;
    return kiln::make_matmul(spec, tensor_of(aDesc, "aDesc"), tensor_of(bDesc, "bDesc"),
                             tensor_of(dDesc, "dDesc"), list);
  };
}

constexpr bool without_list = true;  // epilogueDesc may be null

}  // namespace

kilnStatus_t kilnCreateMatmulPlan(kilnHandle_t handle, kilnMatmulDescriptor_t matmulDesc,
                                  kilnTensorDescriptor_t aDesc, kilnTensorDescriptor_t bDesc,
                                  kilnEpilogueDescriptor_t epilogueDesc,
                                  kilnTensorDescriptor_t dDesc, kilnPlan_t* plan) {
  return create_list_plan("Matmul", handle, epilogueDesc, plan,
                          product(matmulDesc, aDesc, bDesc, dDesc), without_list);
}

kilnStatus_t kilnExecuteMatmul(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                               const void* a, const void* b, const void* beta, int operandCount,
                               const void* const operands[], void* d) {
  return execute_list("Matmul", handle, plan, {.alpha = alpha, .beta = beta}, operandCount,
                      operands, {"a", a}, {"b", b}, {"d", d});
}

kilnStatus_t kilnMatmul(kilnHandle_t handle, kilnMatmulDescriptor_t matmulDesc, const void* alpha,
                        kilnTensorDescriptor_t aDesc, const void* a, kilnTensorDescriptor_t bDesc,
                        const void* b, const void* beta, kilnEpilogueDescriptor_t epilogueDesc,
                        int operandCount, const void* const operands[],
                        kilnTensorDescriptor_t dDesc, void* d) {
  return run_list_at_once(handle, {.alpha = alpha, .beta = beta}, epilogueDesc, operandCount,
                          operands, {"a", a}, {"b", b}, {"d", d},
                          product(matmulDesc, aDesc, bDesc, dDesc), without_list);
}
