from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.unit.fleet.shard.support import LOST, PROJECT, SUITE, run_pytest

needs_xdist = pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


def lost_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "lost.json").read_text())
    return content


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-p", "xdist.plugin", "-n", "2"), marks=needs_xdist)], ids=["alone", "xdist"]
)
def test_lost_coverage_is_the_truth(suite: Path, workers: tuple[str, ...]) -> None:
    files = ("--lost-coverage", "lost.json", "--junitxml", "junit.xml")
    done = run_pytest(suite, "--max-gpus", "2", *files, "--doctest-modules", *workers)

    assert done.returncode == 0, done.stdout + done.stderr
    found = lost_of(suite)
    assert {test["test"]: test["gpus"] for test in found["lost"]} == LOST
    assert found["lost_by_gpus"] == {"3": 1, "4": 4, "8": 1}
    assert found["tests"] == 17
    assert found["gpus_given"] == 2
    assert found["gpus_given_by"] == "--max-gpus"
    assert "8 passed, 9 skipped" in done.stdout
    assert "6 of 17 tests did not run because they need more GPUs than there are (2 given by --max-gpus)" in done.stdout
    shown = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  test_suite.py::")}
    assert shown == set(LOST)
    cases = {
        f"{case.get('classname')}::{case.get('name')}": case for case in ET.parse(suite / "junit.xml").iter("testcase")
    }
    declared = {name: properties(case).get("gpus_declared") for name, case in cases.items()}
    assert declared == {
        "test_suite::test_module": "1",
        "test_suite::test_function": "4",
        "test_suite::test_none": "0",
        "test_suite.TestClass::test_of_class": "4",
        "test_suite.TestClass::test_own": "2",
        "test_suite.TestHeir::test_of_class": "8",
        "test_suite.TestHeir::test_own": "2",
        "test_suite::test_parameters[1]": "2",
        "test_suite::test_parameters[2]": "3",
        "test_suite::test_parameters[3]": "2",
        "test_suite::test_skipped_anyway": "4",
        "test_suite::test_skipped_by_condition": "4",
        "test_suite::test_not_skipped_otherwise": "4",
        "test_suite.TestUnit::test_unit": "4",
        "test_suite.TestUnit::test_small": "1",
        "test_suite.TestUnit::test_skipped": "4",
        "test_suite::test_suite.example": "1",  # of its module
    }
    message = cases["test_suite::test_function"].find("skipped").get("message")  # type: ignore[union-attr]
    assert message == "needs 4 GPUs, 2 are given (--max-gpus)"


def properties(case: ET.Element) -> dict[str | None, str | None]:
    return {item.get("name"): item.get("value") for item in case.iter("property")}


def test_only_collected_and_only_chosen(suite: Path) -> None:
    done = run_pytest(suite, "--max-gpus", "2", "--lost-coverage", "lost.json", "--collect-only", "-q")
    found = lost_of(suite)
    # Conditions of skipping are not known before a test runs.
    also = {"test_skipped_anyway", "test_skipped_by_condition", "TestUnit::test_skipped"}
    assert {test["test"] for test in found["lost"]} == {*LOST, *(f"test_suite.py::{name}" for name in also)}
    assert found["ran"] is False
    assert "would not run" in done.stdout

    run_pytest(suite, "--max-gpus", "2", "--lost-coverage", "lost.json", "-k", "test_function or test_module")
    assert [test["test"] for test in lost_of(suite)["lost"]] == ["test_suite.py::test_function"]
    assert lost_of(suite)["tests"] == 2


def test_nothing_changes_where_nothing_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "import os\ndef test_it(record_property):\n    assert 'DEEP500_GPUS_USED_FILE' not in os.environ\n"
    )
    ours = run_pytest(tmp_path, "-v")
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "pytest.ini").touch()
    (folder / "test_plain.py").write_text((tmp_path / "test_plain.py").read_text())
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:deep500_gpus"]
    theirs = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    )
    assert ours.returncode == theirs.returncode == 0
    assert [plain(line) for line in ours.stdout.splitlines()] == [plain(line) for line in theirs.stdout.splitlines()]
    assert not (tmp_path / ".pytest_cache" / "v" / "deep500").exists()


def plain(line: str) -> str:
    """Return a line without what differs from run to run."""
    return re.sub(r"in \d+\.\d+s|rootdir: .*|=+", "", line)


def test_what_is_visible_counts_by_default(suite: Path) -> None:
    done = run_pytest(suite, "--lost-coverage", "lost.json", variables={"CUDA_VISIBLE_DEVICES": "0,1,3"})
    assert {test["test"] for test in lost_of(suite)["lost"]} == {name for name, gpus in LOST.items() if gpus > 3}
    assert lost_of(suite)["gpus_given_by"] == "CUDA_VISIBLE_DEVICES"
    assert "3 given by CUDA_VISIBLE_DEVICES" in done.stdout


def test_enough_gpus_lose_nothing(suite: Path) -> None:
    done = run_pytest(suite, "--max-gpus", "8", "--lost-coverage", "lost.json", "-q")
    assert lost_of(suite)["lost"] == []
    assert "No coverage is lost with --max-gpus 8." in done.stdout


def test_a_collection_error_is_told_from_nothing_lost(suite: Path) -> None:
    (suite / "test_bad.py").write_text("import nothing_there\n")
    done = run_pytest(suite, "--max-gpus", "2", "--lost-coverage", "lost.json")
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "No coverage is lost" not in done.stdout
    assert "lost for want of GPUs" not in done.stdout
    found = lost_of(suite)
    assert (found["ran"], found["lost"]) == (False, None)
    assert found["incomplete"] == "test_bad.py could not be collected"


def test_an_internal_error_is_told_from_nothing_lost(suite: Path) -> None:
    (suite / "conftest.py").write_text("def pytest_collection_modifyitems():\n    raise RuntimeError\n")
    assert run_pytest(suite, "--max-gpus", "2", "--lost-coverage", "lost.json").returncode == 3
    found = lost_of(suite)
    assert (found["lost"], found["incomplete"]) == (None, "the session ended with an internal error")


def test_a_session_that_stops_early_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_stop.py").write_text(
        "import pytest\n@pytest.mark.gpus(1)\ndef test_a(): assert 0\n@pytest.mark.gpus(4)\ndef test_b(): pass\n"
    )
    done = run_pytest(tmp_path, "-x", "--max-gpus", "2", "--lost-coverage", "lost.json")
    assert "more may be lost than is known: stopping after 1 failures" in done.stdout
    assert lost_of(tmp_path)["incomplete"] == "stopping after 1 failures"


USE = """
import os, subprocess, sys, time
import pytest
from deep500.fleet.shard.gpu_use import say_used

@pytest.mark.gpus(4)
def test_over(gpus):
    assert gpus.take(2) == (0, 1)

@pytest.mark.gpus(1)
def test_under(gpus):
    assert gpus.take(1) == (0,)
    assert gpus.take(1) == (1,)

@pytest.mark.gpus(2)
def test_exact(gpus):
    assert gpus.take() == (0, 1) == gpus.taken

@pytest.mark.gpus(2)
def test_takes_none(gpus):
    pass

def test_undeclared(gpus):
    gpus.take(1)

@pytest.mark.gpus(2)
def test_needs_more_in_truth(gpus):
    gpus.take(9)

def test_asked_late(request):
    request.getfixturevalue("gpus").take(3)

@pytest.mark.gpus(2)
def test_fails_before(gpus):
    assert False

@pytest.mark.gpus(4)
def test_said():
    code = "from deep500.fleet.shard.gpu_use import say_used; say_used(0, 1, 2); say_used(2)"
    subprocess.run([sys.executable, "-c", code], check=True)

@pytest.mark.gpus(1)
def test_ranks():
    command = [sys.executable, "-c", "import time; time.sleep(0.6)"]
    started = [subprocess.Popen(command, env={**os.environ, "LOCAL_RANK": str(i)}) for i in range(3)]
    for process in started:
        process.wait()

@pytest.mark.gpus(2)
def test_not_seen():
    pass
"""


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-p", "xdist.plugin", "-n", "1"), marks=needs_xdist)], ids=["alone", "xdist"]
)
def test_what_was_used_counts(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_use.py").write_text(USE)
    done = run_pytest(tmp_path, "--max-gpus", "4", "--lost-coverage", "lost.json", "--junitxml", "junit.xml", *workers)

    assert "1 failed, 9 passed, 1 skipped" in done.stdout, done.stdout
    used = {
        case.get("name"): (properties(case).get("gpus_used"), properties(case).get("gpus_used_by"))
        for case in ET.parse(tmp_path / "junit.xml").iter("testcase")
    }
    assert used == {
        "test_over": ("2", "fixture"),
        "test_under": ("2", "fixture"),
        "test_exact": ("2", "fixture"),
        "test_takes_none": ("0", "fixture"),
        "test_undeclared": ("1", "fixture"),
        "test_asked_late": ("3", "fixture"),
        "test_needs_more_in_truth": (None, None),
        "test_fails_before": ("0", "fixture"),
        "test_said": ("3", "said"),
        "test_ranks": ("3", "ranks"),
        "test_not_seen": (None, None),
    }
    found = lost_of(tmp_path)
    assert found["lost"] == [
        {"test": "test_use.py::test_needs_more_in_truth", "gpus": 9, "given": 4, "duration_s": None}
    ]
    assert [(t["test"].partition("::")[2], t["declared"], t["used"]) for t in found["over_declared"]] == [
        ("test_over", 4, 2),
        ("test_said", 4, 3),
        ("test_takes_none", 2, 0),
    ]
    assert [(t["test"].partition("::")[2], t["declared"], t["used"]) for t in found["under_declared"]] == [
        ("test_asked_late", None, 3),
        ("test_ranks", 1, 3),
        ("test_undeclared", None, 1),
        ("test_under", 1, 2),
    ]
    assert "over-declared: test_use.py::test_over declares 4, used 2 (fixture)" in done.stdout
    assert "under-declared: test_use.py::test_undeclared declares none, used 1 (fixture)" in done.stdout
    assert found["executed_by_gpus_used"] == {"0": 2, "1": 1, "2": 3, "3": 3, "unknown": 1}


DRIVER = """#!/bin/sh
if [ "$1" = "-L" ]; then echo "GPU 0: Fake (UUID: GPU-a)"; echo "GPU 1: Fake (UUID: GPU-b)"; exit 0; fi
cat "{folder}/held" 2>/dev/null
"""

HELD = """
import os, pathlib, time
import pytest

@pytest.mark.gpus(2)
def test_first():
    pathlib.Path("held").write_text(f"GPU-a, {os.getpid()}\\nGPU-b, 1\\n")

@pytest.mark.gpus(2)
def test_second():
    pathlib.Path("held").write_text(f"GPU-a, {os.getpid()}\\nGPU-b, {os.getpid()}\\n")

@pytest.mark.gpus(2)
def test_third():
    pass
"""


def test_what_the_driver_says_is_attributed_to_the_test_that_began_it(tmp_path: Path) -> None:
    (tmp_path / "test_held.py").write_text(HELD)
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(DRIVER.format(folder=tmp_path))
    tool.chmod(0o755)
    path = f"{tool.parent}:/usr/bin:/bin"
    arguments = ("--lost-coverage", "lost.json", "--junitxml", "junit.xml")

    done = run_pytest(tmp_path, *arguments, variables={"PATH": path, "CUDA_VISIBLE_DEVICES": "0,1"})

    assert done.returncode == 0, done.stdout
    used = [properties(case) for case in ET.parse(tmp_path / "junit.xml").iter("testcase")]
    assert [(u.get("gpus_used"), u.get("gpus_used_by")) for u in used] == [
        ("1", "driver"),
        ("1", "driver, or more"),  # what the first began is still held: it may have been used as well
        (None, None),
    ]
    assert [test["test"] for test in lost_of(tmp_path)["over_declared"]] == ["test_held.py::test_first"]


def test_limited_processes_see_no_more_than_declared(tmp_path: Path) -> None:
    (tmp_path / "test_limit.py").write_text(
        "import os, pytest\n"
        "seen = lambda: os.environ['CUDA_VISIBLE_DEVICES']\n"
        "@pytest.mark.gpus(2)\ndef test_two(): assert seen() == '4,6'\n"
        "def test_other(): assert seen() == '4,6,7'\n"
        "@pytest.mark.gpus(0)\ndef test_none(): assert seen() == ''\n"
    )
    done = run_pytest(tmp_path, "--limit-gpus", variables={"CUDA_VISIBLE_DEVICES": "4,6,7"})
    assert "3 passed" in done.stdout, done.stdout


def test_durations_of_what_is_lost(suite: Path) -> None:
    assert "9 of unknown" not in run_pytest(suite, "--max-gpus", "8").stdout
    run_pytest(suite, "--max-gpus", "2", "--lost-coverage", "lost.json")
    found = lost_of(suite)
    assert found["lost_durations_known"] == 6
    assert all(0 <= test["duration_s"] < 10 for test in found["lost"])

    (suite / "times.json").write_text(json.dumps({"test_suite.py::test_function": 12.5}))
    files = ("--lost-coverage", "lost.json", "--gpu-durations", "times.json")
    done = run_pytest(suite, "--max-gpus", "2", *files, "-p", "no:cacheprovider")
    assert "needs 4 GPUs: 4 tests, 12.5 s without 3 of unknown duration" in done.stdout
    assert "  test_suite.py::test_function (12.5 s)" in done.stdout
    assert lost_of(suite)["lost_duration_s"] == 12.5


@pytest.mark.parametrize(
    ("mark", "shown"),
    [
        ("pytest.mark.gpus", "gpus()"),
        ("pytest.mark.gpus()", "gpus()"),
        ("pytest.mark.gpus('2')", "gpus('2')"),
        ("pytest.mark.gpus(True)", "gpus(True)"),
        ("pytest.mark.gpus(-1)", "gpus(-1)"),
        ("pytest.mark.gpus(1, 2)", "gpus(1, 2)"),
        ("pytest.mark.gpus(n=2)", "gpus(n=2)"),
    ],
)
def test_wrong_marks_are_usage_errors(tmp_path: Path, mark: str, shown: str) -> None:
    (tmp_path / "test_wrong.py").write_text(f"import pytest\n@{mark}\ndef test_it(): pass\n")
    done = run_pytest(tmp_path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: test_wrong.py::test_it: the mark was given as {shown}; accepted is one whole number" in done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr


@needs_xdist
def test_wrong_marks_are_named_with_workers(tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text("import pytest\n@pytest.mark.gpus('2')\ndef test_it(): pass\n")
    done = run_pytest(tmp_path, "-p", "xdist.plugin", "-n", "1")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "the mark was given as gpus('2')" in done.stdout
    assert "1 error" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--max-gpus", "two"), "'two' is no whole number from 0"),
        (("--max-gpus", "-1"), "--max-gpus"),
        (("--max-gpus", "1000000"), "'1000000' is no whole number from 0 to 999999"),
        (("--lost-coverage", "no/such/file.json"), "--lost-coverage"),
        (("--gpu-durations", "none.json"), "none.json cannot be read"),
        (("--gpu-durations", "pytest.ini"), "cannot be read"),
        (("--gpu-durations", "list.json"), "list.json is no object of seconds by node id"),
    ],
)
def test_wrong_options_are_usage_errors(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "list.json").write_text("[1]")
    done = run_pytest(tmp_path, *arguments)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_mark_is_registered_and_the_plugin_is_declared(suite: Path) -> None:
    assert run_pytest(suite, "--strict-markers", "--max-gpus", "8", "-q").returncode == 0
    assert "@pytest.mark.gpus(n): the test needs n GPUs" in run_pytest(suite, "--markers").stdout
    declared = (PROJECT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ndeep500_gpus = "deep500.fleet.shard.pytest_plugin"' in declared


@pytest.mark.skipif(
    not any(point.name == "deep500_gpus" for point in importlib.metadata.entry_points(group="pytest11")),
    reason="Deep500 was installed before it had the plug-in; install it again",
)
def test_it_is_found_by_its_name(suite: Path) -> None:
    done = run_pytest(suite, "--max-gpus", "2", plugin="deep500_gpus")
    assert "6 of 16 tests did not run" in done.stdout, done.stdout + done.stderr


def test_it_loads_nothing_heavy() -> None:
    code = (
        "import pytest, sys; import deep500.fleet.shard.pytest_plugin\n"
        "heavy = {'numpy', 'polars', 'psutil', 'onnx', 'scipy', 'matplotlib', 'typer', 'torch'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=False)
    assert done.returncode == 0, done.stderr
