from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import Deep500Error, DeviceError, MissingDependencyError, OperatorError, UnknownNameError
from deep500.core.requirement import Requirement
from deep500.operators.custom import Outcome
from deep500.workloads._operator_check import checking
from deep500.workloads._operator_check.checking import CheckSettings, check_file, checked_frameworks
from tests.unit.workloads._operator_check.support import measure_here, write_operators

REFERENCE = CheckSettings(frameworks=["reference"], measure=False)


@pytest.fixture(scope="module")
def bugs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All operators of the file, checked at once."""
    settings = CheckSettings(frameworks=["reference"], attributes={"power": 3}, measure=False)
    report = check_file(write_operators(tmp_path_factory.mktemp("bugs")), settings)
    return {operator.name: operator for operator in report.operators}


def failures(operator: Any) -> list[str]:
    return [f"{section}: {check}: {detail}" for section, check, outcome, detail in operator.rows()
            if outcome is Outcome.FAILED]  # fmt: skip


@pytest.mark.parametrize("name", ["Good", "Native", "NeedsPower"])
def test_what_is_right_passes(bugs: Any, name: str) -> None:
    assert bugs[name].passed, failures(bugs[name])
    assert [row[0] for row in bugs[name].rows()].count("reference") >= 6
    assert bugs["NeedsPower"].title == "NeedsPower(power=3)"
    assert bugs["Native"].title == "Native: square_for_checks()"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WrongGradient", "operator: gradient float32: .*ratio 1.01"),
        ("Throws", "operator: forward float32: .*the pump is broken"),
        ("WritesNaN", "(?i)operator: forward float32: .*nan"),
        ("Crashes", r"operator: forward float32: the process died in it \(SIGSEGV\)"),
        ("LacksSymbol", "build: : .*has no function d5_another_name_describe"),
        ("DoesNotCompile", r"build: : The operator 'square_for_checks' did not compile: .*:\d+: .*no_such_function"),
    ],
)
def test_each_bug_is_told_in_one_line(bugs: Any, name: str, message: str) -> None:
    import re

    told = failures(bugs[name])
    assert not bugs[name].passed
    assert re.search(message, told[0]), told
    assert all("\n" not in line and "Traceback" not in line for line in told)


def test_what_the_compiler_said_is_kept(bugs: Any) -> None:
    assert "no_such_function" in bugs["DoesNotCompile"].compiler_output
    assert "Command: " in bugs["DoesNotCompile"].compiler_output
    assert bugs["LacksSymbol"].compiler_output == ""


def test_only_what_is_right_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = measure_here(monkeypatch)
    told: list[str] = []
    path = write_operators(tmp_path, "Good", "WrongGradient", "Native")
    path.write_text(path.read_text() + "\ndel Native\n")
    report = check_file(path, CheckSettings(frameworks=["reference"], launches=1), told.append)
    good, wrong = report.operators

    assert [(time.framework, time.size, time.failure) for time in good.times] == [
        ("reference", "small", ""),
        ("reference", "large", ""),
    ]
    assert wrong.times == ()
    last_section, last = wrong.findings[-1]
    assert (last_section, last.check, last.outcome) == ("reference", "time", Outcome.NOT_RUN)
    assert len(launched) == 2
    assert any("building Good" in text for text in told)
    assert any("Good, operator: forward float32" in text for text in told)
    assert any("process 1 of 1" in text for text in told)


def test_values_go_to_those_that_have_the_attribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "run_apart", lambda request: iter(()))
    path = write_operators(tmp_path, "Good", "NeedsPower")
    settings = CheckSettings(frameworks=["reference"], measure=False)
    without = check_file(path, settings).operators

    assert [operator.passed for operator in without] == [True, False]
    assert "NeedsPower needs a value for power: give --set power=VALUE" in failures(without[1])[0]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"attributes": {"powr": 3}}, OperatorError, "has the attribute 'powr'. Did you mean 'power'"),
        ({"frameworks": ["pytorhc"]}, UnknownNameError, "Did you mean 'pytorch'"),
        ({"device": "tpu"}, DeviceError, "'tpu' is not a device"),
    ],
)
def test_mistakes(tmp_path: Path, changes: Any, error: type[Deep500Error], message: str) -> None:
    path = write_operators(tmp_path, "NeedsPower")
    path.write_text(path.read_text().replace("def __init__(self, power)", "def __init__(self, power=2)"))
    settings = CheckSettings(**{"frameworks": ["reference"], "measure": False, **changes})

    with pytest.raises(error, match=message):
        check_file(path, settings)


def test_a_device_that_is_not_there_fails_what_runs_on_it(tmp_path: Path) -> None:
    settings = CheckSettings(frameworks=["reference"], device="gpu:5", measure=False)
    (operator,) = check_file(write_operators(tmp_path, "Good"), settings).operators

    assert [line for line in failures(operator) if line.startswith("reference: start: ")]
    assert "gpu:5" in failures(operator)[0]


def test_frameworks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert checked_frameworks()[0] == "reference"
    monkeypatch.setattr(Requirement, "is_installed", lambda self: self.module == "numpy")
    assert checked_frameworks() == ["reference"]
    with pytest.raises(MissingDependencyError, match=r"pip install 'deep500\[pytorch\]'"):
        check_file(write_operators(tmp_path, "Good"), CheckSettings(frameworks=["pytorch"]))


def test_processes_end_on_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []

    def interrupted(request: Any) -> Any:
        try:
            raise KeyboardInterrupt
            yield
        finally:
            ended.append(True)

    monkeypatch.setattr(checking, "run_apart", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_file(write_operators(tmp_path, "Good"), REFERENCE)
    assert ended == [True]
