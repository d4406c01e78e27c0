"""The contract of a workload: something whose runs are timed, with all that must be known to compare two of them."""

from __future__ import annotations

import abc
import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deep500.core.errors import MeasurementError, near_miss
from deep500.core.registry import Registry
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
    """

    items: float | None = None
    item: str = "item"
    flops: float | None = None
    bytes: float | None = None
    dtype: str | None = None


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
    """

    name: str
    value: float
    unit: str = ""
    direction: Direction = Direction.HIGHER
    kind: MetricKind = MetricKind.SCORE
    acceptable: float | None = None
    held_out: bool | None = None


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
        text: The whole text.
        kind: Its kind: the file in ``deep500/workloads``.
        name: What follows the kind.
        options: The ``key=value`` pairs; values are Python literals where they read as such, else texts.
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
    Python callable ``package.module:function``.

    Raises:
        MeasurementError: The text has another form.

    Example:
        >>> spec = parse_workload("model:resnet,depth=8@pytorch:gpu:0")
        >>> spec.kind, spec.name, dict(spec.options), spec.framework, spec.device
        ('model', 'resnet', {'depth': 8}, 'pytorch', 'gpu:0')
    """
    if not isinstance(text, str) or ":" not in text:
        raise MeasurementError(
            f"{text!r} is not a workload. Accepted are KIND:NAME[,key=value...][@FRAMEWORK[:DEVICE]] with a kind of "
            f"{', '.join(WORKLOADS.names())}, and Python callables such as package.module:function."
        )
    kind, _, rest = text.partition(":")
    if kind not in WORKLOADS:
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", kind):
            raise MeasurementError(
                f"{text!r} is not a workload: there is no kind {kind!r}.{near_miss(kind, WORKLOADS.names())} Kinds: "
                f"{', '.join(WORKLOADS.names())}."
            )
        kind, rest = CALLABLE, text
    rest, at, place = _split_place(rest)
    framework, _, device = place.partition(":")
    if at and not framework:
        raise MeasurementError(f"{text!r} names no framework after its @; accepted is @FRAMEWORK or @FRAMEWORK:DEVICE.")
    name, *pairs = _split_at_commas(rest)
    if not name:
        raise MeasurementError(f"{text!r} names nothing after its kind; accepted is {kind}:NAME.")
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise MeasurementError(f"{pair!r} in {text!r} is no option; accepted is key=value.")
        if key in options:
            raise MeasurementError(f"{text!r} gives {key} twice.")
        options[key] = _literal(value)
    return WorkloadSpec(text, kind, name, options, framework or None, device or None)


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


def _split_place(text: str) -> tuple[str, str, str]:
    """Split at the last ``@`` that stands outside of brackets and quotes."""
    depths = _depths(text)
    places = [index for index, character in enumerate(text) if character == "@" and not depths[index]]
    if not places:
        return text, "", ""
    return text[: places[-1]], "@", text[places[-1] + 1 :]


def _split_at_commas(text: str) -> list[str]:
    depths = _depths(text)
    cuts = [index for index, character in enumerate(text) if character == "," and not depths[index]]
    return [text[start + 1 : end] for start, end in zip([-1, *cuts], [*cuts, len(text)])]


def _depths(text: str) -> list[int]:
    """Return for each character whether it stands within brackets or quotes."""
    depth, quote, depths = 0, "", []
    for character in text:
        if quote:
            depths.append(1)
            quote = "" if character == quote else quote
            continue
        if character in "'\"":
            quote = character
        depth += (character in "([{") - (character in ")]}")
        depths.append(max(depth, 0) + (character in "'\")]}"))
    return depths


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text.strip()
