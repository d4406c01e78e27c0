"""Checks of an operator, one by one: what each found, in one line, whatever the operator does."""

from __future__ import annotations

import contextlib
import enum
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deep500.core.errors import Deep500Error, OperatorError
from deep500.core.texts import message_of, shown_path
from deep500.operators.custom._checks import is_float_name
from deep500.operators.custom.custom_op import CustomOp
from deep500.operators.custom.prepared_call import PreparedCall
from deep500.operators.operator import OptionalArray
from deep500.operators.validation.comparison import allowed_for, compare
from deep500.operators.validation.variants import default_length

__all__ = [
    "Check",
    "Finding",
    "NotRunError",
    "Outcome",
    "check_agreement",
    "check_call",
    "random_gradients",
    "run_check",
    "told",
]

_PACKAGE = Path(__file__).resolve().parents[2]


class Outcome(str, enum.Enum):
    """What became of a check."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_RUN = "not run"


class NotRunError(Deep500Error):
    """A check does not apply; the message says why."""


@dataclass(frozen=True)
class Check:
    """Something that is to be looked at.

    Attributes:
        name: What it is about, in a few words.
        run: Looks at it, and returns what to say of it; it raises where something is wrong, and
            :class:`NotRunError` where there is nothing to look at.
    """

    name: str
    run: Callable[[], str]


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        check: The check's name.
        outcome: Whether it passed.
        detail: Numbers, or the reason, in one line.
    """

    check: str
    outcome: Outcome
    detail: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the finding for JSON."""
        return {"check": self.check, "outcome": self.outcome.value, "detail": self.detail}


def run_check(check: Check) -> Finding:
    """Run a check; all that it raises is a finding."""
    try:
        with np.errstate(all="ignore"):  # what an operator computes is looked at below, not warned of
            return Finding(check.name, Outcome.PASSED, check.run())
    except NotRunError as error:
        return Finding(check.name, Outcome.NOT_RUN, message_of(error))
    except Exception as error:  # noqa: BLE001 - an author's code, or a framework that runs it, raises anything
        return Finding(check.name, Outcome.FAILED, told(error))


def told(error: BaseException) -> str:
    """Return an error as one line, with the author's own line where one took part in it.

    Errors of Deep500 say what is wrong; of any other the type is told as well.
    """
    kind = "" if isinstance(error, Deep500Error) else f"{type(error).__name__}: "
    place = _authors_place(error)
    return f"{kind}{message_of(error)}" + (f" ({place})" if place else "")


def _authors_place(error: BaseException) -> str:
    """Return ``file:line`` of the innermost line that belongs to no library; empty where there is none."""
    library = [_PACKAGE, *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))]
    seen: list[BaseException] = []
    found = ""
    step: BaseException | None = error
    while step is not None and step not in seen:
        seen.append(step)
        for frame in traceback.extract_tb(step.__traceback__):
            path = Path(frame.filename)
            with contextlib.suppress(OSError, RuntimeError):  # a file name that stands for none
                if path.is_file() and not any(path.resolve().is_relative_to(known) for known in library):
                    found = f"{shown_path(path.name)}:{frame.lineno}"
        step = step.__cause__ or step.__context__
    return found


def random_gradients(outputs: Sequence[Any], stream: np.random.Generator) -> list[OptionalArray]:
    """Return a gradient by each output that is a float: uniform in [-1, 1], of its dtype; ``None`` by the others."""
    return [
        np.asarray(stream.uniform(-1.0, 1.0, y.shape)).astype(y.dtype) if is_float_name(y.dtype.name) else None
        for y in outputs
    ]


def check_agreement(what: str, found: Sequence[Any], expected: Sequence[Any]) -> str:
    """Compare tensors with those that NumPy has computed; return how far they are from each other.

    As much is allowed as a sum over all elements of the largest tensor may be wrong by in the tensor's dtype (see
    :mod:`deep500.measure.tolerance`), for of an operator nobody knows what it sums. ``None`` stands for zeros.

    Args:
        what: What the tensors are, in the singular: ``"output"``.
        found: What is to be checked.
        expected: What NumPy has computed.

    Raises:
        OperatorError: One differs; the message has the worst element.
    """
    if len(found) != len(expected):
        raise OperatorError(f"There are {len(found)} {what}s; NumPy has {len(expected)}.")
    length = default_length([*found, *expected])
    largest = 0.0
    for index, (given, wanted) in enumerate(zip(found, expected)):
        if given is None and wanted is None:
            continue
        y = np.zeros_like(wanted) if given is None else given
        reference = np.zeros_like(y) if wanted is None else wanted
        if (tuple(y.shape), y.dtype) != (tuple(reference.shape), reference.dtype):
            raise OperatorError(
                f"{what} {index} is {y.dtype.name} of shape {tuple(y.shape)}; NumPy has {reference.dtype.name} of "
                f"shape {tuple(reference.shape)}."
            )
        comparison = compare(y, reference, allowed_for(None, y, reference, length))
        if not comparison.is_close:
            raise OperatorError(f"{what} {index} differs from NumPy's: {comparison}.")
        largest = max(largest, comparison.relative_error)
    return "equal to NumPy's" if largest == 0.0 else f"within {largest:.2g} of NumPy's"


def check_call(op: CustomOp, inputs: Sequence[OptionalArray], prepare: Callable[..., PreparedCall]) -> None:
    """Compare the outputs and gradients of an operator's call in a framework with those of the operator in NumPy.

    Args:
        op: The operator.
        inputs: Its inputs.
        prepare: Returns the call of given inputs; takes ``output_gradients`` by name, as adapters' ``prepare_call``.

    Raises:
        OperatorError: Something differs; the message has the worst element.
    """
    expected = op.run_forward(inputs)
    gradients = random_gradients(expected, np.random.default_rng(0)) if op.differentiable else None
    call = prepare(inputs, output_gradients=gradients)
    check_agreement("output", call.outputs(), expected)
    if gradients is not None:
        check_agreement("gradient", call.gradients(), op.run_backward(gradients, inputs, expected))
