from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from deep500.frameworks.tensorflow import as_operator, custom_op, custom_op_from_native  # noqa: E402
from deep500.operators.library.mat_mul import MatMul  # noqa: E402
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

    assert all(isinstance(y, tf.Tensor) for y in custom_op(there)(tf.constant(X)))


def test_in_a_graph() -> None:
    assert test_op_gradient(as_operator(cube_sum(), through=tf.function), [X]).passed


def test_functions_of_tensorflow_against_the_library() -> None:
    report = test_op_equivalence(MatMul(), custom_op_from_native(tf.matmul), shapes=[("n", "m"), ("m", "k")])

    assert report.differentiated > 10
