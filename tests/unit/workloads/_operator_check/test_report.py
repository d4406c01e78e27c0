from __future__ import annotations

import json

from deep500.operators.custom import Finding, Outcome
from deep500.workloads._operator_check.building import Build
from deep500.workloads._operator_check.measuring import CallTime
from deep500.workloads._operator_check.report import CheckReport, OperatorReport

BUILD = Build("Python", 1, 1, {"power": 3}, True)
PASSED, FAILED, NOT_RUN = [Finding("calls", outcome, "why") for outcome in Outcome]


def test_what_failed_decides() -> None:
    good = OperatorReport("a", "A(power=3)", BUILD, findings=(("pytorch", PASSED), ("pytorch", NOT_RUN)))
    bad = OperatorReport("b", "b", BUILD, findings=(("pytorch", PASSED), ("pytorch", FAILED)))
    broken = OperatorReport("c", "c", build_failure="it does not compile")
    unmeasured = OperatorReport("d", "d", BUILD, times=(CallTime("pytorch", "small", failure="it died"),))

    assert [report.passed for report in (good, bad, broken, unmeasured)] == [True, False, False, False]
    assert CheckReport("f.py", ("pytorch",), "cpu", (good,)).passed
    assert not CheckReport("f.py", ("pytorch",), "cpu", (good, bad)).passed


def test_rows_and_json() -> None:
    report = OperatorReport(
        "a", "A(power=3)", BUILD, findings=(("operator", PASSED),), times=(CallTime("pytorch", "large", failure="x"),)
    )

    assert list(report.rows()) == [
        ("build", "", Outcome.PASSED, "Python, nothing to compile"),
        ("operator", "calls", Outcome.PASSED, "why"),
        ("pytorch", "time, large", Outcome.FAILED, "x"),
    ]
    content = CheckReport("f.py", ("pytorch",), "cpu", (report,)).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False))["operators"][0]["name"] == "a"
    assert content["passed"] is False
    assert content["operators"][0]["findings"] == [
        {"section": "operator", "check": "calls", "outcome": "passed", "detail": "why"}
    ]
