"""NumPy's functions for problems; what they compute is tested for all frameworks in tests/conformance."""

from __future__ import annotations

import numpy as np

from deep500.core.device import CPUDevice
from deep500.frameworks.reference import problem_function
from deep500.operators.library.conv import Conv
from deep500.operators.problems import ConvolutionProblem, GemmProblem


def test_product_is_numpys_of_views_of_the_same_memory() -> None:
    arrays = {"A": np.ones((5, 6)), "B": np.ones((5, 4))}
    native = problem_function(GemmProblem(6, 4, 5, True), arrays, CPUDevice())

    assert native.function is np.matmul
    assert np.shares_memory(native.inputs[0], arrays["A"])
    assert native.inputs[0].shape == (6, 5)
    assert native.inputs[1] is arrays["B"]
    assert native.synchronize is None


def test_convolution_is_that_of_the_operator_library() -> None:
    problem = ConvolutionProblem(7, 6, 3, 2, 4, 5, 3, 2, 1, 3, 2)
    arrays = {name: np.ones(kind.shape) for name, kind in problem.inputs("float64").items()}
    native = problem_function(problem, arrays, CPUDevice())

    assert isinstance(native.function, Conv)
    assert native.function(*native.inputs).shape == problem.output("float64").shape
    assert native.inputs[0] is arrays["X"]
