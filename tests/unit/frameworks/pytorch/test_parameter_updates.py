from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from deep500.frameworks.pytorch import _compiled_rule, _parameter_updates, _update_units, from_model
from deep500.frameworks.pytorch._parameter_updates import TorchUpdates
from deep500.networks.creation import create_model
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def optimizer_of(kind: Any = AdamOptimizer, dtype: str = "float32", compile: bool = False, **options: Any) -> Any:
    network = create_model("lenet", shape=(1, 8, 8), classes=5, dtype=dtype)
    network.append_loss("SoftmaxCrossEntropyLoss")
    return kind(from_model(network, compile=compile), **options)


def train(optimizer: Any, steps: int = 4) -> list[np.ndarray]:
    stream = np.random.default_rng(0)
    dtype = optimizer.network.inputs["input"].numpy_dtype
    for _ in range(steps):
        x = stream.standard_normal((4, 1, 8, 8)).astype(dtype)
        optimizer.step({"input": x, "label": stream.integers(0, 5, 4)})
    return list(optimizer.network.fetch_tensors(optimizer.network.get_params()))


@pytest.mark.parametrize("kind", [AdamOptimizer, MomentumOptimizer])
@pytest.mark.parametrize(("small", "part"), [(1 << 30, 1 << 30), (0, 7), (100, 64), (1000, 1 << 30)])
def test_joining_and_cutting_change_no_bit(monkeypatch: pytest.MonkeyPatch, kind: Any, small: int, part: int) -> None:
    monkeypatch.setattr(_parameter_updates, "_SMALL", 0)
    monkeypatch.setattr(_update_units, "_PART", 1 << 30)
    options = {"weight_decay": 0.1, "parameter_groups": [("*.bias", {"weight_decay": 0.0})]}
    whole = train(optimizer_of(kind, **options))
    monkeypatch.setattr(_parameter_updates, "_SMALL", small)
    monkeypatch.setattr(_update_units, "_PART", part)
    for a, b in zip(train(optimizer_of(kind, **options)), whole, strict=True):
        np.testing.assert_array_equal(a, b)


def test_two_trainings_are_the_same_bit_for_bit() -> None:
    for a, b in zip(train(optimizer_of()), train(optimizer_of()), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("pays", [True, False])
def test_the_compiled_rule(monkeypatch: pytest.MonkeyPatch, pays: bool) -> None:
    monkeypatch.setattr(_compiled_rule, "_PAYS_BELOW", np.inf if pays else 0.0)
    monkeypatch.setattr(_compiled_rule, "_TRIALS", 1)
    options = {"weight_decay": 0.1, "parameter_groups": [("*.bias", {"weight_decay": 0.0})]}
    optimizer = optimizer_of(compile=False, **options)
    optimizer.executor.compiles = True
    monkeypatch.setattr(
        type(optimizer.executor), "_function", lambda self, program, inputs, loss: self._module(program)
    )
    received = train(optimizer)

    begin = "compiled: " if pays else "compiling does not pay: "
    assert optimizer.executor.compilation["update by AdamOptimizer"].startswith(begin)
    for a, b in zip(received, train(optimizer_of(**options)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_a_rule_that_cannot_be_compiled_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **options: Any) -> Any:
        def fail(*inner: Any) -> None:
            raise RuntimeError("no compiler")

        return fail

    monkeypatch.setattr(torch, "compile", broken)
    optimizer = optimizer_of()
    optimizer.executor.compiles = True
    monkeypatch.setattr(
        type(optimizer.executor), "_function", lambda self, program, inputs, loss: self._module(program)
    )
    received = train(optimizer)
    assert optimizer.executor.compilation["update by AdamOptimizer"] == "not compiled: RuntimeError: no compiler"
    for a, b in zip(received, train(optimizer_of()), strict=True):
        np.testing.assert_array_equal(a, b)


def test_parameters_that_lie_elsewhere_are_found() -> None:
    optimizer, other = optimizer_of(), optimizer_of()
    train(optimizer, 1), train(other, 1)
    for parameter in optimizer.executor.stored.parameters():
        parameter.data = parameter.data.clone()
    for a, b in zip(train(optimizer, 2), train(other, 2), strict=True):
        np.testing.assert_array_equal(a, b)


def test_two_optimizers_of_one_executor_have_slots_of_their_own() -> None:
    first = optimizer_of(MomentumOptimizer)
    second = MomentumOptimizer(first.executor)
    alone = optimizer_of(MomentumOptimizer)
    train(first, 1)
    kept = first.executor.network.fetch_tensors(first.network.get_params())
    train(second, 3)
    for name, value in zip(first.network.get_params(), kept, strict=True):
        first.network.feed_tensor(name, value)
    train(alone, 1)
    for a, b in zip(train(first, 2), train(alone, 2), strict=True):
        np.testing.assert_array_equal(a, b)


def test_parameters_without_a_gradient_stay_and_count_for_themselves() -> None:
    optimizer, other = optimizer_of(), optimizer_of()
    updates: TorchUpdates = optimizer.updates
    train(optimizer, 1), train(other, 1)
    name = optimizer.network.get_params()[0]
    before = optimizer.executor.fetch(name)
    optimizer.executor.stored.tensor(name).grad = None
    for _ in range(5):
        updates.apply()
    np.testing.assert_array_equal(optimizer.executor.fetch(name), before)
    assert updates.counts[name] == 1
    assert updates.counts[optimizer.network.get_params()[1]] == 6
    train(optimizer, 1), train(other, 1)
    # Its second step, as if nothing had happened to the others: the rule depends on its own gradients alone.
    assert updates.counts[name] == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_parameters_stay_narrow(dtype: str) -> None:
    optimizer = optimizer_of(MomentumOptimizer, dtype, clip_norm=1.0, clip_value=0.5, ema_decay=0.5, weight_decay=0.1)
    assert all(value.dtype.name == dtype for value in train(optimizer, 2))
    assert all(slot.dtype.name == dtype for name in optimizer.network.get_params()
               for slot in optimizer.updates.slot_values(name).values())  # fmt: skip
