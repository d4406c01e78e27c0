"""Every optimizer that is written once, trained under every framework: the same data, and nearly the same numbers."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import pytest

from deep500.datasets.loading import load_dataset
from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.training.catalogue import OPTIMIZERS
from deep500.training.events.batch_hash import BatchHashEvent
from deep500.training.metrics.test_accuracy import TestAccuracy
from deep500.training.metrics.training_accuracy import TrainingAccuracy
from deep500.training.samplers.ordered import OrderedSampler
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.trainer import Trainer

LEARNING_RATES = {
    "accelegrad": 1.0,
    "adagrad": 0.03,
    "adam": 0.003,
    "adamw": 0.003,
    "amsgrad": 0.003,
    "gradient_descent": 0.3,
    "lamb": 0.02,
    "lars": 20.0,
    "lbfgs": 1.0,
    "lion": 0.003,
    "momentum": 0.05,
    "muon": 0.02,
    "rmsprop": 0.003,
    "sam": 0.05,
}


def make_executor(framework: str) -> Any:
    adapter = FRAMEWORKS.get(framework)
    if not adapter.REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    network = create_model("mlp", shape=(1, 8, 8), hidden=(32,))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return importlib.import_module(f"deep500.frameworks.{framework}").from_model(network)


@functools.cache
def train(framework: str, optimizer: str) -> tuple[list[float], float, float, str]:
    """Return the losses of all steps, both accuracies and the hash of the data."""
    executor = make_executor(framework)
    train_set, test_set = load_dataset("digits")
    samplers = ShuffleSampler(train_set, 64, seed=1), OrderedSampler(test_set, 64)
    rule = OPTIMIZERS.get(optimizer)(executor, "loss", LEARNING_RATES.get(optimizer, 0.01))
    batches, accuracy = BatchHashEvent(), TrainingAccuracy()
    stats = Trainer(*samplers, executor, rule).run_loop(4, [batches, accuracy])
    losses = [loss for record in stats.epochs if record.training for loss in record.training.step_losses]
    return losses, accuracy.measure(None, stats), TestAccuracy().measure(None, stats), batches.digest


@pytest.mark.parametrize("framework", FRAMEWORKS.names())
@pytest.mark.parametrize("optimizer", OPTIMIZERS.names())
def test_training_agrees_with_the_reference(framework: str, optimizer: str) -> None:
    losses, training_accuracy, test_accuracy, digest = train(framework, optimizer)
    expected_losses, expected_training, expected_test, expected_digest = train("reference", optimizer)

    assert digest == expected_digest
    assert losses == pytest.approx(expected_losses, rel=1e-3)
    # Rounding may turn one close decision.
    assert training_accuracy == pytest.approx(expected_training, abs=0.2)
    assert test_accuracy == pytest.approx(expected_test, abs=0.3)


@pytest.mark.parametrize("optimizer", OPTIMIZERS.names())
def test_training_learns(optimizer: str) -> None:
    losses, training_accuracy, test_accuracy, _ = train("reference", optimizer)

    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
    assert training_accuracy > 80
    assert test_accuracy > 80
