r"""The gradients of an operator against differences of its forward.

**How.** Where all derivatives of all outputs can be had by at most :data:`MOST_EVALUATIONS` runs of forward and
backward, they all are compared: the Jacobian. Else derivatives along random directions are, a number for each, in which
an error of any element shows; of a wrong one, an element is found by halving the direction. How derivatives are taken,
and how kinks are recognised, is said in :mod:`deep500.operators.validation.differences`.

**In which floats.** Float inputs are converted to float64 where the operator takes that, and both its float64 gradients
and those in the given floats are checked: the latter against the former. An operator without a float64 variant is
differentiated in float32, with a step and limits for float32, and likewise in 16 bits.

**What is allowed.** A derivative times the size of its input may be off by :math:`2 \ell + \gamma J`: :math:`\ell` is
how far differences of neighbouring steps lie apart (at most what :math:`\gamma` makes of it, at least what eight
roundings do), :math:`J` the largest derivative of the output, and :math:`\gamma` the
:func:`~deep500.measure.tolerance.tolerance` for the dtype and the length of the reductions, with four roundings added
for 16-bit floats (see :func:`~deep500.operators.validation.variants.backward_error`). Along a direction, errors of
different elements add up by their squares. The report says from which relative error on an error is seen, and a note is
added where that is more than 1 %.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import OperatorError
from deep500.core.random import random_stream
from deep500.core.texts import shown
from deep500.measure.metric_test import MetricValue, measure_metrics
from deep500.measure.metrics.diff_heatmap import DiffHeatmap
from deep500.measure.tolerance import Tolerance
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.validation._directions import block_differences, check_directions
from deep500.operators.validation._jacobian import check_jacobian, jacobian_cost
from deep500.operators.validation._narrow import check_narrow
from deep500.operators.validation._problem import Finding, Problem, wide_gradient, widened
from deep500.operators.validation._repeatable import check_repeatable
from deep500.operators.validation.comparison import as_tolerance
from deep500.operators.validation.contract import (
    as_inputs,
    first_not_finite,
    is_differentiable,
    is_float,
    name_of,
    run_backward,
    run_forward,
)
from deep500.operators.validation.differences import default_step
from deep500.operators.validation.report import GradientReport, settled
from deep500.operators.validation.variants import Variant, coarsest, default_length, widest

__all__ = ["MOST_EVALUATIONS", "test_op_gradient"]

#: Up to so many runs of forward and backward, the whole Jacobian is compared.
MOST_EVALUATIONS = 4000

#: Number of random directions for each input where nothing else is asked for.
_DIRECTIONS = 4

#: Steps, in multiples of the default one, that are tried where it shows too little.
_LARGER_STEPS = (8.0, 64.0)

#: Errors from this share of the largest derivative on should be seen.
_EXPECTED_RESOLUTION = 0.01


def test_op_gradient(
    op: Operator,
    inputs: Sequence[Any],
    grad_inputs: Sequence[Any] | None = None,
    eps: float | None = None,
    metrics: Sequence[Any] = (),
    *,
    tolerance: Tolerance | float | None = None,
    reduction_length: int | None = None,
    step: float | None = None,
    directions: int | None = None,
    seed: int = 0,
    skip_inputs: Collection[int] = (),
    skip_outputs: Collection[int] = (),
    require_finite: bool = True,
    heatmap: str | PathLike[str] | None = None,
    raise_on_failure: bool = True,
) -> GradientReport:
    """Check an operator's backward against differences of its forward; see the module for what is done and allowed.

    Args:
        op: The operator: one of the library, a custom one, or what ``custom_op_from_native`` or ``as_operator`` of a
            framework returns.
        inputs: A list, one array an input.
        grad_inputs: Gradients by the outputs to weight them with; by default random ones.
        eps: Another name of ``step``.
        metrics: Run on the backward; those that compare do it with the numerical gradients.
        tolerance: What is allowed beside the uncertainty of the differences: a number is relative to each derivative.
        reduction_length: Products in the longest sum; by default the number of elements of the largest tensor.
        step: Step of the differences relative to the size of the values.
        directions: Number of random directions for each input; instead of the Jacobian where it is given.
        seed: Seed of what is drawn.
        skip_inputs: Inputs by which the operator is not differentiable by agreement, such as running statistics.
        skip_outputs: Outputs through which gradients do not flow.
        require_finite: Whether NaN and infinities in outputs are wrong; else NaNs are left out, and infinities have to
            be constant.
        heatmap: File for a picture of the differences, ``.png`` or ``.svg``.
        raise_on_failure: Whether what is wrong is an error; else the report says it.

    Raises:
        OperatorError: The gradients are wrong, or cannot be checked with these inputs.
    """
    question = _Question(
        op, as_inputs(op, inputs), name_of(op), _as_weights(grad_inputs),
        None if tolerance is None else as_tolerance(tolerance), reduction_length, step or eps, directions, seed,
        frozenset(skip_inputs), frozenset(skip_outputs), require_finite, heatmap,
    )  # fmt: skip
    _check(question)
    try:
        report = _validated(question, metrics)
    except OperatorError as error:
        if raise_on_failure:
            raise
        report = GradientReport(name_of(op), failures=(str(error),))
    return settled(report, raise_on_failure)


test_op_gradient.__test__ = False  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Question:
    """What was asked; see :func:`test_op_gradient`."""

    op: Operator
    given: list[OptionalArray]
    name: str
    weights: list[OptionalArray] | None
    tolerance: Tolerance | None
    length: int | None
    step: float | None
    directions: int | None
    seed: int
    skip_inputs: frozenset[int]
    skip_outputs: frozenset[int]
    require_finite: bool
    heatmap: str | PathLike[str] | None

    def problem(self, inputs: list[OptionalArray], outputs: tuple[Array, ...]) -> Problem:
        """Return what to differentiate."""
        by = tuple(i for i, x in enumerate(inputs) if is_float(x) and i not in self.skip_inputs)
        through = tuple(j for j, y in enumerate(outputs) if self._flows_through(j, y))
        coarse = coarsest([*(inputs[i] for i in by), *(outputs[j] for j in through)])
        return Problem(
            self.op, self.name, inputs, outputs, by if through else (), through, coarse,
            self.length or default_length([*inputs, *outputs]), self.step or default_step(coarse),
            self.tolerance, self.weights,
        )  # fmt: skip

    def _flows_through(self, index: int, output: Array) -> bool:
        if not is_float(output) or index in self.skip_outputs:
            return False
        return self.weights is None or (index < len(self.weights) and self.weights[index] is not None)


def _as_weights(grads: Any) -> list[OptionalArray] | None:
    """Return gradients by the outputs that a user gave."""
    if grads is None:
        return None
    if not isinstance(grads, (list, tuple)):
        raise OperatorError(f"grad_inputs was given as {shown(grads)}; accepted is a list, one array an output.")
    return [None if g is None else np.asarray(g) for g in grads]


def _check(question: _Question) -> None:
    """Check what was given, before anything runs."""
    if question.directions is not None:
        check_count("The number of directions", question.directions, least=1, error=OperatorError)
    if question.length is not None:
        check_count("The reduction length", question.length, least=1, error=OperatorError)
    if question.step is not None and not 0 < question.step < 1:
        raise OperatorError(f"The step is {shown(question.step)}; accepted are numbers between 0 and 1.")
    if question.heatmap is not None:
        DiffHeatmap(question.heatmap).begin()
    if not is_differentiable(question.op):
        raise OperatorError(f"{question.name} cannot be differentiated: it has no backward.")
    for i, x in enumerate(question.given):
        if x is None or i in question.skip_inputs:
            continue
        if x.dtype.kind == "c":
            raise OperatorError(f"Input {i} of {question.name} is of {x.dtype.name}; accepted are real floats.")
        place = first_not_finite(x) if is_float(x) else None
        if place is not None:
            raise OperatorError(
                f"Input {i} of {question.name} is {x[place]} at {list(place)}; differences need finite inputs."
            )


def _validated(question: _Question, metrics: Sequence[Any]) -> GradientReport:
    op, name, given = question.op, question.name, question.given
    outputs = run_forward(op, given)
    _check_outputs(question, outputs)
    narrow = question.problem(given, outputs)
    stream = random_stream(question.seed, "operators", "gradient")
    grads = narrow.draw(stream)
    gradients = run_backward(op, grads, given, outputs)
    repeated = check_repeatable(op, given, outputs, grads, gradients, narrow.length)
    if repeated.failures:
        return GradientReport(name, repeated.failures, repeated.notes, is_deterministic=False)
    if not narrow.by:
        why = "no input" if narrow.through else "no output"
        note = f"There is nothing to differentiate: {why} holds floats that are not skipped."
        return GradientReport(name, (), (*repeated.notes, note), is_deterministic=repeated.is_repeatable)
    variant = widest(op, given)
    problem, method, findings = _solved(question, variant, grads, stream)
    failures = [text for finding in findings for text in finding.failures]
    if variant.is_wider and not failures:
        failures += check_narrow(problem, given, outputs, grads, gradients)
    measured = _measured(question, outputs, grads, findings, metrics)
    if question.heatmap is not None:
        _draw(problem, findings, question.heatmap, stream)
    return GradientReport(
        name, tuple(failures), (*repeated.notes, *_notes(problem, variant, findings)), method, problem.dtype,
        problem.evaluations, tuple(finding.row for finding in findings), repeated.is_repeatable, measured,
    )  # fmt: skip


def _solved(
    question: _Question, variant: Variant, grads: Sequence[OptionalArray], stream: np.random.Generator
) -> tuple[Problem, str, list[Finding]]:
    """Compare by the method that suits, and once more in another way by inputs where that says too little.

    Where differences in float64 do not settle, the operator may compute in float32; they are taken as in that. Where
    rounding hides errors of 1 %, larger steps are tried, for the values of an input may be small by chance.
    """
    problem = question.problem(variant.inputs, variant.outputs)
    is_small = question.directions is None and jacobian_cost(problem) <= MOST_EVALUATIONS

    def compared(asked: Problem) -> list[Finding]:
        if is_small:
            return check_jacobian(asked, widened(grads, variant.outputs))
        return check_directions(asked, question.directions or _DIRECTIONS, stream)

    findings = {finding.row.index: finding for finding in compared(problem)}
    others = [("float32", 1.0)] if problem.dtype == "float64" else []
    others += [(problem.dtype, factor) for factor in _LARGER_STEPS]
    for dtype, factor in others if question.step is None else ():
        is_same = dtype == problem.dtype
        doubtful = tuple(i for i, finding in findings.items() if _says_little(finding, is_same))
        if doubtful:
            step = default_step(dtype) * factor
            asked = replace(problem, by=doubtful, dtype=dtype, step=step, evaluations=0)
            for finding in compared(asked):
                findings[finding.row.index] = _better(findings[finding.row.index], finding)
            problem.evaluations += asked.evaluations
    return problem, "Jacobian" if is_small else "random directions", list(findings.values())


def _says_little(finding: Finding, is_same_dtype: bool) -> bool:
    """Whether differences with a larger step, or those as in another dtype, could say more."""
    if is_same_dtype:
        return finding.is_resolved and finding.row.resolution > _EXPECTED_RESOLUTION
    return not finding.is_resolved


def _better(first: Finding, second: Finding) -> Finding:
    if not second.is_resolved or second.row.excluded > first.row.excluded:
        return first
    return second if not first.is_resolved or second.row.resolution < first.row.resolution else first


def _check_outputs(question: _Question, outputs: Sequence[Array]) -> None:
    for j, y in enumerate(outputs):
        place = first_not_finite(y)
        if place is not None and question.require_finite and j not in question.skip_outputs:
            raise OperatorError(
                f"{question.name}.forward returned {y[place]} as output {j} at {list(place)}, although all inputs are "
                f"finite. Choose inputs within its domain where that is right, or require_finite=False."
            )
    for j, g in enumerate(question.weights or ()):
        if g is not None and (j >= len(outputs) or g.shape != outputs[j].shape):
            wanted = f"that of the output, {outputs[j].shape}" if j < len(outputs) else f"{len(outputs)} gradients"
            raise OperatorError(f"grad_inputs[{j}] of {question.name} has the shape {g.shape}; accepted is {wanted}.")


def _notes(problem: Problem, variant: Variant, findings: Sequence[Finding]) -> list[str]:
    notes = []
    if variant.refusal and not variant.is_wider:
        notes.append(f"Differences were taken in {problem.dtype}, since {variant.refusal}")
    for row in (finding.row for finding in findings):
        if row.precision != problem.dtype:
            notes.append(
                f"By input {row.index}, its results have no more digits than {row.precision}, although they are of "
                f"{problem.dtype}; differences were taken as in {row.precision}."
            )
        if row.resolution > _EXPECTED_RESOLUTION:
            notes.append(
                f"By input {row.index}, errors below {row.resolution:.2g} of the largest derivative are not seen. Give "
                f"the reduction_length of the operator, another step, smaller tensors, or an operator in wider floats."
            )
    return notes


def _measured(
    question: _Question,
    outputs: tuple[Array, ...],
    grads: Sequence[OptionalArray],
    findings: Sequence[Finding],
    metrics: Sequence[Any],
) -> tuple[MetricValue, ...]:
    """Run the metrics on the backward; what is compared are the gradients by the inputs that were differentiated."""
    if not metrics:
        return ()
    by = [finding.row.index for finding in findings]
    numerical = [finding.numerical for finding in findings]

    def run() -> list[Array]:
        found = run_backward(question.op, grads, question.given, outputs)
        return [wide_gradient(found[i], np.asarray(question.given[i])) for i in by]

    known = None if any(n is None for n in numerical) else numerical
    return tuple(measure_metrics(metrics, run, inputs=question.given, reference_outputs=known))


def _draw(
    problem: Problem, findings: Sequence[Finding], path: str | PathLike[str], stream: np.random.Generator
) -> None:
    """Draw how far gradients and differences lie apart: element by element, or along directions within blocks."""
    values = {}
    for finding in findings:
        if finding.analytic is not None and finding.numerical is not None:
            apart = np.asarray(np.abs(finding.analytic - finding.numerical))
        else:
            apart = block_differences(problem, finding.row.index, stream)
        values[f"gradient by input {finding.row.index}"] = apart
    picture = DiffHeatmap(path)
    picture.colours = "|gradient − numerical|"
    picture.finish(values)
