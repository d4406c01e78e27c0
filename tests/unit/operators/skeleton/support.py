"""Skeletons as modules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deep500.workloads._operator_check.python_file import execute_file


def load(files: Mapping[str, str], folder: Path) -> Any:
    """Write files, and return the module of the first."""
    for name, text in files.items():
        (folder / name).write_text(text)
    return execute_file(folder / next(iter(files)))
