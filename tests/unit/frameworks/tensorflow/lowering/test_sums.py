"""Sums of 16-bit floats are rounded once, and not at every addition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.tensor_descriptor import numpy_dtype
from deep500.frameworks.tensorflow import from_model
from deep500.frameworks.tensorflow.lowering._sums import summed_in_float32
from tests.unit.frameworks.tensorflow.support import random, single

#: Operators, shapes of their inputs, and attributes. No entry sums more than ``_TERMS`` products.
CASES: dict[str, tuple[str, list[tuple[int, ...]], dict[str, Any]]] = {
    "softmax": ("Softmax", [(5, 2000)], {}),
    "log softmax": ("LogSoftmax", [(5, 2000)], {}),
    "einsum": ("Einsum", [(4, 2000), (2000, 3)], {"equation": "ij,jk->ik"}),
    "depthwise": ("Conv", [(1, 8, 14, 14), (8, 1, 7, 7)], {"group": 8}),
    "transposed": ("ConvTranspose", [(1, 64, 6, 6), (64, 5, 3, 3)], {}),
    "transposed depthwise": ("ConvTranspose", [(1, 8, 9, 9), (8, 1, 7, 7)], {"group": 8}),
    "convolution": ("Conv", [(1, 64, 8, 8), (5, 64, 3, 3)], {}),
    "product": ("MatMul", [(4, 2000), (2000, 3)], {}),
}
_TERMS = 2000

#: Binary digits of the types.
DIGITS = {"float16": 11, "bfloat16": 8}


def run(op_type: str, arrays: list[NDArray[Any]], attributes: dict[str, Any]) -> NDArray[Any]:
    model, given = single(op_type, arrays, fed=range(len(arrays)), symbolic=False, **attributes)
    executor = from_model(model)
    return executor.to_numpy(executor.inference(given)["y0"]).astype(np.float64)


#: ONNX's Einsum-12 takes no bfloat16.
ALL = [(case, *kind) for case in CASES for kind in DIGITS.items() if (case, kind[0]) != ("einsum", "bfloat16")]


@pytest.mark.parametrize(("case", "dtype", "digits"), ALL)
def test_one_rounding(case: str, dtype: str, digits: int) -> None:
    """All terms are positive, so that half a unit of the last binary digit and what float32 loses are the bound."""
    op_type, shapes, attributes = CASES[case]
    arrays = [np.abs(random(*shape, seed=i)).astype(numpy_dtype(dtype)) for i, shape in enumerate(shapes)]
    expected = run(op_type, [array.astype(np.float64) for array in arrays], attributes)
    found = run(op_type, arrays, attributes)
    np.testing.assert_allclose(found, expected, rtol=2.0**-digits + 2 * _TERMS * 2.0**-24, atol=2.0**-25)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("samples", "classes"), [(2000, 5), (3, 2000)])
@pytest.mark.parametrize(("dtype", "digits"), DIGITS.items())
@pytest.mark.parametrize("op_type", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
def test_losses_are_rounded_twice_at_most(
    op_type: str, dtype: str, digits: int, samples: int, classes: int, reduction: str
) -> None:
    """Once each, and once their sum; none is negative."""
    scores = random(samples, classes)
    scores = -np.abs(scores) if op_type.startswith("Negative") else scores
    scores, labels = scores.astype(numpy_dtype(dtype)), np.arange(samples) * 7 % classes
    expected = run(op_type, [scores.astype(np.float64), labels], {"reduction": reduction})
    found = run(op_type, [scores, labels], {"reduction": reduction})
    np.testing.assert_allclose(found, expected, rtol=2 * 2.0**-digits + 2 * _TERMS * 2.0**-24, atol=2.0**-25)


def test_other_types_are_left_as_they_are() -> None:
    seen: list[tf.DType] = []

    def add(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        seen.append(a.dtype)
        return a + b

    for dtype in (tf.float64, tf.float32, tf.float16, tf.bfloat16):
        assert summed_in_float32(add, tf.ones(2, dtype), tf.ones(2, dtype)).dtype == dtype
    assert seen == [tf.float64, tf.float32, tf.float32, tf.float32]
