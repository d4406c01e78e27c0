from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from deep500.training.events.jsonl_log import JSONLLogEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.training.events.test_csv_log import Stop
from tests.unit.training.support import LinearExecutor, make_trainer


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_steps_tests_and_epochs_have_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    make_trainer(GradientDescent).run_loop(1, [JSONLLogEvent(path)], evaluate_every_steps=2)

    assert [(line["kind"], line["step"]) for line in lines(path)] == [
        ("step", 1), ("step", 2), ("test", 2), ("step", 3), ("step", 4), ("test", 4), ("epoch", 4),
    ]  # fmt: skip


def test_without_steps(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    make_trainer(GradientDescent).run_loop(2, [JSONLLogEvent(path, "epoch")])

    assert [line["kind"] for line in lines(path)] == ["test", "epoch", "test", "epoch"]


def test_what_is_not_finite_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    executor = LinearExecutor()
    executor.tensors[executor.bias][0] = np.nan
    make_trainer(GradientDescent, executor=executor, tested=False).run_loop(1, [JSONLLogEvent(path)])

    assert all(line["loss"] == "nan" for line in lines(path) if line["kind"] == "step")


def test_a_training_that_goes_on_appends(tmp_path: Path) -> None:
    path, stop = tmp_path / "log.jsonl", Stop(5, 7)
    make_trainer(GradientDescent).run_loop(2, [JSONLLogEvent(path), stop])
    trainer = make_trainer(GradientDescent)
    trainer.restore(stop.snapshot)
    trainer.run_loop(2, [JSONLLogEvent(path)])

    steps = [line["step"] for line in lines(path) if line["kind"] == "step"]
    assert steps == list(range(1, 9))
    assert [line["step"] for line in lines(path) if line["kind"] == "epoch"] == [4, 8]
