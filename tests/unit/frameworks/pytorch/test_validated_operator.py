from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep500.frameworks.pytorch import as_operator, custom_op, custom_op_from_native  # noqa: E402
from deep500.operators.library.conv import Conv  # noqa: E402
from deep500.operators.validation import test_op_equivalence, test_op_gradient  # noqa: E402
from tests.unit.operators.sources import cube_sum  # noqa: E402

X = np.random.default_rng(0).standard_normal((3, 4))


def test_arrays_in_arrays_out() -> None:
    op = cube_sum()
    there = as_operator(op)
    cubes, sums = there(X)

    assert type(cubes) is type(sums) is np.ndarray
    np.testing.assert_array_equal(cubes, op(X)[0])
    np.testing.assert_allclose(there.run_backward([cubes, None], [X], [cubes, sums])[0], 3 * X**2 * cubes)


def test_tensors_stay_what_they_are() -> None:
    there = as_operator(cube_sum())

    assert all(isinstance(y, torch.Tensor) for y in custom_op(there)(torch.from_numpy(X)))


def test_a_function_in_between() -> None:
    calls = []

    def counted(function):
        def run(*inputs):
            calls.append(len(inputs))
            return function(*inputs)

        return run

    assert test_op_gradient(as_operator(cube_sum(), through=counted), [X]).passed
    assert set(calls) == {1}


def test_functions_of_pytorch_against_the_library() -> None:
    report = test_op_equivalence(
        Conv(), custom_op_from_native(torch.nn.functional.conv2d), shapes=[("n", 2, 6, 5), ("m", 2, 3, 2), ("m",)]
    )

    assert report.differentiated > 10


def test_in_place_functions_are_noticed() -> None:
    with pytest.raises(ValueError, match=r"relu\.forward modified its input 0"):
        test_op_gradient(custom_op_from_native(torch.relu_), [X.copy()])
