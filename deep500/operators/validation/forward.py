"""The outputs of an operator against a reference.

**The reference** is an array for each output, a function of NumPy arrays, another operator, or (where none is given)
the operator itself in float64. Functions and operators are given the inputs in float64, to which they are converted
exactly, so that the reference is as good as exact; an operator that does not take float64 gets float32, or what was
given.

**What is allowed** is, for every output, what its dtype and the length of the reductions allow, relative to the largest
element of the reference (:func:`deep500.measure.tolerance.tolerance`). By default the reductions are taken to be as
long as the largest tensor has elements; the ``reduction_length`` of the operator makes the check sharper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import OperatorError
from deep500.core.texts import message_of, shown
from deep500.measure.metric_test import MetricValue, measure_metrics
from deep500.measure.metrics.diff_heatmap import DiffHeatmap
from deep500.measure.tolerance import Tolerance
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.validation._repeatable import check_repeatable
from deep500.operators.validation.comparison import allowed_for, as_tolerance, compare, number
from deep500.operators.validation.contract import (
    REFUSALS,
    as_inputs,
    call_forward,
    first_not_finite,
    is_whole,
    name_of,
    run_forward,
)
from deep500.operators.validation.report import ForwardReport, OutputCheck, settled
from deep500.operators.validation.variants import converted, default_length, float_names, widest

__all__ = ["test_op_forward"]

#: Arrays, a function of arrays, an operator, or ``None`` for the operator itself.
_Reference = Sequence[Any] | Array | Callable[..., Any] | Operator | None


def test_op_forward(
    op: Operator,
    inputs: Sequence[Any],
    reference: _Reference = None,
    metrics: Sequence[Any] = (),
    *,
    reference_outputs: Sequence[Any] | None = None,
    tolerance: Tolerance | float | None = None,
    reduction_length: int | None = None,
    heatmap: str | PathLike[str] | None = None,
    raise_on_failure: bool = True,
) -> ForwardReport:
    """Check an operator's outputs; see the module for what they are compared with and what is allowed.

    It is also checked that the operator leaves its inputs as they are, returns the same when it runs again, and returns
    no NaN or infinity where the reference has none (without a reference: where all inputs are finite).

    Args:
        op: The operator: one of the library, a custom one, or what ``custom_op_from_native`` or ``as_operator`` of a
            framework returns.
        inputs: A list, one array an input, ``None`` where one is absent.
        reference: What the outputs should be: an array each, a function of arrays, an operator, or ``None``.
        metrics: Such as ``[d5.L2Error()]``, run on the forward; their values are in the report.
        reference_outputs: Another name of ``reference``.
        tolerance: What is allowed; a number is relative to the largest element of the reference.
        reduction_length: Products in the longest sum.
        heatmap: File for a picture of the differences, ``.png`` or ``.svg``.
        raise_on_failure: Whether what is wrong is an error; else the report says it.

    Raises:
        OperatorError: The outputs are wrong.

    Example:
        >>> from deep500.operators.library.exp import Exp
        >>> test_op_forward(Exp(), [np.array([0.0, 1.0], np.float32)], np.exp).passed
        True
    """
    arrays, name = as_inputs(op, inputs), name_of(op)
    if reference is not None and reference_outputs is not None:
        raise OperatorError(f"{name}: a reference and reference_outputs were given; accepted is one of both.")
    wanted = reference_outputs if reference is None else reference
    if reduction_length is not None:
        check_count("The reduction length", reduction_length, least=1, error=OperatorError)
    if tolerance is not None:
        as_tolerance(tolerance)
    drawn = [] if heatmap is None else [DiffHeatmap(heatmap)]
    try:
        report = _validated(op, arrays, wanted, tolerance, reduction_length, [*metrics, *drawn])
    except OperatorError as error:
        if raise_on_failure:
            raise
        report = ForwardReport(name, failures=(str(error),))
    return settled(report, raise_on_failure)


test_op_forward.__test__ = False  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Expected:
    """What the outputs should be.

    Attributes:
        outputs: An array each.
        text: Where they come from, for the report.
        notes: What to know about them.
        failures: What is wrong already.
        is_own: Whether they are the operator's own, so that what is not finite in both is wrong too.
    """

    outputs: list[Array]
    text: str
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    is_own: bool = False


def _validated(
    op: Operator,
    inputs: list[OptionalArray],
    reference: _Reference,
    tolerance: Tolerance | float | None,
    length: int | None,
    metrics: Sequence[Any],
) -> ForwardReport:
    name, outputs = name_of(op), run_forward(op, inputs)
    expected = _expected(op, inputs, outputs, reference)
    longest = length or default_length([*inputs, *outputs])
    repeated = check_repeatable(op, inputs, outputs, None, (), longest)
    failures = [*repeated.failures, *expected.failures]
    if len(outputs) != len(expected.outputs):
        failures.append(f"{name}.forward returned {len(outputs)} outputs; {expected.text} has {len(expected.outputs)}.")
    are_finite = all(x is None or first_not_finite(x) is None for x in inputs)
    checks = []
    for j, (y, wanted) in enumerate(zip(outputs, expected.outputs)):
        found = _mismatch(name, j, y, wanted, expected, are_finite)
        comparison = None
        if not found:
            comparison = compare(y, wanted, allowed_for(tolerance, y, wanted, longest))
            if not comparison.is_close:
                of = "element differs" if comparison.count == 1 else "elements differ"
                found = (
                    f"Output {j} of {name} is wrong: {comparison.count} of {y.size} {of} from {expected.text} by more "
                    f"than allowed; {comparison}."
                )
        failures += [found] if found else []
        checks.append(OutputCheck(j, y.dtype.name, y.shape, comparison))
    measured, notes = _measured(op, inputs, expected.outputs, outputs, metrics)
    return ForwardReport(
        name, tuple(failures), (*repeated.notes, *expected.notes, *notes), expected.text, tuple(checks),
        repeated.is_repeatable, measured,
    )  # fmt: skip


def _expected(
    op: Operator, inputs: list[OptionalArray], outputs: tuple[Array, ...], reference: _Reference
) -> _Expected:
    if reference is None:
        variant = widest(op, inputs)
        if variant.is_wider:
            return _Expected([*variant.outputs], f"itself in {variant.dtype}", is_own=True)
        why = f", since {variant.refusal}" if variant.refusal else ""
        note = (
            f"There is no reference: it was compared with itself{why}; only that it repeats, is finite, and leaves its "
            f"inputs alone was checked."
        )
        return _Expected([*outputs], "itself", (note,), is_own=True)
    if isinstance(reference, Operator):
        variant = widest(reference, inputs)
        text = f"{name_of(reference)} in {variant.dtype}"
        return _Expected([*variant.outputs], text, failures=_other_dtypes(op, reference, inputs, outputs))
    if callable(reference):
        wide = converted(inputs, "float64")
        results = reference(*wide)
        listed = list(results) if isinstance(results, (tuple, list)) else [results]
        text = f"{getattr(reference, '__name__', type(reference).__name__)} in {float_names(wide)}"
    else:
        listed = [reference] if isinstance(reference, np.ndarray) else list(reference)
        text = "the reference"
    try:
        return _Expected([np.asarray(y) for y in listed], text)
    except (TypeError, ValueError) as error:
        raise OperatorError(f"The reference of {name_of(op)} is no arrays: {message_of(error)}") from error


def _other_dtypes(
    op: Operator, reference: Operator, inputs: Sequence[OptionalArray], outputs: Sequence[Array]
) -> tuple[str, ...]:
    """Return what is wrong about dtypes: those of the reference for the very same inputs, where it takes them."""
    try:
        wanted = call_forward(reference, inputs)
    except REFUSALS:
        return ()  # then there is nothing to compare them with
    return tuple(
        f"Output {j} of {name_of(op)} is of {y.dtype.name}; that of {name_of(reference)} is of {w.dtype.name}."
        for j, (y, w) in enumerate(zip(outputs, wanted))
        if y.dtype != w.dtype
    )


def _mismatch(name: str, index: int, y: Array, wanted: Array, expected: _Expected, are_finite: bool) -> str:
    """Return why an output cannot be compared, or what it has that is not finite; an empty text for nothing."""
    if wanted.dtype.kind in "OUSMm":
        raise OperatorError(f"The reference of output {index} of {name} is {shown(wanted)}; accepted are numbers.")
    if y.shape != wanted.shape:
        return f"Output {index} of {name} has the shape {y.shape}; that of {expected.text} has {wanted.shape}."
    if is_whole(y.dtype) != is_whole(wanted.dtype):
        return f"Output {index} of {name} is of {y.dtype.name}; that of {expected.text} is of {wanted.dtype.name}."
    if is_whole(y.dtype):
        return ""
    wrong = ~np.isfinite(y)
    if not (expected.is_own and are_finite):
        wrong &= np.isfinite(wanted)
    place = first_not_finite(np.where(wrong, np.nan, 0.0))
    if place is None:
        return ""
    why = "although all inputs are finite" if expected.is_own else f"where {expected.text} has {number(wanted[place])}"
    return f"Output {index} of {name} is {y[place]} at {list(place)}, {why} ({int(wrong.sum())} of {y.size} are such)."


def _measured(
    op: Operator,
    inputs: list[OptionalArray],
    expected: Sequence[Array],
    outputs: Sequence[Array],
    metrics: Sequence[Any],
) -> tuple[tuple[MetricValue, ...], tuple[str, ...]]:
    if not metrics:
        return (), ()
    if [y.shape for y in outputs] != [y.shape for y in expected]:
        return (), ("Metrics and pictures were left out, since outputs and reference have other shapes.",)
    found = measure_metrics(
        metrics, lambda: list(call_forward(op, inputs)), inputs=inputs, reference_outputs=list(expected)
    )
    return tuple(found), ()
