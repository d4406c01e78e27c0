"""No step of training asks the network to describe its tensors: that takes as long as some operators."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.distributed_optimizer import DistributedOptimizer
from deep500.frameworks import FRAMEWORKS
from deep500.networks import network as network_module
from deep500.networks.creation import create_model
from deep500.networks.graph_executor import GraphExecutor
from deep500.training.optimizer import Optimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.optimizers.sam import SAMOptimizer
from deep500.training.precision import apply_precision, precise_optimizer

Make = Callable[[GraphExecutor], Optimizer]

MAKERS: dict[str, Make] = {
    "alone": MomentumOptimizer,
    "clipped": lambda executor: AdamOptimizer(executor, clip_norm=1.0, accumulation_steps=2),
    "sam": SAMOptimizer,
    "float16": lambda executor: precise_optimizer(MomentumOptimizer(executor), "float16"),
    "ranks": lambda executor: DistributedOptimizer(MomentumOptimizer(executor), LocalCommunicator()),
    "ranks, modified": lambda executor: DistributedOptimizer(
        MomentumOptimizer(executor, gradient_modifier=lambda gradient: gradient * 0.5), LocalCommunicator()
    ),
    "ranks, accumulating": lambda executor: DistributedOptimizer(
        AdamOptimizer(executor, accumulation_steps=2), LocalCommunicator()
    ),
    "local_sgd": lambda executor: DistributedOptimizer(MomentumOptimizer(executor), LocalCommunicator(), "local_sgd"),
}


@pytest.mark.parametrize("how", MAKERS)
@pytest.mark.parametrize("framework", FRAMEWORKS.names())
def test_a_step_asks_for_no_description(framework: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    network = create_model("mlp", hidden=(5,), shape=(1, 4, 4))
    network.append_loss("SoftmaxCrossEntropyLoss")
    network = apply_precision(network, "float16") if how == "float16" else network
    optimizer = MAKERS[how](importlib.import_module(f"deep500.frameworks.{framework}").from_model(network))
    stream = np.random.default_rng(0)
    batch: dict[str, Any] = {
        "input": stream.normal(size=(6, 1, 4, 4)).astype(np.float32),
        "label": stream.integers(0, 10, 6),
    }
    for _ in range(2):
        optimizer.step(batch)
    asked: list[str] = []
    plain = network_module.stored_tensors

    def asks(graph: Any, role: Any) -> Any:
        asked.append(role.name)
        return plain(graph, role)

    monkeypatch.setattr(network_module, "stored_tensors", asks)
    for _ in range(2):
        optimizer.step(batch)
    assert asked == []
    assert optimizer.network.get_params()
    assert asked == ["PARAMETER"]  # what is counted is what is called
