"""Whether an operator returns the same for the same tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deep500.operators.operator import Array, Operator, OptionalArray
from deep500.operators.validation.comparison import allowed_for, compare
from deep500.operators.validation.contract import first_difference, name_of, run_backward, run_forward

__all__ = ["Repeated", "check_repeatable"]


@dataclass(frozen=True)
class Repeated:
    """What second runs showed.

    Attributes:
        is_repeatable: Whether they returned the same bits.
        failures: What differs by more than rounding errors do.
        notes: What differs by less.
    """

    is_repeatable: bool
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_repeatable(
    op: Operator,
    inputs: Sequence[OptionalArray],
    outputs: Sequence[Array],
    grads: Sequence[OptionalArray] | None,
    gradients: Sequence[OptionalArray],
    length: int,
) -> Repeated:
    """Run an operator once more and compare.

    Args:
        op: The operator.
        inputs: Its inputs.
        outputs: What the first run returned.
        grads: Gradients by the outputs; ``None`` runs forward alone.
        gradients: What the first backward returned for them.
        length: Length of the reductions.
    """
    kept = [y.copy() for y in outputs]  # an operator may use the memory of its outputs again
    pairs = [(f"forward returned other values as output {j}", *p) for j, p in _paired(kept, run_forward(op, inputs))]
    if grads is not None:
        first = [None if g is None else g.copy() for g in gradients]
        again = run_backward(op, grads, inputs, outputs)
        pairs += [(f"backward returned another gradient by input {i}", *p) for i, p in _paired(first, again)]
    failures, notes = [], []
    for what, before, after in pairs:
        if before.shape != after.shape or before.dtype != after.dtype:
            failures.append(
                f"{name_of(op)}.{what} when it ran again on equal tensors: {after.dtype.name} of shape {after.shape}, "
                f"not {before.dtype.name} of shape {before.shape}."
            )
        elif first_difference(before, after) is not None:
            found = compare(after, before, allowed_for(None, after, before, length, factor=2.0))
            if found.is_close:
                notes.append(f"{name_of(op)}.{what} when it ran again, within rounding errors.")
            else:
                failures.append(
                    f"{name_of(op)}.{what} when it ran again on equal tensors: {found}. What is random cannot be "
                    f"checked; give it a fixed seed."
                )
    return Repeated(not failures and not notes, tuple(failures), tuple(notes))


def _paired(before: Sequence[OptionalArray], after: Sequence[OptionalArray]) -> list[tuple[int, tuple[Array, Array]]]:
    return [(i, (a, b)) for i, (a, b) in enumerate(zip(before, after)) if a is not None and b is not None]
