from __future__ import annotations

import numpy as np
import pytest

from deep500.networks.numpy_functions import NumpyFunctions
from deep500.training.optimizers._trust import trust_ratio


@pytest.mark.parametrize(
    ("numerator", "divisor", "norms", "expected"),
    [(6.0, 2.0, (6.0, 2.0), 3.0), (0.0, 2.0, (0.0, 2.0), 1.0), (6.0, 0.0, (6.0, 0.0), 1.0), (0.0, 0.0, (0.0,), 1.0)],
)
def test_ratio_is_1_where_a_norm_is_0(
    numerator: float, divisor: float, norms: tuple[float, ...], expected: float
) -> None:
    with np.errstate(all="raise"):
        found = trust_ratio(NumpyFunctions(), *map(np.float64, (numerator, divisor)), *map(np.float64, norms))

    assert found == expected
