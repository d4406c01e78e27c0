from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from deep500.frameworks.tensorflow import TensorFlowExecutor, from_model
from deep500.networks.creation import create_model
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from tests.unit.frameworks.tensorflow.support import random

SHAPE = (2, 4, 4)


def executor_of(dtype: str = "float64") -> TensorFlowExecutor:
    network = create_model("simple_cnn", shape=SHAPE, widths=(3,), classes=4, dtype=dtype)
    network.append_loss("SoftmaxCrossEntropyLoss")
    return from_model(network)


def train(optimizer: Any, steps: int = 3, dtype: str = "float64") -> None:
    for i in range(steps):
        optimizer.step({"input": random(5, *SHAPE, seed=i, dtype=dtype), "label": (np.arange(5) + i) % 4})


def test_a_changing_rate_is_no_new_graph() -> None:
    optimizer = AdamOptimizer(executor_of(), clip_norm=1.0, weight_decay=0.1, ema_decay=0.9)
    for step in range(4):
        optimizer.learning_rate = 0.01 / (step + 1)
        optimizer.clip_norm = 1.0 + step
        train(optimizer, 1)
    assert optimizer.executor.trace_count() == 1
    optimizer.clip_norm = None
    train(optimizer, 1)
    assert optimizer.executor.trace_count() == 2


def test_accumulation_has_three_graphs() -> None:
    optimizer = GradientDescent(executor_of(), accumulation_steps=3)
    train(optimizer, 9)
    assert optimizer.executor.trace_count() == 3
    assert optimizer.step_count == 3


class Looking(UpdateRuleOptimizer):
    """Tells whether it sees values or the symbols of a graph, by its answer."""

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        return old_param - 0.1 * grad if tf.executing_eagerly() else old_param - 0.2 * grad


class CountingLooking(Looking):
    steps = 0

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        self.steps += 1
        return super().update_rule(grad, old_param, param_name)


class FloatingLooking(Looking):
    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        return super().update_rule(float(tf.reduce_sum(grad)) / tf.reduce_sum(grad) * grad, old_param, param_name)


def moved_by(kind: Any, **options: Any) -> float:
    """Return how far parameters move along their gradient."""
    executor, twin = executor_of(), executor_of()
    optimizer = kind(executor, **options)
    twin.network.train()
    train(optimizer, 1)
    twin.inference_and_backprop({"input": random(5, *SHAPE, seed=0, dtype="float64"), "label": np.arange(5) % 4})
    name = "classifier.weight"
    change = twin.fetch(name) - executor.fetch(name)
    return float(np.median(change / twin.fetch(f"{name}.grad")))


def test_which_rules_are_traced() -> None:
    assert moved_by(Looking) == pytest.approx(0.2)
    assert moved_by(CountingLooking) == pytest.approx(0.1)  # it would count once
    assert moved_by(FloatingLooking) == pytest.approx(0.1)  # the code allows it, TensorFlow does not


def test_which_modifiers_are_traced() -> None:
    seen: list[str] = []

    def looks(gradient: Any) -> Any:
        return gradient if tf.executing_eagerly() else 2.0 * gradient

    def remembers(gradient: Any, parameter: Any, name: str) -> Any:
        seen.append(name)
        return looks(gradient)

    assert moved_by(GradientDescent, learning_rate=0.1, gradient_modifier=looks) == pytest.approx(0.2)
    assert moved_by(GradientDescent, learning_rate=0.1, gradient_modifier=remembers) == pytest.approx(0.1)
    assert len(seen) == len(executor_of().network.get_params())


def test_an_attribute_that_changes_is_noticed() -> None:
    class Rate(Looking):
        rate = 1.0

        def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
            return old_param - self.rate * grad

    executor, twin = executor_of(), executor_of()
    optimizer, other = Rate(executor), GradientDescent(twin, learning_rate=1.0)
    for step in range(3):
        optimizer.rate = other.learning_rate = 1.0 / (step + 1)
        train(optimizer, 1), train(other, 1)
    for name in executor.network.get_params():
        np.testing.assert_allclose(executor.fetch(name), twin.fetch(name), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_parameters_stay_narrow(dtype: str) -> None:
    optimizer = AdamOptimizer(
        executor_of(dtype), epsilon=1e-3, clip_norm=1.0, clip_value=0.5, ema_decay=0.5, weight_decay=0.1
    )
    train(optimizer, 2, dtype)
    for name in optimizer.network.get_params():
        assert optimizer.executor.fetch(name).dtype.name == dtype
        assert {value.dtype.name for value in optimizer.updates.slot_values(name).values()} == {dtype}
