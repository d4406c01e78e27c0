"""The options of a workload's text: each is checked when it is taken, and what nobody takes is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from deep500.core.errors import InvalidInputError, MeasurementError, near_miss
from deep500.core.random import check_seed
from deep500.core.texts import shown
from deep500.measure.workload import WorkloadSpec

__all__ = ["Options", "refuse_place"]

T = TypeVar("T")
D = TypeVar("D")


class Options:
    """The options of one workload, taken one by one.

    Attributes:
        spec: The workload's text in its parts.
        taken: Names that were asked for, in order.
    """

    def __init__(self, spec: WorkloadSpec) -> None:
        """Start with all options of a text."""
        self.spec = spec
        self.taken: list[str] = []
        self._left = dict(spec.options)

    def take(self, name: str, default: D, check: Callable[[Any], T], accepted: str) -> T | D:
        """Return an option's value.

        Args:
            name: Its name.
            default: The value when it was not given.
            check: Returns the given value in its proper type; raises ``ValueError`` when it is not accepted.
            accepted: What is accepted, for the message.

        Raises:
            MeasurementError: The value is not accepted.
        """
        self.taken.append(name)
        if name not in self._left:
            return default
        value = self._left.pop(name)
        try:
            return check(value)
        except ValueError:
            raise MeasurementError(
                f"{name} was given as {shown(value)} in {self.spec.text!r}; accepted is {accepted}."
            ) from None

    def count(self, name: str, default: D) -> int | D:
        """Return a whole number from 1."""
        return self.take(name, default, _count, "a whole number from 1")

    def seed(self) -> int:
        """Return the option ``seed``, by default 0."""
        return self.take("seed", 0, _seed, "a whole number from 0 to 2**64 - 1")

    def positive(self, name: str, default: float) -> float:
        """Return a finite number above 0."""
        return self.take(name, default, _positive, "a finite number above 0")

    def flag(self, name: str, default: bool) -> bool:
        """Return a truth value."""
        return self.take(name, default, _flag, "True or False")

    def text(self, name: str, default: D) -> str | D:
        """Return a text that is not empty."""
        return self.take(name, default, _text, "a name")

    def choice(self, name: str, default: str, accepted: Sequence[str]) -> str:
        """Return one of a few texts."""

        def check(value: Any) -> str:
            if value not in accepted:
                raise ValueError
            return str(value)

        return self.take(name, default, check, f"one of {', '.join(accepted)}")

    def shape(self, name: str, default: D) -> tuple[int, ...] | D:
        """Return the shape of one sample: ``1x28x28``, or ``(1, 28, 28)``."""
        return self.take(name, default, _sizes, "the shape of one sample, such as 1x28x28")

    def rest(self, accepted: Iterable[str]) -> dict[str, Any]:
        """Return all options of certain names that are left, unchecked."""
        names = [name for name in accepted if name not in self.taken]
        self.taken += names
        return {name: self._left.pop(name) for name in names if name in self._left}

    def finish(self) -> None:
        """Check that nothing is left.

        Raises:
            MeasurementError: An option is unknown.
        """
        for name in self._left:
            raise MeasurementError(
                f"{self.spec.text!r} has the unknown option {name!r}.{near_miss(name, self.taken)} Accepted: "
                f"{', '.join(self.taken) or 'none'}."
            )


def refuse_place(spec: WorkloadSpec) -> None:
    """Check that a workload that no framework runs names none.

    Raises:
        MeasurementError: It does.
    """
    if spec.framework is not None:
        place = spec.text[spec.text.rindex("@") :]
        raise MeasurementError(
            f"{spec.text!r} names the framework {spec.framework!r}, but no framework runs the workloads of the kind "
            f"{spec.kind}. Leave out {place}; a value that holds an @ stands in quotes."
        )


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value < 2**63:
        raise ValueError
    return value


def _seed(value: Any) -> int:
    try:
        return check_seed(value)
    except InvalidInputError:
        raise ValueError from None


def _positive(value: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError
    try:
        number = float(value)
    except OverflowError:
        raise ValueError from None
    if not 0.0 < number < math.inf:
        raise ValueError
    return number


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _sizes(value: Any) -> tuple[int, ...]:
    sizes = value
    if isinstance(value, str):
        sizes = [int(size) if size.isascii() and size.isdigit() else None for size in value.lower().split("x")]
    if isinstance(sizes, int):
        sizes = [sizes]
    if not isinstance(sizes, (tuple, list)) or not sizes:
        raise ValueError
    return tuple(_count(size) for size in sizes)
