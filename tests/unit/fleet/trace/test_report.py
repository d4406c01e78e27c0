"""The whole report: its document, its words, its page."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from deep500.core.errors import FleetError
from deep500.fleet import InputReport, Outcome, OutcomeTable
from deep500.fleet.trace import report_trace
from deep500.fleet.trace.generating import generate_outcomes
from deep500.fleet.trace.observed import FAILED, observe
from deep500.fleet.trace.report import TraceReport
from deep500.fleet.trace.survival import cluster_interval, incidence_at, kaplan_meier, risk_table
from deep500.fleet.trace.trace_page import trace_page
from deep500.fleet.trace.wording import group_rows, p_text, share_rows, time_text
from deep500.measure.statistics import holm


@pytest.fixture(scope="module")
def report() -> TraceReport:
    return report_trace(generate_outcomes(2500, 6), classic=True, seed=4)


def test_the_document_is_complete(report: TraceReport) -> None:
    document = report.document()
    assert {field.name for field in dataclasses.fields(TraceReport)} == set(document)
    assert document["settings"] == {
        "times_s": (3600.0, 21600.0, 86400.0), "confidence": 0.95, "resamples": 1000, "seed": 4,
    }  # fmt: skip
    json.dumps(document)
    assert [factor["name"] for factor in document["factors"]] == [
        "gpu_type", "plan_gpu", "plan_cpu", "plan_mem", "size", "user",
    ]  # fmt: skip
    assert document["absent"] == {}
    for factor in document["factors"]:
        tasks = sum(group["rates"]["tasks"] for group in factor["groups"])
        assert tasks + factor["missing"] == report.tasks
    assert any("a covariate is missing" in note for note in report.notes)


def test_tests_of_groups_are_corrected_together(report: TraceReport) -> None:
    tests = [test for factor in report.factors for test in factor.tests.values()]
    assert len(tests) == 12
    np.testing.assert_allclose([t.adjusted_p for t in tests], holm([t.p_value for t in tests]).adjusted)
    users = report.factors[-1]
    assert users.name == "user"
    assert all(test.test.robust_p_value is None for test in users.tests.values())
    assert all(test.test.robust_p_value is not None for test in report.factors[0].tests.values())


def test_shares_add_up(report: TraceReport) -> None:
    for group in (report.whole, *(group for factor in report.factors for group in factor.groups)):
        for at in group.at:
            assert at.ended.value == pytest.approx(at.failed.value + at.passed.value)
            assert at.failed_alone.value >= at.failed.value - 1e-12
        curves = group.curves
        assert len(curves.times_s) <= 161
        total = np.array(curves.running) + np.array(curves.failed) + np.array(curves.passed)
        np.testing.assert_allclose(total, 1.0)


def test_failing_alone_is_kaplan_meiers(report: TraceReport) -> None:
    trace = observe(generate_outcomes(2500, 6))
    curve = kaplan_meier(risk_table(trace.duration_s, trace.event), (FAILED,))
    for at in report.whole.at:
        assert at.failed_alone.value == pytest.approx(1 - curve.at(at.time_s))
        assert at.failed.value < at.failed_alone.value < at.ended.value
        failed = (trace.event == FAILED).astype(np.int8)
        value, error, users = incidence_at(risk_table(trace.duration_s, failed, 1), failed, trace.user, 1, at.time_s)
        ends = cluster_interval(value, error, users, 0.95)
        assert (at.failed_alone.low, at.failed_alone.high) == pytest.approx(ends)


def test_a_group_of_few_users_has_no_interval(report: TraceReport) -> None:
    alone = report.factors[-1].groups[0]
    assert alone.rates.users == 1
    assert alone.rates.mttf_users is None
    assert alone.at[0].failed.low is None
    assert alone.rates.mttf_exact[0] < alone.rates.mttf_h < alone.rates.mttf_exact[1]


def test_the_page(report: TraceReport, tmp_path: Path) -> None:
    page = trace_page(report, InputReport())
    page.write(tmp_path / "trace.html")
    text = (tmp_path / "trace.html").read_text(encoding="utf-8")
    assert len(re.findall("<figure>", text)) == 9  # all tasks, six factors, two of the classic view
    for words in ("Aalen-Johansen", "Log-rank test", "What is wrong with the classic view", "effective"):
        assert words in text


def test_a_table_without_labels_says_what_it_lacks() -> None:
    generator = np.random.default_rng(0)
    outcomes = [
        Outcome(f"t{n}", f"<u{n % 7}>", "failed" if n % 3 else "passed", started=0.0, ended=float(time))
        for n, time in enumerate(generator.exponential(600.0, 60))
    ]
    report = report_trace(OutcomeTable.from_outcomes(outcomes), classic=True)
    assert set(report.absent) == {"gpu_type", "plan_gpu", "gpus", "plan_cpu", "cpus", "plan_mem", "size"}
    assert [factor.name for factor in report.factors] == ["user"]
    assert report.models == ()
    assert report.classic is not None
    assert report.classic.correlations == ()
    assert report.unknown_gpus == 60
    assert "<u0>" not in trace_page(report, InputReport()).text()


def test_all_censored() -> None:
    outcomes = [Outcome(f"t{n}", "u", "cancelled", started=0.0, ended=10.0 + n) for n in range(12)]
    report = report_trace(OutcomeTable.from_outcomes(outcomes))
    assert report.whole.rates.failed == 0
    assert report.whole.median_s is None
    assert group_rows([report.whole])[1][6:8] == ("-", "-")
    assert share_rows([report.whole])[1][3] == "0.0 %"
    json.dumps(report.document())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confidence": 1.0}, "confidence"),
        ({"top": 0}, "top"),
        ({"resamples": 5}, "resamples"),
        ({"seed": -1}, "seed"),
        ({"times_s": [0.0]}, "times above 0"),
        ({"factors": ["colour"]}, "colour"),
    ],
)
def test_mistakes(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(FleetError, match=message):
        report_trace(generate_outcomes(50, 1), **arguments)  # type: ignore[arg-type]


def test_words() -> None:
    assert [time_text(seconds) for seconds in (None, 5.0, 90.0, 5400.0, 172800.0)] == [
        "-", "5 s", "1.5 min", "1.5 h", "2 d",
    ]  # fmt: skip
    assert [p_text(p) for p in (None, 0.0, 0.01234, float("nan"))] == ["-", "< 1e-300", "0.012", "-"]
