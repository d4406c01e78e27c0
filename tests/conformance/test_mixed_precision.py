"""Training in 16 bits: the same network, nearly the same course, under every framework that has the kernels."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import UnsupportedOperatorError
from deep500.datasets.loading import load_dataset
from deep500.frameworks import FRAMEWORKS
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.transformation import transform
from deep500.networks.transforms.mixed_precision import MixedPrecision
from deep500.training.loss_scaling import DynamicLossScale, LossScaledOptimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.precision import apply_precision, precise_optimizer
from deep500.training.samplers.shuffle import ShuffleSampler
from deep500.training.trainer import Trainer

#: What an adapter has no kernels for on the processor.
LACKS = {"onnxruntime": ("bfloat16",)}


def adapter(framework: str) -> Any:
    if not FRAMEWORKS.get(framework).REQUIREMENT.is_installed():
        pytest.skip(f"{framework} is not installed")
    return importlib.import_module(f"deep500.frameworks.{framework}")


def classifier(model: str = "mlp", **options: Any) -> Network:
    network = create_model(model, **{"shape": (1, 8, 8), **options})
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def train(framework: str, precision: str) -> tuple[list[float], dict[str, np.dtype[Any]]]:
    executor = adapter(framework).from_model(apply_precision(classifier(hidden=(16,)), precision))
    optimizer = precise_optimizer(AdamOptimizer(executor, "loss", 0.01), precision)
    statistics = Trainer(ShuffleSampler(load_dataset("digits")[0], 64), None, executor, optimizer).run_loop(1, [])
    parameters = executor.network.fetch_tensors(executor.network.get_params())
    names = executor.network.get_params()
    return list(statistics.epochs[0].training.step_losses), dict(zip(names, (p.dtype for p in parameters), strict=True))


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("framework", FRAMEWORKS.names())
def test_training_follows_that_in_float32(framework: str, precision: str) -> None:
    if precision in LACKS.get(framework, ()):
        with pytest.raises(UnsupportedOperatorError):
            train(framework, precision)
        return
    losses, dtypes = train(framework, precision)
    expected, _ = train("reference", "float32")

    assert set(dtypes.values()) == {np.dtype(np.float32)}
    # One rounding of the logits, a few units large, to 8 or 11 bits.
    assert losses == pytest.approx(expected, abs=8 * (2.0**-8 if precision == "bfloat16" else 2.0**-11))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("model", ["lenet", "resnet"])
@pytest.mark.parametrize("framework", ["pytorch", "reference", "tensorflow"])
def test_networks_are_equivalent(framework: str, model: str, dtype: str) -> None:
    options = {"depth": 8} if model == "resnet" else {}

    result = transform(classifier(model, **options), MixedPrecision(dtype), executor=adapter(framework).from_model)

    assert result.parameters == classifier(model, **options).parameters


@pytest.mark.parametrize("framework", FRAMEWORKS.names())
def test_step_that_overflows_is_skipped_and_counted(framework: str) -> None:
    executor = adapter(framework).from_model(apply_precision(classifier(hidden=(16,)), "float16"))
    optimizer = LossScaledOptimizer(AdamOptimizer(executor, "loss", 0.01), DynamicLossScale(2.0**60, backoff=2.0**-50))
    batch = next(ShuffleSampler(load_dataset("digits")[0], 16))
    names = executor.network.get_params()
    before = executor.network.fetch_tensors(names)
    first = optimizer.step(batch)
    after = executor.network.fetch_tensors(names)

    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert (optimizer.scaling.skipped, optimizer.step_count) == (1, 0)
    optimizer.step(batch)
    third = optimizer.step(batch)
    assert (optimizer.scaling.skipped, optimizer.step_count) == (1, 2)
    assert float(executor.to_numpy(third["loss"])) < float(executor.to_numpy(first["loss"]))


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_own_optimizers_of_frameworks_are_scaled_too(framework: str) -> None:
    module = adapter(framework)
    executor = module.from_model(apply_precision(classifier(hidden=(16,)), "float16"))
    plain = module.from_model(classifier(hidden=(16,)))
    scaled, optimizer = precise_optimizer(module.AdamOptimizer(executor), "float16"), module.AdamOptimizer(plain)
    batch = next(ShuffleSampler(load_dataset("digits")[0], 16))
    for _ in range(3):
        scaled.step(batch)
        optimizer.step(batch)

    names = plain.network.get_params()
    moved = zip(executor.network.fetch_tensors(names), plain.network.fetch_tensors(names), strict=True)
    assert all(np.linalg.norm(a - b) < 0.05 * np.linalg.norm(b) + 1e-2 for a, b in moved)
