#include "conv2d.h"

D500_OPERATOR(conv2d, native_ops::Conv2d)
