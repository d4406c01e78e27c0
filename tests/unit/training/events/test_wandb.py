from __future__ import annotations

import importlib.util
import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deep500.core.errors import MissingDependencyError, TrainingError
from deep500.core.requirement import Requirement
from deep500.training.events.wandb import WandbEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.training.events.test_csv_log import Stop
from tests.unit.training.support import make_trainer

needs_library = pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed")


def records(data: bytes) -> Iterator[bytes]:
    """Return the records of a file in LevelDB's log format, in which offline runs are kept (after 7 bytes)."""
    block, place, part = 32768, 7, b""
    while place + 7 <= len(data):
        if block - place % block < 7:  # no header fits into the rest of a block
            place += block - place % block
            continue
        _, size, kind = struct.unpack_from("<IHB", data, place)
        part += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield part
            part = b""


def history(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all offline runs of a folder."""
    from wandb.proto.wandb_internal_pb2 import Record

    rows = []
    for file in sorted(folder.rglob("*.wandb")):
        for data in records(file.read_bytes()):
            record = Record.FromString(data)
            if record.HasField("history"):
                rows.append({i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record.history.item})
    return rows


@needs_library
def test_an_offline_run_holds_what_was_measured_and_goes_on(tmp_path: Path) -> None:
    stop = Stop(5, 5)
    first = WandbEvent("test", mode="offline", folder=tmp_path)
    make_trainer(GradientDescent).run_loop(2, [first, stop])
    trainer, second = make_trainer(GradientDescent), WandbEvent("test", mode="offline", folder=tmp_path)
    trainer.restore(stop.snapshot)
    stats = trainer.run_loop(2, [second])

    assert second.run_id == first.run_id is not None
    for _ in range(300):  # the process that keeps the run may still be writing
        if any("loss/training_epoch" in row and row["step"] == 8 for row in history(tmp_path)):
            break
        time.sleep(0.1)
    losses = {row["step"]: row["loss/training"] for row in history(tmp_path) if "loss/training" in row}
    expected = [loss for record in stats.epochs if record.training for loss in record.training.step_losses]
    assert [losses[step] for step in range(1, 9)] == pytest.approx(expected)
    assert {row["step"] for row in history(tmp_path) if "loss/test" in row} == {4, 8}


def test_without_the_library_the_training_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WandbEvent, "requirement", Requirement("no_such_module", "wandb", ()))
    with pytest.raises(MissingDependencyError, match=r"pip install 'deep500\[wandb\]'"):
        make_trainer(GradientDescent).run_loop(1, [WandbEvent()])


def test_the_mode_is_checked() -> None:
    with pytest.raises(TrainingError, match="accepted are online, offline, disabled"):
        WandbEvent(mode="sometimes")
