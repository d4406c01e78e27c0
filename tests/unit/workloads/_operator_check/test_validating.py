from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import MissingDependencyError, OperatorError, UnknownNameError
from deep500.core.requirement import Requirement
from deep500.frameworks import installed_frameworks
from deep500.operators.custom import CustomPythonOp, Finding, NativeOp, Outcome
from deep500.operators.custom.findings import run_check
from deep500.workloads._operator_check.operator_file import open_operator_file
from deep500.workloads._operator_check.validating import Subject, framework_checks, operator_checks
from tests.unit.operators.sources import failing, mixed
from tests.unit.workloads._operator_check.support import write_operators

INSTALLED = installed_frameworks("prepare_call")


def opened(folder: Path, name: str, *needed: str, **attributes: Any) -> Any:
    return open_operator_file(write_operators(folder, name, *needed)).open(name, attributes)


def findings(checks: Any) -> dict[str, Finding]:
    return {check.name: run_check(check) for check in checks}


@pytest.mark.parametrize(("name", "attributes"), [("Good", {}), ("Native", {}), ("NeedsPower", {"power": 3})])
def test_right_operators(tmp_path: Path, name: str, attributes: Any) -> None:
    found = findings(operator_checks(Subject(opened(tmp_path, name, **attributes))))

    assert list(found) == ["forward float32", "forward float64", "gradient float32", "gradient float64"]
    assert {finding.outcome for finding in found.values()} == {Outcome.PASSED}
    assert "largest error" in found["forward float32"].detail
    assert "largest error" in found["gradient float64"].detail


def test_mixed_dtypes_and_all_variants() -> None:
    found = findings(operator_checks(Subject(mixed_of_one())))

    assert len(found) == 8
    assert {finding.outcome for finding in found.values()} == {Outcome.PASSED}, found


def mixed_of_one() -> Any:
    return mixed(factors=(0.5,))


@pytest.mark.parametrize(
    ("name", "failing_checks", "message"),
    [
        ("WrongGradient", ["gradient float32", "gradient float64"], "ratio 1.01"),
        ("Throws", ["forward float32", "gradient float64"], "the pump is broken"),
        ("WritesNaN", ["forward float32", "forward float64"], "(?i)nan"),
    ],
)
def test_planted_bugs(tmp_path: Path, name: str, failing_checks: list[str], message: str) -> None:
    found = findings(operator_checks(Subject(opened(tmp_path, name, "Native"))))

    for check in failing_checks:
        assert found[check].outcome is Outcome.FAILED, found
        with pytest.raises(OperatorError, match=message):
            raise OperatorError(found[check].detail)
        assert "\n" not in found[check].detail
    if name == "WrongGradient":
        assert found["forward float32"].outcome is Outcome.PASSED


def test_an_operator_that_raises_anything_in_python() -> None:
    class Careless(CustomPythonOp):
        def forward(self, x: Any) -> Any:
            return x.no_such_attribute

    found = findings(operator_checks(Subject(Careless())))["forward float32"]

    assert found.outcome is Outcome.FAILED
    assert "no_such_attribute" in found.detail
    assert "test_validating.py:" in found.detail


def test_without_backward_and_without_floats() -> None:
    class Whole(CustomPythonOp):
        def forward(self, x: Any) -> Any:
            return x + 1

        def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
            return None

        def example_inputs(self, rng: Any, dtype: str, large: bool = False) -> Any:
            return [np.arange(3)]

    nothing = findings(operator_checks(Subject(failing(""))))
    whole = findings(operator_checks(Subject(Whole())))

    assert nothing["gradient float32"].outcome is whole["gradient float32"].outcome is Outcome.NOT_RUN
    assert "no backward" in nothing["gradient float32"].detail
    assert "no input is of floats" in whole["gradient float32"].detail
    assert nothing["forward float32"].outcome is whole["forward float32"].outcome is Outcome.PASSED


@pytest.mark.parametrize("framework", INSTALLED)
def test_calls_and_gradients_in_a_framework(tmp_path: Path, framework: str) -> None:
    checks = framework_checks(Subject(opened(tmp_path, "Native")), framework)
    found = findings(check for check in checks if check.name in ("calls", "gradients"))

    assert {finding.outcome for finding in found.values()} == {Outcome.PASSED}, found
    assert found["calls"].detail == "float32, float64 equal to NumPy's"
    assert len(checks) >= 4


@pytest.mark.parametrize("framework", INSTALLED)
def test_an_operator_that_throws_in_a_framework(tmp_path: Path, framework: str) -> None:
    checks = framework_checks(Subject(opened(tmp_path, "Throws", "Native")), framework)
    found = findings(check for check in checks if check.name == "calls")["calls"]

    assert found.outcome is Outcome.FAILED
    assert "float32: " in found.detail
    assert "the pump is broken" in found.detail


def test_a_function_to_compare_with() -> None:
    class Square(CustomPythonOp):
        input_count = 1

        def forward(self, x: Any) -> Any:
            return x * x

        def framework_function(self, framework: str) -> Any:
            return np.square

    class Cube(Square):
        def forward(self, x: Any) -> Any:
            return x**3

    for op, outcome in ((Square(), Outcome.PASSED), (Cube(), Outcome.FAILED)):
        found = findings(framework_checks(Subject(op), "reference"))
        assert found["against numpy.square" if "against numpy.square" in found else list(found)[-1]].outcome is outcome
    named = findings(framework_checks(Subject(Cube()), "reference", against="numpy:sin"))
    assert named["against numpy:sin"].outcome is Outcome.FAILED
    assert "differs from NumPy's" in named["against numpy:sin"].detail


def test_a_framework_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'pytorch'"):
        framework_checks(Subject(failing("")), "pytorhc")
    monkeypatch.setattr(Requirement, "is_installed", lambda self: self.module != "torch")
    with pytest.raises(MissingDependencyError, match="pip install"):
        framework_checks(Subject(failing("")), "pytorch")


def test_an_operator_without_code_for_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    op = failing("")
    said = dataclasses.replace(op.library.description, devices=("cuda",))
    monkeypatch.setattr(op.library, "description", said)
    assert isinstance(op, NativeOp)
    found = findings([*operator_checks(Subject(op)), *framework_checks(Subject(op), "reference")])

    assert {finding.outcome for finding in found.values()} == {Outcome.NOT_RUN}
    assert "no code for the processor" in found["forward float32"].detail
