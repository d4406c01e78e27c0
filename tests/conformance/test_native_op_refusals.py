"""Native operators say which attributes, shapes and dtypes they accept, in every framework."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.custom.cpp_op import CppOp
from native_ops import AdamStep, BatchNorm, Conv2d, Gemm, IPow, MaxPool2d, SoftmaxCrossEntropy, SparseTopK
from tests.conformance.custom_harnesses import Harness
from tests.conformance.native_op_cases import compile_all

NAN, INF = math.nan, math.inf


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    compile_all()


X4, W4 = np.ones((1, 4, 5, 5)), np.ones((4, 4, 3, 3))
M23, M34, V3 = np.ones((2, 3)), np.ones((3, 4)), np.ones(3)

ATTRIBUTES: list[tuple[Callable[[], Any], str]] = [
    (lambda: IPow(power=1.5), "ipow: the attribute power is 1.5; accepted is an integer"),
    (
        lambda: Conv2d(strides=(0, 1)),
        r"conv2d: the attribute strides is \(0, 1\); accepted is a list of integers from 1",
    ),
    (lambda: Conv2d(pads=(-1, 0, 0, 0)), r"conv2d: the attribute pads .* from 0 on"),
    (lambda: Conv2d(groups=0), "conv2d: the attribute groups is 0; accepted is an integer from 1 on"),
    (lambda: Gemm(alpha=INF), "gemm: the attribute alpha is inf; accepted is a finite number"),
    (lambda: Gemm(trans_a=2), "gemm: the attribute trans_a is 2; accepted is 0 or 1"),
    (lambda: MaxPool2d(kernel_shape=(0, 2)), "maxpool2d: the attribute kernel_shape is .* from 1 on"),
    (lambda: MaxPool2d(kernel_shape=(2, 2), ceil_mode=3), "maxpool2d: the attribute ceil_mode is 3; accepted is 0 or"),
    (lambda: SoftmaxCrossEntropy(reduction="max"), "reduction is 'max'; accepted is one of none, sum, mean"),
    (lambda: SoftmaxCrossEntropy(ignore_index=0.5), "ignore_index is 0.5; accepted is an integer"),
    (lambda: BatchNorm(epsilon="small"), "batchnorm: the attribute epsilon is 'small'; accepted is a finite number"),
    (lambda: SparseTopK(k=-1), "sparse_topk: the attribute k is -1; accepted is an integer from 0 on"),
    (lambda: AdamStep(beta1=1.0), "adam_step: the attribute beta1 is 1.0; accepted is a number from 0 to below 1"),
    (lambda: AdamStep(learning_rate=NAN), "adam_step: the attribute learning_rate is nan; accepted is a finite number"),
]


@pytest.mark.parametrize(("make", "message"), ATTRIBUTES, ids=range(len(ATTRIBUTES)))
def test_wrong_attributes(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        make()


INPUTS: list[tuple[Callable[[], CppOp], list[Any], str]] = [
    (lambda: IPow(power=2), [np.ones(2, np.int32)], r"ipow was given inputs of the dtypes \(int32\); accepted are"),
    (Conv2d, [np.ones((4, 5, 5)), W4, None], r"X has the shape \[4, 5, 5\] and W .*; accepted are X \[N, C, H, W\]"),
    (Conv2d, [X4, np.ones((4, 3, 3, 3)), None], "accepted are 1 times as many channels in X as in W"),
    (lambda: Conv2d(groups=3), [np.ones((1, 12, 5, 5)), W4, None], "number of feature maps that 3 divides"),
    (Conv2d, [X4, W4, np.ones(3)], r"conv2d: B has the shape \[3\]; accepted is \[4\], one entry a feature map"),
    (Conv2d, [X4, np.ones((4, 4, 6, 3)), None], "conv2d: windows of .* do not fit into"),
    (Conv2d, [X4, np.ones((4, 4, 0, 3)), None], "accepted are kernels without zeros"),
    (lambda: Conv2d(strides=(1, 1, 1)), [X4, W4, None], "strides is .* accepted are 2 entries"),
    (lambda: Conv2d(pads=(1, 1)), [X4, W4, None], "pads is .* accepted are 4 entries"),
    (Gemm, [M23, M23, None], r"A has the shape \[2, 3\] and B \[2, 3\].*; accepted are matrices A' \[M, K\]"),
    (Gemm, [V3, M34, None], r"A has the shape \[3\].*; accepted are matrices"),
    (Gemm, [M23, M34, V3], r"C has the shape \[3\]; accepted are shapes that broadcast to \[2, 4\]"),
    (Gemm, [M23, M34, np.ones((1, 1, 4))], "accepted are shapes that broadcast"),
    (lambda: MaxPool2d(kernel_shape=(2, 2)), [np.ones((4, 5, 5))], r"accepted is \[N, C, H, W\]"),
    (lambda: MaxPool2d(kernel_shape=(2,)), [X4], "kernel_shape is .* accepted are 2 entries"),
    (lambda: MaxPool2d(kernel_shape=(6, 1)), [X4], "do not fit into"),
    (SoftmaxCrossEntropy, [V3, np.array(0), None], r"scores has the shape \[3\]; accepted is \[N, C, D1, ...\]"),
    (
        SoftmaxCrossEntropy,
        [M23, np.zeros(3, int), None],
        r"labels has the shape \[3\]; accepted is \[2\], that of scores",
    ),
    (SoftmaxCrossEntropy, [M23, np.zeros(2, int), np.ones(2)], r"weights has the shape \[2\]; accepted is \[3\]"),
    (SoftmaxCrossEntropy, [M23, np.array([0, 3]), None], "label 3 for 3 classes, accepted are labels from 0 to 2"),
    (SoftmaxCrossEntropy, [M23, np.array([-1, 0]), None], "label -1 for 3 classes"),
    (BatchNorm, [np.array(1.0), *[V3] * 4], "X is a scalar"),
    (BatchNorm, [M23, V3, V3, np.ones(2), V3], r"mean has the shape \[2\]; accepted is \[3\], one entry a channel"),
    (BatchNorm, [M23.astype(np.float16), *[V3.astype(np.float16)] * 4], r"accepted are .*\(float16, float32, float32"),
    (lambda: SparseTopK(k=7), [M23], r"\[2, 3\], 6 elements, and k is 7; accepted are tensors of at least k"),
    (AdamStep, [M23, M34, M23, M23, np.array(1)], r"the gradient has the shape \[3, 4\]; accepted is \[2, 3\]"),
    (AdamStep, [M23, M23, M23, M23, np.array([1, 2])], r"step has the shape \[2\]; accepted are \[\] and \[1\]"),
    (AdamStep, [M23, M23, M23, M23, np.array(0)], "step is 0, accepted are numbers from 1"),
]


@pytest.mark.parametrize(("make", "inputs", "message"), INPUTS, ids=range(len(INPUTS)))
def test_wrong_inputs(harness: Harness, make: Callable[[], CppOp], inputs: list[Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        harness.forward(make(), inputs)
