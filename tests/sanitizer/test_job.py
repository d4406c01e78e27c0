"""The job finds what is planted; a small form of it runs with the slow tests."""

from __future__ import annotations

import shutil
import sys

import pytest

from tests.sanitizer.job import Job, judge, judge_tests, run_job

JOB = Job("reference", 3, "write")
COUNTS = '{"counts": {"right": 2, "refused: dtype": 1}}\n'
REPORT = "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1"


def test_a_job_that_passes() -> None:
    outcome = judge(JOB, 99, COUNTS, "", [REPORT], "the planted bug")

    assert not outcome.problems
    assert str(outcome).startswith("reference: 3 calls, 2 right, 1 refused")


@pytest.mark.parametrize(
    ("status", "output", "errors", "reports", "problem"),
    [
        (99, "", "", [REPORT], "a sanitizer reported (exit status 99), in: the last call"),
        (-11, "", "Segmentation fault", [], "a call was wrong, or crashed (exit status -11), in: the last call"),
        (1, "", "AssertionError: x", [], "a call was wrong, or crashed (exit status 1), in: the last call"),
        (0, "", "", [], "the calls ended early (exit status 0)"),
        (0, COUNTS, "", [], "the planted bug was not found, but 0 reports"),
        (99, COUNTS, "", ["ERROR: AddressSanitizer: stack-overflow"], "the planted bug was not found, but 1 reports"),
        (99, COUNTS, "", [REPORT, REPORT], "the planted bug was not found, but 2 reports"),
        (99, '{"counts": {"right": 2}}\n', "", [REPORT], "only 2 of 3 calls were made"),
    ],
)
def test_a_job_that_fails(status: int, output: str, errors: str, reports: list[str], problem: str) -> None:
    outcome = judge(JOB, status, output, errors, reports, "the last call")

    assert outcome.problems[0].startswith(problem)


def test_tests_under_the_sanitizers() -> None:
    assert str(judge_tests(0, "281 passed in 1 s", "", [])).startswith("native_ops: 281 calls, 281 right")
    for status, output, reports in ((1, "1 failed, 2 passed", []), (99, "", [REPORT]), (5, "no tests ran", [])):
        assert judge_tests(status, output, "", reports).problems


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None or sys.platform != "linux", reason="needs g++ with its sanitizers")
@pytest.mark.parametrize("job", [Job("reference", 100, "write"), Job("reference", 0, "overflow")], ids=str)
def test_calls_with_numpy_arrays(job: Job) -> None:
    outcome = run_job(job)

    assert not outcome.problems, str(outcome)
    assert sum(outcome.counts.values()) >= job.calls
