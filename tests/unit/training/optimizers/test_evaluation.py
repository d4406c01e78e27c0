from __future__ import annotations

import importlib

import numpy as np
import pytest

from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.training.optimizers._evaluation import states_kept
from deep500.training.optimizers.lbfgs import LBFGSOptimizer
from deep500.training.optimizers.sam import SAMOptimizer


def make_executor():
    network = create_model("simple_cnn", shape=(1, 6, 6), widths=(3,), classes=3)
    network.append_loss("SoftmaxCrossEntropyLoss")
    return importlib.import_module("deep500.frameworks.reference").from_model(network)


def states(executor):
    return executor.network.fetch_tensors(list(executor.network.states))


INPUTS = {"input": np.random.default_rng(0).normal(size=(5, 1, 6, 6)).astype(np.float32), "label": np.arange(5) % 3}


def test_statistics_stay_within() -> None:
    executor = make_executor()
    executor.network.train()
    before = states(executor)
    assert before
    with states_kept(executor):
        executor.inference_and_backprop(INPUTS)
        assert any((now != old).any() for now, old in zip(states(executor), before, strict=True))

    for now, old in zip(states(executor), before, strict=True):
        np.testing.assert_array_equal(now, old)


@pytest.mark.parametrize("kind", [SAMOptimizer, LBFGSOptimizer])
def test_statistics_see_a_minibatch_once(kind) -> None:
    assert "reference" in FRAMEWORKS
    executor, other = make_executor(), make_executor()
    kind(executor).step(INPUTS)
    other.network.train()
    other.inference_and_backprop(INPUTS)

    for received, expected in zip(states(executor), states(other), strict=True):
        np.testing.assert_array_equal(received, expected)
