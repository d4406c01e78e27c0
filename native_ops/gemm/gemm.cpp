#include "gemm.h"

D500_OPERATOR(gemm, native_ops::Gemm)
