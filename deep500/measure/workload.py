"""The contract of a workload: something whose runs are timed, with all that must be known to compare two of them."""

from __future__ import annotations

import abc
import ast
import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deep500.core.errors import MeasurementError, near_miss
from deep500.core.registry import Registry
from deep500.core.texts import shown
from deep500.measure.metric import Direction, MetricKind

__all__ = ["WORKLOADS", "Score", "Work", "Workload", "WorkloadSpec", "open_workload", "parse_workload"]

#: The kinds of workloads, one file each in ``deep500/workloads``: a function from a :class:`WorkloadSpec` to one.
WORKLOADS = Registry("workload kind", "deep500.workloads")

#: The kind of a text without one, such as ``pkg.module:function``.
CALLABLE = "callable"

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Work:
    """What one run does, as far as it is known; ``None`` for what is not.

    Attributes:
        items: How many items it treats.
        item: What an item is, in the singular, such as ``"sample"``.
        flops: Floating-point operations, counted, not measured.
        bytes: Bytes that it has to move at least.
        dtype: The dtype of its arithmetic, which decides the peak it is held against.

    Raises:
        MeasurementError: A count is negative, or no finite number.
    """

    items: float | None = None
    item: str = "item"
    flops: float | None = None
    bytes: float | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        """Check the counts."""
        for name in ("items", "flops", "bytes"):
            value = getattr(self, name)
            if value is not None and not (_is_finite(value) and value >= 0):
                raise MeasurementError(
                    f"Work: {name} was given as {shown(value)}; accepted are finite numbers from 0, and None where the "
                    "number is not known."
                )


@dataclass(frozen=True)
class Score:
    """A number that says how good the results of the runs are: accuracy travels with speed.

    Attributes:
        name: The metric's name.
        value: The value.
        unit: Its unit; empty for a pure number.
        direction: Which values are better.
        kind: What the value is.
        acceptable: The value that is just good enough, declared before; ``None`` where none was.
        held_out: Whether it was taken on data that the training did not see; ``None`` where that is no question.

    Raises:
        MeasurementError: The value, or the acceptable one, is no finite number: a result file could not hold it.
    """

    name: str
    value: float
    unit: str = ""
    direction: Direction = Direction.HIGHER
    kind: MetricKind = MetricKind.SCORE
    acceptable: float | None = None
    held_out: bool | None = None

    def __post_init__(self) -> None:
        """Check the name and the numbers, and take the words for direction and kind."""
        if not isinstance(self.name, str) or not self.name or not isinstance(self.unit, str):
            raise MeasurementError(
                f"A score has a name and a unit; they are {shown(self.name)} and {shown(self.unit)}."
            )
        for field_name, words in (("direction", Direction), ("kind", MetricKind)):
            try:
                object.__setattr__(self, field_name, words(getattr(self, field_name)))
            except ValueError as error:
                known, given = ", ".join(word.value for word in words), shown(getattr(self, field_name))
                raise MeasurementError(
                    f"The {field_name} of the score {self.name} is {given}; accepted: {known}."
                ) from error
        for what, value in (("value", self.value), ("acceptable value", self.acceptable)):
            if not (_is_finite(value) or (value is None and what != "value")):
                raise MeasurementError(
                    f"The score {self.name} has the {what} {shown(value)}; accepted are finite numbers. Results that "
                    "are not finite are no results: raise a MeasurementError that says what went wrong."
                )


class Workload(abc.ABC):
    """Something whose runs are timed. Building it, and closing it, is not timed.

    A subclass implements :meth:`run`. What it says of itself decides with what its times may be compared: two workloads
    with equal :attr:`identity`, data and initialisation do the same work, and all that differs in their
    :attr:`factors` (framework, device, version) is what a comparison of their times is about.

    Attributes:
        spec: The text that describes it, such as ``"model:lenet@pytorch"``.

    Example:
        >>> class Sum(Workload):
        ...     def __init__(self, size=1000):
        ...         self.numbers = list(range(size))
        ...     @property
        ...     def identity(self):
        ...         return {"problem": "sum", "size": len(self.numbers)}
        ...     def run(self):
        ...         sum(self.numbers)
    """

    spec: str = ""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What is computed, independent of who computes it, in JSON's types: problem, sizes, dtype."""
        return {"problem": self.spec or f"{type(self).__module__}:{type(self).__qualname__}"}

    @property
    def factors(self) -> Mapping[str, Scalar]:
        """Who computes it and how: framework, its version, device, and the like."""
        return {}

    @property
    def data_hash(self) -> str | None:
        """SHA-256 of the data that the runs read; ``None`` when they read none, or it is not known."""
        return None

    @property
    def initialisation_hash(self) -> str | None:
        """SHA-256 of the state that the first run starts from, such as weights; ``None`` when there is none."""
        return None

    @property
    def work(self) -> Work:
        """What one run does."""
        return Work()

    @property
    def runs_per_launch(self) -> int | None:
        """How many runs a process can give; ``None`` for as many as wanted. With 1, the first run is what counts."""
        return None

    @abc.abstractmethod
    def run(self) -> Any:
        """Do the work once. On an accelerator it may return before the device has finished."""

    def synchronize(self) -> None:
        """Wait until the device has finished all runs; called before the clock is read."""

    def scores(self) -> list[Score]:
        """Return how good the results are; called once, after the last run."""
        return []

    def close(self) -> None:
        """Release what the workload holds."""


@dataclass(frozen=True)
class WorkloadSpec:
    """The parts of a text such as ``"model:resnet,depth=8,batch_size=32@tensorflow:gpu:0"``.

    Attributes:
        text: The whole text, without blanks around it.
        kind: Its kind: the file in ``deep500/workloads``.
        name: What follows the kind.
        options: The ``key=value`` pairs; values are Python literals where they read as such, else texts. Sizes such
            as ``0x3`` are texts, although Python reads a number in them.
        framework: What follows ``@``; ``None`` without.
        device: What follows the framework and a colon; ``None`` without.
    """

    text: str
    kind: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    framework: str | None = None
    device: str | None = None


def parse_workload(text: str) -> WorkloadSpec:
    """Return the parts of a workload's text; nothing is imported but to see which kinds there are.

    The form is ``KIND:NAME[,key=value]...[@FRAMEWORK[:DEVICE]]``; without one of the known kinds in front, it is a
    Python callable ``package.module:function``. A name or value with a comma, an ``@`` or a bracket that is never
    closed stands in quotes.

    Raises:
        MeasurementError: The text has another form.

    Example:
        >>> spec = parse_workload("model:resnet,depth=8@pytorch:gpu:0")
        >>> spec.kind, spec.name, dict(spec.options), spec.framework, spec.device
        ('model', 'resnet', {'depth': 8}, 'pytorch', 'gpu:0')
    """
    if not isinstance(text, str) or ":" not in text:
        raise MeasurementError(
            f"{shown(text)} is not a workload. Accepted are KIND:NAME[,key=value...][@FRAMEWORK[:DEVICE]] with a kind "
            f"of {', '.join(WORKLOADS.names())}, and Python callables such as package.module:function."
        )
    text = text.strip()
    kind, _, rest = text.partition(":")
    if kind not in WORKLOADS:
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", kind):
            raise MeasurementError(
                f"{text!r} is not a workload: there is no kind {kind!r}.{near_miss(kind, WORKLOADS.names())} Kinds: "
                f"{', '.join(WORKLOADS.names())}."
            )
        kind, rest = CALLABLE, text
    parts, place = _split(rest, text)
    framework, device = _read_place(place, text)
    name = _unquoted(parts[0].strip())
    if not name:
        raise MeasurementError(f"{text!r} names nothing after its kind; accepted is {kind}:NAME.")
    options: dict[str, Any] = {}
    for pair in parts[1:]:
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not re.fullmatch(r"[^\W\d]\w*(\.\w+)*", key):
            raise MeasurementError(f"{pair!r} in {text!r} is no option; accepted is key=value.")
        if key in options:
            raise MeasurementError(f"{text!r} gives {key} twice.")
        options[key] = _literal(value.strip())
    return WorkloadSpec(text, kind, name, options, framework, device)


def open_workload(spec: WorkloadSpec | str) -> Workload:
    """Build a workload from its text.

    Raises:
        Deep500Error: There is no such workload, or it cannot be built.
    """
    spec = parse_workload(spec) if isinstance(spec, str) else spec
    workload = WORKLOADS.get(spec.kind)(spec)
    if not isinstance(workload, Workload):
        raise MeasurementError(f"The workload kind {spec.kind!r} made a {type(workload).__name__}, not a Workload.")
    workload.spec = spec.text
    return workload


def _split(text: str, whole: str) -> tuple[list[str], str | None]:
    """Split at commas, and at the last ``@``, that stand outside of brackets and quotes."""
    cuts = _cuts(text, whole)
    places = [index for index in cuts if text[index] == "@"]
    end = places[-1] if places else len(text)
    commas = [index for index in cuts if text[index] == "," and index < end]
    parts = [text[start + 1 : stop] for start, stop in zip([-1, *commas], [*commas, end])]
    return parts, text[end + 1 :] if places else None


def _cuts(text: str, whole: str) -> list[int]:
    """Return where commas and ``@`` stand outside of brackets and quotes."""
    cuts: list[int] = []
    open_brackets: list[str] = []
    quote, is_escaped = "", False
    for index, character in enumerate(text):
        if quote:
            if not is_escaped and character == quote:
                quote = ""
            is_escaped = character == "\\" and not is_escaped
        elif character in "'\"" and (index == 0 or text[index - 1] in " =,:([{"):  # elsewhere it is an apostrophe
            quote = character
        elif character in "([{":
            open_brackets.append({"(": ")", "[": "]", "{": "}"}[character])
        elif character in ")]}":
            if not open_brackets or open_brackets.pop() != character:
                raise MeasurementError(f"{whole!r} closes a {character!r} that was not opened; put the text in quotes.")
        elif character in ",@" and not open_brackets:
            cuts.append(index)
    missing = quote or "".join(reversed(open_brackets))
    if missing:
        raise MeasurementError(f"{whole!r} lacks a closing {missing!r}; close it, or put the text in quotes.")
    return cuts


def _read_place(place: str | None, text: str) -> tuple[str | None, str | None]:
    """Return framework and device of what follows the ``@``."""
    if place is None:
        return None, None
    framework, colon, device = (part.strip() for part in place.partition(":"))
    if "," in place:
        raise MeasurementError(
            f"{text!r} has {place!r} after its @; options stand before it, as in model:lenet,batch_size=32@pytorch. "
            "A value that holds an @ stands in quotes."
        )
    if not framework or (colon and not device):
        what = "device after its framework and colon" if framework else "framework after its @"
        raise MeasurementError(f"{text!r} names no {what}; accepted is @FRAMEWORK or @FRAMEWORK:DEVICE.")
    return framework, device or None


def _unquoted(name: str) -> str:
    """Return a name without the quotes in which it stands."""
    value = _literal(name) if name[:1] in ("'", '"') else name
    return value if isinstance(value, str) else name


def _literal(text: str) -> Any:
    """Return the value that Python reads in a text, the text itself where it reads none."""
    if re.fullmatch(r"\d+([xX]\d+)+", text):  # sizes: Python would read 0x10 as the number 16
        return text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of texts that are no Python, such as "3if"
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _is_finite(value: Any) -> bool:
    """Whether a value is a number that JSON can hold; one that no float holds is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
