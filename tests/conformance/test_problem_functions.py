"""Every adapter computes the problems of problem sets as they are defined, with its own function, wrapped or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deep500.core.device import CPUDevice, GPUDevice
from deep500.core.errors import Deep500Error, UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS, installed_frameworks
from deep500.measure.tolerance import largest_violation, tolerance
from deep500.operators.problem_reference import reference_part
from deep500.operators.problems import (
    AllReduceProblem,
    ConvolutionProblem,
    GemmProblem,
    Problem,
    RecurrentProblem,
)

INSTALLED = installed_frameworks("problem_function")

Arrays = Mapping[str, NDArray[Any]]

PROBLEMS: dict[str, Problem] = {
    "product": GemmProblem(6, 4, 5),
    "product, A transposed": GemmProblem(6, 4, 5, True),
    "product, B transposed": GemmProblem(6, 4, 5, False, True),
    "product, both transposed": GemmProblem(6, 4, 5, True, True),
    "product, one row": GemmProblem(1, 4, 300),
    "convolution": ConvolutionProblem(7, 6, 3, 2, 4, 3, 3),
    "convolution, uneven": ConvolutionProblem(9, 6, 2, 3, 4, 5, 3, 2, 1, 3, 2),
    "convolution, 1x1 with a stride": ConvolutionProblem(7, 7, 8, 2, 5, 1, 1, 0, 0, 2, 2),
    "convolution, padding wider than the filter": ConvolutionProblem(7, 7, 4, 2, 3, 1, 1, 3, 3, 2, 2),
    "convolution, kernel as large as the image": ConvolutionProblem(4, 5, 2, 1, 3, 4, 5),
    "vanilla": RecurrentProblem(5, 3, 4, "vanilla"),
    "lstm": RecurrentProblem(5, 3, 4, "lstm"),
    "gru": RecurrentProblem(5, 3, 4, "gru"),
    "gru, one step": RecurrentProblem(5, 3, 1, "gru"),
}


def drawn(problem: Problem, dtype: str = "float64") -> dict[str, NDArray[Any]]:
    stream = np.random.default_rng(1)
    return {
        name: (stream.standard_normal(kind.shape) / np.sqrt(problem.fan_in(name))).astype(dtype)  # type: ignore[arg-type]
        for name, kind in problem.inputs(dtype).items()
    }


def sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1.0 / (1.0 + np.exp(-x))


def recurrent(problem: RecurrentProblem, arrays: Arrays) -> NDArray[Any]:
    """What :class:`RecurrentProblem` says, word for word."""
    weights, feedback, biases = arrays["W"], arrays["R"], arrays["B"]
    h = c = np.zeros((problem.batch_size, problem.hidden_size))
    states = []
    for x in arrays["X"]:
        of_input = np.split(x @ weights.T + biases[0], problem.GATES[problem.cell], axis=1)
        of_state = np.split(h @ feedback.T + biases[1], problem.GATES[problem.cell], axis=1)
        if problem.cell == "vanilla":
            h = np.maximum(of_input[0] + of_state[0], 0.0)
        elif problem.cell == "lstm":
            i, f, g, o = (a + b for a, b in zip(of_input, of_state))
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            r, z = (sigmoid(a + b) for a, b in zip(of_input[:2], of_state[:2]))
            h = (1.0 - z) * np.tanh(of_input[2] + r * of_state[2]) + z * h
        states.append(h)
    return np.stack(states)


def expected(problem: Problem, arrays: Arrays) -> NDArray[Any]:
    if isinstance(problem, RecurrentProblem):
        return recurrent(problem, arrays)
    part = reference_part(problem, arrays)
    assert part is not None
    return part.values


def longest_sum(problem: Problem) -> int:
    """Return the number of products in a sum; for a recurrent layer, of the roundings on the way to the last state."""
    if isinstance(problem, GemmProblem):
        return problem.k
    if isinstance(problem, ConvolutionProblem):
        return problem.channels * problem.filter_height * problem.filter_width
    assert isinstance(problem, RecurrentProblem)
    return problem.time_steps * (2 * problem.hidden_size + 10)


def scale(problem: Problem, arrays: Arrays) -> float:
    """Return a bound of the sum of the sizes of the terms."""
    if isinstance(problem, RecurrentProblem):
        sizes = {name: np.abs(array) for name, array in arrays.items()}
        by_step = sizes["X"].max() * sizes["W"].sum(1).max() + sizes["B"].sum(0).max()
        return float(by_step * (1.0 + sizes["R"].sum(1).max()) ** problem.time_steps)
    return float(np.max(expected(problem, {name: np.abs(array) for name, array in arrays.items()})))


@pytest.mark.parametrize("framework", INSTALLED)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("form", ["native", "wrapped"])
def test_result_is_the_problems(framework: str, name: str, form: str) -> None:
    problem, adapter = PROBLEMS[name], FRAMEWORKS.get(framework)
    if framework == "reference" and isinstance(problem, RecurrentProblem):
        pytest.skip("the reference has no recurrent layers")
    arrays = drawn(problem)
    before = {key: array.copy() for key, array in arrays.items()}
    native = adapter.problem_function(problem, arrays, CPUDevice())
    function = native.function
    if form == "wrapped":
        function = adapter.custom_op(adapter.custom_op_from_native(native.function, name="problem"))

    first, second = (native.to_numpy(function(*native.inputs)) for _ in range(2))

    assert first.dtype == np.float64
    assert first.shape == problem.output("float64").shape
    np.testing.assert_array_equal(first, second)
    allowed = tolerance("float64", longest_sum(problem), scale=scale(problem, arrays))
    assert largest_violation(first, expected(problem, arrays), allowed) is None
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, before[key])


@pytest.mark.parametrize("framework", INSTALLED)
@pytest.mark.parametrize("name", ["product, A transposed", "convolution, uneven"])
def test_dtype_is_that_of_the_arrays(framework: str, name: str) -> None:
    problem = PROBLEMS[name]
    for dtype in ("float32", "bfloat16"):
        arrays = drawn(problem) if dtype == "float32" else None
        narrow = {key: array.astype("float32") for key, array in (arrays or drawn(problem)).items()}
        if dtype == "bfloat16":
            import ml_dtypes

            narrow = {key: array.astype(ml_dtypes.bfloat16) for key, array in narrow.items()}
            if framework == "reference" and isinstance(problem, GemmProblem):
                with pytest.raises(UnsupportedOperatorError, match="Accepted are float32 and float64"):
                    FRAMEWORKS.get(framework).problem_function(problem, narrow, CPUDevice())
                continue
        native = FRAMEWORKS.get(framework).problem_function(problem, narrow, CPUDevice())
        output = native.to_numpy(native.function(*native.inputs))
        wide = {key: array.astype(np.float64) for key, array in narrow.items()}
        assert output.dtype.name == dtype
        allowed = tolerance(dtype, longest_sum(problem), scale=scale(problem, wide))
        assert largest_violation(output, expected(problem, wide), allowed) is None


@pytest.mark.parametrize("framework", INSTALLED)
def test_oracle_sees_a_gate_in_the_wrong_place(framework: str) -> None:
    """The comparison above would find it: the oracle itself tells the gates apart."""
    for cell in ("lstm", "gru"):
        problem = RecurrentProblem(5, 3, 4, cell)
        arrays = drawn(problem)
        gates = problem.GATES[cell]
        order = [1, 0, *range(2, gates)]
        swapped = {
            key: array
            if key == "X"
            else np.concatenate(
                [np.split(array, gates, axis=-1 if key == "B" else 0)[i] for i in order], axis=-1 if key == "B" else 0
            )
            for key, array in arrays.items()
        }
        allowed = tolerance("float64", longest_sum(problem), scale=scale(problem, arrays))
        assert largest_violation(recurrent(problem, swapped), recurrent(problem, arrays), allowed) is not None


@pytest.mark.parametrize("framework", INSTALLED)
def test_what_a_framework_cannot_do_is_refused_in_one_line(framework: str) -> None:
    refused: list[Problem] = [AllReduceProblem(10)]
    if framework == "reference":
        refused += [RecurrentProblem(2, 2, 2, cell) for cell in RecurrentProblem.GATES]
    for problem in refused:
        with pytest.raises(UnsupportedOperatorError) as caught:
            FRAMEWORKS.get(framework).problem_function(problem, drawn(problem), CPUDevice())
        assert problem.title in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("framework", INSTALLED)
def test_device_that_is_not_there_is_refused(framework: str) -> None:
    problem = PROBLEMS["product"]

    with pytest.raises(Deep500Error, match="gpu:99"):
        FRAMEWORKS.get(framework).problem_function(problem, drawn(problem), GPUDevice(99))
