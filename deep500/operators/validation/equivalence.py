"""Two implementations of one operator against each other, over shapes and dtypes that are generated.

Outputs have to be of one shape and dtype, and may differ by what their dtype and the length of the reductions allow,
twice, since neither is exact; so may gradients, for random gradients by the outputs. NaNs and infinities have to be in
the same places. A case that an operator refuses (by an error of Deep500's) says nothing about values: it is counted,
and the report says why. Where only one of both fails by any other error, they differ.

Of a case in which they differ a smaller one is sought: lower ranks, smaller sizes, plainer layouts and values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.core.counts import check_count
from deep500.core.errors import Deep500Error, OperatorError
from deep500.core.random import check_seed
from deep500.core.texts import message_of
from deep500.measure.tolerance import Tolerance
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.validation._problem import random_gradients
from deep500.operators.validation.comparison import allowed_for, as_tolerance, compare, largest_size
from deep500.operators.validation.contract import (
    REFUSALS,
    ContractViolation,
    as_inputs,
    first_not_finite,
    is_differentiable,
    is_float,
    name_of,
    run_backward,
    run_forward,
)
from deep500.operators.validation.differences import element_scales
from deep500.operators.validation.generate import Case, Template, generated_cases, smallest
from deep500.operators.validation.report import EquivalenceReport, FailingCase, settled
from deep500.operators.validation.variants import backward_error, coarsest, default_length

__all__ = ["test_op_equivalence"]


def test_op_equivalence(
    a: Operator,
    b: Operator,
    cases: Callable[[np.random.Generator], Sequence[Any]] | None = None,
    *,
    shapes: Sequence[Template] | None = None,
    dtypes: Sequence[Any] = ("float32", "float64"),
    examples: int = 25,
    tolerance: Tolerance | float | None = None,
    reduction_length: int | None = None,
    gradients: bool = True,
    special_values: bool = False,
    seed: int = 0,
    raise_on_failure: bool = True,
) -> EquivalenceReport:
    """Check that two operators compute the same; see the module for what that means.

    Args:
        a: An operator: one of the library, a custom one, or what ``custom_op_from_native`` or ``as_operator`` of a
            framework returns.
        b: Another one.
        cases: ``cases(rng)`` returns the inputs of a case; those of float64 become each of ``dtypes`` in turn.
        shapes: A template for each input, instead: sizes, and names of sizes that are drawn, such as
            ``[("n", "c", 8, 8), ("c",)]``; a descriptor has a dtype of its own. Without both, all inputs have one
            shape, of ranks from 0 to 4. Arrays lie in memory in different ways, some with sizes of 1 and of 0.
        dtypes: Dtypes of floats.
        examples: Number of cases.
        tolerance: What is allowed; a number is relative to the largest element.
        reduction_length: Products in the longest sum; by default the number of elements of the largest tensor.
        gradients: Whether gradients are compared where both have a backward.
        special_values: Whether some cases have NaN, infinities, -0.0, and the smallest and very large numbers.
        seed: Seed of all that is drawn.
        raise_on_failure: Whether a difference is an error; else the report says it.

    Raises:
        OperatorError: They differ, or no case could be compared.
    """
    for op in (a, b):
        as_inputs(op, [])
    check_count("The number of examples", examples, least=1, error=OperatorError)
    if reduction_length is not None:
        check_count("The reduction length", reduction_length, least=1, error=OperatorError)
    both = gradients and is_differentiable(a) and is_differentiable(b)
    checked = None if tolerance is None else as_tolerance(tolerance)
    pair = _Pair(a, b, tolerance if checked else None, reduction_length, both)
    listed = generated_cases(
        cases, shapes, _input_count(a, b), dtypes, examples, check_seed(seed), special_values=special_values
    )
    return settled(_validated(pair, list(listed)), raise_on_failure)


test_op_equivalence.__test__ = False  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Outcome:
    """What a case showed.

    Attributes:
        difference: How the operators differ; empty where they do not.
        kind: In which way: the differences of smaller cases have to be of the same kind.
        refusal: Why the case was not compared; empty where it was.
        refused_by: Which operator refuses it, or both.
        has_gradients: Whether gradients were compared.
        worst: The largest difference, in multiples of what is allowed.
    """

    difference: str = ""
    kind: str = ""
    refusal: str = ""
    refused_by: str = ""
    has_gradients: bool = False
    worst: float = 0.0


@dataclass(frozen=True)
class _Pair:
    """The operators, and what is allowed."""

    a: Operator
    b: Operator
    tolerance: Tolerance | float | None
    length: int | None
    gradients: bool

    @property
    def names(self) -> tuple[str, str]:
        """The names, told apart where they are the same."""
        first, second = name_of(self.a), name_of(self.b)
        return (first, second) if first != second else (f"{first} (first)", f"{second} (second)")

    def outcome(self, case: Case) -> _Outcome:
        """Run both on a case and compare."""
        inputs = case.inputs()
        results = [_attempt(run_forward, op, inputs) for op in (self.a, self.b)]
        failed = self._failed(results, "forward")
        if failed is not None:
            return failed
        first, second = (result.value for result in results)
        length = self.length or default_length([*inputs, *first])
        difference, worst = self._compared("output", first, second, length, [None] * len(first))
        if difference or not self.gradients:
            return _Outcome(difference, "output", worst=worst)
        return self._gradient_outcome(inputs, first, second, length, worst)

    def _gradient_outcome(
        self, inputs: list[OptionalArray], first: Any, second: Any, length: int, worst: float
    ) -> _Outcome:
        through = [j for j, y in enumerate(first) if is_float(y)]
        are_finite = all(x is None or first_not_finite(x) is None for x in (*inputs, *first))
        if not through or not any(is_float(x) for x in inputs) or not are_finite:
            return _Outcome(worst=worst)
        grads = random_gradients(first, through, np.random.default_rng(length))
        attempts = [
            _attempt(run_backward, op, grads, inputs, outputs) for op, outputs in ((self.a, first), (self.b, second))
        ]
        failed = self._failed(attempts, "backward")
        if failed is not None:
            return failed if failed.difference else _Outcome(worst=worst)
        found = [
            [np.zeros_like(x) if g is None and x is not None and is_float(x) else g for x, g in zip(inputs, r.value)]
            for r in attempts
        ]
        size = max(largest_size(g * first[j]) for j, g in enumerate(grads) if g is not None)
        terms = [_terms(size, x) if x is not None and is_float(x) else None for x in inputs]
        difference, gradient_worst = self._compared("gradient by input", found[0], found[1], length, terms)
        return _Outcome(difference, "gradient", has_gradients=True, worst=max(worst, gradient_worst))

    def _compared(
        self, what: str, first: Sequence[Any], second: Sequence[Any], length: int, terms: Sequence[float | None]
    ) -> tuple[str, float]:
        """Return how arrays differ, and the largest difference in multiples of what is allowed."""
        a, b = self.names
        if len(first) != len(second):
            return f"{a} has {len(first)} {what}s, and {b} has {len(second)}.", 0.0
        worst = 0.0
        for k, (x, y) in enumerate(zip(first, second)):
            if x is None or y is None:
                continue
            if (x.shape, x.dtype) != (y.shape, y.dtype):
                return (
                    f"The {what} {k} of {a} is {x.dtype.name} of shape {x.shape}, and that of {b} {y.dtype.name} of "
                    f"shape {y.shape}."
                ), worst
            found = compare(x, y, self._allowed(what, x, y, length, terms[k]))
            if not found.is_close:
                return (
                    f"The {what} {k} of {a} is not that of {b}: {found} ({found.count} of {x.size} differ so).",
                    worst,
                )
            worst = max(worst, found.error / found.allowed if found.allowed else 0.0)
        return "", worst

    def _allowed(self, what: str, x: Array, y: Array, length: int, terms: float | None) -> Tolerance:
        scale = max(largest_size(x), largest_size(y), terms or 0.0)
        if self.tolerance is None and what != "output" and is_float(x):
            relative = 2 * backward_error(coarsest([x, y]), length)
            return Tolerance(relative, relative * scale)
        return allowed_for(self.tolerance, x, y, length, scale=scale, factor=2.0)

    def _failed(self, results: Sequence[_Attempt], which: str) -> _Outcome | None:
        """Return what it means that one or both raised an error; ``None`` where both returned."""
        if all(result.error is None for result in results):
            return None
        texts = [_said(name, result) for name, result in zip(self.names, results) if result.error is not None]
        violation = next((str(r.error) for r in results if isinstance(r.error, ContractViolation)), "")
        if violation:
            return _Outcome(violation, "violation")
        if len(texts) == 2 or all(isinstance(r.error, (Deep500Error, type(None))) for r in results):
            who = [name for name, result in zip(self.names, results) if result.error is not None]
            return _Outcome(refusal=texts[0], refused_by="both" if len(who) == 2 else who[0])
        return _Outcome(f"In {which}, only one of both fails. {texts[0]}", f"error in {which}")


@dataclass(frozen=True)
class _Attempt:
    """What a call returned, or the error that it raised."""

    value: Any = None
    error: Exception | None = None


def _attempt(call: Callable[..., Any], *arguments: Any) -> _Attempt:
    try:
        return _Attempt(call(*arguments))
    except REFUSALS as error:
        return _Attempt(error=error)


def _said(name: str, attempt: _Attempt) -> str:
    assert attempt.error is not None
    text = message_of(attempt.error)
    if isinstance(attempt.error, Deep500Error):
        return f"{name} refuses it: {text}"
    return f"{name} fails: {type(attempt.error).__name__}: {text}."


def _validated(pair: _Pair, cases: Sequence[Case]) -> EquivalenceReport:
    compared: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    differentiated, worst = 0, 0.0
    names = pair.names
    for case in cases:
        outcome = pair.outcome(case)
        if outcome.difference:
            failing = _minimal(pair, case, cases, outcome.kind)
            text = f"{names[0]} and {names[1]} differ: {failing.reason} The smallest case found:\n{failing.code}"
            return EquivalenceReport(
                names[0], (text,), (), names[1], len(cases), dict(compared), differentiated, dict(refused), worst,
                failing,
            )  # fmt: skip
        if outcome.refusal:
            refused[outcome.refused_by] += 1
            reasons.setdefault(outcome.refused_by, outcome.refusal)
            continue
        compared[case.dtype] += 1
        differentiated += outcome.has_gradients
        worst = max(worst, outcome.worst)
    notes = tuple(reasons.values())
    missing = sorted({case.dtype for case in cases} - set(compared))
    if missing:
        notes = (f"Nothing was compared in {', '.join(missing)}.", *notes)
    failures: tuple[str, ...] = ()
    if not compared:
        failures = (f"No case could be compared. {notes[-1]} Give other shapes=, cases= or dtypes=.",)
    return EquivalenceReport(
        names[0], failures, notes, names[1], len(cases), dict(compared), differentiated, dict(refused), worst
    )


def _terms(size: float, x: Array) -> float:
    """Return what stands for the size of the terms of a gradient: that of the outputs over that of the input."""
    typical = float(np.min(element_scales(x), initial=np.inf))
    return min(size / typical, 1e300) if typical > 0 else 0.0


def _minimal(pair: _Pair, case: Case, cases: Sequence[Case], kind: str) -> FailingCase:
    """Return the smallest case that differs; those that cannot be made smaller are compared with one another."""

    def differs(other: Case) -> bool:
        outcome = pair.outcome(other)
        return bool(outcome.difference) and outcome.kind == kind

    if next(case.simpler(), None) is None:
        differing = [other for other in cases if differs(other)]
        case = min(differing, key=lambda other: sum(x.size for x in other.inputs() if x is not None))
    small = smallest(case, differs)
    return FailingCase(pair.outcome(small).difference, tuple(small.inputs()), small.code())


def _input_count(a: Operator, b: Operator) -> int | None:
    counts = [count for count in (getattr(op, "input_count", None) for op in (a, b)) if isinstance(count, int)]
    if len(set(counts)) == 2:
        raise OperatorError(f"{name_of(a)} has {counts[0]} inputs and {name_of(b)} {counts[1]}; accepted are as many.")
    return counts[0] if counts else None
