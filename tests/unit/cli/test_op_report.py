from __future__ import annotations

import pytest

from deep500.cli.op_report import show_operator_check
from deep500.operators.custom import Finding, Outcome
from deep500.workloads._operator_check.building import Build
from deep500.workloads._operator_check.report import CheckReport, OperatorReport

BUILD = Build("Python", 1, 1, {}, True)


def report(*operators: OperatorReport) -> CheckReport:
    return CheckReport("mine.py", ("reference",), "cpu", operators)


def operator(name: str = "good", outcome: Outcome = Outcome.PASSED, detail: str = "all is well") -> OperatorReport:
    return OperatorReport(name, f"{name}(power=3)", BUILD, findings=(("pytorch", Finding("calls", outcome, detail)),))


@pytest.mark.parametrize("columns", [200, 80])
def test_rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    show_operator_check(report(operator(), operator("bad", Outcome.FAILED), operator("lazy", Outcome.NOT_RUN)))
    shown = capsys.readouterr().out

    for text in (
        "good(power=3)",
        "calls",
        "pytorch",
        "passed",
        "FAILED",
        "not run",
        "all is well",
        "nothing to compile",
    ):
        assert text in shown
    assert shown.splitlines()[-1] == "FAILED: bad (1 of 3)."
    assert max(map(len, shown.splitlines())) <= columns
    assert "\x1b" not in shown


def test_all_passed(capsys: pytest.CaptureFixture[str]) -> None:
    show_operator_check(report(operator(), operator("other", Outcome.NOT_RUN)))
    assert capsys.readouterr().out.splitlines()[-1] == "2 operators passed."
    show_operator_check(report(operator()))
    assert capsys.readouterr().out.splitlines()[-1] == "1 operator passed."


def test_what_the_compiler_said_stands_below_its_operator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = f"a.cpp:2:5: error: no\n ^\nCommand: g++ {'x' * 300} a.cpp"
    broken = OperatorReport("broken", "broken", build_failure="a.cpp:2: no", compiler_output=said)
    show_operator_check(report(broken))
    lines = capsys.readouterr().out.splitlines()

    assert set(said.splitlines()) <= set(lines)
    assert any("FAILED" in line and "a.cpp:2: no" in line for line in lines)


def test_texts_are_neither_markup_nor_control(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    show_operator_check(report(operator("[bold]x[/red]", detail="\x1b[31m[link]" + "y" * 2000)))
    shown = capsys.readouterr().out

    assert "[bold]x[/red](power=3)" in shown
    assert "[link]" in shown
    assert "\x1b" not in shown
    assert "[...]" in shown
    assert "y" * 600 not in shown.replace("\n", "").replace(" ", "")
