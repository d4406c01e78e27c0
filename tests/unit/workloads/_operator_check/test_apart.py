from __future__ import annotations

import os
from pathlib import Path

import pytest

from deep500.operators.custom import Outcome
from deep500.workloads._operator_check.apart import BY_ITSELF, Request, run_apart
from tests.unit.workloads._operator_check.support import write_operators


def test_an_operator_that_crashes_takes_nothing_with_it(tmp_path: Path) -> None:
    path = write_operators(tmp_path, "Crashes", "Good")
    request = Request(str(path), (("Crashes", {}), ("Good", {})), (BY_ITSELF, "reference"))
    messages = list(run_apart(request))
    found = [(m.operator, m.section, m.check, m.finding.outcome) for m in messages if m.finding is not None]

    checks = {(o, s): [c for a, b, c, _ in found if (a, b) == (o, s)] for o, s, _, _ in found}
    assert list(checks) == [(o, s) for s in (BY_ITSELF, "reference") for o in ("Crashes", "Good")]
    assert checks["Crashes", BY_ITSELF] == ["forward float32", "further checks"]
    assert checks["Crashes", "reference"] == ["calls", "further checks"]
    assert len(checks["Good", "reference"]) >= 6
    for operator, _, check, outcome in found:
        expected = Outcome.PASSED if operator == "Good" else Outcome.FAILED
        assert outcome is (Outcome.NOT_RUN if check == "further checks" else expected)
    first = next(m.finding for m in messages if m.finding is not None)
    assert "died in it (SIGSEGV)" in first.detail
    assert "-DD500_CHECK_BOUNDS" in first.detail


def test_a_crash_before_any_check_is_told(tmp_path: Path) -> None:
    path = write_operators(tmp_path, "Good")
    path.write_text(path.read_text() + "\nif os.path.exists(__file__ + '.crash'):\n    os.kill(os.getpid(), 11)\n")
    (tmp_path / "operators.py.crash").write_text("")
    found = list(run_apart(Request(str(path), (("Good", {}),), (BY_ITSELF,))))

    assert [(m.check, m.finding.outcome) for m in found if m.finding is not None] == [
        ("start", Outcome.FAILED),
        ("further checks", Outcome.NOT_RUN),
    ]


def test_the_process_ends_with_the_iteration(tmp_path: Path) -> None:
    path = tmp_path / "endless.py"
    path.write_text(
        "import os, time\nimport deep500 as d5\n"
        "class Endless(d5.CustomPythonOp):\n"
        "    def forward(self, x):\n"
        f"        open({str(tmp_path / 'process')!r}, 'w').write(str(os.getpid()))\n"
        "        time.sleep(600)\n"
    )
    iterator = run_apart(Request(str(path), (("Endless", {}),), (BY_ITSELF,)))
    for message in iterator:
        if message.check == "forward float32":
            break
    while not (tmp_path / "process").is_file() or not (tmp_path / "process").read_text():
        os.sched_yield()
    number = int((tmp_path / "process").read_text())
    iterator.close()  # type: ignore[attr-defined]

    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_what_an_operator_prints_is_no_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "talks.py"
    path.write_text(
        "import deep500 as d5\nprint('hello, world')\n"
        "class Talks(d5.CustomPythonOp):\n"
        "    def forward(self, x):\n        print('hello, author')\n        raise SystemExit(3)\n"
    )
    found = [m for m in run_apart(Request(str(path), (("Talks", {}),), (BY_ITSELF,))) if m.finding is not None]
    captured = capfd.readouterr()

    assert captured.out == ""
    assert "hello, author" in captured.err
    assert found[0].finding is not None
    assert "the process ended in it, with the exit code 3" in found[0].finding.detail
