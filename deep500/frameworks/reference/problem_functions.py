"""How NumPy computes the problems of problem sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.device import Device
from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.reference.device import check_device
from deep500.operators.problem_reference import convolution, matrices
from deep500.operators.problems import ConvolutionProblem, GemmProblem, NativeProblem, Problem

__all__ = ["problem_function"]


def problem_function(problem: Problem, arrays: Mapping[str, NDArray[Any]], device: Device) -> NativeProblem:
    """Return how NumPy computes a problem: ``numpy.matmul``, or the convolution of the operator library.

    Args:
        problem: The problem.
        arrays: Its inputs, by name; they are not copied.
        device: The processor.

    Raises:
        DeviceError: Another device was named.
        UnsupportedOperatorError: NumPy has no such function, or computes it element by element in this dtype.
    """
    check_device(device)
    if isinstance(problem, GemmProblem):
        a, b = matrices(problem, arrays)
        if a.dtype.itemsize < 4:
            raise UnsupportedOperatorError(
                f"NumPy multiplies matrices of {a.dtype.name} element by element, a thousand times slower than others. "
                f"Accepted are float32 and float64."
            )
        return NativeProblem(np.matmul, (a, b), np.asarray)
    if isinstance(problem, ConvolutionProblem):
        return NativeProblem(convolution(problem), (arrays["X"], arrays["W"]), np.asarray)
    raise UnsupportedOperatorError(
        f"The NumPy reference cannot compute {type(problem).__name__} ({problem.title}); it has products of matrices "
        f"and convolutions. Name another framework (deep500 list frameworks)."
    )
