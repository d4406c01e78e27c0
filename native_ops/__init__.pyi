from .adam_step import AdamStep
from .batchnorm import BatchNorm
from .conv2d import Conv2d
from .gemm import Gemm
from .ipow import IPow
from .maxpool2d import MaxPool2d
from .softmax_crossentropy import SoftmaxCrossEntropy
from .sparse_topk import SparseTopK

__all__ = [
    "AdamStep",
    "BatchNorm",
    "Conv2d",
    "Gemm",
    "IPow",
    "MaxPool2d",
    "SoftmaxCrossEntropy",
    "SparseTopK",
]
