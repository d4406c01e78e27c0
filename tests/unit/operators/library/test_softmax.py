"""Edge cases of Softmax and LogSoftmax; values and derivatives are in the conformance suite."""

from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.operators.library.log_softmax import LogSoftmax
from deep500.operators.library.softmax import Softmax


def test_large_values_do_not_overflow() -> None:
    x = np.array([1e4, 1e4, -1e4], np.float32)

    assert Softmax()(x).tolist() == [0.5, 0.5, 0]
    np.testing.assert_allclose(LogSoftmax()(x), [-np.log(2), -np.log(2), -2e4 - np.log(2)], rtol=1e-6)


@pytest.mark.parametrize("operator", [Softmax(axis=0), LogSoftmax(axis=0)])
def test_non_finite_values_stay_in_their_row(operator) -> None:
    x = np.array([[np.nan, np.inf, -np.inf, 0.0], [0.0, 0.0, -np.inf, -np.inf]])

    y = operator(x)

    assert np.isnan(y).tolist() == [[True, True, True, False]] * 2
    assert y[:, 3].tolist() == ([1, 0] if isinstance(operator, Softmax) else [0, -np.inf])


@pytest.mark.parametrize("operator", [Softmax(), LogSoftmax()])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty(operator, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)

    (y,) = operator.forward([x])

    assert y.shape == operator.backward([y], [x], (y,))[0].shape == shape


@pytest.mark.parametrize("operator", [Softmax, LogSoftmax])
def test_refusals(operator) -> None:
    with pytest.raises(OperatorError, match="axis is 2 for a tensor of rank 2; accepted is from -2 to 1"):
        operator(axis=2)(np.ones((2, 2)))
    with pytest.raises(OperatorError, match="the tensor is a scalar"):
        operator()(np.array(1.0))
    with pytest.raises(OperatorError, match=r"axis is 1\.5; accepted is an integer"):
        operator(axis=1.5)
