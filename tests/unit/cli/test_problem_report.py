from __future__ import annotations

import pytest

from deep500.cli.problem_report import (
    duration_text,
    header_text,
    left_out_text,
    list_rows,
    notes,
    overhead_text,
    summary_text,
)
from deep500.measure.results.overheads import Overhead, overhead
from deep500.measure.results.summary import Basis
from deep500.measure.statistics.comparison import Verdict
from deep500.measure.statistics.quantiles import Interval
from tests.unit.measure.results.support import pair


def of(ratio: float, verdict: Verdict = Verdict.UNDECIDED, half: float | None = 0.01) -> Overhead:
    one = overhead(pair(1.0, launches=6))
    interval = None if half is None else Interval(ratio, ratio - half, ratio + half, 0.95, 0.96)
    return Overhead(one.base, one.other, ratio, interval, Basis.IN_PROCESS if half else Basis.NONE, verdict)


def test_lines_of_a_table_are_aligned() -> None:
    head = header_text("pytorch", 12).splitlines()
    lines = [
        overhead_text(7, "512x16x512", 12, of(1.0234, Verdict.SLOWER)),
        overhead_text(112, "8448x48000x1", 12, of(0.998, half=None)),
    ]

    assert head[0] == "pytorch"
    assert "+2.34 %" in lines[0]
    assert "+1.34 .. +3.34" in lines[0]
    assert "-0.20 %" in lines[1]
    assert "none" in lines[1]
    assert lines[0].endswith("slower")
    end = head[1].index("overhead") + len("overhead")
    assert all(line[end - 1] == "%" for line in lines)
    assert {line.index(word) for line, word in zip(lines, ("slower", "undecided"))} == {head[1].index("verdict")}
    assert left_out_text(7, "512", 12, "no memory") == "   7  512           not measured: no memory"


def test_summary_has_median_interval_and_counts() -> None:
    found = [of(1.0 + 0.01 * number) for number in range(6)] + [of(1.06, Verdict.SLOWER)]

    assert summary_text("pytorch", found, 2, 1) == (
        "pytorch: median overhead over 7 sizes +3.00 % (95 % interval +0.00 .. +6.00 %); 1 slower, 0 faster, "
        "6 undecided, 2 not measured, 1 not reached"
    )
    assert summary_text("pytorch", [of(0.99, Verdict.FASTER)], 0, 0) == (
        "pytorch: median overhead over 1 size -1.00 % (no interval, which needs 6 sizes); 0 slower, 1 faster, "
        "0 undecided"
    )
    assert summary_text("pytorch", [], 3, 0) == "pytorch: 3 not measured"
    assert summary_text("pytorch", [], 0, 3) == "pytorch: 3 not reached"


def test_notes_say_what_the_intervals_are() -> None:
    assert list(notes([])) == []
    (one,) = notes([of(1.0)])
    assert "of that process alone" in one
    (few,) = notes([of(1.0, half=None)])
    assert "needs 6 (--launches)" in few
    assert list(notes([overhead(pair(1.0, launches=6))])) == []


def test_rows_of_a_list() -> None:
    assert list(list_rows([("512x16x512", 8388608, 1114112)])) == [("1", "512x16x512", "8.389 Mflop, 1.114 MB")]


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.2, "3 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
