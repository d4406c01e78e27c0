from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from deep500.core.errors import TrainingError
from deep500.frameworks.tensorflow import (
    AdamOptimizer,
    GradientDescent,
    MomentumOptimizer,
    TensorFlowExecutor,
    from_model,
)
from deep500.networks.creation import create_model
from tests.unit.frameworks.tensorflow.support import random

SHAPE = (2, 4, 4)


def executor_of(dtype: str = "float64") -> TensorFlowExecutor:
    network = create_model("simple_cnn", shape=SHAPE, widths=(3,), classes=4, dtype=dtype)
    network.append_loss("SoftmaxCrossEntropyLoss")
    return from_model(network)


def batches(count: int, dtype: str = "float64") -> list[dict[str, np.ndarray]]:
    return [{"input": random(5, *SHAPE, seed=i, dtype=dtype), "label": (np.arange(5) + i) % 4} for i in range(count)]


class GradientDescentByHand:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, w: np.ndarray, g: np.ndarray, name: str) -> np.ndarray:
        return w - self.rate * g


class MomentumByHand:
    def __init__(self, rate: float, momentum: float) -> None:
        self.rate, self.momentum = rate, momentum
        self.velocity: dict[str, np.ndarray] = {}

    def __call__(self, w: np.ndarray, g: np.ndarray, name: str) -> np.ndarray:
        self.velocity[name] = self.momentum * self.velocity.get(name, np.zeros_like(w)) - self.rate * g
        return w + self.velocity[name]


class AdamByHand:
    def __init__(self, rate: float, beta1: float, beta2: float, epsilon: float) -> None:
        self.arguments = rate, beta1, beta2, epsilon
        self.m: dict[str, np.ndarray] = {}
        self.v: dict[str, np.ndarray] = {}
        self.t: dict[str, int] = {}

    def __call__(self, w: np.ndarray, g: np.ndarray, name: str) -> np.ndarray:
        rate, beta1, beta2, epsilon = self.arguments
        t = self.t[name] = self.t.get(name, 0) + 1
        self.m[name] = beta1 * self.m.get(name, 0) + (1 - beta1) * g
        self.v[name] = beta2 * self.v.get(name, 0) + (1 - beta2) * g * g
        corrected = rate * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        return w - corrected * self.m[name] / (np.sqrt(self.v[name]) + epsilon)


@pytest.mark.parametrize(
    ("kind", "arguments", "by_hand"),
    [
        (GradientDescent, {"learning_rate": 0.1}, GradientDescentByHand(0.1)),
        (MomentumOptimizer, {"learning_rate": 0.1, "momentum": 0.7}, MomentumByHand(0.1, 0.7)),
        (AdamOptimizer, {"learning_rate": 0.01}, AdamByHand(0.01, 0.9, 0.999, 1e-8)),
    ],
)
def test_steps_equal_the_formula(kind: Any, arguments: dict[str, Any], by_hand: Any) -> None:
    executor, twin = executor_of(), executor_of()
    twin.network.train()
    optimizer = kind(executor, **arguments)
    for inputs in batches(4):
        outputs = optimizer.step(inputs)
        expected = twin.inference_and_backprop(inputs)
        assert list(outputs) == ["output", "loss"]
        np.testing.assert_allclose(outputs["output"].numpy(), expected["output"].numpy(), rtol=1e-10, atol=1e-10)
        for name, gradient in twin.network.gradient():
            w, g = twin.network.fetch_tensors([name, gradient])
            twin.network.feed_tensor(name, by_hand(w, g, name))
    for name in [*executor.network.parameters, *executor.network.states]:
        received, reference = (e.network.fetch_tensors([name])[0] for e in (executor, twin))
        np.testing.assert_allclose(received, reference, rtol=1e-9, atol=1e-10, err_msg=name)


def test_gradients_of_a_step_can_be_fetched() -> None:
    executor, twin = executor_of(), executor_of()
    twin.network.train()
    (inputs,) = batches(1)
    GradientDescent(executor).step(inputs)
    twin.inference_and_backprop(inputs)
    assert executor.network.gradient() == twin.network.gradient()
    for _, gradient in executor.network.gradient():
        received, expected = (e.network.fetch_tensors([gradient])[0] for e in (executor, twin))
        np.testing.assert_allclose(received, expected, rtol=1e-10, atol=1e-12)


def test_a_step_is_one_graph() -> None:
    executor = executor_of()
    optimizer = MomentumOptimizer(executor)
    assert executor.network.mode == "train"
    for inputs in batches(3):
        optimizer.step(inputs)
        optimizer.step({name: value[:2] for name, value in inputs.items()})
    assert executor.trace_count() == 1


def test_learning_rate_can_change() -> None:
    executor = executor_of()
    optimizer = GradientDescent(executor, learning_rate=0.1)
    assert optimizer.learning_rate == 0.1
    before = executor.network.fetch_tensors(["classifier.weight"])[0]
    optimizer.learning_rate = 0.0
    optimizer.step(batches(1)[0])
    np.testing.assert_array_equal(executor.network.fetch_tensors(["classifier.weight"])[0], before)
    optimizer.learning_rate = 0.1
    optimizer.step(batches(1)[0])
    assert (executor.network.fetch_tensors(["classifier.weight"])[0] != before).any()


def test_gradient_modifier() -> None:
    executor, twin = executor_of(), executor_of()
    names = []

    def decay(gradient: tf.Tensor, parameter: tf.Tensor, name: str) -> tf.Tensor:
        names.append(name)
        return gradient + 0.1 * parameter

    GradientDescent(executor, learning_rate=0.5, gradient_modifier=decay).step(batches(1)[0])
    assert names == executor.network.get_params()
    twin.network.train()
    twin.inference_and_backprop(batches(1)[0])
    for name, gradient in twin.network.gradient():
        w, g = twin.network.fetch_tensors([name, gradient])
        received = executor.network.fetch_tensors([name])[0]
        np.testing.assert_allclose(received, w - 0.5 * (g + 0.1 * w), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("modifier", "message"),
    [
        (lambda g: None, "returned a NoneType for the parameter"),
        (lambda g: g[0], r"returned float64\[.*for the parameter"),
    ],
)
def test_wrong_gradient_modifier(modifier: Any, message: str) -> None:
    optimizer = GradientDescent(executor_of(), gradient_modifier=modifier)
    with pytest.raises(TrainingError, match=message):
        optimizer.step(batches(1)[0])


def test_another_frameworks_executor_is_refused() -> None:
    from deep500.networks.graph_executor import GraphExecutor

    class OtherExecutor(GraphExecutor):
        framework = "other"

    OtherExecutor.__abstractmethods__ = frozenset()
    other = object.__new__(OtherExecutor)
    with pytest.raises(TrainingError, match="needs a TensorFlow executor; received one of other"):
        GradientDescent(other)
    with pytest.raises(TrainingError, match="needs an executor"):
        AdamOptimizer("executor")  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="no output named 'cost'"):
        GradientDescent(executor_of(), "cost")


def test_keras_on_another_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    import keras

    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(TrainingError, match="KERAS_BACKEND=tensorflow"):
        GradientDescent(executor_of())


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_other_dtypes(dtype: str) -> None:
    executor = executor_of(dtype)
    optimizer = MomentumOptimizer(executor, learning_rate=0.01)
    losses = [float(optimizer.step(batches(1, dtype)[0])["loss"]) for _ in range(5)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("value", ["a", None, np.nan, np.inf, -1, True])
def test_hyper_parameters_are_checked(value: Any) -> None:
    executor = executor_of()
    for kind, name in (
        (GradientDescent, "learning_rate"),
        (MomentumOptimizer, "learning_rate"),
        (MomentumOptimizer, "momentum"),
        (AdamOptimizer, "learning_rate"),
        (AdamOptimizer, "beta1"),
        (AdamOptimizer, "beta2"),
        (AdamOptimizer, "epsilon"),
    ):
        with pytest.raises(TrainingError, match=f"{name} was given as"):
            kind(executor, **{name: value})
    optimizer = GradientDescent(executor)
    with pytest.raises(TrainingError, match="learning_rate was given as"):
        optimizer.learning_rate = value
    assert optimizer.learning_rate == 0.1


def test_what_a_modifier_returns_must_become_a_tensor() -> None:
    optimizer = GradientDescent(executor_of(), gradient_modifier=lambda gradient, parameter, name: object())
    with pytest.raises(TrainingError, match="gradient_modifier returned a object"):
        optimizer.step(batches(1)[0])
