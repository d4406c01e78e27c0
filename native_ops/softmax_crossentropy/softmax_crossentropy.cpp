#include "softmax_crossentropy.h"

D500_OPERATOR(softmax_crossentropy, native_ops::SoftmaxCrossEntropy)
