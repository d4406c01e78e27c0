"""TensorFlow's own functions for problems; what they compute is tested for all frameworks in tests/conformance."""

from __future__ import annotations

import functools

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from deep500.core.device import CPUDevice  # noqa: E402
from deep500.frameworks.tensorflow import problem_function  # noqa: E402
from deep500.operators.problems import ConvolutionProblem, GemmProblem, RecurrentProblem  # noqa: E402


def test_product_is_tensorflows_and_is_told_what_is_transposed() -> None:
    arrays = {"A": np.ones((5, 6)), "B": np.ones((5, 4))}
    native = problem_function(GemmProblem(6, 4, 5, True), arrays, CPUDevice())

    assert isinstance(native.function, functools.partial)
    assert (native.function.func, native.function.keywords) == (tf.matmul, {"transpose_a": True})
    assert [tuple(x.shape) for x in native.inputs] == [(5, 6), (5, 4)]
    assert native.synchronize is None
    plain = problem_function(GemmProblem(6, 4, 5), {"A": np.ones((6, 5)), "B": np.ones((5, 4))}, CPUDevice())
    assert plain.function is tf.matmul


@pytest.mark.parametrize(("pads", "padding"), [((0, 0), "VALID"), ((2, 1), [[0, 0], [1, 1], [2, 2], [0, 0]])])
def test_convolution_is_tensorflows_with_the_channels_last(pads: tuple[int, int], padding: object) -> None:
    problem = ConvolutionProblem(7, 6, 3, 2, 4, 5, 3, *pads, 3, 2)
    arrays = {name: np.ones(kind.shape) for name, kind in problem.inputs("float64").items()}
    native = problem_function(problem, arrays, CPUDevice())

    assert isinstance(native.function, functools.partial)
    assert (native.function.func, native.function.keywords) == (tf.nn.conv2d, {"strides": (2, 3), "padding": padding})
    assert [tuple(x.shape) for x in native.inputs] == [(2, 6, 7, 3), (3, 5, 3, 4)]


def test_recurrent_layer_is_traced_once() -> None:
    problem = RecurrentProblem(3, 2, 4, "gru")
    arrays = {name: np.ones(kind.shape) for name, kind in problem.inputs("float64").items()}
    native = problem_function(problem, arrays, CPUDevice())

    for _ in range(3):
        output = native.function(*native.inputs)

    assert tuple(output.shape) == (2, 4, 3)
    assert native.function.experimental_get_tracing_count() == 1
