"""What is differentiated: an operator at one place, in floats that are wide enough for differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.measure.tolerance import Tolerance, tolerance, unit_roundoff
from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.validation.contract import ContractViolation, call_forward, first_not_finite, run_backward
from deep500.operators.validation.differences import Floats, Slope, noise_limit, slopes_along
from deep500.operators.validation.report import Derivative, InputGradient
from deep500.operators.validation.variants import backward_error

__all__ = [
    "Finding",
    "Problem",
    "random_gradients",
    "refuse_not_finite",
    "too_many_kinks",
    "wide_gradient",
    "widened",
    "worst_of",
    "wrong_gradient",
]


@dataclass
class Problem:
    """An operator with the tensors by which it is differentiated.

    Attributes:
        op: The operator.
        name: What messages call it.
        inputs: Its inputs.
        outputs: Its outputs for them.
        by: Numbers of the inputs to differentiate by.
        through: Numbers of the outputs through which gradients flow.
        dtype: The coarsest dtype of those.
        length: Length of the reductions.
        step: Step of the differences, relative to the size of a value.
        tolerance: What the user tolerates; ``None`` for what dtype and length allow.
        weights: Gradients by the outputs that the user gave; ``None`` to draw them.
        evaluations: How often the forward ran.
    """

    op: Operator
    name: str
    inputs: list[OptionalArray]
    outputs: tuple[Array, ...]
    by: tuple[int, ...]
    through: tuple[int, ...]
    dtype: str
    length: int
    step: float
    tolerance: Tolerance | None
    weights: Sequence[OptionalArray] | None = None
    evaluations: int = 0

    def array(self, index: int) -> Array:
        """Return an input that is there."""
        x = self.inputs[index]
        assert x is not None
        return x

    def forward(self, inputs: Sequence[OptionalArray]) -> tuple[Array, ...]:
        """Run the forward, and count."""
        self.evaluations += 1
        return call_forward(self.op, inputs)

    def backward(self, grads: Sequence[OptionalArray]) -> tuple[OptionalArray, ...]:
        """Run the backward, with all checks."""
        return run_backward(self.op, grads, self.inputs, self.outputs)

    def slopes(self, index: int, direction: Floats) -> tuple[Floats, dict[int, Slope]]:
        """Return the derivatives along a direction of one input."""
        return slopes_along(self.forward, self.inputs, self.outputs, index, direction, self.step, self.through)

    def limit(self, value: Floats, again: Floats, size: float, terms: float) -> float:
        """Return how uncertain such derivatives are; see :func:`noise_limit`."""
        bound = tolerance(self.dtype, self.length).relative
        return noise_limit(value, again, size, terms, unit_roundoff(self.dtype), bound, self.step)

    @property
    def backward_error(self) -> float:
        """How far a gradient may be off, relative to the size of its terms."""
        return backward_error(self.dtype, self.length)

    def draw(self, stream: np.random.Generator) -> list[OptionalArray]:
        """Return gradients by the outputs: the user's, else random ones."""
        grads: Sequence[OptionalArray] = self.weights or random_gradients(self.outputs, self.through, stream)
        result: list[OptionalArray] = [None] * len(self.outputs)
        for j in self.through:
            given, is_left_out = grads[j], np.isnan(self.outputs[j])
            assert given is not None
            result[j] = np.where(is_left_out, np.zeros_like(given), given).astype(self.outputs[j].dtype)
        return result

    def left_out(self, output: int) -> NDArray[np.bool_]:
        """Return which elements of an output are NaN and have no derivative, flat."""
        return np.asarray(np.isnan(self.outputs[output])).reshape(-1)


@dataclass
class Finding:
    """What was found about one input.

    Attributes:
        row: The line of the report.
        failures: What is wrong.
        is_resolved: Whether at least half of the derivatives could be taken.
        analytic: The gradient of the weighted outputs as backward returns it; ``None`` where it was not taken.
        numerical: The same from differences.
    """

    row: InputGradient
    failures: list[str] = field(default_factory=list)
    is_resolved: bool = True
    analytic: Floats | None = None
    numerical: Floats | None = None


def random_gradients(
    outputs: Sequence[Array], through: Sequence[int], stream: np.random.Generator
) -> list[OptionalArray]:
    """Return gradients by the outputs: sizes from 0.5 to 1.5 of either sign, so that every element counts."""
    grads: list[OptionalArray] = [None] * len(outputs)
    for j in through:
        shape = outputs[j].shape
        values = stream.uniform(0.5, 1.5, shape) * stream.choice([-1.0, 1.0], shape)
        grads[j] = np.asarray(values).astype(outputs[j].dtype)
    return grads


def widened(grads: Sequence[OptionalArray], outputs: Sequence[Array]) -> list[OptionalArray]:
    """Return gradients by the outputs in the dtypes of other floats' outputs."""
    return [None if g is None else g.astype(y.dtype) for g, y in zip(grads, outputs)]


def wide_gradient(gradient: OptionalArray, x: Array) -> Floats:
    """Return a gradient in float64; zeros where there is none."""
    if gradient is None:
        return np.zeros(x.shape)
    found: Any = gradient.astype(np.float64)
    return np.asarray(found)


def refuse_not_finite(problem: Problem, index: int, gradient: Floats) -> None:
    """Check that a gradient is finite.

    Raises:
        ContractViolation: It is not.
    """
    place = first_not_finite(gradient)
    if place is not None:
        raise ContractViolation(
            f"{problem.name}.backward returned {gradient[place]} as gradient by input {index} at {list(place)}, "
            f"although inputs and outputs are finite."
        )


def worst_of(error: Floats, allowed: Floats) -> int:
    """Return the flat index of the element that is farthest beyond what is allowed, or nearest to it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(error > 0, error / allowed, 0.0)
    return int(np.argmax(times))


def wrong_gradient(name: str, row: InputGradient, worst: Derivative, hint: str = "") -> str:
    """Return the sentence that says what is wrong about a gradient."""
    of = "derivative is" if row.wrong == 1 else "derivatives are"
    return (
        f"The gradient of {name} by input {row.index} is wrong: {row.wrong} of {row.compared} {of} off by more than "
        f"allowed, most of all {worst}.{hint}"
    )


def too_many_kinks(name: str, index: int, excluded: int, count: int, what: str) -> str:
    """Return the sentence that says that too little could be compared."""
    return (
        f"The gradient of {name} by input {index} cannot be checked: at {excluded} of {count} {what} the differences "
        f"of forward do not settle, as at kinks (0 of Relu, ties of MaxPool), jumps, borders of the domain, or where "
        f"forward computes with fewer digits than its dtype has. Choose other inputs, or another step."
    )
