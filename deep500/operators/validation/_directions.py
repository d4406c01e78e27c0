r"""Derivatives along random directions: for operators that are too large for every single derivative.

Along a random direction :math:`v` and for random :math:`g`, which are 0 where an output has a kink on the way,

.. math:: \Bigl\langle \frac{\partial \langle g, y \rangle}{\partial x}, v \Bigr\rangle
    = \langle g, D_v y \rangle

is compared, one number. An error in any element shows in it, for another direction by another amount. Where one is
found, halves of the direction lead to an element that is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deep500.operators.operator import OptionalArray
from deep500.operators.validation._problem import (
    Finding,
    Problem,
    refuse_not_finite,
    too_many_kinks,
    wide_gradient,
    wrong_gradient,
)
from deep500.operators.validation.differences import Floats, element_scales, is_resolved
from deep500.operators.validation.report import Derivative, InputGradient

__all__ = ["block_differences", "check_directions"]

#: Shares of the elements that are moved instead of all, until most outputs meet no kink on the way.
_SHARES = (1 / 8, 1 / 64, 1 / 512, 1 / 4096)

#: Rows and columns of blocks in a heat map.
_BLOCKS_A_SIDE = 8


@dataclass
class _Trial:
    """One direction.

    Attributes:
        direction: The direction, as the input's dtype allows to go it.
        grads: The gradients by the outputs, 0 at kinks.
        gradient: What backward returns for them, flat.
        numerical: The derivative by differences.
        uncertainty: How far that may be off.
        excluded: How many elements of the outputs have a kink on the way.
        moved: How many changed.
    """

    direction: Floats
    grads: list[OptionalArray]
    gradient: Floats
    numerical: float
    uncertainty: float
    excluded: int
    moved: int

    @property
    def analytic(self) -> float:
        """The derivative by backward."""
        return float(np.dot(self.gradient, self.direction.reshape(-1)))

    @property
    def size(self) -> float:
        """Size of the derivative along directions like this one: the root of the sum of the squared terms."""
        return float(np.linalg.norm(self.gradient * self.direction.reshape(-1)))

    @property
    def is_resolved(self) -> bool:
        """Whether at least half of the outputs that changed have no kink on the way."""
        return 2 * self.excluded <= self.moved

    def allowed(self, problem: Problem) -> float:
        """Return how far both derivatives may be apart."""
        if problem.tolerance is None:
            # Errors of the elements are independent of one another, so their squares add up.
            return self.uncertainty + problem.backward_error * self.size
        given = problem.tolerance
        moved = float(np.linalg.norm(self.direction))
        return self.uncertainty + given.absolute * moved + given.relative * abs(self.numerical)


def check_directions(problem: Problem, count: int, stream: np.random.Generator) -> list[Finding]:
    """Compare derivatives along random directions of every input.

    Args:
        problem: What to differentiate.
        count: Number of directions of each input.
        stream: Where random numbers come from.
    """
    return [_checked(problem, i, [_resolved_trial(problem, i, stream) for _ in range(count)]) for i in problem.by]


def block_differences(problem: Problem, index: int, stream: np.random.Generator) -> Floats:
    """Return how far both derivatives along directions within a block are apart, at all elements of the block.

    The blocks divide the last two dimensions into 8 rows and 8 columns, or the only dimension into 64.

    Args:
        problem: What to differentiate.
        index: By which input.
        stream: Where random numbers come from.
    """
    x = problem.array(index)
    labels, result = _block_labels(x.shape), np.zeros(x.size)
    grads = problem.draw(stream)
    gradient = wide_gradient(problem.backward(grads)[index], x)
    for label in np.unique(labels):
        keep = labels == label
        trial = _trial(problem, index, _direction(problem, index, stream) * keep, grads, gradient)
        result[keep.reshape(-1)] = abs(trial.analytic - trial.numerical) / max(float(np.linalg.norm(keep)), 1.0)
    return result.reshape(x.shape)


def _resolved_trial(problem: Problem, index: int, stream: np.random.Generator) -> _Trial:
    """Return one that meets few kinks; the first where there is none."""
    direction, grads = _direction(problem, index, stream), problem.draw(stream)
    first = trial = _trial(problem, index, direction, grads)
    for share in _SHARES:
        if trial.is_resolved:
            return trial
        keep = stream.random(direction.shape) < share
        if not np.any(keep):
            break
        trial = _trial(problem, index, direction * keep, grads)
    return trial if trial.is_resolved else first


def _direction(problem: Problem, index: int, stream: np.random.Generator) -> Floats:
    scales = element_scales(problem.array(index))
    return np.asarray(scales * stream.standard_normal(scales.shape))


def _trial(
    problem: Problem,
    index: int,
    direction: Floats,
    grads: Sequence[OptionalArray],
    gradient: Floats | None = None,
) -> _Trial:
    """Compare along a direction; ``gradient`` is what backward returns for ``grads`` where that is known."""
    x = problem.array(index)
    direction, slopes = problem.slopes(index, direction)
    masked, excluded, moved, numerical, variance = list(grads), 0, 0, 0.0, 0.0
    for j, slope in slopes.items():
        limit = problem.limit(slope.value, slope.again, slope.size, slope.size)
        good = is_resolved(slope.value, slope.again, slope.bend, slope.bend_again, limit)
        kinked = ~good & ~problem.left_out(j)
        excluded += int(kinked.sum())
        moved += int((((slope.value != 0) & good) | kinked).sum())
        given = grads[j]
        assert given is not None
        kept = np.where(good.reshape(given.shape), given, np.zeros_like(given))
        masked[j] = kept
        weights = kept.astype(np.float64).reshape(-1)
        numerical += float(np.dot(weights[good], slope.value[good]))
        variance += (2 * limit) ** 2 * float(np.dot(weights, weights))
    if gradient is None or excluded:
        gradient = wide_gradient(problem.backward(masked)[index], x)
    refuse_not_finite(problem, index, gradient)
    return _Trial(direction, masked, gradient.reshape(-1), numerical, float(np.sqrt(variance)), excluded, moved)


def _checked(problem: Problem, index: int, trials: Sequence[_Trial]) -> Finding:
    x = problem.array(index)
    beyond = [t for t in trials if not abs(t.analytic - t.numerical) <= t.allowed(problem)]
    resolution = max((t.allowed(problem) / t.size for t in trials if t.size), default=0.0)
    excluded = max((t.excluded for t in trials), default=0)
    worst = None
    unresolved = next((t for t in trials if not t.is_resolved), None)
    if beyond and unresolved is None:
        farthest = max(beyond, key=lambda t: abs(t.analytic - t.numerical) / (t.allowed(problem) or 1.0))
        worst = _narrowed_down(problem, index, farthest)
    row = InputGradient(
        index, x.dtype.name, x.shape, len(trials), excluded, len(beyond), worst, resolution, problem.step, problem.dtype
    )
    finding = Finding(row, is_resolved=unresolved is None)
    if unresolved is not None:
        what = "elements of the outputs"
        finding.failures.append(too_many_kinks(problem.name, index, unresolved.excluded, unresolved.moved, what))
    elif worst is not None:
        finding.failures.append(
            wrong_gradient(problem.name, row, worst, " They are derivatives along random directions.")
        )
    return finding


def _narrowed_down(problem: Problem, index: int, trial: _Trial) -> Derivative:
    """Return an element whose derivative is wrong: of both halves of a direction, that which is further off."""
    support = np.flatnonzero(trial.direction)
    current = trial
    while support.size > 1:
        halves = [support[: support.size // 2], support[support.size // 2 :]]
        parts = [_restricted(trial.direction, half) for half in halves]
        tried = [_trial(problem, index, part, trial.grads, trial.gradient.reshape(part.shape)) for part in parts]
        off = [abs(t.analytic - t.numerical) for t in tried]
        support, current = (halves[0], tried[0]) if off[0] >= off[1] else (halves[1], tried[1])
    place = int(support[0])
    gone = float(current.direction.reshape(-1)[place])
    return Derivative(
        index,
        tuple(int(k) for k in np.unravel_index(place, trial.direction.shape)),
        None,
        None,
        float(current.gradient[place]),
        current.numerical / gone if gone else 0.0,
        current.allowed(problem) / abs(gone) if gone else 0.0,
    )


def _restricted(direction: Floats, support: np.ndarray[tuple[int, ...], np.dtype[np.intp]]) -> Floats:
    result = np.zeros(direction.size)
    result[support] = direction.reshape(-1)[support]
    return result.reshape(direction.shape)


def _block_labels(shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    if len(shape) < 2:
        size = int(np.prod(shape))
        most = _BLOCKS_A_SIDE**2
        return (np.arange(size) * min(most, size) // max(size, 1)).reshape(shape)
    rows, columns = (np.arange(size) * min(_BLOCKS_A_SIDE, size) // max(size, 1) for size in shape[-2:])
    return np.broadcast_to(rows[:, None] * _BLOCKS_A_SIDE + columns, shape)
