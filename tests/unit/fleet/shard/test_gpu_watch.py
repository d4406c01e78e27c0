from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deep500.fleet.shard.gpu_watch import RANK_VARIABLES, GpuWatch


@pytest.fixture(autouse=True)
def no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def start(**variables: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ, **variables}
    )


def watched(*processes: subprocess.Popen[bytes], seconds: float = 0.4) -> GpuWatch:
    watch = GpuWatch()
    watch.start()
    time.sleep(seconds)
    for process in processes:
        process.communicate(b"\n")
    watch.stop()
    return watch


def test_ranks_are_counted_once_by_the_first_variable() -> None:
    ranks = [start(LOCAL_RANK=str(i % 2), RANK=str(i)) for i in range(3)]
    assert watched(*ranks, start()).ranks == {"0", "1"}


def test_what_all_inherit_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert watched(start()).ranks == set()
    assert watched(start(RANK="5")).ranks == {"5"}


def test_devices_of_the_process_and_of_those_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = start()
    tool = tmp_path / "nvidia-smi"
    lines = f"GPU-a, {os.getpid()}\nGPU-b, {child.pid}\nGPU-c, 1\nGPU-d, [N/A]\n"
    tool.write_text(f"#!/bin/sh\ncat <<END\n{lines}END\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert watched(child, seconds=1.0).devices == {("GPU-a", True), ("GPU-b", False)}
