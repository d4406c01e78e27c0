"""Edge cases of BatchNormalization; values and derivatives are in the conformance suite."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.batch_normalization import BatchNormalization

RNG = np.random.default_rng(0)


def vectors(channels: int, dtype: type = np.float64) -> list[np.ndarray]:
    return [np.full(channels, value, dtype) for value in (1.0, 0.0, 10.0, 20.0)]


def test_running_statistics_are_those_of_the_population() -> None:
    x = np.array([[[1.0, 3.0]], [[5.0, 7.0]]])

    y, mean, variance = BatchNormalization(training_mode=1, momentum=0.75, epsilon=0.0).forward([x, *vectors(1)])

    assert mean.tolist() == [10 * 0.75 + 4 * 0.25]
    assert variance.tolist() == [20 * 0.75 + 5 * 0.25]  # (9 + 1 + 1 + 9) / 4, not / 3
    np.testing.assert_allclose(y.ravel(), np.array([-3, -1, 1, 3]) / np.sqrt(5))


def test_inference_uses_the_inputs() -> None:
    (y,) = BatchNormalization(epsilon=5.0).forward([np.array([[15.0]]), *vectors(1)])

    assert y.tolist() == [[1.0]]


def test_one_dimension_is_one_channel() -> None:
    x = np.array([1.0, 3.0])

    y, mean, _ = BatchNormalization(training_mode=1, momentum=0.0, epsilon=0.0).forward([x, *vectors(1)])

    assert y.tolist() == [-1, 1]
    assert mean.tolist() == [2]


@pytest.mark.parametrize("offset", [1e3, 1e4])
def test_variance_keeps_its_digits_far_from_zero(offset: float) -> None:
    # In float32, the mean of squares minus the square of the mean would have no digit left.
    x = (offset + RNG.standard_normal((64, 2, 8, 8))).astype(np.float32)

    y, _, variance = BatchNormalization(training_mode=1, momentum=0.0).forward([x, *vectors(2, np.float32)])

    expected = x.astype(np.float64).var(axis=(0, 2, 3))
    np.testing.assert_allclose(variance, expected, rtol=1e-5)
    np.testing.assert_allclose(y.astype(np.float64).std(axis=(0, 2, 3)), 1, rtol=1e-4)


def test_float16_statistics_do_not_overflow() -> None:
    x = np.array([[-60000.0], [60000.0]], np.float16)

    y, _, _ = BatchNormalization(training_mode=1).forward([x, *vectors(1, np.float16)])

    np.testing.assert_allclose(y.ravel().astype(float), [-1, 1])


def test_every_group_keeps_its_own_dtype() -> None:
    x = RNG.standard_normal((4, 2)).astype(ml_dtypes.bfloat16)
    scale, bias, mean, variance = vectors(2)
    inputs = [
        x,
        scale.astype(np.float16),
        bias.astype(np.float16),
        mean.astype(np.float32),
        variance.astype(np.float32),
    ]

    outputs = BatchNormalization(training_mode=1).forward(inputs)
    gradients = BatchNormalization(training_mode=1).backward([outputs[0], None, None], inputs, outputs)

    assert [y.dtype for y in outputs] == [ml_dtypes.bfloat16, np.float32, np.float32]
    assert [g.dtype for g in gradients[:3]] == [ml_dtypes.bfloat16, np.float16, np.float16]
    assert gradients[3:] == (None, None)


def test_constant_channel_has_no_gradient() -> None:
    x = np.full((3, 1, 2), 4.0)
    inputs = [x, *vectors(1)]
    outputs = BatchNormalization(training_mode=1).forward(inputs)

    by_x, by_scale, _, _, _ = BatchNormalization(training_mode=1).backward(
        [np.ones_like(x), None, None], inputs, outputs
    )

    np.testing.assert_allclose(outputs[0], 0)
    np.testing.assert_allclose(by_x, 0, atol=1e-12)
    np.testing.assert_allclose(by_scale, 0, atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 2), (0, 2, 3, 3)])
def test_empty_batch(shape: tuple[int, ...]) -> None:
    inputs = [np.zeros(shape), *vectors(2)]

    (y,) = BatchNormalization().forward(inputs)
    outputs = BatchNormalization(training_mode=1).forward(inputs)
    gradients = BatchNormalization(training_mode=1).backward([outputs[0], None, None], inputs, outputs)

    assert y.shape == outputs[0].shape == gradients[0].shape == shape
    assert np.isnan(outputs[1]).all()  # as the reference implementation has it


def test_nan_stays_in_its_channel() -> None:
    x = RNG.standard_normal((3, 2))
    x[0, 0] = np.nan

    y, _, _ = BatchNormalization(training_mode=1).forward([x, *vectors(2)])

    assert np.isnan(y).tolist() == [[True, False]] * 3


def test_refusals() -> None:
    with pytest.raises(OperatorError, match=r"scale \(2,\), B \(2,\).*accepted is \(3,\), one entry a channel"):
        BatchNormalization().forward([np.ones((1, 3)), *vectors(2)])
    with pytest.raises(OperatorError, match="scalar X"):
        BatchNormalization().forward([np.array(1.0), *vectors(1)])
    with pytest.raises(OperatorError, match="the input input_var is missing"):
        BatchNormalization().forward([np.ones((1, 1)), *vectors(1)[:3]])
    with pytest.raises(OperatorError, match="epsilon is 'small'"):
        BatchNormalization(epsilon="small")
    with pytest.raises(OperatorError, match="momentum is nan"):
        BatchNormalization(momentum=float("nan"))
