"""Suites of tests for the plug-in, run by a pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[4]

#: Tests that need 0 to 8 GPUs, each way of saying so once; the comments tell what counts.
SUITE = '''
import unittest
import pytest

pytestmark = pytest.mark.gpus(1)


def test_module():  # 1
    pass


@pytest.mark.gpus(4)
def test_function():  # 4
    pass


@pytest.mark.gpus(0)
def test_none():  # 0
    pass


@pytest.mark.gpus(4)
class TestClass:
    def test_of_class(self):  # 4
        pass

    @pytest.mark.gpus(2)
    def test_own(self):  # 2
        pass


class TestHeir(TestClass):
    pytestmark = [pytest.mark.gpus(8)]  # 8 for test_of_class, 2 for test_own


@pytest.mark.gpus(2)
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.gpus(3)), 3])
def test_parameters(n):  # 2, 3, 2
    pass


@pytest.mark.gpus(4)
@pytest.mark.skip(reason="of its own")
def test_skipped_anyway():
    pass


@pytest.mark.gpus(4)
@pytest.mark.skipif("True", reason="by a condition")
def test_skipped_by_condition():
    pass


@pytest.mark.gpus(4)
@pytest.mark.skipif("False", reason="never")
def test_not_skipped_otherwise():  # 4
    pass


@pytest.mark.gpus(4)
class TestUnit(unittest.TestCase):
    def test_unit(self):  # 4
        pass

    @pytest.mark.gpus(1)
    def test_small(self):  # 1
        pass

    @unittest.skip("of unittest")
    def test_skipped(self):
        pass


def example():
    """A doctest.

    >>> 1 + 1
    2
    """
'''

#: What two GPUs leave out, and what it needs.
LOST = {
    "test_suite.py::test_function": 4,
    "test_suite.py::TestClass::test_of_class": 4,
    "test_suite.py::TestHeir::test_of_class": 8,
    "test_suite.py::test_parameters[2]": 3,
    "test_suite.py::test_not_skipped_otherwise": 4,
    "test_suite.py::TestUnit::test_unit": 4,
}


def run_pytest(
    folder: Path,
    *arguments: str,
    variables: dict[str, str] | None = None,
    plugin: str = "deep500.fleet.shard.pytest_plugin",
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder with no plug-in but ours (and those that are named)."""
    (folder / "pytest.ini").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(PROJECT), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "pytest", "-p", plugin, *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment | (variables or {}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
