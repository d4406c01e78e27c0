from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deep500.training.finiteness import finite_elements, is_finite


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_every_floating_dtype_is_looked_at(dtype: object) -> None:
    array = np.array([1.0, np.inf, np.nan, -2.0], dtype=dtype)

    assert finite_elements(array).tolist() == [True, False, False, True]
    assert not is_finite(array)
    assert is_finite(array[[0, 3]])


def test_what_is_no_floating_tensor_is_finite() -> None:
    assert is_finite(np.array([1, 2]))
    assert is_finite(np.array(["nan"], dtype=object))
    assert is_finite(np.zeros((0,)))
