"""Edge cases of DFT and STFT; values and derivatives are in the conformance suite."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.dft import DFT
from deep500.operators.library.stft import STFT

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("length", [4, 5])
def test_inverses(length: int) -> None:
    real, number = RNG.standard_normal((2, length, 1)), np.array(length)
    pair = RNG.standard_normal((2, length, 2))

    np.testing.assert_allclose(DFT(inverse=1)(DFT()(pair)), pair, atol=1e-12)
    np.testing.assert_allclose(DFT(inverse=1, onesided=1)(DFT(onesided=1)(real), number), real, atol=1e-12)


def test_default_length_of_an_inverse_is_even() -> None:
    assert DFT(inverse=1, onesided=1)(np.ones((2, 3, 2))).shape == (2, 4, 1)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_dtypes(dtype: type) -> None:
    assert DFT()(np.ones((4, 1), dtype)).dtype == dtype
    assert STFT()(np.ones((1, 4, 1), dtype), np.array(1), np.ones(2, dtype)).dtype == dtype


def test_frames() -> None:
    signal, window = RNG.standard_normal((2, 10, 1)), RNG.uniform(0.5, 1, 4)

    y = STFT()(signal, np.array(3), window)

    assert y.shape == (2, 3, 3, 2)
    expected = np.fft.rfft(signal[:, 3:7, 0] * window)
    np.testing.assert_allclose(y[:, 1], np.stack([expected.real, expected.imag], axis=-1), atol=1e-12)


def test_one_frame_is_the_whole_signal_without_window_and_length() -> None:
    signal = RNG.standard_normal((1, 6, 2))

    np.testing.assert_allclose(STFT(onesided=0)(signal, np.array(1))[:, 0], DFT()(signal), atol=1e-12)


def test_a_signal_shorter_than_a_frame_has_none() -> None:
    inputs = [np.ones((1, 2, 1)), np.array(1), None, np.array(5)]
    (y,) = STFT().forward(inputs)

    assert y.shape == (1, 0, 3, 2)
    assert not STFT().backward([y], inputs, (y,))[0].any()


@pytest.mark.parametrize(
    ("operator", "inputs", "message"),
    [
        (DFT(), [np.ones(3)], r"accepted are \[..., 1\] and \[..., 2\]"),
        (DFT(onesided=1), [np.ones((3, 2))], r"accepted is a real one"),
        (DFT(inverse=1, onesided=1), [np.ones((3, 1))], "for the inverse a complex one"),
        (DFT(), [np.ones((3, 1)), np.array([1, 2])], "an integer scalar"),
        (DFT(), [np.ones((3, 1)), np.array(0)], "a length from 1 on"),
        (DFT(), [np.ones((3, 1)), None, np.array(1)], "real and imaginary parts"),
        (DFT(), [np.ones((3, 1)), None, np.array(2)], "axis is 2"),
        (STFT(), [np.ones((3, 1)), np.array(1)], r"\[N, L, 1\] and \[N, L, 2\]"),
        (STFT(), [np.ones((1, 3, 2)), np.array(1)], "accepted is onesided = 0"),
        (STFT(), [np.ones((1, 3, 1)), np.array(0)], "frame_step 0; accepted is an integer scalar from 1 on"),
        (STFT(), [np.ones((1, 3, 1)), np.array(1), np.ones(2), np.array(3)], r"accepted is \(3,\)"),
    ],
)
def test_refusals(operator: DFT | STFT, inputs: list, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        operator.forward(inputs)
