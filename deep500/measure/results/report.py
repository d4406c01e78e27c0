"""What a comparison found: the base with its absolute value, and a row for each other system.

The classes are the content of a comparison file (``comparison.schema.json``). There is no form of a ratio without its
base: a row is part of a report, and a report has a base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.compatibility import FactorDifference
from deep500.measure.results.document import Pairing, Statistic, plain
from deep500.measure.results.summary import Basis, Summary
from deep500.measure.statistics.comparison import Verdict
from deep500.measure.statistics.launches import Spread
from deep500.measure.statistics.multiple import PairOfSystems
from deep500.measure.statistics.quantiles import Interval
from deep500.measure.workload import Score

__all__ = ["SCHEMA_VERSION", "ComparedSystem", "ComparisonReport", "ComparisonRow", "ManyCompared", "Source"]

#: Version of the comparison file's form; it grows with every change that a reader could notice.
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Source:
    """The file that a measurement was read from.

    Attributes:
        path: Its path, as it was given.
        sha256: SHA-256 of its bytes.
    """

    path: str
    sha256: str


@dataclass(frozen=True)
class ComparedSystem:
    """One system by itself.

    Attributes:
        label: A name that is unique in the comparison.
        spec: The workload's text.
        configuration_hash: SHA-256 of all that was measured together.
        absolute: Its value in the metric's unit, with its interval.
        scores: How good its results are.
        source: Where it was read from; ``None`` when it came from a program.
    """

    label: str
    spec: str
    configuration_hash: str
    absolute: Summary
    scores: tuple[Score, ...] = ()
    source: Source | None = None


@dataclass(frozen=True)
class ComparisonRow:
    """One system against the base.

    Attributes:
        system: The system by itself.
        ratio: Its value over the base's: the Hodges-Lehmann estimate, or with too few launches the ratio of the
            estimates.
        interval: Interval of the ratio; ``None`` with too few launches.
        p_value: p-value of no difference; ``None`` with too few launches.
        p_holm: The same, corrected for the number of rows.
        verdict: What is said of the system, all rows together.
        pairing: How samples belonged together when they were compared.
        factors: All that is known to differ from the base.
        note: What to know about the verdict; empty for nothing.
    """

    system: ComparedSystem
    ratio: float
    interval: Interval | None
    p_value: float | None
    p_holm: float | None
    verdict: Verdict
    pairing: Pairing
    factors: tuple[FactorDifference, ...]
    note: str


@dataclass(frozen=True)
class ManyCompared:
    """All systems at once, for three or more.

    Attributes:
        statistic: The Kruskal-Wallis statistic over the launch values.
        p_value: p-value of all systems being alike.
        pairs: Every pair of systems, by Dunn's test after Holm's correction.
    """

    statistic: float
    p_value: float
    pairs: tuple[PairOfSystems, ...]


@dataclass(frozen=True)
class ComparisonReport:
    """Systems against one base.

    Source: T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC15, rules 1 and 7.

    Attributes:
        deep500: Version of Deep500.
        created: When it was compared, UTC, ISO 8601.
        statistic: Which number stands for the samples of a launch, and the confidence of every interval.
        margin: Relative difference that does not matter; ``None`` for none.
        base: The system that all ratios refer to.
        rows: The others, in the order given.
        many: All systems at once; ``None`` for two systems, or when one has too few launches.
        warnings: What makes the comparison doubtful, for people.
    """

    deep500: str
    created: str
    statistic: Statistic
    margin: float | None
    base: ComparedSystem
    rows: tuple[ComparisonRow, ...]
    many: ManyCompared | None = None
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the comparison file."""
        metric = self.base.absolute
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "comparison",
            "deep500": self.deep500,
            "created": self.created,
            "metric": plain(
                {"name": metric.name, "unit": metric.unit, "kind": metric.kind, "direction": metric.direction}
            ),
            "statistic": plain(self.statistic),
            "margin": self.margin,
            "base": _system_content(self.base),
            "rows": [
                {
                    "system": _system_content(row.system),
                    "ratio": {"estimate": row.ratio, "interval": _interval_content(row.interval)},
                    "p_value": row.p_value,
                    "p_holm": row.p_holm,
                    "verdict": row.verdict.value,
                    "pairing": row.pairing,
                    "factors": plain(row.factors),
                    "note": row.note,
                }
                for row in self.rows
            ],
            "many": plain(self.many),
            "warnings": plain(self.warnings),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ComparisonReport:
        """Return the report of a comparison file's content, which has to be valid (see ``results/files.py``)."""
        metric, many = content["metric"], content["many"]
        return cls(
            deep500=content["deep500"],
            created=content["created"],
            statistic=Statistic(**content["statistic"]),
            margin=content["margin"],
            base=_system(content["base"], metric),
            rows=tuple(_row(entry, metric) for entry in content["rows"]),
            many=None if many is None else ManyCompared(**{**many, "pairs": tuple(map(_pair, many["pairs"]))}),
            warnings=tuple(content["warnings"]),
        )


def _interval_content(interval: Interval | None) -> dict[str, Any] | None:
    """Return an interval without its estimate, which stands beside it."""
    if interval is None:
        return None
    return {
        "low": interval.low,
        "high": interval.high,
        "confidence": interval.confidence_requested,
        "coverage": interval.coverage,
        "exact": interval.exact,
    }


def _system_content(system: ComparedSystem) -> dict[str, Any]:
    absolute = plain(system.absolute)
    for key in ("name", "unit", "kind", "direction"):
        del absolute[key]  # the same for all systems; they stand in the report's metric
    absolute["basis"] = system.absolute.basis.value
    absolute["interval"] = _interval_content(system.absolute.interval)
    content: dict[str, Any] = plain(system)
    return {**content, "absolute": absolute}


def _interval(estimate: float, entry: Mapping[str, Any] | None) -> Interval | None:
    if entry is None:
        return None
    return Interval(estimate, entry["low"], entry["high"], entry["confidence"], entry["coverage"], entry["exact"])


def _summary(entry: Mapping[str, Any], metric: Mapping[str, Any]) -> Summary:
    return Summary(
        **{
            **entry,
            "name": metric["name"],
            "unit": metric["unit"],
            "kind": MetricKind(metric["kind"]),
            "direction": Direction(metric["direction"]),
            "interval": _interval(entry["estimate"], entry["interval"]),
            "basis": Basis(entry["basis"]),
            "launch_values": tuple(entry["launch_values"]),
            "spread": None if entry["spread"] is None else Spread(**entry["spread"]),
            "warnings": tuple(entry["warnings"]),
        }
    )


def _system(entry: Mapping[str, Any], metric: Mapping[str, Any]) -> ComparedSystem:
    scores = tuple(
        Score(**{**score, "direction": Direction(score["direction"]), "kind": MetricKind(score["kind"])})
        for score in entry["scores"]
    )
    source = None if entry["source"] is None else Source(**entry["source"])
    return ComparedSystem(
        **{**entry, "absolute": _summary(entry["absolute"], metric), "scores": scores, "source": source}
    )


def _row(entry: Mapping[str, Any], metric: Mapping[str, Any]) -> ComparisonRow:
    return ComparisonRow(
        system=_system(entry["system"], metric),
        ratio=entry["ratio"]["estimate"],
        interval=_interval(entry["ratio"]["estimate"], entry["ratio"]["interval"]),
        p_value=entry["p_value"],
        p_holm=entry["p_holm"],
        verdict=Verdict(entry["verdict"]),
        pairing=entry["pairing"],
        factors=tuple(FactorDifference(**factor) for factor in entry["factors"]),
        note=entry["note"],
    )


def _pair(entry: Mapping[str, Any]) -> PairOfSystems:
    return PairOfSystems(**entry)
