"""The import rule: the project keeps every contract, and each contract is broken by a violation planted on purpose."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.architecture.support import PROJECT, copy_package, plant, run_python

LAYERS = "Levels import only lower levels"
INDEPENDENT = "Adapters do not import each other"
REGISTRY_ONLY = "Adapters are found through the registry, never imported"
TORCH = "Only the PyTorch adapter imports torch"
TENSORFLOW = "Only the TensorFlow adapter imports tensorflow and keras"
MPI = "Only communicators import mpi4py"
CORE = "The core needs no library but NumPy and its further dtypes"
CONTRACTS = [LAYERS, INDEPENDENT, REGISTRY_ONLY, TORCH, TENSORFLOW, MPI, CORE]

VIOLATIONS = [
    ("deep500/core/__init__.py", "import deep500.networks", [LAYERS, CORE]),
    ("deep500/datasets/__init__.py", "def late():\n    import deep500.training", [LAYERS]),
    ("deep500/networks/__init__.py", "import deep500.frameworks.pytorch", [LAYERS, REGISTRY_ONLY]),
    ("deep500/newcomer/__init__.py", "", [LAYERS]),
    ("deep500/frameworks/pytorch/__init__.py", "import deep500.frameworks.tensorflow", [INDEPENDENT, REGISTRY_ONLY]),
    ("deep500/cli/__init__.py", "import deep500.frameworks.reference", [REGISTRY_ONLY]),
    ("deep500/training/__init__.py", "import torch", [TORCH]),
    ("deep500/frameworks/tensorflow/__init__.py", "from torch.nn import functional", [TORCH]),
    ("deep500/operators/__init__.py", "import tensorflow as tf", [TENSORFLOW]),
    ("deep500/frameworks/reference/__init__.py", "from keras import ops", [TENSORFLOW]),
    ("deep500/measure/__init__.py", "from mpi4py import MPI", [MPI]),
    ("deep500/core/__init__.py", "import scipy.stats", [CORE]),
]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package below ``root``."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return run_python("-c", command, "--no-cache", root=root)


def test_project_keeps_every_contract() -> None:
    result = lint_imports(PROJECT)

    assert result.returncode == 0, result.stdout + result.stderr
    for contract in CONTRACTS:
        assert f"{contract} KEPT" in result.stdout


@pytest.mark.parametrize(("file", "line", "broken"), VIOLATIONS, ids=[f"{v[0][8:-12]}: {v[1]}" for v in VIOLATIONS])
def test_planted_violation_breaks_its_contract(tmp_path: Path, file: str, line: str, broken: list[str]) -> None:
    plant(copy_package(tmp_path), file, f"\n{line}\n")

    result = lint_imports(tmp_path)

    assert result.returncode == 1, result.stdout + result.stderr
    found = [contract for contract in CONTRACTS if f"{contract} BROKEN" in result.stdout]
    assert found == broken, result.stdout


def test_allowed_imports_are_kept(tmp_path: Path) -> None:
    root = copy_package(tmp_path)
    plant(root, "deep500/frameworks/pytorch/planted.py", "import torch.nn\n")
    plant(root, "deep500/frameworks/tensorflow/planted.py", "import keras\nimport tensorflow as tf\n")
    plant(root, "deep500/distributed/communicators/planted.py", "import deep500.training\nfrom mpi4py import MPI\n")
    plant(root, "deep500/fleet/__init__.py", "import deep500.recipe\n")

    result = lint_imports(root)

    assert result.returncode == 0, result.stdout + result.stderr
