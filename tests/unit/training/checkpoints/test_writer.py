from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, FileWriteError
from deep500.training.checkpoints import writer as writer_module
from deep500.training.checkpoints.loading import checkpoint_folders, load_checkpoint, load_latest
from deep500.training.checkpoints.writer import CheckpointWriter

STATE = {"x": np.arange(4.0), "n": 3}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = CheckpointWriter(tmp_path / "new" / "place", identity={"a": 1}).write(STATE, 12)
    found = load_checkpoint(path)

    assert names(tmp_path / "new" / "place") == ["step-000000012"]
    assert names(path) == ["manifest.json", "state.json", "tensors.safetensors"]
    assert (found.step, found.identity, found.state["n"], found.state["x"].tolist()) == (12, {"a": 1}, 3, [0, 1, 2, 3])


def test_the_newest_are_kept(tmp_path: Path) -> None:
    writer = CheckpointWriter(tmp_path, keep=2)
    for step in (5, 7, 8, 10**9):
        writer.write(STATE, step)

    assert names(tmp_path) == ["step-000000008", "step-1000000000"]
    assert load_latest(tmp_path).step == 10**9


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    writer = CheckpointWriter(tmp_path)
    writer.write(STATE, 1)
    writer.write({"n": 4}, 1)

    assert names(tmp_path) == ["step-000000001"]
    assert load_latest(tmp_path).state == {"n": 4}


POINTS = ["write", "fsync", "mkdtemp", "replace", "chmod"]


@pytest.mark.parametrize("same_step", [False, True])
@pytest.mark.parametrize("count", range(1, 6))
@pytest.mark.parametrize("point", POINTS)
def test_full_disk_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, count: int, same_step: bool
) -> None:
    writer = CheckpointWriter(tmp_path)
    writer.write({"n": 1}, 1)
    calls = []

    def failing(original: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(arguments)
            if len(calls) == count:
                raise OSError(errno.ENOSPC, "No space left on device")
            return original(*arguments, **options)

        return call

    if point == "write":
        monkeypatch.setattr(writer_module, "_write_file", failing(writer_module._write_file))
    elif point == "mkdtemp":
        monkeypatch.setattr(tempfile, "mkdtemp", failing(tempfile.mkdtemp))
    else:
        monkeypatch.setattr(os, point, failing(getattr(os, point)))
    step = 1 if same_step else 2
    try:
        writer.write({"n": 2}, step)
        is_written = True
    except FileWriteError as error:
        assert "No space left on device" in str(error)  # noqa: PT017 - it may also not be raised
        is_written = False
    monkeypatch.undo()

    assert is_written == (len(calls) < count)
    assert all(not name.startswith(".") for name in names(tmp_path))
    for path in checkpoint_folders(tmp_path):
        load_checkpoint(path)
    if not is_written:
        assert load_latest(tmp_path).state["n"] in (1, 2)
    assert 1 in [load_checkpoint(path).step for path in checkpoint_folders(tmp_path)]


def test_half_a_file_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, content: bytes) -> None:
        path.write_bytes(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer_module, "_write_file", half)
    with pytest.raises(FileWriteError, match="cannot be written to"):
        CheckpointWriter(tmp_path).write(STATE, 1)

    assert names(tmp_path) == []


def test_leftovers_of_killed_processes_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".step-000000003.999999999.abc").mkdir()
    (tmp_path / f".step-000000003.{os.getpid()}.abc").mkdir()
    (tmp_path / "mine").mkdir()
    CheckpointWriter(tmp_path).prepare()

    assert names(tmp_path) == [f".step-000000003.{os.getpid()}.abc", "mine"]


def test_folder_that_is_a_file_is_refused_before_the_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileWriteError, match="cannot be written to"):
        CheckpointWriter(tmp_path / "file").prepare()


@pytest.mark.parametrize("keep", [0, -1, 1.5, True, None])
def test_keep_that_is_not_accepted(tmp_path: Path, keep: Any) -> None:
    with pytest.raises(CheckpointError, match="keep was given as"):
        CheckpointWriter(tmp_path, keep)


def test_damaged_ones_of_later_steps_displace_nothing(tmp_path: Path) -> None:
    for step in (101, 102, 103):
        (tmp_path / f"step-{step:09d}").mkdir()
    writer = CheckpointWriter(tmp_path, keep=2)
    for step in (1, 2, 3):
        writer.write(STATE, step)

    assert load_latest(tmp_path).step == 3
    assert len(names(tmp_path)) == 5


def test_two_at_once(tmp_path: Path) -> None:
    first, second = CheckpointWriter(tmp_path), CheckpointWriter(tmp_path)
    first.prepare()
    first.prepare()

    with pytest.raises(FileWriteError, match="Another training writes its checkpoints"):
        second.prepare()
    first.release()
    second.prepare()
    second.release()


@pytest.mark.parametrize("kind", ["file", "link to nothing", "below a file"])
def test_what_is_no_folder(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "link to nothing":
        place.symlink_to(tmp_path / "nothing")
    else:
        place.write_text("")
    with pytest.raises(FileWriteError, match=r"no folder\. Name another"):
        CheckpointWriter(place / "deeper" if kind == "below a file" else place).prepare()
