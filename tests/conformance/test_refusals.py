"""What no number may be made of is refused, with the reason, wherever a user could ask for it."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from deep500.cli.main import run_command
from deep500.core.errors import MeasurementError
from deep500.measure.metric import MetricKind
from deep500.measure.results import report
from deep500.measure.results.comparing import compare
from deep500.measure.results.files import read_comparison, write_comparison, write_measurement
from deep500.measure.results.summary import mean, summarise
from deep500.measure.statistics.comparison import Comparison
from deep500.measure.statistics.launches import in_process_interval, nested_interval
from deep500.measure.statistics.means import mean_of
from deep500.measure.statistics.quantiles import quantile_interval
from tests.unit.measure.results.support import P99, measurement, metric, pair, rows, system


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must be refused with one line, and return the line."""
    code = run_command([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, ""), captured
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def comparison() -> dict[str, Any]:
    found = pair()
    return compare([(found, each) for each in found.systems]).to_dict()


def test_ratio_without_its_base_cannot_be_asked_for() -> None:
    with pytest.raises(MeasurementError, match="a ratio needs its base"):
        compare([(pair(), "other")])


def test_ratio_without_its_base_cannot_be_asked_for_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_measurement(measurement(), tmp_path / "a.json")

    assert "a ratio needs its base" in refused(capsys, "compare", tmp_path / "a.json")


@pytest.mark.parametrize("part", ["base", "base.absolute", "base.absolute.estimate", "metric.unit"])
def test_ratio_without_its_base_is_not_read(tmp_path: Path, part: str) -> None:
    content = comparison()
    *above, key = part.split(".")
    holder = content
    for name in above:
        holder = holder[name]
    del holder[key]
    (tmp_path / "comparison.json").write_text(json.dumps(content))

    with pytest.raises(MeasurementError, match=f"'{key}' is a required property"):
        read_comparison(tmp_path / "comparison.json")


def test_ratio_without_its_base_is_no_result_of_any_comparison() -> None:
    holders = [
        each
        for _, each in inspect.getmembers(report, inspect.isclass)
        if "ratio" in getattr(each, "__annotations__", {})
    ]

    assert holders == [report.ComparisonRow]  # and rows are parts of a report
    assert "base" in report.ComparisonReport.__annotations__
    assert {"ratio", "a", "b"} <= set(Comparison.__annotations__)


def test_p99_from_50_samples_is_refused() -> None:
    message = r"at least 368"

    with pytest.raises(MeasurementError, match=rf"has 50 samples in launch 1; the 0.99 quantile .* {message}"):
        summarise(metric(rows(launches=1, samples=50)), P99)
    with pytest.raises(MeasurementError, match=message):
        summarise(metric(rows(launches=10, samples=50)), P99)
    with pytest.raises(MeasurementError, match=message):
        quantile_interval(rows(launches=1, samples=50)[0], 0.99)
    with pytest.raises(MeasurementError, match=message):
        in_process_interval(rows(launches=1, samples=50), quantile=0.99)
    with pytest.raises(MeasurementError, match=message):
        nested_interval(rows(launches=10, samples=50), quantile=0.99)
    assert summarise(metric(rows(launches=1, samples=368)), P99).interval is not None


@pytest.mark.parametrize("command", ["compare", "export"])
def test_p99_from_50_samples_is_refused_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    found = measurement(*(system(rows(samples=50, seed=ord(label)), label=label) for label in "ab"), statistic=P99)
    write_measurement(found, tmp_path / "a.json")
    more = [] if command == "compare" else ["--to", "pyperf"]

    assert "needs at least 368" in refused(capsys, command, tmp_path / "a.json", *more)


def test_mean_of_ratios_is_refused() -> None:
    with pytest.raises(MeasurementError, match="Ratios are not averaged"):
        mean_of([1.0, 2.0], MetricKind.RATIO)
    with pytest.raises(MeasurementError, match="Ratios are not averaged"):
        mean(metric(rows(), kind=MetricKind.RATIO))


def test_comparison_of_files_with_other_data_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    write_measurement(measurement(system(label="one")), paths[0])
    write_measurement(measurement(system(rows(seed=1), label="two", data_hash="f" * 64), day=2), paths[1])

    told = "one and two cannot be compared: the data differs, its SHA-256 is dddddddddddd… and ffffffffffff…"
    assert told in refused(capsys, "compare", *paths)
    assert told in refused(capsys, "compare", *paths, "--allow-unknown")
    assert told in refused(capsys, "merge", *paths, "--output", tmp_path / "c.json")
    assert not (tmp_path / "c.json").exists()


def test_what_may_be_compared_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    write_measurement(measurement(system(label="one")), paths[0])
    write_measurement(measurement(system(rows(3.0, seed=1), label="two"), day=2), paths[1])

    assert run_command(["compare", *map(str, paths), "--output", str(tmp_path / "c.json")]) == 0
    found = read_comparison(tmp_path / "c.json")
    assert found.rows[0].verdict.value == "slower"
    write_comparison(found, tmp_path / "d.json")
    assert (tmp_path / "d.json").read_bytes() == (tmp_path / "c.json").read_bytes()
    assert "slower" in capsys.readouterr().out
