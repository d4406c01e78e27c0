"""Test histories of the RETECS data sets: Paint Control, IOF/ROL and GSDTSR."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import Reader
from deep500.fleet.readers._delimited import Columns, column_names, read_table

__all__ = ["RetecsReader"]

_NEEDED = {"Name", "Verdict", "Cycle"}
_COLUMNS = Columns(None, ("Name", "Cycle", "Verdict"), ("Id", "Duration"), ("LastRun",), ";")
_MILLISECONDS_PER_HOUR = 3.6e6


class RetecsReader(Reader):
    """Test verdicts with the columns ``Id;Name;Duration;CalcPrio;LastRun;LastResults;Verdict;Cycle``.

    The key is the test's ``Name``, the group the ``Cycle`` of continuous integration, and a ``Verdict`` of 1 has
    *failed* (the opposite of a table of commits and jobs). ``LastRun`` is when the test had run before, not this time,
    so that there are no times; it is a label. The documentation of the data sets names no unit for ``Duration``; it is
    taken as milliseconds for the cost and the label ``duration_s``, which suits any use that only compares.

    Source: Spieker et al., Reinforcement Learning for Automatic Test Case Prioritization and Selection in Continuous
    Integration, ISSTA 2017, and the file format that its data sets describe.
    """

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether its first line names the columns."""
        return not path.is_dir() and set(column_names(head, ";")) >= _NEEDED

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the verdicts."""
        table = read_table(path, report, _COLUMNS, lambda rows: rows)
        nameless = table.filter(pl.col("Name").is_null() | pl.col("Cycle").is_null())
        lines = [f"line {line} has no Name or no Cycle" for line in nameless["line"].head(3)]
        report.add(ProblemKind.INCOMPLETE, str(path), nameless.height, lines)
        table = table.filter(pl.col("Name").is_not_null() & pl.col("Cycle").is_not_null())
        unknown = table.filter(~pl.col("Verdict").is_in(["0", "1"]).fill_null(False))
        words = [f"line {line}: {verdict}" for line, verdict in unknown.select("line", "Verdict").head(3).rows()]
        report.add(ProblemKind.UNKNOWN_STATUS, str(path), unknown.height, words)
        verdict = pl.col("Verdict").replace_strict({"0": "passed", "1": "failed"}, default="missing")
        return table.select(
            key="Name",
            group="Cycle",
            status=verdict,
            cost=pl.col("Duration") / _MILLISECONDS_PER_HOUR,
            duration_s=pl.col("Duration") / 1000.0,
            cycle=pl.col("Cycle").cast(pl.Float64, strict=False),
            execution="Id",
            last_run="LastRun",
        )
