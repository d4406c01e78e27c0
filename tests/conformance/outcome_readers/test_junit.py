from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from deep500.fleet.input_report import InputReport
from deep500.fleet.readers.junit import JunitReader
from tests.conformance.outcome_readers.samples import JUNIT, read, told


def _read(tmp_path: Path, text: str):
    (tmp_path / "junit.xml").write_text(text, encoding="utf-8")
    return read(tmp_path / "junit.xml")


def test_statuses_causes_and_gpus(tmp_path: Path) -> None:
    frame, report = _read(tmp_path, JUNIT)

    rows = {(row["key"], row["attempt"]): row for row in frame.iter_rows(named=True)}
    assert {key: (row["status"], row["cause"]) for key, row in rows.items()} == {
        ("tests.a::test_one", 1): ("passed", None),
        ("tests.a::test_two", 1): ("failed", "assert 1 == 2"),
        ("tests.a::test_three", 1): ("failed", "error: no fixture"),
        ("tests.a::test_four", 1): ("no_match", "needs 4 GPUs, 1 are given (--max-gpus)"),
        ("tests.a::test_five", 1): ("missing", "skipped: slow"),
        ("tests.a::test_six", 1): ("passed", "failed as expected: known"),
        ("tests.a::test_flaky", 1): ("failed", "once"),
        ("tests.a::test_flaky", 2): ("failed", "once"),
        ("tests.a::test_flaky", 3): ("passed", None),
    }
    one = rows["tests.a::test_one", 1]
    assert (one["gpus"], one["gpus_declared"], one["gpus_used"]) == (2.0, 4.0, 2.0)
    assert one["duration_s"] == 1.5
    assert one["cost"] == pytest.approx(2 * 1.5 / 3600)
    assert rows["tests.a::test_four", 1]["gpus_needed"] == 4.0
    assert set(frame["group"]) == {"pytest 2026-01-02T03:04:05+00:00"}
    assert not report.problems


def test_every_rerun_of_a_test_that_never_passed(tmp_path: Path) -> None:
    frame, _ = _read(
        tmp_path,
        '<testsuite name="s"><testcase classname="c" name="t" time="1,000.5"><failure message="first"/>'
        '<rerunFailure message="second"/><rerunError message="third"/></testcase></testsuite>',
    )

    assert frame.select("status", "cause", "attempt").rows() == [
        ("failed", "first", 1.0),
        ("failed", "second", 2.0),
        ("failed", "third", 3.0),
    ]
    assert frame["duration_s"][0] == 1000.5
    assert set(frame["group"]) == {str(tmp_path / "junit.xml")}


def test_nested_suites_and_a_test_that_says_when_it_began(tmp_path: Path) -> None:
    frame, report = _read(
        tmp_path,
        '<testsuites><testsuite name="a" tests="1" timestamp="2026-01-01T00:00:00">'
        '<testsuite name="b" tests="3" timestamp="2026-01-01T00:00:05">'
        '<testcase name="t" time="2" timestamp="2026-01-01T00:00:10"/></testsuite></testsuite></testsuites>',
    )

    row = frame.row(0, named=True)
    assert (row["key"], row["group"], row["suite"]) == ("t", "a/b 2026-01-01T00:00:05", "a/b")
    assert row["ended"] - row["started"] == 2.0
    assert told(report) == {"incomplete": 2}


def test_file_that_breaks_off_keeps_what_stands_before(tmp_path: Path) -> None:
    frame, report = _read(tmp_path, JUNIT[: JUNIT.index("test_four")])

    assert frame.height == 3
    assert told(report) == {"malformed": 1, "incomplete": 4}


def test_tests_without_a_name_and_durations_that_are_none(tmp_path: Path) -> None:
    frame, report = _read(
        tmp_path, '<testsuite><testcase/><testcase name="t" time="soon"/><testcase name="u" time="-1"/></testsuite>'
    )

    assert frame.select("key", "status").rows() == [("t", "passed"), ("u", "passed")]
    assert told(report) == {"incomplete": 1, "malformed": 1}
    assert frame["cost"].null_count() == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<!DOCTYPE x [<!ENTITY a "aaaaaa"><!ENTITY b "&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>',
            "defines entities",
        ),
        ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite name="&a;"/>', "defines entities"),
        ("<testsuite>" + "<a>" * 1000 + "</a>" * 1000 + "</testsuite>", "nested more than"),
        ('<?xml version="1.0" encoding="no-such"?><testsuite/>', "."),
    ],
)
def test_documents_that_no_test_runner_writes_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _read(tmp_path, text)


def test_what_was_read_of_a_large_document_is_forgotten(tmp_path: Path) -> None:
    output = f"<system-out>{'x' * 20_000}</system-out>"
    body = "".join(f'<testcase classname="c" name="t{i}" time="1">{output}</testcase>' for i in range(1500))
    (tmp_path / "junit.xml").write_text(f"<testsuite>{body}</testsuite>")
    tracemalloc.start()
    frame = JunitReader().read(tmp_path / "junit.xml", InputReport())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert frame.height == 1500
    assert peak < 10e6, "the document has 30 MB"
