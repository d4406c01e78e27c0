"""What NumPy makes of a problem, or of a part of it where the whole would take long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.operators.library._tensors import compute_dtype
from deep500.operators.library.conv import Conv
from deep500.operators.problems import ConvolutionProblem, GemmProblem, Problem

__all__ = ["ReferencePart", "convolution", "matrices", "reference_part"]

#: Floating-point operations that are spent on it, unless the smallest part takes more.
_MOST_FLOPS = 4e9

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ReferencePart:
    """A part of an output.

    Attributes:
        index: Selects the part from the whole output.
        values: What it should be; 16-bit floats are computed and given in float32.
    """

    index: slice | NDArray[Any]
    values: NDArray[Any]


def reference_part(problem: Problem, arrays: Arrays) -> ReferencePart | None:
    """Compute a part of a problem's output with NumPy: rows of a product, images of a convolution.

    All of them where that is done within a second; else as many as are, the rows evenly spread.

    Args:
        problem: The problem.
        arrays: Its inputs, by name.

    Returns:
        The part; ``None`` for problems that are not defined in NumPy here, such as recurrent layers.
    """
    compute = _PARTS.get(type(problem))
    return None if compute is None else compute(problem, arrays)


def matrices(problem: GemmProblem, arrays: Arrays) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return A' and B', of which the transposed ones are views."""
    a, b = arrays["A"], arrays["B"]
    return (a.T if problem.a_transposed else a), (b.T if problem.b_transposed else b)


def convolution(problem: ConvolutionProblem) -> Conv:
    """Return the operator of the library that computes a convolution."""
    pads = (problem.pad_height, problem.pad_width)
    return Conv(strides=(problem.stride_height, problem.stride_width), pads=pads * 2)


def _rows(problem: GemmProblem, arrays: Arrays) -> ReferencePart:
    a, b = matrices(problem, arrays)
    count = _affordable(problem, problem.m)
    everything = count == problem.m
    index = slice(None) if everything else np.linspace(0, problem.m - 1, count).round().astype(np.intp)
    wide = compute_dtype(a.dtype)
    return ReferencePart(index, np.matmul(a[index].astype(wide, copy=False), b.astype(wide, copy=False)))


def _images(problem: ConvolutionProblem, arrays: Arrays) -> ReferencePart:
    index = slice(_affordable(problem, problem.batch_size))
    x, weights = arrays["X"][index], arrays["W"]
    wide = compute_dtype(x.dtype)
    (values,) = convolution(problem).forward([x.astype(wide, copy=False), weights.astype(wide, copy=False)])
    return ReferencePart(index, values)


def _affordable(problem: Problem, parts: int) -> int:
    """Return how many of the equal parts of a problem are computed."""
    return max(1, min(parts, int(parts * _MOST_FLOPS / problem.flops)))


_PARTS: dict[type[Problem], Callable[[Any, Arrays], ReferencePart]] = {
    GemmProblem: _rows,
    ConvolutionProblem: _images,
}
