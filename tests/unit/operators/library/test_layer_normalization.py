"""Edge cases of normalisations within an instance; values and derivatives are in the conformance suite."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.instance_normalization import InstanceNormalization
from deep500.operators.library.layer_normalization import LayerNormalization
from deep500.operators.library.lrn import LRN
from deep500.operators.validation import test_op_gradient

RNG = np.random.default_rng(0)


def test_gradients_through_mean_and_deviation() -> None:
    inputs = [RNG.standard_normal((2, 3, 4)), RNG.uniform(0.5, 2, (3, 4)), RNG.standard_normal((3, 4))]

    assert test_op_gradient(LayerNormalization(axis=1, stash_type=11), inputs).passed


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_dtypes_of_the_statistics(dtype: type) -> None:
    y, mean, inverse = LayerNormalization().forward([np.ones((2, 3), dtype), np.ones(3, dtype)])

    assert (y.dtype, mean.dtype, inverse.dtype) == (dtype, np.float32, np.float32)
    assert mean.shape == inverse.shape == (2, 1)


def test_large_values_do_not_overflow_in_float16() -> None:
    x = np.array([[60000.0, -60000.0]], np.float16)

    assert LayerNormalization()(x, np.ones(2, np.float16))[0].tolist() == [[1.0, -1.0]]


def test_instance_normalization_is_layer_normalization_of_a_channel() -> None:
    x = RNG.standard_normal((2, 3, 4, 5))
    expected = LayerNormalization(axis=2).forward([x, np.ones((4, 5))])[0]

    np.testing.assert_allclose(InstanceNormalization()(x, np.ones(3), np.zeros(3)), expected)


@pytest.mark.parametrize("shape", [(0, 2, 3), (1, 2, 0)])
def test_empty_instances(shape: tuple[int, ...]) -> None:
    inputs = [np.ones(shape), np.ones(2), np.ones(2)]
    (y,) = InstanceNormalization().forward(inputs)

    assert y.shape == shape
    assert [g.shape for g in InstanceNormalization().backward([y], inputs, (y,))] == [shape, (2,), (2,)]


def test_lrn_of_one_channel_and_of_a_size_beyond_the_channels() -> None:
    x = np.array([[[2.0], [3.0]]])

    np.testing.assert_allclose(LRN(size=1, alpha=1.0, beta=1.0)(x), x / (1 + x**2))
    np.testing.assert_allclose(LRN(size=99, alpha=99.0, beta=1.0)(x), x / (1 + 13))


def test_refusals() -> None:
    with pytest.raises(OperatorError, match="broadcasts to X"):
        LayerNormalization().forward([np.ones((2, 3)), np.ones(2)])
    with pytest.raises(OperatorError, match="axis is 2"):
        LayerNormalization(axis=2).forward([np.ones((2, 3)), np.ones(3)])
    with pytest.raises(OperatorError, match="stash_type is 7"):
        LayerNormalization(stash_type=7)
    with pytest.raises(OperatorError, match=r"\[N, C, D1, ...\], \[C\] and \[C\]"):
        InstanceNormalization().forward([np.ones((2, 3, 4)), np.ones(2), np.ones(3)])
    with pytest.raises(OperatorError, match="inputs of one dtype"):
        InstanceNormalization().forward([np.ones((2, 3, 4)), np.ones(3, np.float32), np.ones(3)])
    with pytest.raises(OperatorError, match=r"accepted is \[N, C, D1"):
        LRN(size=1).forward([np.ones(3)])
    with pytest.raises(OperatorError, match="an integer from 1 on"):
        LRN(size=0)
