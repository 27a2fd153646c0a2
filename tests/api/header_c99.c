/* kiln.h is C99, and the shared library has every function it declares: this file does not link
 * otherwise. */
#include <kiln/kiln.h>

typedef void (*any_function)(void);

int kiln_test_declared_functions(const any_function** functions);

int kiln_test_declared_functions(const any_function** functions) {
  static const any_function all[] = {
      (any_function)kilnGetLastErrorMessage,
      (any_function)kilnGetVersion,
      (any_function)kilnGetErrorString,
      (any_function)kilnCheckVersion,
      (any_function)kilnCreate,
      (any_function)kilnDestroy,
      (any_function)kilnSetStream,
      (any_function)kilnGetStream,
      (any_function)kilnCreateTensorDescriptor,
      (any_function)kilnDestroyTensorDescriptor,
      (any_function)kilnSetTensorNdDescriptor,
      (any_function)kilnSetTensorNdDescriptorEx,
      (any_function)kilnSetTensor4dDescriptor,
      (any_function)kilnGetTensorNdDescriptor,
      (any_function)kilnCreateFilterDescriptor,
      (any_function)kilnDestroyFilterDescriptor,
      (any_function)kilnSetFilterNdDescriptor,
      (any_function)kilnSetFilterNdDescriptorStrided,
      (any_function)kilnSetFilter4dDescriptor,
      (any_function)kilnGetFilterNdDescriptor,
      (any_function)kilnCreateConvolutionDescriptor,
      (any_function)kilnDestroyConvolutionDescriptor,
      (any_function)kilnSetConvolutionNdDescriptor,
      (any_function)kilnSetConvolution2dDescriptor,
      (any_function)kilnGetConvolutionNdDescriptor,
      (any_function)kilnSetConvolutionGroupCount,
      (any_function)kilnGetConvolutionGroupCount,
      (any_function)kilnGetConvolutionForwardOutputDim,
      (any_function)kilnGetConvolution2dForwardOutputDim,
      (any_function)kilnCreateConvolutionForwardPlan,
      (any_function)kilnFinalizePlan,
      (any_function)kilnStartFinalizePlan,
      (any_function)kilnPollFinalizePlan,
      (any_function)kilnWaitFinalizePlan,
      (any_function)kilnCancelFinalizePlan,
      (any_function)kilnGetCacheStats,
      (any_function)kilnDestroyPlan,
      (any_function)kilnExecuteConvolutionForward,
      (any_function)kilnGetPlanInfo,
      (any_function)kilnGetPlanText,
      (any_function)kilnGetPlanBinary,
      (any_function)kilnConvolutionForward,
  };
  *functions = all;
  return (int)(sizeof all / sizeof all[0]);
}
