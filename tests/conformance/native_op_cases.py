"""Sample cases of every native operator: inputs, and what is expected of them in float64.

What is expected comes from the operator library, or from formulas written out here. How far a result may be from it
follows from two numbers of a case: the roundings on the longest path from an input to a result, and how large the terms
of the sums are, which is found by computing the same from the sizes of the inputs where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from deep500.core.tensor_descriptor import numpy_dtype
from deep500.measure.tolerance import largest_violation, tolerance
from deep500.operators.custom.cpp_op import CppOp
from deep500.operators.library.batch_normalization import BatchNormalization
from deep500.operators.library.conv import Conv
from deep500.operators.library.gemm import Gemm as LibraryGemm
from deep500.operators.library.max_pool import MaxPool
from deep500.operators.library.softmax_cross_entropy_loss import SoftmaxCrossEntropyLoss
from deep500.operators.operator import Operator
from native_ops import AdamStep, BatchNorm, Conv2d, Gemm, IPow, MaxPool2d, SoftmaxCrossEntropy, SparseTopK

Array = np.ndarray
Arrays = Sequence[Array | None]

#: Outputs and gradients by the inputs.
Results = tuple[list[Array], list[Array | None]]

#: From inputs and gradients by the outputs, floats in float64, to what is expected.
Expected = Callable[[Arrays, Arrays], Results]

#: From the same to how large the terms of each output and each gradient are: numbers instead of arrays.
Sizes = Callable[[Arrays, Arrays], tuple[list[float], list[float]]]


@dataclass(frozen=True)
class Case:
    """An operator, its inputs (floats in float64), and what is expected."""

    op: CppOp
    inputs: Arrays
    expected: Expected
    roundings: int
    sizes: Sizes

    def cast(self, dtype: Any) -> list[Array | None]:
        """Return the inputs of the operator's variant for a dtype."""
        return cast(self.op, self.inputs, dtype)

    def gradients(self, dtype: Any, seed: int = 1) -> list[Array | None]:
        """Return random gradients by the outputs, of that variant; ``None`` by whole numbers."""
        stream = np.random.default_rng(seed)
        outputs = self.op.run_forward(self.cast(dtype))
        return [stream.uniform(-1, 1, y.shape).astype(y.dtype) if is_float(y) else None for y in outputs]

    def check(self, inputs: Arrays, grads: Arrays, outputs: Arrays, gradients: Arrays) -> None:
        """Check outputs, and gradients unless there are none, against what is expected of these inputs."""
        wide, wide_grads = [widened(x) for x in inputs], [widened(g) for g in grads]
        wanted_outputs, wanted_gradients = self.expected(wide, wide_grads)
        output_sizes, gradient_sizes = self.sizes(wide, wide_grads)
        assert len(outputs) == len(wanted_outputs)
        for y, wanted, size in zip(outputs, wanted_outputs, output_sizes, strict=True):
            assert y is not None
            check_close(y, wanted, self.roundings, size)
        if not gradients:
            return
        for x, g, wanted, size in zip(inputs, gradients, wanted_gradients, gradient_sizes, strict=True):
            if wanted is None or x is None:
                assert g is None
                continue
            assert g is not None
            assert (g.shape, g.dtype) == (x.shape, x.dtype)
            check_close(g, wanted, self.roundings, size)


def is_float(array: Array) -> bool:
    return array.dtype.kind not in "biu"


def widened(array: Array | None) -> Array | None:
    return array if array is None or not is_float(array) else array.astype(np.float64)


def cast(op: CppOp, inputs: Arrays, dtype: Any) -> list[Array | None]:
    """Return inputs in the dtypes of an operator's variant for a dtype."""
    said = op.library.description
    signature = said.signatures[said.dtypes.index(np.dtype(dtype).name)]
    return [None if x is None else np.asarray(x).astype(numpy_dtype(d)) for x, d in zip(inputs, signature.inputs)]


def check_close(actual: Array, expected: Array, roundings: int, size: float) -> None:
    """Check an array against what it should be, whose terms are as large as is said; integers have to be equal."""
    assert actual.shape == expected.shape
    if not is_float(actual):
        np.testing.assert_array_equal(actual, expected)
        return
    allowed = tolerance(actual.dtype, roundings, scale=size)
    violation = largest_violation(actual, expected, allowed)
    assert violation is None, f"{violation} (tolerance {allowed})"


def largest(array: Array | None) -> float:
    if array is None or array.size == 0:
        return 0.0
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) if is_float(array) else 0.0


def by_sizes(expected: Expected) -> Sizes:
    """Return what computes the same from absolute values: right for sums of products of the inputs."""

    def sizes(inputs: Arrays, grads: Arrays) -> tuple[list[float], list[float]]:
        positive = [x if x is None or not is_float(x) else np.abs(x) for x in inputs]
        outputs, gradients = expected(positive, [None if g is None else np.abs(g) for g in grads])
        return [largest(y) for y in outputs], [largest(g) for g in gradients]

    return sizes


def from_library(operator: Operator) -> Expected:
    """Return what an operator of the library computes."""

    def expected(inputs: Arrays, grads: Arrays) -> Results:
        outputs = operator.forward(inputs)
        return list(outputs), list(operator.backward(grads, inputs, outputs))

    return expected


# --- what is expected, and how large its terms are --------------------------------------------------------------------


def ipow(power: int, shape: tuple[int, ...] = (3, 4)) -> Case:
    def expected(inputs: Arrays, grads: Arrays) -> Results:
        (x,), (g,) = inputs, grads
        slope = np.zeros_like(x) if power == 0 else power * np.float_power(x, power - 1)
        return [np.float_power(x, power)], [g * slope]

    stream = np.random.default_rng(0)
    x = stream.uniform(0.5, 1.5, shape) * stream.choice([-1.0, 1.0], shape)
    # A multiplication for every factor, one by the power, one by the gradient, a quotient, and a rounding of each.
    return Case(IPow(power=power), [x], expected, abs(power) + 4, by_sizes(expected))


def conv2d(inputs: Arrays, groups: int = 1, **attributes: Any) -> Case:
    expected = from_library(Conv(group=groups, **attributes))
    x, weight = inputs[0], inputs[1]
    assert x is not None
    assert weight is not None
    # The longest sum is that of the gradient by the weight or the bias, which is over images and places.
    y = Conv(group=groups, **attributes).forward(inputs)[0]
    longest = max(y[:, 0].size, int(np.prod(weight.shape[1:])), weight.shape[0] * int(np.prod(weight.shape[2:])))
    return Case(Conv2d(groups=groups, **attributes), inputs, expected, longest + 3, by_sizes(expected))


def gemm(inputs: Arrays, alpha: float = 1.0, beta: float = 1.0, trans_a: int = 0, trans_b: int = 0) -> Case:
    factors = {"alpha": alpha, "beta": beta}
    expected = from_library(LibraryGemm(**factors, transA=trans_a, transB=trans_b))
    sizes = by_sizes(from_library(LibraryGemm(alpha=abs(alpha), beta=abs(beta), transA=trans_a, transB=trans_b)))
    assert inputs[0] is not None
    assert inputs[1] is not None
    longest = max(*inputs[0].shape, *inputs[1].shape, inputs[0].size * inputs[1].size if inputs[2] is not None else 1)
    return Case(Gemm(**factors, trans_a=trans_a, trans_b=trans_b), inputs, expected, longest + 4, sizes)


def maxpool2d(x: Array, **attributes: Any) -> Case:
    expected = from_library(MaxPool(**attributes))

    def sizes(inputs: Arrays, grads: Arrays) -> tuple[list[float], list[float]]:
        (x,), by_y = inputs, grads[0]
        outputs, gradients = expected([x], [None if by_y is None else np.abs(by_y), None])
        return [largest(y) for y in outputs], [largest(g) for g in gradients]

    # An element of x may be the maximum of as many windows as a window has elements.
    kernel = attributes["kernel_shape"]
    return Case(MaxPool2d(**attributes), [x], expected, kernel[0] * kernel[1], sizes)


def softmax_crossentropy(inputs: Arrays, **attributes: Any) -> Case:
    scores, labels = inputs[0], inputs[1]
    assert scores is not None
    assert labels is not None
    classes, positions = scores.shape[1], labels.size

    def sizes(inputs: Arrays, grads: Arrays) -> tuple[list[float], list[float]]:
        # log p is a difference of scores less a logarithm, which is at most log C beside the largest score.
        log_p = 2 * largest(inputs[0]) + np.log(classes) + 1
        weight = 1.0 if inputs[2] is None else largest(inputs[2])
        each = weight * log_p * (1 if attributes.get("reduction") == "none" else positions)
        # A relative error of p is an absolute one of log p; then there are a product for every class and their sum.
        share = weight * largest(grads[0]) + (1 + classes) * largest(grads[1])
        return [each, log_p], [share * log_p, 0.0, largest(grads[0]) * log_p * positions]

    # The sum over the classes, three units in the last place of an exponential, differences and products.
    expected = from_library(SoftmaxCrossEntropyLoss(**attributes))
    return Case(SoftmaxCrossEntropy(**attributes), inputs, expected, classes + 16, sizes)


def batchnorm(inputs: Arrays, **attributes: Any) -> Case:
    op, library = BatchNorm(**attributes), BatchNormalization(**attributes)
    is_training = bool(attributes.get("training_mode", 0))

    def moments(inputs: Arrays) -> tuple[Array, Array, Array]:
        x = inputs[0]
        assert x is not None
        flat = x.reshape(x.shape[0], 1 if x.ndim == 1 else x.shape[1], -1)
        mean, variance = (flat.mean((0, 2)), flat.var((0, 2))) if is_training else (inputs[3], inputs[4])
        assert mean is not None
        assert variance is not None
        return (flat - mean[:, None]), mean, 1 / np.sqrt(variance + library.epsilon)

    def expected(inputs: Arrays, grads: Arrays) -> Results:
        outputs = list(library.forward(inputs))
        gradients = list(library.backward(grads if is_training else grads[:1], inputs, outputs))
        centred, _, inverse = moments(inputs)
        scale, by_mean, by_variance = inputs[1], grads[1], grads[2]
        assert grads[0] is not None
        if is_training:
            return outputs, [*gradients[:3], library.momentum * by_mean, library.momentum * by_variance]
        g = grads[0].reshape(centred.shape)
        gradients[3] = by_mean - (g.sum((0, 2)) * scale * inverse)
        gradients[4] = by_variance - 0.5 * (g * centred).sum((0, 2)) * scale * inverse**3
        return [*outputs, inputs[3], inputs[4]], gradients

    def sizes(inputs: Arrays, grads: Arrays) -> tuple[list[float], list[float]]:
        centred, mean, inverse = moments(inputs)
        count = centred.shape[0] * centred.shape[2]
        g, steep = largest(grads[0]), largest(inverse)
        unit = largest(centred * inverse[:, None])
        slope = largest(inputs[1]) * steep
        statistics = largest(mean) + largest(inputs[3]) + largest(inputs[4]) + largest(centred) ** 2
        other = largest(grads[1]) + largest(grads[2])
        by_x = slope * g * (2 + unit**2) + (1 + 2 * largest(centred)) * other
        by_scale = count * g * unit
        by_variance = slope * by_scale * steep + other
        outputs = [unit * largest(inputs[1]) + largest(inputs[2]), statistics, statistics]
        return outputs, [by_x, by_scale, count * g, slope * count * g + other, by_variance]

    # Sums are in float64; the rest is a dozen of roundings, of which the slope's is one.
    return Case(op, inputs, expected, 12, sizes)


def sparse_topk(x: Array, k: int) -> Case:
    def expected(inputs: Arrays, grads: Arrays) -> Results:
        (x,) = inputs
        assert x is not None
        flat = x.ravel()
        order = np.argsort(-np.where(np.isnan(flat), np.inf, np.abs(flat)), kind="stable")
        order = np.concatenate([order[np.isnan(flat[order])], order[~np.isnan(flat[order])]])
        indices = np.sort(order[:k])
        gradient = np.zeros_like(flat)
        gradient[indices] = grads[0]
        return [flat[indices], indices], [gradient.reshape(x.shape)]

    return Case(SparseTopK(k=k), [x], expected, 1, by_sizes(expected))


def adam_step(inputs: Arrays, **attributes: float) -> Case:
    rate, beta1, beta2, epsilon = (
        attributes.get(name, default)
        for name, default in (("learning_rate", 0.001), ("beta1", 0.9), ("beta2", 0.999), ("epsilon", 1e-8))
    )

    def moved(m: Array, v: Array, t: int) -> Array:
        return rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)

    def expected(inputs: Arrays, grads: Arrays) -> Results:
        parameter, g, m, v, step = inputs
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        return [parameter - moved(m, v, step.item()), m, v], []

    def sizes(inputs: Arrays, grads: Arrays) -> tuple[list[float], list[float]]:
        parameter, g, m, v, step = inputs
        # The moment's terms may cancel: then its error is that of their sizes.
        size_m, size_v = beta1 * np.abs(m) + (1 - beta1) * np.abs(g), beta2 * v + (1 - beta2) * g * g
        return [largest(parameter) + largest(moved(size_m, size_v, step.item())), largest(size_m), largest(size_v)], []

    return Case(AdamStep(**attributes), inputs, expected, 14, sizes)


# --- the cases --------------------------------------------------------------------------------------------------------


def _cases() -> dict[str, Callable[[np.random.Generator], Case]]:
    def vectors(s: np.random.Generator, channels: int) -> list[Array]:
        return [s.uniform(0.5, 1.5, channels) for _ in range(4)]

    def labels(s: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.where(s.random(shape) < 0.4, -100, s.integers(0, 4, shape))

    def moments(s: np.random.Generator) -> list[Array]:
        return [normal(s, 3, 5), normal(s, 3, 5), 0.1 * normal(s, 3, 5), np.square(normal(s, 3, 5))]

    def normal(s: np.random.Generator, *shape: int) -> Array:
        return np.asarray(s.standard_normal(shape))

    def different(s: np.random.Generator, *shape: int) -> Array:
        return s.permutation(np.linspace(-2, 2, int(np.prod(shape)))).reshape(shape)

    return {
        **{f"ipow {n}": (lambda s, n=n: ipow(n)) for n in (-3, -1, 0, 1, 2, 3, 4, 7)},
        "conv2d": lambda s: conv2d([normal(s, 2, 3, 6, 7), normal(s, 4, 3, 3, 2), normal(s, 4)]),
        "conv2d, no bias": lambda s: conv2d([normal(s, 1, 2, 5, 5), normal(s, 9, 2, 1, 1), None], strides=(2, 2)),
        "conv2d, all attributes": lambda s: conv2d(
            [normal(s, 3, 4, 11, 12), normal(s, 6, 2, 3, 2), normal(s, 6)],
            groups=2, strides=(2, 3), pads=(1, 2, 0, 3), dilations=(3, 2),
        ),
        "conv2d, depthwise": lambda s: conv2d(
            [normal(s, 2, 17, 9, 8), normal(s, 17, 1, 3, 3), None], groups=17, pads=(1, 1, 1, 1)
        ),
        "gemm": lambda s: gemm([normal(s, 5, 7), normal(s, 7, 3), normal(s, 3)]),
        "gemm, transposed": lambda s: gemm([normal(s, 7, 5), normal(s, 3, 7), normal(s, 5, 1)], 0.5, -2.0, 1, 1),
        "gemm, no C": lambda s: gemm([normal(s, 5, 7), normal(s, 3, 7), None], -0.5, 1.0, 0, 1),
        "gemm, C of the result's shape": lambda s: gemm(
            [normal(s, 7, 5), normal(s, 7, 3), normal(s, 5, 3)], 1.0, 0.5, 1
        ),
        "gemm, scalar C": lambda s: gemm([normal(s, 1, 70), normal(s, 70, 65), normal(s)]),
        "gemm, larger than a block": lambda s: gemm([normal(s, 19, 300), normal(s, 300, 41), None]),
        "maxpool2d": lambda s: maxpool2d(different(s, 2, 3, 7, 9), kernel_shape=(2, 3)),
        "maxpool2d, all attributes": lambda s: maxpool2d(
            different(s, 2, 3, 7, 9),
            kernel_shape=(3, 2), strides=(2, 3), pads=(1, 0, 2, 1), dilations=(2, 3), ceil_mode=1,
        ),
        "softmax_crossentropy": lambda s: softmax_crossentropy([2 * normal(s, 4, 5), s.integers(0, 5, 4), None]),
        "softmax_crossentropy, weights": lambda s: softmax_crossentropy(
            [2 * normal(s, 4, 5), s.integers(0, 5, 4), s.uniform(0.5, 1.5, 5)], reduction="mean"
        ),
        "softmax_crossentropy, pixels": lambda s: softmax_crossentropy(
            [2 * normal(s, 2, 4, 3, 2), labels(s, (2, 3, 2)), s.uniform(0.5, 1.5, 4)], ignore_index=-100
        ),
        "softmax_crossentropy, none": lambda s: softmax_crossentropy(
            [2 * normal(s, 2, 4, 70), s.integers(0, 4, (2, 70)), None], reduction="none"
        ),
        "softmax_crossentropy, sum": lambda s: softmax_crossentropy(
            [2 * normal(s, 3, 1000), np.array([0, 999, 5]), s.uniform(0.5, 1.5, 1000)], reduction="sum"
        ),
        "batchnorm, training": lambda s: batchnorm(
            [1 + 2 * normal(s, 4, 3, 2, 5), *vectors(s, 3)], training_mode=1, epsilon=1e-3, momentum=0.75
        ),
        "batchnorm, no pixels": lambda s: batchnorm([1 + normal(s, 7, 3), *vectors(s, 3)], training_mode=1),
        "batchnorm, inference": lambda s: batchnorm([1 + 2 * normal(s, 4, 3, 3), *vectors(s, 3)]),
        "batchnorm, one channel": lambda s: batchnorm([normal(s, 9), *vectors(s, 1)], training_mode=1),
        "sparse_topk": lambda s: sparse_topk(normal(s, 3, 7), 5),
        "sparse_topk, ties": lambda s: sparse_topk(np.asarray(0.25 * s.integers(-9, 9, (2, 5, 7))), 23),
        "sparse_topk, all": lambda s: sparse_topk(normal(s, 6), 6),
        "adam_step": lambda s: adam_step([*moments(s), np.array(1)]),
        "adam_step, later": lambda s: adam_step(
            [*moments(s), np.array([37])], learning_rate=0.1, beta1=0.5, beta2=0.75, epsilon=0.01
        ),
    }  # fmt: skip


CASES = _cases()


@cache
def make_case(name: str) -> Case:
    """Return a case, the same whichever were made before."""
    return CASES[name](np.random.default_rng(list(name.encode())))


@cache
def compile_all() -> None:
    """Compile every operator, two at a time, before tests do it one after the other."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: make_case(name).op.library, ONE_EACH))


#: One case of each operator.
ONE_EACH = [next(name for name in CASES if name.split(",")[0].split(" ")[0] == op) for op in (
    "ipow", "conv2d", "gemm", "maxpool2d", "softmax_crossentropy", "batchnorm", "sparse_topk", "adam_step",
)]  # fmt: skip
