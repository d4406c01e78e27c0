"""Every derivative of every output by every element of the inputs: for operators that are small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deep500.operators.operator import OptionalArray
from deep500.operators.validation._problem import (
    Finding,
    Problem,
    refuse_not_finite,
    too_many_kinks,
    wide_gradient,
    worst_of,
    wrong_gradient,
)
from deep500.operators.validation.contract import ContractViolation, first_not_finite
from deep500.operators.validation.differences import EVALUATIONS_PER_SLOPE, Floats, element_scales, is_resolved
from deep500.operators.validation.report import Derivative, InputGradient

__all__ = ["check_jacobian", "jacobian_cost"]


def jacobian_cost(problem: Problem) -> int:
    """Return how often forward and backward run for the Jacobian."""
    elements = sum(problem.array(i).size for i in problem.by)
    return EVALUATIONS_PER_SLOPE * elements + sum(problem.outputs[j].size for j in problem.through)


@dataclass
class _Block:
    """The derivatives of one output by one input.

    All are multiplied by the size of the input's elements, so that they are in the unit of the output; shapes are
    ``[elements of the output, elements of the input]``.
    """

    output: int
    analytic: Floats
    numerical: Floats
    resolved: NDArray[np.bool_]
    moved: Floats
    limit: float

    def allowed(self, problem: Problem) -> Floats:
        """Return how far both may be apart."""
        if problem.tolerance is not None:
            given = problem.tolerance
            return 2 * self.limit + given.absolute * np.abs(self.moved) + given.relative * np.abs(self.numerical)
        return np.full(self.numerical.shape, 2 * self.limit + problem.backward_error * self.largest)

    @property
    def largest(self) -> float:
        """The largest derivative that could be taken."""
        return float(np.max(np.abs(self.numerical), initial=0.0, where=self.resolved))


def check_jacobian(problem: Problem, grads: Sequence[OptionalArray]) -> list[Finding]:
    """Compare every derivative.

    Args:
        problem: What to differentiate.
        grads: Gradients by the outputs, for the weighted sum of all derivatives.
    """
    rows = _analytic_rows(problem)
    weighted = problem.backward(grads)
    findings = []
    for i in problem.by:
        blocks = [_block(problem, i, *columns, rows[i, columns[0]]) for columns in _numerical_columns(problem, i)]
        finding = _compared(problem, i, blocks)
        _compare_weighted(problem, i, blocks, grads, weighted[i], finding)
        findings.append(finding)
    return findings


def _analytic_rows(problem: Problem) -> dict[tuple[int, int], Floats]:
    """Return what backward says for each element of each output alone, by input and output."""
    shapes = {(i, j): (problem.outputs[j].size, problem.array(i).size) for i in problem.by for j in problem.through}
    rows = {key: np.zeros(shape) for key, shape in shapes.items()}
    for j in problem.through:
        for element in np.flatnonzero(~problem.left_out(j)):
            grads: list[OptionalArray] = [None] * len(problem.outputs)
            single = np.zeros(problem.outputs[j].shape, problem.outputs[j].dtype)
            single.reshape(-1)[element] = 1
            grads[j] = single
            found = problem.backward(grads)
            for i in problem.by:
                rows[i, j][element] = wide_gradient(found[i], problem.array(i)).reshape(-1)
    return rows


def _numerical_columns(problem: Problem, index: int) -> Iterator[tuple[int, Floats, Floats, float]]:
    """Yield, for every output, its number, ``[4, outputs, inputs]`` of derivatives, how far each was moved, its size.

    The four are value, check, and both bends of a :class:`~deep500.operators.validation.differences.Slope`.
    """
    x = problem.array(index)
    scales, gone = element_scales(x).reshape(-1), np.zeros(x.size)
    columns = {j: np.zeros((4, problem.outputs[j].size, x.size)) for j in problem.through}
    sizes = dict.fromkeys(problem.through, 0.0)
    for element in range(x.size):
        direction = np.zeros(x.size)
        direction[element] = scales[element]
        moved, slopes = problem.slopes(index, direction.reshape(x.shape))
        gone[element] = moved.reshape(-1)[element]
        for j, slope in slopes.items():
            columns[j][:, :, element] = slope.value, slope.again, slope.bend, slope.bend_again
            sizes[j] = max(sizes[j], slope.size)
    for j in problem.through:
        yield j, columns[j], gone, sizes[j]


def _block(
    problem: Problem, index: int, output: int, columns: Floats, gone: Floats, size: float, rows: Floats
) -> _Block:
    changes = np.sum(np.abs(columns[0]), axis=1, where=np.isfinite(columns[0]))
    limit = problem.limit(columns[0], columns[1], size, max(size, float(np.max(changes, initial=0.0))))
    resolved = is_resolved(columns[0], columns[1], columns[2], columns[3], limit) & (gone != 0)
    place = first_not_finite(rows)
    if place is not None:
        x, y = problem.array(index), problem.outputs[output]
        element = [int(k) for k in np.unravel_index(place[1], x.shape)]
        through = [int(k) for k in np.unravel_index(place[0], y.shape)]
        raise ContractViolation(
            f"{problem.name}.backward returned {rows[place]} as derivative of output {output} at {through} by input "
            f"{index} at {element}, although inputs and outputs are finite."
        )
    return _Block(output, rows * gone, columns[0], resolved, gone, limit)


def _compared(problem: Problem, index: int, blocks: Sequence[_Block]) -> Finding:
    x = problem.array(index)
    compared = wrong = 0
    excluded = np.zeros(x.size, np.bool_)
    resolution, worst, hint = 0.0, None, ""
    for block in blocks:
        allowed = block.allowed(problem)
        with np.errstate(invalid="ignore"):
            error = np.where(block.resolved, np.abs(block.analytic - block.numerical), 0.0)
        is_wrong = error > allowed
        compared += int(block.resolved.sum())
        wrong += int(is_wrong.sum())
        excluded |= ~block.resolved[~problem.left_out(block.output)].all(axis=0)
        if block.largest > 0:
            resolution = max(resolution, float(allowed.max()) / block.largest)
        if not error.size or not block.resolved.any():
            continue
        row, column = np.unravel_index(worst_of(error, allowed), error.shape)
        found = _derivative(problem, index, block, int(row), int(column), float(allowed[row, column]))
        if worst is None or found.error * worst.allowed > worst.error * found.allowed:
            worst, hint = found, _hint(block, is_wrong)
    row_of_report = InputGradient(
        index,
        x.dtype.name,
        x.shape,
        compared,
        int(excluded.sum()),
        wrong,
        worst,
        resolution,
        problem.step,
        problem.dtype,
    )
    finding = Finding(row_of_report, is_resolved=2 * row_of_report.excluded <= x.size)
    if not finding.is_resolved:
        finding.failures.append(too_many_kinks(problem.name, index, row_of_report.excluded, x.size, "elements"))
    elif wrong and worst is not None:
        finding.failures.append(wrong_gradient(problem.name, row_of_report, worst, hint))
    return finding


def _derivative(problem: Problem, index: int, block: _Block, row: int, column: int, allowed: float) -> Derivative:
    x, y, gone = problem.array(index), problem.outputs[block.output], block.moved[column]
    return Derivative(
        index,
        tuple(int(k) for k in np.unravel_index(column, x.shape)),
        block.output,
        tuple(int(k) for k in np.unravel_index(row, y.shape)),
        float(block.analytic[row, column] / gone),
        float(block.numerical[row, column] / gone),
        allowed / abs(float(gone)),
    )


def _hint(block: _Block, is_wrong: NDArray[np.bool_]) -> str:
    """Return what all wrong derivatives have in common, if anything."""
    analytic, numerical = block.analytic[is_wrong], block.numerical[is_wrong]
    if analytic.size < 2 or (numerical == 0).any():
        return ""
    if not analytic.any():
        return " It is 0 at all of them."
    ratios = analytic / numerical
    middle = float(np.median(ratios))
    if np.abs(ratios - middle).max() > 1e-3 * abs(middle):
        return ""
    return f" It is {middle:.4g} times what it should be at all of them."


def _compare_weighted(
    problem: Problem,
    index: int,
    blocks: Sequence[_Block],
    grads: Sequence[OptionalArray],
    gradient: OptionalArray,
    finding: Finding,
) -> None:
    """Compare the gradient of the weighted outputs with the weighted derivatives: backward has to be linear."""
    x = problem.array(index)
    found = wide_gradient(gradient, x).reshape(-1)
    refuse_not_finite(problem, index, found.reshape(x.shape))
    expected, numerical, allowed = np.zeros(x.size), np.zeros(x.size), np.zeros(x.size)
    gone = blocks[0].moved if blocks else np.ones(x.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        for block in blocks:
            weights = np.asarray(grads[block.output], np.float64).reshape(-1)
            expected += weights @ block.analytic / gone
            numerical += weights @ np.where(block.resolved, block.numerical, block.analytic) / gone
            allowed += np.abs(weights) @ block.allowed(problem) / np.abs(gone)
    finding.analytic, finding.numerical = found.reshape(x.shape), numerical.reshape(x.shape)
    error = np.abs(found - expected)
    beyond = np.flatnonzero(~(error <= allowed) & (gone != 0))
    if beyond.size:
        place = [int(k) for k in np.unravel_index(int(beyond[0]), x.shape)]
        finding.failures.append(
            f"{problem.name}.backward is not linear in the gradients by the outputs: by input {index} at {place} it "
            f"returns {found[beyond[0]]:.9g} for random ones; its results for the single elements of the outputs add "
            f"up to {expected[beyond[0]]:.9g}. Does it multiply by every gradient, once?"
        )
