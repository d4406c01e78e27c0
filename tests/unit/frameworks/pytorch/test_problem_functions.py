"""PyTorch's own functions for problems; what they compute is tested for all frameworks in tests/conformance."""

from __future__ import annotations

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep500.core.device import CPUDevice, GPUDevice  # noqa: E402
from deep500.frameworks.pytorch import custom_op, custom_op_from_native, problem_function  # noqa: E402
from deep500.operators.problems import ConvolutionProblem, GemmProblem, RecurrentProblem  # noqa: E402


def test_product_is_pytorchs_of_views_of_the_same_memory() -> None:
    arrays = {"A": np.ones((5, 6)), "B": np.ones((4, 5))}
    native = problem_function(GemmProblem(6, 4, 5, True, True), arrays, CPUDevice())

    assert native.function is torch.matmul
    assert [tuple(x.shape) for x in native.inputs] == [(6, 5), (5, 4)]
    assert not any(x.is_contiguous() for x in native.inputs)
    arrays["A"][:] = 2.0
    assert float(native.inputs[0].sum()) == 60.0
    assert native.synchronize is None


def test_convolution_is_pytorchs() -> None:
    problem = ConvolutionProblem(7, 6, 3, 2, 4, 3, 3, 2, 1, 3, 2)
    arrays = {name: np.ones(kind.shape) for name, kind in problem.inputs("float64").items()}
    function = problem_function(problem, arrays, CPUDevice()).function

    assert isinstance(function, functools.partial)
    assert function.func is torch.nn.functional.conv2d
    assert function.keywords == {"stride": (2, 3), "padding": (1, 2)}


def test_nothing_of_a_recurrent_layer_is_recorded() -> None:
    problem = RecurrentProblem(3, 2, 4, "lstm")
    arrays = {name: np.ones(kind.shape) for name, kind in problem.inputs("float64").items()}
    native = problem_function(problem, arrays, CPUDevice())

    assert not native.function(*native.inputs).requires_grad
    assert not any(x.requires_grad for x in native.inputs)


def test_nothing_stands_between_the_function_and_its_caller() -> None:
    assert custom_op(custom_op_from_native(torch.matmul)) is torch.matmul


@pytest.mark.gpu
@pytest.mark.parametrize(
    "problem", [GemmProblem(6, 4, 5, True), ConvolutionProblem(7, 6, 3, 2, 4, 3, 3), RecurrentProblem(5, 3, 4, "gru")]
)
def test_gpu_computes_what_the_processor_does(problem: GemmProblem | ConvolutionProblem | RecurrentProblem) -> None:
    stream = np.random.default_rng(0)
    arrays = {name: stream.standard_normal(kind.shape) for name, kind in problem.inputs("float64").items()}  # type: ignore[arg-type]
    results = []
    for device in (CPUDevice(), GPUDevice()):
        native = problem_function(problem, arrays, device)
        output = native.function(*native.inputs)
        if native.synchronize is not None:
            native.synchronize()
        results.append(native.to_numpy(output))

    np.testing.assert_allclose(results[1], results[0], rtol=1e-10, atol=1e-10)
