/* The cuDNN API, version 9, as Kiln serves it: C99 and C++. The text is Kiln's own. README.md
 * beside the library says what is served, what is refused, and how to move a program to Kiln's own
 * API. */
#ifndef CUDNN_H
#define CUDNN_H

#include "cudnn_adv.h"
#include "cudnn_cnn.h"
#include "cudnn_graph.h"
#include "cudnn_ops.h"
#include "cudnn_version.h"
#include "kiln_cudnn/causal_convolution.h"
#include "kiln_cudnn/removed.h"
#include "kiln_cudnn/removed_rnn.h"

#endif /* CUDNN_H */
