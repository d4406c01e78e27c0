#include "sparse_topk.h"

D500_OPERATOR(sparse_topk, native_ops::SparseTopK)
