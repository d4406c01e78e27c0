from __future__ import annotations

import io
import re
from typing import Any

import pytest

from deep500.recipe.reporter import ConsoleReporter, SilentReporter
from deep500.recipe.result import MetricResult
from tests.unit.recipe.support import region_row, result


def told(*, quiet: bool = False, **changes: Any) -> list[str]:
    stream = io.StringIO()
    reporter = ConsoleReporter(quiet=quiet, stream=stream)
    reporter.started(result(**changes))
    reporter.finished(result(**changes))
    return stream.getvalue().splitlines()


def test_verdict_is_told_line_by_line() -> None:
    metrics = [
        MetricResult("TestAccuracy", 98.25, "%", "higher", 97.0, 1.25, True),
        MetricResult("Time", 12.5, "s", "lower", 10.0, -2.5, False),
        MetricResult("Loss", 0.5, "", "lower", None, None, None),
    ]

    assert told(metrics=metrics, recipe={"name": "small", "path": "dir/[red]small.py"}) == [
        "Recipe small (dir/[red]small.py)",
        "reference 2 on cpu, seed 0, configuration 000000000000",
        "",
        "metric        value    acceptable  margin",
        "TestAccuracy  98.25 %  >= 97 %     +1.25 %  PASSED",
        "Time          12.5 s   <= 10 s     -2.5 s   FAILED",
        "Loss          0.5                           reported",
        "FAILED",
    ]


def test_quiet_tells_the_verdict_only() -> None:
    assert told(quiet=True) == [
        "metric    value  acceptable  margin",
        "Accuracy  98 %   >= 97 %     +1 %    PASSED",
        "PASSED",
    ]


REGIONS = {
    "elapsed_s": 9.0,
    "overhead_s_per_call": 1e-6,
    "overhead_s": 1e-5,
    "rows": [
        region_row("imports", total_s=1.25),
        region_row("data", total_s=0.04),
        region_row("build", total_s=0.06),
        region_row("environment", total_s=0.1),
        region_row("training", total_s=5.0),
        region_row("training", "training set", total_s=4.3),
        region_row("training", "test set", total_s=0.7),
        region_row("training", "other", total_s=0.0),
        region_row("metrics", total_s=0.0),
    ],
}


def test_where_the_time_went_is_told() -> None:
    assert told(regions=REGIONS)[2:] == [
        "imports 1.2 s, data 0.0 s, build 0.1 s, training 4.3 s, tests 0.7 s",
        "",
        "metric    value  acceptable  margin",
        "Accuracy  98 %   >= 97 %     +1 %    PASSED",
        "PASSED",
    ]


def test_quiet_tells_no_times() -> None:
    assert told(quiet=True, regions=REGIONS) == told(quiet=True)


def test_only_what_was_reached_has_a_time() -> None:
    regions = {**REGIONS, "rows": [region_row("data", total_s=0.5)]}

    assert told(regions=regions, complete=False, failure="interrupted", metrics=[])[2:] == [
        "data 0.5 s",
        "interrupted",
        "FAILED (incomplete)",
    ]


def test_divergence_is_told() -> None:
    assert told(failure="The training diverged: the loss is nan.")[-2:] == [
        "The training diverged: the loss is nan.",
        "FAILED",
    ]


def test_incomplete_run_is_told() -> None:
    assert told(complete=False, failure="interrupted")[-2:] == ["interrupted", "FAILED (incomplete)"]


def test_long_lines_are_not_broken() -> None:
    path = "/".join(["a_long_folder_name"] * 20)

    assert told(recipe={"name": "small", "path": path})[0] == f"Recipe small ({path})"


def test_progress_is_shown_unless_quiet() -> None:
    assert [type(event).__name__ for event in ConsoleReporter().events(3)] == ["TerminalBarEvent"]
    assert not ConsoleReporter(quiet=True).events(3)


def test_silent_reporter_tells_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = SilentReporter()
    reporter.started(result())
    reporter.finished(result())

    assert not reporter.events(3)
    assert capsys.readouterr() == ("", "")


def test_control_characters_and_odd_paths_are_escaped() -> None:
    assert told(recipe={"name": "a\x1b[1m", "path": "a\nb.py"})[0] == "Recipe a\\x1b[1m ('a\\nb.py')"


def test_what_the_stream_cannot_write_is_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    ConsoleReporter(stream=stream).started(result(recipe={"name": "é✓", "path": None}))
    stream.flush()

    assert raw.getvalue().splitlines()[0] == b"Recipe \\xe9\\u2713"


def test_several_runs_are_shown_side_by_side() -> None:
    stream = io.StringIO()
    found = {"values": [97.5, 96.0], "median": 96.75, "interval": None, "note": "2 runs; an interval needs 6"}
    six = {"values": [1.0, 2.0], "median": 1.5, "interval": {"low": 1.0, "high": 2.0, "confidence": 0.95}, "note": ""}
    runs = {
        "seeds": [5, 6],
        "passed": [True, False],
        "rule": "every run passes",
        "statistics": {"TestAccuracy": found, "Loss": six},
    }
    ConsoleReporter(stream=stream).finished_runs(result(runs=runs))

    text = stream.getvalue()
    assert re.search(r"metric +seed 5 +seed 6 +median", text)
    assert re.search(r"TestAccuracy +97\.5 +96 +96\.75 +2 runs; an interval needs 6", text)
    assert re.search(r"Loss +1 +2 +1\.5 +\[1, 2\] \(95 % interval of the median\)", text)
    assert re.search(r"PASSED +FAILED", text)
    assert text.splitlines()[-1] == "FAILED: 1 of 2 runs pass (accepted: every run passes)"
