"""Every event in one training under every framework; every hook, and a stop in each of them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deep500.core.stateful import Stateful
from deep500.datasets.numpy_dataset import NumpyDataset
from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.networks.executor_event import ExecutorEvent
from deep500.training.catalogue import EVENTS
from deep500.training.checkpoints._encoding import decode, encode
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.statistics import Outcome
from deep500.training.trainer import Trainer
from deep500.training.training_event import OptimizerEvent, RunnerEvent, SamplerEvent, StopTraining
from tests.conformance.event_cases import EVENT_CASES, STEPS

CLASSES = 3


def images(count: int, seed: int) -> NumpyDataset:
    random = np.random.default_rng(seed)
    labels = np.arange(count) % CLASSES
    pixels = random.normal(0, 0.5, (count, 1, 6, 6)).astype(np.float32)
    pixels[np.arange(count), 0, labels * 2, labels * 2] += 2
    return NumpyDataset(pixels, "input", labels, "label", CLASSES)


def make_trainer(framework: str) -> Trainer:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    network = create_model("mlp", shape=(1, 6, 6), classes=CLASSES, hidden=(8,))
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = importlib.import_module(f"deep500.frameworks.{framework}").from_model(network)
    train = ShuffleSampler(images(60, 0), 16, seed=1, drop_last_batch=False)
    return Trainer(
        train, OrderedSampler(images(20, 1), 16), executor, MomentumOptimizer(executor, "loss", learning_rate=0.1)
    )


def test_every_event_has_a_case() -> None:
    assert sorted(EVENT_CASES) == EVENTS.names()


def made(folder: Path) -> dict[str, Any]:
    return {name: case.make(folder) for name, case in EVENT_CASES.items() if case.is_installed}


@pytest.mark.parametrize("framework", FRAMEWORKS.names())
def test_all_events_in_one_training(framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = make_trainer(framework)
    listeners = made(tmp_path)
    stats = trainer.run_loop(2, list(listeners.values()))

    assert stats.outcome is Outcome.COMPLETED
    assert stats.steps == STEPS
    assert trainer.optimizer.learning_rate == 0.1  # type: ignore[attr-defined]
    for name, event in listeners.items():
        EVENT_CASES[name].check(event, tmp_path)


class Interruption(RunnerEvent):
    """Takes a snapshot in the middle of the second epoch, and stops."""

    comes_last = True

    def after_step(self, step: int, runner: Any, training_stats: Any, outputs: Any, loss: Any) -> None:
        if step == 5:
            self.document, self.tensors = encode(runner.state())
            raise StopTraining


@pytest.mark.parametrize("name", sorted(EVENT_CASES))
def test_a_snapshot_of_an_event_goes_on_in_another(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state survives being written, and a training that goes on ends as one that was never interrupted."""
    case = EVENT_CASES[name]
    if not case.is_installed:
        pytest.skip(f"{case.module} is not installed")
    monkeypatch.chdir(tmp_path)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    uninterrupted = make_trainer("reference")
    expected = case.make(whole)
    uninterrupted.run_loop(2, [expected])

    interruption = Interruption()
    make_trainer("reference").run_loop(2, [case.make(parts), interruption])
    trainer, event = make_trainer("reference"), case.make(parts)
    trainer.restore(decode(interruption.document, interruption.tensors))
    stats = trainer.run_loop(2, [event])

    assert stats.steps == STEPS
    case.check(event, parts)
    if isinstance(event, Stateful):
        assert_alike(event.state(), expected.state())
    network = trainer.executor.network
    for one, other in zip(
        network.fetch_tensors(network.get_params()), uninterrupted.executor.network.fetch_tensors(network.get_params())
    ):
        np.testing.assert_array_equal(one, other)


def assert_alike(one: Any, other: Any, path: str = "") -> None:
    """Compare two snapshots but for times, sizes of files with times in them, and names that are drawn."""
    if path.endswith(("_s", "_bytes", "run_id")):
        return
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key, value in one.items():
            assert_alike(value, other[key], f"{path}/{key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), path
        for index, (left, right) in enumerate(zip(one, other)):
            assert_alike(left, right, f"{path}/{index}")
    else:
        np.testing.assert_array_equal(one, other, err_msg=path)


KINDS = {
    RunnerEvent: (
        *("before_training", "after_training", "before_epoch", "after_epoch", "before_training_set"),
        *("after_training_set", "before_step", "after_step", "before_test_set", "after_test_set"),
        *("before_test_batch", "after_test_batch"),
    ),
    OptimizerEvent: ("before_optimizer_step", "after_optimizer_step"),
    SamplerEvent: ("on_sampler_reset", "before_sampling", "after_sampling"),
    ExecutorEvent: ("before_executor", "after_inference", "after_backprop"),
}
HOOKS = [(kind, hook) for kind, hooks in KINDS.items() for hook in hooks]


def stopping(kind: type[Any], hook: str) -> Any:
    """Return an event that stops the training when a hook is called for the second time, or the first if it is once."""
    calls: list[str] = []

    def stop(self: Any, *arguments: Any) -> None:
        calls.append(hook)
        if len(calls) == 2 or hook.endswith("_training") or hook == "on_sampler_reset":
            raise StopTraining

    event = type("Stopping", (kind,), {hook: stop})()
    event.calls = calls
    return event


def test_every_hook_of_every_kind_is_here() -> None:
    for kind, hooks in KINDS.items():
        own = {name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")}
        assert own == set(hooks)


@pytest.mark.parametrize("framework", FRAMEWORKS.names())
@pytest.mark.parametrize(("kind", "hook"), HOOKS, ids=[hook for _, hook in HOOKS])
def test_a_stop_in_any_hook_ends_the_training_cleanly(framework: str, kind: type[Any], hook: str) -> None:
    trainer = make_trainer(framework)
    event, end = stopping(kind, hook), Ends()
    stats = trainer.run_loop(3, [event, end])

    assert event.calls
    # A stop when all is over changes nothing any more.
    assert stats.outcome is (Outcome.COMPLETED if hook == "after_training" else Outcome.STOPPED)
    assert end.told == 1
    assert trainer.executor.events == trainer.train_sampler.events == []
    assert trainer.run_loop(1, []).outcome is Outcome.COMPLETED  # and another can follow


class Ends(RunnerEvent):
    """Counts how often it is told of the end."""

    told = 0

    def after_training(self, runner: Any, training_stats: Any) -> None:
        self.told += 1
