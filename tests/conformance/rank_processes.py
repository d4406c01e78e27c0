"""Programs of several ranks: started, ended when they hang, and what their ranks report."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

__all__ = ["PROJECT", "reports", "run_ranks"]

PROJECT = Path(__file__).parents[2]


def run_ranks(
    command: Sequence[str], variables: Mapping[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a program with its ranks; one that hangs is killed, with them, and fails."""
    process = subprocess.Popen(
        command, cwd=PROJECT, env=dict(variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def reports(path: Path, count: int) -> list[dict[str, Any]]:
    """Return what each rank wrote beside a path, nothing for one that wrote nothing."""
    files = [Path(f"{path}.{rank}") for rank in range(count)]
    return [json.loads(file.read_text()) if file.exists() else {} for file in files]
