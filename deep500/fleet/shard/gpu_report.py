"""What tests declare, what they use, and what is lost where GPUs lack."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from deep500.core.errors import FleetError
from deep500.fleet.outcome_table import OutcomeTable
from deep500.fleet.shard.cases import cases_of_outcomes

__all__ = ["GpuReport", "GpuRow", "LostTest", "gpu_report"]

#: Causes that pytest's files of JUnit give for what is no test.
_NOT_COLLECTED = ("error: collection failure", "error: internal error")

_LABELS = ("gpus_declared", "gpus_used", "gpus_needed")


@dataclass(frozen=True)
class GpuRow:
    """The tests that need one number of GPUs.

    Attributes:
        gpus: How many; ``None`` where that is unknown.
        tests: How many tests.
        executed: How many of them passed or failed in any group.
        lost: How many were skipped in some group because GPUs lacked.
        seconds: What those that ran take together.
        failures: How often they failed.
    """

    gpus: float | None
    tests: int
    executed: int
    lost: int
    seconds: float
    failures: int


@dataclass(frozen=True)
class LostTest:
    """A test that did not run, or would not, because GPUs lack.

    Attributes:
        test: Which.
        gpus: How many it needs.
        groups: In how many groups it was skipped for that.
        seconds: Its median duration where it ran; ``None`` where it never did.
        runs: How often it ran.
        failures: How often it failed.
    """

    test: str
    gpus: float
    groups: int
    seconds: float | None
    runs: int
    failures: int


@dataclass(frozen=True)
class GpuReport:
    """What outcomes tell about GPUs.

    Attributes:
        declared: Tests by what they declare.
        used: Tests by what counts: what they used, or, where nobody saw that, what they need or declare.
        seen: Of how many tests it was seen what they use.
        over_declared: Tests that never used as many as they declare: ``(test, declared, used)``.
        under_declared: Tests that used more than they declare.
        lost: Tests that were skipped because GPUs lacked.
        max_gpus: What the following are for; ``None`` where nobody asked.
        would_be_lost: Tests that need more.
        failing_groups: Groups with a failure.
        missed_groups: Of these, those in which only tests failed that would be lost.
        not_collected: What pytest could not collect, or that it broke: ``(group, what)``. Its tests are not known.
    """

    declared: tuple[GpuRow, ...]
    used: tuple[GpuRow, ...]
    seen: int
    over_declared: tuple[tuple[str, float, float], ...]
    under_declared: tuple[tuple[str, float, float], ...]
    lost: tuple[LostTest, ...]
    max_gpus: float | None
    would_be_lost: tuple[LostTest, ...]
    failing_groups: int
    missed_groups: int
    not_collected: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold."""
        contradictions = {
            name: [{"test": t, "declared": d, "used": u} for t, d, u in tests]
            for name, tests in (("over_declared", self.over_declared), ("under_declared", self.under_declared))
        }
        return {
            "by_declared": [vars(row) for row in self.declared],
            "by_used": [vars(row) for row in self.used],
            "tests_with_use_seen": self.seen,
            **contradictions,
            "lost": [vars(test) for test in self.lost],
            "max_gpus": self.max_gpus,
            "would_be_lost": [vars(test) for test in self.would_be_lost],
            "failing_groups": self.failing_groups,
            "missed_groups": self.missed_groups,
            "not_collected": [{"group": group, "what": what} for group, what in self.not_collected],
        }


def gpu_report(table: OutcomeTable, max_gpus: float | None = None) -> GpuReport:
    """Return what outcomes tell about GPUs.

    Args:
        table: Outcomes of tests with the labels that the plug-in writes (``gpus_declared``, ``gpus_used``,
            ``gpus_needed``), such as those read from files of JUnit.
        max_gpus: Also tell what would be lost with so many.

    Raises:
        FleetError: No outcome has such a label, or a number of GPUs.
    """
    unknown = pl.col("cause").is_in(_NOT_COLLECTED).fill_null(value=False)
    tests = _tests(OutcomeTable(table.frame.filter(~unknown)))
    broken = table.frame.filter(unknown).select("group", "key").unique(maintain_order=True)
    lost = tuple(_lost(row) for row in tests if row["groups_lost"])
    beyond = [row for row in tests if max_gpus is not None and (row["count"] or 0) > max_gpus]
    failing, missed = _failing(table, {row["key"] for row in beyond})
    both = [row for row in tests if row["used"] is not None and (row["declared"] is not None or row["used"] > 0)]
    return GpuReport(
        _rows(tests, "declared"),
        _rows(tests, "count"),
        sum(row["used"] is not None for row in tests),
        tuple((r["key"], r["declared"], r["used"]) for r in both if r["used"] < (r["declared"] or 0)),
        tuple((r["key"], r["declared"] or 0.0, r["used"]) for r in both if r["used"] > (r["declared"] or 0)),
        _ordered(lost),
        max_gpus,
        _ordered(_lost(row) for row in beyond),
        failing,
        missed,
        tuple(broken.iter_rows()),
    )


def _tests(table: OutcomeTable) -> list[dict[str, Any]]:
    """Return a row for each test."""
    frame = table.frame
    if not any(name in frame.columns for name in _LABELS) and frame["gpus"].null_count() == frame.height:
        raise FleetError(
            f"None of the {frame.height} outcomes has a label {', '.join(_LABELS)} or a number of GPUs; run the tests "
            f"with pytest --junitxml where Deep500 is installed, with @pytest.mark.gpus(n) on those that need GPUs."
        )
    columns = {
        name: pl.col(name).cast(pl.Float64, strict=False) if name in frame.columns else pl.lit(None, pl.Float64)
        for name in _LABELS
    }
    lacked = (pl.col("status") == "no_match") & pl.col("needed").is_not_null()
    rows = (
        frame.with_columns(columns[name].alias(name.removeprefix("gpus_")) for name in _LABELS)
        .group_by("key", maintain_order=True)
        .agg(
            pl.col("declared").max(),
            pl.col("used").max(),
            pl.col("needed").max(),
            pl.col("gpus").max(),
            pl.col("group").filter(lacked).n_unique().alias("groups_lost"),
        )
        .iter_rows(named=True)
    )
    tests = []
    for row, case in zip(rows, cases_of_outcomes(table), strict=True):
        known = any(row[name] is not None for name in ("declared", "used", "needed", "gpus"))
        count = case.gpus if known else None
        tests.append({**row, "count": count, "case": case})
    return tests


def _rows(tests: list[dict[str, Any]], column: str) -> tuple[GpuRow, ...]:
    numbers = sorted({row[column] for row in tests}, key=lambda number: (number is None, number or 0))
    made = []
    for number in numbers:
        own = [row for row in tests if row[column] == number]
        cases = [row["case"] for row in own]
        made.append(
            GpuRow(
                number,
                len(own),
                sum(case.runs > 0 for case in cases),
                sum(row["groups_lost"] > 0 for row in own),
                sum(case.seconds or 0.0 for case in cases),
                sum(case.failures for case in cases),
            )
        )
    return tuple(made)


def _lost(row: dict[str, Any]) -> LostTest:
    case = row["case"]
    needed = row["needed"] if row["groups_lost"] else row["count"]
    return LostTest(row["key"], needed, row["groups_lost"], case.seconds, case.runs, case.failures)


def _ordered(tests: Iterable[LostTest]) -> tuple[LostTest, ...]:
    return tuple(sorted(tests, key=lambda test: (-test.gpus, test.test)))


def _failing(table: OutcomeTable, beyond: set[str]) -> tuple[int, int]:
    """Return how many groups have a failure, and in how many of them only these tests failed."""
    failed = table.frame.filter(pl.col("status") == "failed").select(
        "group", pl.col("key").is_in(list(beyond)).alias("beyond")
    )
    by_group = failed.group_by("group").agg(pl.col("beyond").all())
    return by_group.height, int(by_group["beyond"].sum())
