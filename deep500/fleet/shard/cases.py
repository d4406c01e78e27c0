"""Cases: tests, or files of tests where no more is known, with what they took and how many GPUs they need."""

from __future__ import annotations

import fnmatch
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deep500.core.errors import FleetError
from deep500.core.texts import shown

if TYPE_CHECKING:
    from deep500.fleet.outcome_table import OutcomeTable

__all__ = ["Assumed", "Case", "Needs", "cases_of_outcomes", "cases_of_times", "node_id", "with_durations"]

#: Between a file and what is in it.
_SEPARATOR = "::"

#: What JUnit's files call a class: names with points; and those of its parts that are a file of tests.
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_TEST_FILE = re.compile(r"test_\w+|\w+_test")


@dataclass(frozen=True)
class Case:
    """A test, or a file of tests.

    Attributes:
        name: A node id, or the name of a file.
        seconds: What it takes; ``None`` where that is unknown.
        gpus: How many GPUs it needs.
        is_assumed: Whether the seconds are assumed.
        runs: How often it passed or failed.
        failures: How often it failed.
        declared: How many GPUs its mark says, where that is known.
    """

    name: str
    seconds: float | None
    gpus: float = 1.0
    is_assumed: bool = False
    runs: int = 0
    failures: int = 0
    declared: float | None = None

    @property
    def file(self) -> str:
        """The file."""
        return self.name.split(_SEPARATOR, 1)[0]

    @property
    def is_file(self) -> bool:
        """Whether nothing is known of what is in the file."""
        return _SEPARATOR not in self.name


@dataclass(frozen=True)
class Assumed:
    """What was taken where no duration is known.

    Attributes:
        count: For how many.
        of: Of how many.
        seconds: What each was taken for; ``None`` where all are known.
        rule: Why.
    """

    count: int
    of: int
    seconds: float | None
    rule: str


class Needs:
    """How many GPUs tests need that do not say it themselves: patterns, of which the last that fits counts."""

    def __init__(self, texts: Iterable[str] = (), default: float = 1.0) -> None:
        """Take needs given as ``PATTERN=N``.

        Raises:
            FleetError: A text is none.
        """
        self._default = default
        self._needs: list[tuple[str, float]] = []
        for text in texts:
            pattern, separator, number = text.rpartition("=")
            if not (separator and pattern and number.strip().isdecimal()):
                raise FleetError(f"A need was given as {shown(text)}; accepted is PATTERN=N, such as '*pipeline*=4'.")
            self._needs.append((pattern, float(number)))

    def of(self, name: str, known: float | None = None) -> float:
        """Return how many GPUs a test needs.

        Args:
            name: Its node id, or its file.
            known: What it itself says.
        """
        fitting = [need for pattern, need in self._needs if fnmatch.fnmatchcase(name, pattern)]
        if fitting:
            return fitting[-1]
        return self._default if known is None else known


def cases_of_times(times: Mapping[str, float | None], needs: Needs | None = None) -> list[Case]:
    """Return the cases of recorded seconds, in their order; ``None`` is unknown."""
    needs = needs or Needs()
    return [Case(name, seconds, needs.of(name)) for name, seconds in times.items()]


def cases_of_outcomes(table: OutcomeTable, needs: Needs | None = None, count: str = "used") -> list[Case]:
    """Return a case for each key, in their order: median duration, runs and failures, and the GPUs that it needs.

    A duration is that of an outcome that passed or failed; one that was cut off says only that it would have been
    longer. What a test needs is the most that any of its runs used (label ``gpus_used``); where no run tells, what it
    needed where it was skipped (``gpus_needed``), what it declares (``gpus_declared``), what its job had (``gpus``).

    Args:
        table: Outcomes, with the history in as many groups as there are.
        needs: What is needed by tests that tell nothing; what its patterns say goes before what tests tell.
        count: ``used`` as above, or ``declared``, which asks the mark first.

    Raises:
        FleetError: ``count`` is neither.
    """
    import polars as pl

    if count not in ("used", "declared"):
        raise FleetError(f"The GPUs that count were given as {shown(count)}; accepted are used and declared.")
    needs = needs or Needs()
    frame = table.frame
    first = ("gpus_used", "gpus_needed") if count == "used" else ("gpus_needed", "gpus_declared")
    columns = [name for name in (*first, "gpus_declared", "gpus_used", "gpus") if name in frame.columns]
    seconds = pl.col("ended") - pl.col("started")
    if "duration_s" in frame.columns:
        seconds = pl.coalesce(pl.col("duration_s").cast(pl.Float64, strict=False), seconds)
    says = pl.col("status").is_in(["passed", "failed"])
    rows = (
        frame.group_by("key", maintain_order=True)
        .agg(
            seconds.filter(says & (seconds >= 0)).median().alias("seconds"),
            says.sum().alias("runs"),
            (pl.col("status") == "failed").sum().alias("failures"),
            (pl.col("file").first() if "file" in frame.columns else pl.lit(None)).alias("file"),
            *(pl.col(name).cast(pl.Float64, strict=False).max().alias(f"of_{name}") for name in dict.fromkeys(columns)),
        )
        .iter_rows(named=True)
    )
    return [_case(row, list(dict.fromkeys(columns)), needs) for row in rows]


def node_id(key: str, file: str | None = None) -> str:
    """Return the name by which pytest runs a test again, for the key of a test from a JUnit file.

    There a class is ``folder.test_file.Class``. The file is known where the file of JUnit tells it (pytest does with
    ``-o junit_family=xunit1``); else it is taken to be the first part that is named as a file of tests. Other keys stay
    as they are.

    Example:
        >>> node_id("tests.unit.test_mesh.TestMesh::test_two[0]")
        'tests/unit/test_mesh.py::TestMesh::test_two[0]'
    """
    owner, separator, test = key.partition(_SEPARATOR)
    if not separator or _DOTTED.fullmatch(owner) is None:
        return key
    parts = owner.split(".")
    if file is not None and file.endswith(".py"):
        module = file[:-3].replace("\\", "/").strip("/").split("/")
        if parts[: len(module)] == module:
            return _SEPARATOR.join([file, *parts[len(module) :], test])
    found = next((number for number, part in enumerate(parts) if _TEST_FILE.fullmatch(part)), None)
    if found is None:
        return key
    return _SEPARATOR.join(["/".join(parts[: found + 1]) + ".py", *parts[found + 1 :], test])


def with_durations(cases: Sequence[Case], rule: str | float = "median") -> tuple[list[Case], Assumed]:
    """Return the cases with a duration for each.

    Args:
        cases: Those that are known and those that are not.
        rule: What those that are not known take: the ``median`` or the ``max`` of those that are, or seconds. Where
            nothing is known, each takes 1 s, so that they are divided evenly.

    Returns:
        The cases in their order, and what was assumed.

    Raises:
        FleetError: The rule is none.
    """
    known = [case.seconds for case in cases if case.seconds is not None]
    missing = len(cases) - len(known)
    if isinstance(rule, float) and rule >= 0:
        seconds, why = rule, "given"
    elif rule not in ("median", "max"):
        raise FleetError(f"Unknown durations were given as {shown(rule)}; accepted are median, max and seconds from 0.")
    elif not known:
        seconds, why = 1.0, "no duration is known, so all count the same"
    else:
        seconds = statistics.median(known) if rule == "median" else max(known)
        why = f"the {rule} of the {len(known)} that are known"
    filled = [c if c.seconds is not None else replace(c, seconds=seconds, is_assumed=True) for c in cases]
    return filled, Assumed(missing, len(cases), seconds if missing else None, why if missing else "all are known")


def _case(row: Mapping[str, Any], columns: list[str], needs: Needs) -> Case:
    name = node_id(str(row["key"]), row["file"])
    known = next((row[f"of_{column}"] for column in columns if row[f"of_{column}"] is not None), None)
    return Case(
        name,
        row["seconds"],
        needs.of(name, known),
        runs=int(row["runs"]),
        failures=int(row["failures"]),
        declared=row.get("of_gpus_declared"),
    )
