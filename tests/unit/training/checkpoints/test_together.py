"""Checkpoints of several ranks: whole or not at all, each rank's own state, and one number of ranks."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, FileWriteError
from deep500.distributed.agreement import CommunicatorRanks
from deep500.distributed.communicator import Communicator
from deep500.distributed.communicators.local import run_threads
from deep500.training.checkpoints import writer as writer_module
from deep500.training.checkpoints.loading import load_checkpoint, load_latest
from deep500.training.checkpoints.writer import CheckpointWriter


def state_of(rank: int, step: int) -> dict[str, Any]:
    return {"n": step, "own": np.full(3, 10 * rank + step, np.float32)}


def write(folder: Path, size: int, *steps: int) -> None:
    def work(communicator: Communicator) -> None:
        ranks, writer = CommunicatorRanks(communicator), CheckpointWriter(folder)
        writer.prepare(ranks)
        for step in steps:
            writer.write(state_of(ranks.rank, step), step, ranks)
        writer.release()

    run_threads(size, work)


def latest(folder: Path, size: int) -> list[tuple[int, float]]:
    def work(communicator: Communicator) -> tuple[int, float]:
        found = load_latest(folder, CommunicatorRanks(communicator))
        return found.step, float(found.state["own"][0])

    return run_threads(size, work)


@pytest.mark.parametrize("size", [2, 3])
def test_each_rank_gets_its_own_state_back(tmp_path: Path, size: int) -> None:
    write(tmp_path, size, 1, 2)

    assert latest(tmp_path, size) == [(2, 10.0 * rank + 2) for rank in range(size)]
    assert sorted(path.name for path in (tmp_path / "step-000000002").iterdir()) == [
        "manifest.json",
        *(f"state.rank-{rank}.json" for rank in range(size)),
        *(f"tensors.rank-{rank}.safetensors" for rank in range(size)),
    ]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, cut, flip], ids=["missing", "cut", "flipped"])
@pytest.mark.parametrize("file", ["tensors.rank-1.safetensors", "state.rank-0.json", "state.rank-2.json"])
def test_one_damaged_file_leads_all_ranks_to_the_checkpoint_before(
    tmp_path: Path, damage: Callable[[Path], None], file: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, 3, 1, 2)
    damage(tmp_path / "step-000000002" / file)

    with caplog.at_level(logging.WARNING):
        found = latest(tmp_path, 3)

    assert found == [(1, 1.0), (1, 11.0), (1, 21.0)]
    (told,) = caplog.messages  # once, by rank 0, whoever's file it is
    assert file in told
    assert "is damaged" in told
    assert "The one before it is tried" in told


@pytest.mark.parametrize(("written", "here"), [(2, 3), (3, 2), (2, 1), (1, 2)])
def test_another_number_of_ranks_is_refused(tmp_path: Path, written: int, here: int) -> None:
    write(tmp_path, written, 1, 2)
    names = {1: "a single process", 2: "2 ranks", 3: "3 ranks"}

    with pytest.raises(CheckpointError) as raised:
        latest(tmp_path, here)

    assert f"step-000000002 was written by {names[written]}, and here {names[here]} would go on" in str(raised.value)


def test_a_single_process_may_not_take_the_state_of_one_of_two(tmp_path: Path) -> None:
    write(tmp_path, 2, 1)

    with pytest.raises(CheckpointError, match="written by 2 ranks"):
        load_checkpoint(tmp_path / "step-000000001")


@pytest.mark.parametrize("failing", [0, 1])
def test_a_rank_that_cannot_write_lets_nobody_write(
    tmp_path: Path, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 2, 1)
    whole = writer_module._write_file

    def full(path: Path, content: bytes) -> None:
        if f"rank-{failing}" in path.name:
            raise OSError(28, "No space left on device")
        whole(path, content)

    monkeypatch.setattr(writer_module, "_write_file", full)

    def work(communicator: Communicator) -> str:
        ranks = CommunicatorRanks(communicator)
        with pytest.raises(FileWriteError) as raised:
            CheckpointWriter(tmp_path).write(state_of(ranks.rank, 2), 2, ranks)
        return str(raised.value)

    first, second = run_threads(2, work)

    assert first == second
    assert f"rank {failing}: The checkpoint cannot be written" in first
    assert "No space left on device" in first
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_a_folder_that_only_rank_0_sees_is_told(tmp_path: Path) -> None:
    def work(communicator: Communicator) -> str:
        ranks = CommunicatorRanks(communicator)
        writer = CheckpointWriter(tmp_path / "shared")
        if ranks.rank == 1:
            writer._write_files = lambda place, contents: _not_here()  # type: ignore[method-assign]
        with pytest.raises(FileWriteError) as raised:
            writer.write(state_of(ranks.rank, 1), 1, ranks)
        return str(raised.value)

    def _not_here() -> Any:
        raise FileNotFoundError(2, "No such file or directory")

    assert all("on a file system that they share" in text for text in run_threads(2, work))


def test_nothing_of_a_failed_manifest_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = writer_module._write_file

    def full(path: Path, content: bytes) -> None:
        if path.name == "manifest.json":
            raise OSError(28, "No space left on device")
        whole(path, content)

    monkeypatch.setattr(writer_module, "_write_file", full)

    def work(communicator: Communicator) -> None:
        ranks = CommunicatorRanks(communicator)
        with pytest.raises(FileWriteError, match="No space left"):
            CheckpointWriter(tmp_path).write(state_of(ranks.rank, 1), 1, ranks)

    run_threads(2, work)

    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    write(tmp_path, 2, 1)
    shutil.copytree(tmp_path / "step-000000001", tmp_path / "before")
    write(tmp_path, 2, 1)

    assert latest(tmp_path, 2) == [(1, 1.0), (1, 11.0)]
