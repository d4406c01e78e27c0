"""The deterministic mode of every framework: equal runs give equal bits, and the switches are as they were."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from deep500.datasets.loading import load_dataset
from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.training.determinism import deterministic_mode
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.samplers.shuffle import ShuffleSampler


def adapter(framework: str) -> Any:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    return importlib.import_module(f"deep500.frameworks.{framework}")


def train(framework: str, model: str, seed: int, **options: Any) -> tuple[list[np.ndarray], dict[str, Any]]:
    network = create_model(model, **options)
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = adapter(framework).from_model(network)
    with deterministic_mode(executor, seed) as told:
        optimizer = AdamOptimizer(executor, "loss", 0.01)
        if model == "gpt":
            stream = np.random.default_rng(0)
            batches = [dict(zip(("input", "label"), stream.integers(0, 20, (2, 3, 8)), strict=True)) for _ in range(3)]
        else:
            sampler = ShuffleSampler(load_dataset("digits")[0], 16)
            batches = [next(sampler) for _ in range(3)]
        for batch in batches:
            optimizer.step(batch)
        return executor.network.fetch_tensors(executor.network.get_params()), told


@pytest.mark.parametrize("framework", FRAMEWORKS.names())
def test_equal_runs_give_equal_bits(framework: str) -> None:
    first, told = train(framework, "lenet", 3, shape=(1, 8, 8))
    second, _ = train(framework, "lenet", 3, shape=(1, 8, 8))

    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert (told["framework"], told["seed"]) == (framework, 3)
    assert told["switches"]["threads"] is not None


@pytest.mark.parametrize("framework", ["pytorch", "reference", "tensorflow"])
def test_dropout_without_a_seed_draws_what_the_seed_says(framework: str) -> None:
    options = {"classes": 20, "layers": 1, "features": 8, "heads": 2, "context": 8, "dropout": 0.5}
    runs = [train(framework, "gpt", seed, **options)[0] for seed in (3, 3, 4)]

    assert all(np.array_equal(a, b) for a, b in zip(runs[0], runs[1], strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(runs[0], runs[2], strict=True))


def test_pytorch_s_switches_are_as_they_were() -> None:
    adapter("pytorch")
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    train("pytorch", "lenet", 1, shape=(1, 8, 8))

    assert (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark) == before
    executor = adapter("pytorch").from_model(create_model("mlp", shape=(4,)))
    with pytest.raises(InterruptedError), deterministic_mode(executor, 1):
        raise InterruptedError
    assert torch.are_deterministic_algorithms_enabled() is before[0]


def test_tensorflow_s_switches_are_as_they_were() -> None:
    adapter("tensorflow")
    import tensorflow as tf
    from tensorflow.python.framework import config

    assert not config.is_op_determinism_enabled()
    seed = tf.compat.v1.random.get_seed(None)[0]
    executor = adapter("tensorflow").from_model(create_model("mlp", shape=(4,)))
    with deterministic_mode(executor, 1):
        assert config.is_op_determinism_enabled()
    assert not config.is_op_determinism_enabled()
    assert tf.compat.v1.random.get_seed(None)[0] == seed
