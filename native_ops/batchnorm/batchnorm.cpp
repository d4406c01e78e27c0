#include "batchnorm.h"

D500_OPERATOR(batchnorm, native_ops::BatchNorm)
