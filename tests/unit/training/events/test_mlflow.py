from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from deep500.core.errors import MissingDependencyError, TrainingError
from deep500.core.requirement import Requirement
from deep500.training.events.mlflow import MLflowEvent
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.training.events.test_csv_log import Stop
from tests.unit.training.support import make_trainer

needs_library = pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="mlflow is not installed")


@needs_library
def test_a_run_goes_to_a_store_and_goes_on(tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    uri, stop = f"sqlite:///{tmp_path / 'runs.db'}", Stop(5, 5)
    first = MLflowEvent("test", "a run", uri)
    make_trainer(GradientDescent).run_loop(2, [first, stop])
    client = MlflowClient(uri)
    assert first.run_id is not None
    assert client.get_run(first.run_id).info.status == "FINISHED"  # stopped by an event

    trainer, second = make_trainer(GradientDescent), MLflowEvent("test", "a run", uri)
    trainer.restore(stop.snapshot)
    stats = trainer.run_loop(2, [second])

    run = client.get_run(first.run_id)
    assert second.run_id == first.run_id
    assert run.info.run_name == "a run"
    assert run.data.params["optimizer"] == "GradientDescent"
    assert run.data.params["framework"] == "numpy-linear"
    history = {metric.step: metric.value for metric in client.get_metric_history(first.run_id, "loss/training")}
    losses = [loss for record in stats.epochs if record.training for loss in record.training.step_losses]
    assert [history[step] for step in range(1, 9)] == pytest.approx(losses)
    assert {metric.step for metric in client.get_metric_history(first.run_id, "loss/test")} == {4, 8}


@needs_library
def test_a_store_that_cannot_be_written_ends_it_before_it_begins() -> None:
    trainer = make_trainer(GradientDescent)
    with pytest.raises(TrainingError, match="MLflow cannot keep runs at nonsense://place"):
        trainer.run_loop(1, [MLflowEvent(tracking_uri="nonsense://place")])
    assert trainer.statistics is not None
    assert trainer.statistics.steps == 0


def test_without_the_library_the_training_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MLflowEvent, "requirement", Requirement("no_such_module", "mlflow", ()))
    with pytest.raises(MissingDependencyError, match=r"pip install 'deep500\[mlflow\]'"):
        make_trainer(GradientDescent).run_loop(1, [MLflowEvent()])
