"""What a validation found: values that can be asked, and a short table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.measure.metric_test import MetricValue
from deep500.operators.operator import OptionalArray
from deep500.operators.validation.comparison import Comparison

__all__ = [
    "Derivative",
    "EquivalenceReport",
    "FailingCase",
    "ForwardReport",
    "GradientReport",
    "InputGradient",
    "OutputCheck",
    "Report",
    "settled",
]

#: An error says so many of the things that are wrong.
_MOST_SAID = 3


@dataclass(frozen=True)
class Report:
    """What every validation says.

    Attributes:
        operator: Name of the operator.
        failures: What is wrong, a sentence each; none where the operator passed.
        notes: What to know about the result, a sentence each.
    """

    operator: str
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failures

    def _text(self, title: str, rows: Sequence[Sequence[str]]) -> str:
        """Return the table with a title, and what is wrong below."""
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]
        said = [f"  wrong: {text}" for text in self.failures] + [f"  note: {text}" for text in self.notes]
        return "\n".join([f"{title}: {'PASSED' if self.passed else 'FAILED'}", *lines, *said])


@dataclass(frozen=True)
class OutputCheck:
    """One output against its reference.

    Attributes:
        index: Number of the output.
        dtype: Its dtype.
        shape: Its shape.
        comparison: Its worst element; ``None`` where it cannot be compared with the reference.
    """

    index: int
    dtype: str
    shape: tuple[int, ...]
    comparison: Comparison | None


@dataclass(frozen=True)
class ForwardReport(Report):
    """What :func:`~deep500.operators.validation.forward.test_op_forward` found.

    Attributes:
        reference: What the outputs were compared with.
        outputs: The outputs.
        is_deterministic: Whether a second run returned the same bits.
        metrics: What the metrics measured.
    """

    reference: str = ""
    outputs: tuple[OutputCheck, ...] = ()
    is_deterministic: bool = True
    metrics: tuple[MetricValue, ...] = ()

    def __str__(self) -> str:
        """Return a short table."""
        rows = []
        for output in self.outputs:
            row = [f"output {output.index}", str(TensorDescriptor(output.dtype, output.shape))]
            found = output.comparison
            rows.append([*row, "not compared" if found is None else f"worst {found}"])
        rows += [[metric.name, "", metric.summary] for metric in self.metrics]
        return self._text(f"forward of {self.operator}, against {self.reference or 'nothing'}", rows)


@dataclass(frozen=True)
class Derivative:
    """One derivative, as the backward returns it and as the differences say.

    Attributes:
        input: Number of the input.
        element: Index of its element.
        output: Number of the output; ``None`` for the weighted sum of all outputs.
        output_element: Index of the output's element; ``None`` with ``output``.
        analytic: What the backward returns.
        numerical: What the differences of the forward give.
        allowed: How far they may be apart.
    """

    input: int
    element: tuple[int, ...]
    output: int | None
    output_element: tuple[int, ...] | None
    analytic: float
    numerical: float
    allowed: float

    @property
    def error(self) -> float:
        """The difference."""
        return abs(self.analytic - self.numerical)

    @property
    def relative_error(self) -> float:
        """The difference relative to the larger of both; 0 where they are equal."""
        return 0.0 if self.error == 0 else self.error / max(abs(self.analytic), abs(self.numerical))

    @property
    def ratio(self) -> float | None:
        """The analytic one as a multiple of the numerical one; ``None`` where that is 0."""
        return self.analytic / self.numerical if self.numerical else None

    def __str__(self) -> str:
        """Return the derivative in words."""
        of = "the weighted outputs" if self.output is None else f"output {self.output} at {_place(self.output_element)}"
        ratio = "" if self.ratio is None else f", ratio {self.ratio:.6g}"
        return (
            f"that of {of} by element {_place(self.element)}: backward returns {self.analytic:.9g}, the differences "
            f"of forward give {self.numerical:.9g} (relative error {self.relative_error:.3g}{ratio}; they may differ "
            f"by {self.allowed:.3g})"
        )


@dataclass(frozen=True)
class InputGradient:
    """The gradient by one input.

    Attributes:
        index: Number of the input.
        dtype: Its dtype.
        shape: Its shape.
        compared: How many derivatives were compared: elements of the Jacobian, or random directions.
        excluded: How many were not, because the function has a kink there: elements of the input, or along random
            directions elements of the outputs.
        wrong: How many are wrong.
        worst: The derivative that is farthest beyond what is allowed, or nearest to it; ``None`` where none was looked
            at by itself.
        resolution: The relative error of the largest derivative from which on an error is seen.
        step: Step of the differences, relative to the size of the values.
        precision: Name of the dtype whose precision the differences were taken to have.
    """

    index: int
    dtype: str
    shape: tuple[int, ...]
    compared: int
    excluded: int
    wrong: int
    worst: Derivative | None
    resolution: float
    step: float
    precision: str


@dataclass(frozen=True)
class GradientReport(Report):
    """What :func:`~deep500.operators.validation.gradient.test_op_gradient` found.

    Attributes:
        method: ``"Jacobian"`` (every derivative) or ``"random directions"``; empty where none was taken.
        dtype: In which floats the differences were taken.
        evaluations: How often the forward ran.
        inputs: The inputs by which the operator was differentiated.
        is_deterministic: Whether second runs returned the same bits.
        metrics: What the metrics measured.
    """

    method: str = ""
    dtype: str = ""
    evaluations: int = 0
    inputs: tuple[InputGradient, ...] = ()
    is_deterministic: bool = True
    metrics: tuple[MetricValue, ...] = ()

    @property
    def worst(self) -> Derivative | None:
        """The derivative of all inputs that is farthest beyond what is allowed, or nearest to it."""
        known = [i.worst for i in self.inputs if i.worst is not None]
        return max(known, key=lambda w: w.error / w.allowed if w.allowed else w.error, default=None)

    @property
    def excluded(self) -> int:
        """How many derivatives were left out because the function has a kink there."""
        return sum(i.excluded for i in self.inputs)

    def __str__(self) -> str:
        """Return a short table."""
        rows = []
        for i in self.inputs:
            kind = "derivatives" if self.method == "Jacobian" else "directions"
            rows.append(
                [
                    f"input {i.index}",
                    str(TensorDescriptor(i.dtype, i.shape)),
                    f"{i.compared} {kind}",
                    f"{i.wrong} wrong",
                    f"{i.excluded} at kinks",
                    f"errors seen from {i.resolution:.1e}",
                    "" if i.worst is None else f"worst error {i.worst.error:.3g} of {abs(i.worst.numerical):.3g}",
                ]
            )
        rows += [[metric.name, "", metric.summary, "", "", "", ""] for metric in self.metrics]
        how = f" by {self.method} in {self.dtype}, {self.evaluations} runs of forward" if self.method else ""
        return self._text(f"gradient of {self.operator}{how}", rows)


@dataclass(frozen=True)
class FailingCase:
    """The smallest case that was found in which two operators differ.

    Attributes:
        reason: How they differ.
        inputs: The inputs.
        code: Lines of Python that make the inputs.
    """

    reason: str
    inputs: tuple[OptionalArray, ...]
    code: str


@dataclass(frozen=True)
class EquivalenceReport(Report):
    """What :func:`~deep500.operators.validation.equivalence.test_op_equivalence` found.

    Attributes:
        other: Name of the second operator.
        cases: How many cases were generated.
        compared: How many of them both operators computed, by dtype.
        differentiated: In how many of these gradients were compared.
        refused: How many cases were not compared because an operator refuses them, by its name.
        worst: The largest difference, in multiples of what is allowed.
        failure: The smallest case in which they differ; ``None`` where there is none.
    """

    other: str = ""
    cases: int = 0
    compared: Mapping[str, int] = field(default_factory=dict)
    differentiated: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    worst: float = 0.0
    failure: FailingCase | None = None

    def __str__(self) -> str:
        """Return a short table."""
        by_dtype = ", ".join(f"{count} in {dtype}" for dtype, count in self.compared.items()) or "none"
        rows = [
            ["cases", str(self.cases)],
            ["compared", by_dtype],
            ["gradients compared", str(self.differentiated)],
            ["largest difference", f"{self.worst:.3g} of what is allowed"],
            *(["refused", f"{count} by {who}"] for who, count in self.refused.items()),
        ]
        return self._text(f"{self.operator} and {self.other}", rows)


_Report = TypeVar("_Report", bound=Report)


def settled(report: _Report, raise_on_failure: bool) -> _Report:
    """Return a report, or raise what it says is wrong.

    Raises:
        OperatorError: Something is wrong, and that is to be an error.
    """
    if raise_on_failure and report.failures:
        more = len(report.failures) - _MOST_SAID
        said = [*report.failures[:_MOST_SAID], *([f"And {more} more."] if more > 0 else [])]
        raise OperatorError(" ".join(said))
    return report


def _place(index: tuple[int, ...] | None) -> str:
    return str(list(index or ()))
