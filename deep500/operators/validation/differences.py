r"""Numerical derivatives of an operator along a direction, and whether they can be trusted.

Along a direction :math:`v`, an output :math:`y` changes at the rate

.. math::
    D_h = \frac{y(x + h v) - y(x - h v)}{2 h}, \qquad
    R_h = \frac{4 D_{h/2} - D_h}{3} = D + O(h^4)

(central differences and their Richardson extrapolation). :math:`R_h` is the derivative, :math:`R_{h/2}` its check: each
output is computed with an error of at most :math:`\gamma s` (see :mod:`deep500.measure.tolerance`), where the size
:math:`s` of its terms is that of the output itself and, where terms cancel, of the changes :math:`\sum_k |x_k
\partial y / \partial x_k|`. That makes :math:`R_h` uncertain by :math:`3 \gamma s / h`, :math:`R_{h/2}` by twice that,
and both together by :math:`9 \gamma s / h`. Where they lie further apart there is a kink between :math:`x - h v` and
:math:`x + h v`. Right at a kink they agree; there the slopes from both sides, which come closer in proportion to
:math:`h` where a function is smooth, stay apart. In both cases the derivative does not exist, or is not what a
difference can show.

The step :math:`h` is relative to the size of the values. Rounding and the neglected :math:`h^4 y^{(5)} / 480` are in
balance near the fifth root of the precision. In float64, where digits are to spare, the cube root is taken, so that a
hundred times fewer kinks lie within the step.

Source: C. J. F. Ridders, "Accurate computation of F'(x) and F'(x)F''(x)", Adv. Eng. Software 4(2), 1982.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import OperatorError
from deep500.measure.tolerance import unit_roundoff
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.validation.contract import ContractViolation, call_forward, name_of

__all__ = [
    "EVALUATIONS_PER_SLOPE",
    "Slope",
    "default_step",
    "element_scales",
    "is_resolved",
    "noise_limit",
    "numerical_gradient",
    "slopes_along",
]

#: Runs of forward for one derivative: two sides at three distances.
EVALUATIONS_PER_SLOPE = 6

#: 3 for the extrapolation and 6 for the one with half the step, see the module's text.
_ROUNDINGS = 9.0

#: Errors of outputs are of different sizes, so that those of the largest may lie that far beyond what is measured.
_LEAST_ROUNDINGS = 8

#: Fewer differences do not tell how large the rounding errors are; then the bound is taken.
_LEAST_SAMPLES = 16

#: Standard deviation of a normal distribution over the median of its sizes.
_SIGMA_OVER_MEDIAN = 1.4826

_Forward = Callable[[Sequence[OptionalArray]], tuple[Array, ...]]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Slope:
    """How one output changes along a direction; all arrays are flat, one entry an element of the output.

    Attributes:
        value: The derivative.
        again: The same with half the step.
        bend: How far apart the slopes from both sides are, at half the step.
        bend_again: The same at a quarter of the step.
        size: The largest finite value of the output that was met, or of its change in proportion to that of the input.
    """

    value: Floats
    again: Floats
    bend: Floats
    bend_again: Floats
    size: float


def default_step(dtype: str) -> float:
    """Return the step for an operator that computes in a dtype; see the module's text."""
    precision = 2 * unit_roundoff(dtype)
    return float(precision ** (1 / 3 if precision <= 2 * unit_roundoff("float64") else 1 / 5))


def element_scales(x: Array) -> Floats:
    """Return by how much to move each element, up to the step: its size, or the typical one of the tensor.

    Small elements among large ones are moved as far as a typical one; a tensor of zeros is moved by 1.
    """
    sizes = np.abs(x.astype(np.float64))
    if not sizes.size:
        return sizes
    typical = float(np.median(sizes)) or float(np.mean(sizes)) or 1.0
    return np.asarray(np.maximum(sizes, typical))


def slopes_along(
    forward: _Forward,
    inputs: Sequence[OptionalArray],
    outputs: Sequence[Array],
    index: int,
    direction: Floats,
    step: float,
    through: Sequence[int],
) -> tuple[Floats, dict[int, Slope]]:
    """Return the derivatives of outputs along a direction of one input.

    Args:
        forward: The function.
        inputs: Where to differentiate.
        outputs: The outputs there.
        index: Which input to move.
        direction: In which direction, of the input's shape.
        step: How far, in multiples of the direction.
        through: Which outputs.

    Returns:
        The direction as the dtype of the input allowed to go it, and the derivatives by the number of the output.
    """
    x = inputs[index]
    assert x is not None
    wide = x.astype(np.float64)
    centres = {j: _flat(outputs[j]) for j in through}
    sides = [_Side(x, wide, direction, step / 2**level) for level in range(3)]
    with np.errstate(all="ignore"):
        for side in sides:
            for given in (side.above, side.below):
                found = forward([*inputs[:index], given, *inputs[index + 1 :]])
                side.ends.append({j: _flat(_alike(found[j], outputs[j])) for j in through})
        # What was gone differs from the direction by roundings, which the same extrapolation takes into account.
        gone = (4 * sides[1].gone - sides[0].gone) / 3
        return gone, {j: _slope(sides, j, centre) for j, centre in centres.items()}


def noise_limit(
    value: Floats, again: Floats, size: float, terms: float, roundoff: float, bound: float, step: float
) -> float:
    """Return how far a derivative and its check may lie apart where only rounding errors part them.

    It is taken from how far they do lie apart: 16 of their standard deviations (4 for chance, and 4 times as much where
    an output is larger than most), which are told from the median so that kinks do not count. It is at least that of
    eight roundings of the largest output, and at most what the length of the reductions allows; that also where there
    are too few derivatives to tell.

    Args:
        value: Derivatives.
        again: Their checks.
        size: Largest size of an output.
        terms: Largest size of the terms that an output is the sum of.
        roundoff: Unit roundoff of the dtype.
        bound: Error with which outputs are computed, relative to the size of their terms.
        step: The step.
    """
    least = _ROUNDINGS * min(_LEAST_ROUNDINGS * roundoff, bound) * size / step
    most = max(_ROUNDINGS * bound * terms / step, least)
    apart = np.abs(value - again)
    apart = apart[np.isfinite(apart) & (apart > 0)]
    if apart.size < _LEAST_SAMPLES:
        return most
    return float(np.clip(16 * _SIGMA_OVER_MEDIAN * np.median(apart), least, most))


def is_resolved(value: Floats, again: Floats, bend: Floats, bend_again: Floats, limit: float) -> NDArray[np.bool_]:
    """Return which derivatives exist, as far as differences can show; see the module's text.

    Args:
        value: Derivatives.
        again: Their checks.
        bend: How far slopes from both sides are apart, at half the step.
        bend_again: The same at a quarter of the step.
        limit: What :func:`noise_limit` says.
    """
    with np.errstate(invalid="ignore"):
        agrees = np.abs(value - again) <= limit
        # Of a smooth function the second is half of the first; its rounding error is twice the limit at most.
        is_kink = (bend_again > 2 * limit) & (bend_again > 0.75 * bend)
    return np.asarray(agrees & ~is_kink)


def numerical_gradient(
    operator: Operator,
    inputs: Sequence[OptionalArray],
    output_grads: Sequence[OptionalArray],
    index: int,
    *,
    step: float | None = None,
) -> Array:
    r"""Return the gradient of :math:`L = \sum_i \langle g_i, y_i \rangle` by one input, by differences.

    Args:
        operator: The operator; it is run six times for every element of the input.
        inputs: Its inputs, floats as float64. They are not modified.
        output_grads: :math:`g_i` for every output; ``None`` for those on which L does not depend.
        index: Which input to differentiate by.
        step: Step relative to the size of a value; by default the cube root of float64's precision.

    Returns:
        float64, of the input's shape.

    Raises:
        OperatorError: The input is absent or not float64.
    """
    given = inputs[index]
    if given is None or given.dtype != np.float64:
        received = "absent" if given is None else f"of {given.dtype}"
        raise OperatorError(f"Input {index} of {name_of(operator)} is {received}; accepted is float64.")
    outputs = call_forward(operator, inputs)
    weights = {j: _flat(g) for j, g in enumerate(output_grads) if g is not None}
    scales, result = element_scales(given), np.zeros(given.shape)
    for place in np.ndindex(given.shape):
        direction = np.zeros(given.shape)
        direction[place] = scales[place]
        gone, slopes = slopes_along(
            lambda moved: call_forward(operator, moved),
            inputs,
            outputs,
            index,
            direction,
            step or default_step("float64"),
            list(weights),
        )
        result[place] = sum(float(np.dot(g, slopes[j].value)) for j, g in weights.items()) / gone[place]
    return result


class _Side:
    """Two points at one distance, and the outputs there."""

    def __init__(self, x: Array, wide: Floats, direction: Floats, distance: float) -> None:
        with np.errstate(over="ignore"):
            self.above = np.asarray(wide + distance * direction).astype(x.dtype)
            self.below = np.asarray(wide - distance * direction).astype(x.dtype)
        self.distance = distance
        self.gone = (self.above.astype(np.float64) - self.below.astype(np.float64)) / (2 * distance)
        self.ends: list[dict[int, Floats]] = []

    def rate(self, output: int) -> Floats:
        """Return the central difference."""
        return _minus(self.ends[0][output], self.ends[1][output]) / (2 * self.distance)

    def bend(self, output: int, centre: Floats) -> Floats:
        """Return how far apart the slopes from both sides are."""
        right, left = _minus(self.ends[0][output], centre), _minus(centre, self.ends[1][output])
        return np.abs(right - left) / self.distance


def _slope(sides: Sequence[_Side], output: int, centre: Floats) -> Slope:
    whole, half, quarter = (side.rate(output) for side in sides)
    value = (4 * half - whole) / 3
    met = [centre, value, *(end[output] for side in sides for end in side.ends)]
    return Slope(
        value=value,
        again=(4 * quarter - half) / 3,
        bend=sides[1].bend(output, centre),
        bend_again=sides[2].bend(output, centre),
        size=max(float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y))) for y in met),
    )


def _minus(first: Floats, second: Floats) -> Floats:
    """Subtract; what does not change contributes exactly 0, infinities too."""
    result: Floats = np.subtract(first, second, out=np.zeros_like(first), where=first != second)
    return result


def _flat(array: Any) -> Floats:
    """Return a copy, for an operator may use the memory of its outputs again."""
    return np.array(array, np.float64).reshape(-1)


def _alike(found: Array, before: Array) -> Array:
    if found.shape != before.shape:
        raise ContractViolation(
            f"An output has the shape {found.shape} where an input was moved a little, and {before.shape} before; the "
            f"shape of an output that is differentiated must not depend on values."
        )
    return found
