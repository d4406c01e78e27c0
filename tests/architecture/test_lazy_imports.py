"""Importing Deep500 is cheap: no framework, no MPI and no plotting is loaded before it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.architecture.support import PROJECT, copy_package, plant, run_python

HEAVY = ("torch", "tensorflow", "keras", "onnxruntime", "mpi4py", "matplotlib", "sklearn")
FRAMEWORKS = ("torch", "tensorflow", "keras", "onnxruntime")
MAXIMUM_IMPORT_S = 0.3

IMPORT = """
import importlib, json, sys, time
start = time.perf_counter()
module = importlib.import_module(sys.argv[1])
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "file": module.__file__, "loaded": sorted(sys.modules)}))
"""

VERSION = """
import json, sys
sys.argv = ["deep500", "--version"]
from deep500.cli.main import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print()
print(json.dumps({"loaded": sorted(sys.modules)}))
"""


def import_report(module: str, root: Path = PROJECT) -> dict:
    """Import one module in a fresh interpreter and report its seconds, its file and all loaded modules."""
    result = run_python("-c", IMPORT, module, root=root)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert Path(report["file"]).is_relative_to(root)
    return report


def heavy_modules(report: dict, names: tuple[str, ...] = HEAVY) -> list[str]:
    """Return which of ``names`` were loaded."""
    return [name for name in names if name in report["loaded"]]


def best_import_s(root: Path = PROJECT) -> float:
    """Return the shortest of several import times; the others measure the machine's load."""
    shortest = float("inf")
    for _ in range(7):
        shortest = min(shortest, import_report("deep500", root)["seconds"])
        if shortest < MAXIMUM_IMPORT_S / 3:
            break
    return shortest


def test_import_loads_nothing_heavy() -> None:
    assert heavy_modules(import_report("deep500")) == []


def test_import_takes_less_than_its_limit() -> None:
    assert best_import_s() < MAXIMUM_IMPORT_S


def test_planted_eager_import_is_caught(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    plant(root, "sklearn.py", "")  # a stand-in, so that the copy imports nothing large
    plant(root, "deep500/__init__.py", "\nimport sklearn\n")

    assert heavy_modules(import_report("deep500", root)) == ["sklearn"]


def test_planted_slow_import_is_caught(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    plant(root, "deep500/__init__.py", f"\nimport time\ntime.sleep({MAXIMUM_IMPORT_S})\n")

    assert import_report("deep500", root)["seconds"] > MAXIMUM_IMPORT_S


def test_version_loads_nothing_heavy() -> None:
    result = run_python("-c", VERSION)

    assert result.returncode == 0, result.stderr
    *output, report = result.stdout.strip().splitlines()
    assert heavy_modules(json.loads(report)) == []
    assert _version() in "".join(output)


@pytest.mark.parametrize(
    "level",
    ["core", "measure", "operators", "networks", "datasets", "training", "frameworks", "recipe", "cli.main"],
)
def test_level_alone_loads_no_framework(level: str) -> None:
    assert heavy_modules(import_report(f"deep500.{level}"), FRAMEWORKS) == []


def _version() -> str:
    namespace: dict[str, str] = {}
    exec((PROJECT / "deep500" / "_version.py").read_text(), namespace)
    return namespace["__version__"]
