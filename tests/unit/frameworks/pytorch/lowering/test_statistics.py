from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep500.frameworks.pytorch.executor import PyTorchExecutor, from_model  # noqa: E402
from deep500.frameworks.pytorch.lowering._statistics import with_gradients  # noqa: E402
from deep500.networks.creation import create_model  # noqa: E402

BATCH = {
    "input": np.random.default_rng(0).standard_normal((4, 1, 8, 8)).astype(np.float32),
    "label": np.arange(4, dtype=np.int64),
}


def normalised() -> PyTorchExecutor:
    network = create_model("simple_cnn", classes=4, shape=(1, 8, 8), widths=(3,))
    network.append_loss("SoftmaxCrossEntropyLoss")
    executor = from_model(network)
    executor.network.train()
    return executor


def targets(executor: PyTorchExecutor) -> list[object]:
    return [node.target for node in executor.graph_module().graph.nodes]


def test_statistics_that_only_the_next_state_needs_have_no_gradients() -> None:
    assert with_gradients.__wrapped__ not in targets(normalised())


def test_statistics_are_the_ones_that_are_defined() -> None:
    executor = normalised()
    features = torch.conv2d(
        torch.from_numpy(BATCH["input"]), executor.stored.tensor("convolutions.0.weight"), padding=1
    )
    wide = features.detach().double().numpy()
    mean, var = wide.mean((0, 2, 3)), wide.var((0, 2, 3))  # the biased one
    before = {name: executor.fetch(name) for name in executor.network.states}

    executor.inference_and_backprop(BATCH)

    for name, value in before.items():
        share = mean if value.max() == 0 else var
        np.testing.assert_allclose(executor.fetch(name), 0.9 * value + 0.1 * share, rtol=1e-5, atol=1e-7)
