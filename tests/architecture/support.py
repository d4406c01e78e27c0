"""What the architecture tests share: the checkout's place, copies of the package, and fresh interpreters."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def copy_package(target: Path) -> Path:
    """Copy the Python files of the package and its configuration, to plant violations there."""
    for source in sorted((PROJECT / "deep500").rglob("*.py*")):
        if source.suffix not in {".py", ".pyi"}:
            continue
        destination = target / source.relative_to(PROJECT)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, destination)
    shutil.copyfile(PROJECT / "pyproject.toml", target / "pyproject.toml")
    return target


def plant(root: Path, name: str, text: str) -> Path:
    """Append ``text`` to the file ``name`` below ``root``, making it (and packages on the way) where it is missing."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in path.parents:
        if folder == root:
            break
        if folder.relative_to(root).parts[0] == "deep500":
            (folder / "__init__.py").touch()
    before = path.read_text() if path.exists() else ""
    path.write_text(before + text)
    return path


def run_python(*arguments: str, root: Path = PROJECT, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter that finds ``deep500`` in ``root`` first."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True, timeout=timeout_s
    )
