"""What all tests share: quiet libraries, one Hypothesis profile, and GPU tests skipped where there is no GPU."""

from __future__ import annotations

import os
import shutil
import signal

import pytest
from hypothesis import settings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("DEEP500_OFFLINE", "1")  # no test downloads a data set

# Deadlines measure the machine's load, not the code; random examples that fail once must fail again.
settings.register_profile("deep500", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("deep500")


def pytest_configure() -> None:
    """Let Ctrl-C be one, for tests and what they start: a shell has it ignored in what it starts in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if shutil.which("nvidia-smi") or os.path.exists("/dev/nvidia0"):
        return
    skip = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)
