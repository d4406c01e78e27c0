from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from deep500.core.errors import CheckpointError
from deep500.training.checkpoints.loading import check_identity, load_checkpoint, load_latest
from deep500.training.checkpoints.writer import CheckpointWriter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    writer = CheckpointWriter(tmp_path / "c")
    for step in (1, 2, 3):
        writer.write({"x": np.arange(100), "step": step}, step)
    return tmp_path / "c"


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "flip": flip,
    "shorten": shorten,
    "remove": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("file", ["tensors.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_is_told_of_and_the_one_before_it_used(
    folder: Path, file: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    DAMAGES[damage](folder / "step-000000003" / file)
    with caplog.at_level(logging.WARNING):
        assert load_latest(folder).step == 2

    (record,) = caplog.records
    assert "step-000000003 is damaged" in record.getMessage()
    assert file in record.getMessage() or damage == "flip"
    with pytest.raises(CheckpointError, match="is damaged"):
        load_checkpoint(folder / "step-000000003")


def test_every_bit_of_the_manifest_counts(folder: Path) -> None:
    path = folder / "step-000000003" / "manifest.json"
    manifest = json.loads(path.read_text())
    for key, value in (("step", 4), ("identity", {"a": 1}), ("written", "never"), ("version", 2), ("format", "x")):
        path.write_text(json.dumps({**manifest, key: value}))
        with pytest.raises(CheckpointError, match="is damaged"):
            load_checkpoint(path.parent)


def test_nothing_to_go_on_from(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        load_latest(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        load_latest(tmp_path)
    for path in folder.iterdir():
        shutil.rmtree(path)
        path.mkdir()
    with pytest.raises(CheckpointError, match=r"each of the 3 checkpoints in .* is damaged"):
        load_latest(folder)
    assert ["is tried" in text for text in caplog.messages] == [True, True, False]  # the last one has none before it


def test_pickles_are_not_read(folder: Path) -> None:
    path = folder / "step-000000003" / "tensors.safetensors"
    path.write_bytes(b"\x80\x04cos\nsystem\n(S'false'\ntR.")

    assert load_latest(folder).step == 2


def test_identity_tells_what_differs() -> None:
    saved = {"batch_size": 32, "optimizer_kwargs": {"learning_rate": 0.1}, "same": [1, 2], "old": None}
    here = {"batch_size": 64, "optimizer_kwargs": {"learning_rate": 0.2}, "same": [1, 2]}
    check_identity(saved, saved)
    with pytest.raises(CheckpointError) as caught:
        check_identity(saved, here)

    message = str(caught.value)
    assert "batch_size was 32, now it is 64" in message
    assert "optimizer_kwargs.learning_rate was 0.1, now it is 0.2" in message
    assert "old was None, now it is not given" in message
    assert "same" not in message
    check_identity(saved, here, ignored=["batch_size", "optimizer_kwargs", "old"])


def test_a_newer_format_is_not_passed_over(folder: Path) -> None:
    path = folder / "step-000000003" / "manifest.json"
    manifest = {**json.loads(path.read_text()), "version": 3}
    del manifest["sha256"]
    manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(manifest))

    with pytest.raises(
        CheckpointError, match=r"another version of Deep500: it has version 3.*accepted are 1 and 2.*move it away"
    ):
        load_latest(folder)
