from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deep500.cli.compare import show_report
from deep500.cli.main import run_command
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.comparing import compare
from deep500.measure.results.document import Measurement
from deep500.measure.results.files import read_comparison, write_measurement
from deep500.measure.workload import Work
from tests.unit.measure.results.support import measurement, metric, pair, rows, score, system

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Write two measurements: of 1 ms, and of 3 ms."""
    paths = []
    for day, (name, median) in enumerate((("old", 1e-3), ("new", 3e-3)), 1):
        write_measurement(measurement(system(rows(median, seed=day)), day=day), tmp_path / f"{name}.json")
        paths.append(str(tmp_path / f"{name}.json"))
    return paths


def written(path: Path, found: Measurement) -> str:
    write_measurement(found, path)
    return str(path)


def shown(capsys: Capture, *arguments: object, code: int = 0) -> str:
    assert run_command(["compare", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def row_of(text: str, label: str) -> str:
    """Return the line of the table that begins with a label, and the one below it."""
    lines = text.splitlines()
    number = next(index for index, line in enumerate(lines) if re.match(rf"{re.escape(label)}\s\s", line))
    return " ".join(" ".join(lines[number : number + 2]).split())


def test_table_has_values_with_intervals_ratios_and_verdicts(
    files: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")

    text = shown(capsys, *files)

    assert text.startswith("WallclockTime, median; lower is better")
    number = r"[\d.]+"
    base = rf"lenet \(old.json\) {number} ms base 10 {number} .. {number}"
    assert re.fullmatch(base, row_of(text, "lenet (old.json)"))
    other = rf"lenet \(new.json\) {number} ms (3.\d+|2.9\d+) slower 10 {number} .. {number} {number} .. {number}"
    assert re.fullmatch(other, row_of(text, "lenet (new.json)"))
    assert "Intervals of 95 %." in text
    assert "samples/s" in text
    assert "flop/s" in text


@pytest.mark.parametrize("columns", ["60", "80", "100"])
def test_table_keeps_within_the_terminal(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    systems = (
        system(label="model:lenet,batch_size=64@pytorch"),
        system(rows(2.0), label="model:lenet@tensorflow:gpu:0"),
    )

    text = shown(capsys, written(tmp_path / "a.json", measurement(*systems)))

    table = text.partition("Intervals")[0].splitlines()
    assert max(map(len, table)) <= int(columns)
    assert "slower" in text
    assert "1.9" in text or "2.0" in text


def test_lines_of_a_pipe_are_not_as_narrow_as_a_terminal(files: list[str]) -> None:
    command = [sys.executable, "-m", "deep500", "compare", *files]

    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"PATH": ""})

    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"lenet \(new.json\) .* slower 10 .*", row_of(result.stdout, "lenet (new.json)"))
    assert "\x1b" not in result.stdout


def test_systems_of_one_file_are_compared_with_its_first(tmp_path: Path, capsys: Capture) -> None:
    text = shown(capsys, written(tmp_path / "a.json", pair(0.5)), "--margin", "0.01")

    assert "faster" in row_of(text, "other")
    assert "base" in row_of(text, "base")
    assert "other: compared pair by pair, interleaved run by run" in text
    assert "  framework: pytorch -> tensorflow" in text
    assert "equivalent within 1 %" in text


def test_too_few_launches_are_undecided_and_say_so(tmp_path: Path, capsys: Capture) -> None:
    found = measurement(*(system(rows(launches=3, seed=seed), label=f"s{seed}") for seed in range(2)))

    text = shown(capsys, written(tmp_path / "a.json", found), "--fail-if-slower")

    assert "no interval" in row_of(text, "s1")
    assert "undecided" in row_of(text, "s1")
    assert "s1: 6 process launches of each are needed" in text
    assert "s0: no interval: one of 95 % needs 6 process launches, and there are 3" in text


def test_samples_of_one_process_are_called_that(tmp_path: Path, capsys: Capture) -> None:
    found = measurement(system(rows(launches=1)), fresh=False)
    other = measurement(system(rows(launches=1, seed=1)), fresh=False, day=2)

    text = shown(capsys, written(tmp_path / "a.json", found), written(tmp_path / "b.json", other))

    assert "of one process, with the 95 % interval within it; others may differ" in text
    assert "undecided" in text


@pytest.mark.parametrize(
    ("order", "options", "code"),
    [
        ((0, 1), [], 0),
        ((0, 1), ["--fail-if-slower"], 1),
        ((1, 0), ["--fail-if-slower"], 0),
        ((0, 1), ["--fail-if-slower", "--margin", "9"], 0),
        ((0, 1), ["--fail-if-undecided"], 0),
    ],
)
def test_exit_code_tells_of_slower_systems(
    files: list[str], capsys: Capture, order: tuple[int, int], options: list[str], code: int
) -> None:
    arguments = [str(argument) for argument in (*(files[index] for index in order), *options)]

    assert run_command(["compare", *arguments]) == code


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--fail-if-slower"], 0), (["--fail-if-undecided"], 1)])
def test_exit_code_tells_of_systems_of_which_nothing_was_shown(
    files: list[str], tmp_path: Path, options: list[str], code: int
) -> None:
    few = measurement(system(rows(2.0, launches=3), label="few"), day=9)
    write_measurement(few, tmp_path / "few.json")

    assert run_command(["compare", files[0], str(tmp_path / "few.json"), *options]) == code


@pytest.mark.parametrize("option", ["--output", "--picture"])
def test_input_is_not_replaced(files: list[str], tmp_path: Path, option: str, capsys: Capture) -> None:
    picture = tmp_path / "a.svg"
    picture.write_bytes(Path(files[0]).read_bytes())
    before = picture.read_bytes()

    assert run_command(["compare", str(picture), files[1], option, str(picture)]) == 2
    assert "which is read" in capsys.readouterr().err
    assert picture.read_bytes() == before


def test_output_is_a_comparison(files: list[str], tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "comparison.json"

    text = shown(capsys, *files, "--confidence", "0.9", "--output", output)

    found = read_comparison(output)
    assert text.splitlines()[-1] == f"The comparison is in {output}"
    assert [found.base.source.path, found.rows[0].system.source.path] == files
    assert found.statistic.confidence == 0.9
    assert "Intervals of 90 %." in text


def test_picture_is_drawn_of_all_systems(files: list[str], tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "comparison.svg"

    shown(capsys, *files, "--picture", picture, "--picture-kind", "ecdf")

    assert picture.read_bytes().startswith(b"<?xml")


def test_metric_is_chosen_by_name(tmp_path: Path, capsys: Capture) -> None:
    memory = [metric(rows(median), name="PeakMemory", unit="B") for median in (1e6, 2e6)]
    found = measurement(*(system(label=label, metrics=(metric(rows()), each)) for label, each in zip("ab", memory)))

    text = shown(capsys, written(tmp_path / "a.json", found), "--metric", "PeakMemory")

    assert text.startswith("PeakMemory, median; lower is better")
    assert re.search(r"MB\b", text)
    assert "samples/s" not in text  # which would be rates at other values


def test_rates_are_better_when_they_are_higher(tmp_path: Path, capsys: Capture) -> None:
    samples = [
        metric(rows(median), name="Rate", unit="samples/s", kind=MetricKind.RATE, direction=Direction.HIGHER)
        for median in (1.0, 5.0)
    ]
    found = measurement(*(system(label=label, metrics=(each,)) for label, each in zip("ab", samples)))

    text = shown(capsys, written(tmp_path / "a.json", found), "--fail-if-slower")

    assert text.startswith("Rate, median; higher is better")
    assert "faster" in row_of(text, "b")


def test_many_systems_scores_and_warnings_are_told(tmp_path: Path, capsys: Capture) -> None:
    found = measurement(
        *(system(rows(median, seed=n), label=f"s{n}", scores=(score(),)) for n, median in enumerate((1.0, 1.0, 2.0))),
        complete=False,
        failure="interrupted",
    )

    text = shown(capsys, written(tmp_path / "a.json", found))

    assert "All 3 systems alike (Kruskal-Wallis): p = " in text
    assert "; different after Holm: s0 and s2, s1 and s2\n" in text
    assert "s1: TestAccuracy 98.5 % (acceptable: 97)" in text
    assert "Note: s0: the measurement is incomplete: interrupted" in text


def test_nothing_of_a_file_acts_on_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    odd = "[red]\x1b[31m\nx[/red]"
    samples = metric(rows(2.0))
    launch = replace(samples.launches[0], converged=False, stop_reason=odd)
    found = measurement(
        system(label="a", work=Work(items=1, item=odd)),
        system(
            label=odd,
            factors={odd: odd},
            scores=(replace(score(), name=odd, unit=odd),),
            metrics=(replace(samples, launches=(launch, *samples.launches[1:])),),
            work=Work(items=1, item=odd),
        ),
        complete=False,
        failure=odd,
    )

    text = shown(capsys, written(tmp_path / "a.json", found))

    assert "\x1b" not in text
    assert text.count("[red]\\x1b[31m\\nx[/red]") > 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--margin", "0"], "A margin is a positive relative difference, such as 0.01; it is 0.0."),
        (["--confidence", "95"], "A confidence lies between 0 and 1"),
        (["--metric", "Energy"], "has no Energy; its metrics: WallclockTime."),
        (["--output", "missing/c.json"], "The comparison cannot be written to missing/c.json"),
        (["--picture", "c.gif"], "accepted are names that end with .png or .svg"),
        (["--picture", "c.svg", "--picture-kind", "pie"], "no picture named 'pie'"),
        (["missing.json"], "missing.json does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_told_in_one_line(
    files: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)

    code = run_command(["compare", *files, *options])

    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.json", "old.json"]


def test_no_file_is_a_mistake(capsys: Capture) -> None:
    assert run_command(["compare"]) == 2
    assert "Missing argument" in capsys.readouterr().err


@pytest.mark.parametrize("ratio", [0.5, 0.99999, 1.0001, 123.4])
def test_digits_of_a_ratio_keep_its_ends_apart_from_1(ratio: float, capsys: Capture) -> None:
    base = rows(samples=3)
    table: list[Any] = [[value * ratio * (1 + 1e-6 * index) for value in row] for index, row in enumerate(base)]
    found = measurement(system(base, label="a"), system(table, label="b"), pairing="samples")

    show_report(report := compare([(found, each) for each in found.systems]))

    verdict = report.rows[0].verdict.value
    ends = re.search(r"([\d.]+) \.\. ([\d.]+)\s*$", row_of(capsys.readouterr().out, "b"))
    assert ends is not None
    low, high = map(float, ends.groups())
    assert verdict == ("faster" if ratio < 1 else "slower")
    assert high < 1 if verdict == "faster" else low > 1


def test_examples_are_in_the_help(capsys: Capture) -> None:
    assert run_command(["compare", "--help"]) == 0
    assert "deep500 compare old.json new.json --margin 0.02 --fail-if-slower" in capsys.readouterr().out
