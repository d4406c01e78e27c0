from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import CheckpointError, TrainingError
from deep500.training.optimizer import UpdateRuleOptimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.momentum import MomentumOptimizer
from deep500.training.parameter_groups import Multiplier
from tests.unit.training.support import LinearExecutor, batch_of, clusters


@pytest.mark.parametrize(
    ("modifier", "received"),
    [
        (lambda g: None, "a NoneType"),
        (lambda g: "abc", "a str"),
        (lambda g: 0.0, "a float"),
        (lambda g: [g], "a list"),
        (lambda g: g[:1], r"float64\[1(, 4)?\]"),
        (lambda g: g.astype(np.float32), r"float32\[3(, 4)?\]"),
    ],
    ids=["None", "text", "number", "list", "shape", "dtype"],
)
def test_modifier_that_returns_no_gradient_is_refused(modifier: Any, received: str) -> None:
    optimizer = MomentumOptimizer(LinearExecutor(), gradient_modifier=modifier)

    with pytest.raises(TrainingError, match=rf"gradient_modifier returned {received} for the parameter '.*float64\[3"):
        optimizer.step(batch_of(clusters()))


def test_modifier_that_returns_a_gradient_is_taken() -> None:
    executor = LinearExecutor()
    before = executor.tensors[executor.weight].copy()
    MomentumOptimizer(executor, gradient_modifier=lambda g: g * 0.0).step(batch_of(clusters()))

    np.testing.assert_array_equal(executor.tensors[executor.weight], before)


class Recording(UpdateRuleOptimizer):
    """Does not move; keeps the gradients that it is given."""

    def __init__(self, **options: Any) -> None:
        super().__init__(LinearExecutor(), **options)
        self.gradients: dict[str, np.ndarray] = {}

    def update_rule(self, grad: Any, old_param: Any, param_name: str) -> Any:
        self.gradients[param_name] = np.array(grad)
        return old_param


def gradients_with(parts: Sequence[slice] = (slice(None),), **options: Any) -> list[np.ndarray]:
    optimizer = Recording(accumulation_steps=len(parts), **options)
    for part in parts:
        optimizer.step({name: value[part] for name, value in batch_of(clusters(12)).items()})
    return [optimizer.gradients[name] for name in optimizer.network.get_params()]


def norm(arrays: Sequence[np.ndarray]) -> float:
    return float(np.sqrt(sum(np.sum(np.square(array)) for array in arrays)))


@given(st.floats(1e-6, 1e3))
def test_clipping_by_norm_shortens_and_keeps_the_direction(limit: float) -> None:
    plain, clipped = gradients_with(), gradients_with(clip_norm=limit)
    assert norm(clipped) == pytest.approx(min(limit, norm(plain)), rel=1e-12)
    for a, b in zip(plain, clipped, strict=True):
        np.testing.assert_allclose(b * norm(plain), a * norm(clipped), rtol=1e-9, atol=1e-15)


@given(st.floats(1e-6, 1e3))
def test_clipping_by_value_bounds_each_element_alone(limit: float) -> None:
    for a, b in zip(gradients_with(), gradients_with(clip_value=limit), strict=True):
        np.testing.assert_array_equal(b, np.clip(a, -limit, limit))


@given(st.sampled_from([1, 2, 3, 4, 6, 12]))
def test_the_mean_of_equal_minibatches_is_that_of_the_whole(count: int) -> None:
    size = 12 // count
    parts = [slice(i * size, (i + 1) * size) for i in range(count)]
    for a, b in zip(gradients_with(), gradients_with(parts), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)


def test_options_act_in_their_order() -> None:
    limit = 0.01
    scaled = gradients_with(gradient_modifier=lambda g: 100.0 * g, clip_value=limit, clip_norm=1e9)
    assert max(np.abs(array).max() for array in scaled) == limit


def test_a_rule_without_a_learning_rate_has_no_decay() -> None:
    with pytest.raises(TrainingError, match="no attribute learning_rate"):
        gradients_with(weight_decay=0.1)


def test_a_number_that_is_not_finite_is_named() -> None:
    optimizer = MomentumOptimizer(LinearExecutor())
    optimizer.learning_rate = float("nan")
    with pytest.raises(TrainingError, match="MomentumOptimizer's rate was given as nan"):
        optimizer.step(batch_of(clusters()))


def test_hyperparameters_are_named() -> None:
    common = ("weight_decay", "clip_value", "clip_norm")
    assert MomentumOptimizer.hyperparameter_names == ("learning_rate", "momentum", *common)
    assert Recording.hyperparameter_names == common
    optimizer = MomentumOptimizer(LinearExecutor())
    assert all(hasattr(optimizer, name) for name in optimizer.hyperparameter_names)


def test_a_multiplier_follows_the_optimizers_own_value() -> None:
    executor = LinearExecutor()
    groups = [(executor.weight, {"learning_rate": Multiplier(0.5)}), ("*", {"momentum": 0.0})]
    optimizer = MomentumOptimizer(executor, learning_rate=0.2, parameter_groups=groups)
    first, rest = optimizer.group_of(executor.weight), optimizer.group_of(executor.bias)
    assert optimizer.step_scalars(first, 1).values == {"rate": 0.1, "momentum": 0.9}
    assert optimizer.step_scalars(rest, 1).values == {"rate": 0.2, "momentum": 0.0}
    optimizer.learning_rate = 1.0
    assert optimizer.step_scalars(first, 1).values == {"rate": 0.5, "momentum": 0.9}
    assert optimizer.learning_rate == 1.0


NO_LIMITS = [float("nan"), float("inf"), "x", -1.0, 0.0, 10**400]


@pytest.mark.parametrize("value", NO_LIMITS, ids=str)
@pytest.mark.parametrize("name", ["clip_value", "clip_norm"])
def test_limit_that_became_none_between_steps(name: str, value: Any) -> None:
    optimizer = MomentumOptimizer(LinearExecutor(), clip_value=1.0, clip_norm=1.0)
    optimizer.step(batch_of(clusters()))
    setattr(optimizer, name, value)

    with pytest.raises(TrainingError, match=f"{name} was given as .* accepted are finite numbers above 0"):
        optimizer.step(batch_of(clusters()))


@pytest.mark.parametrize("value", [None, "x", 10**400, float("nan")], ids=str)
@pytest.mark.parametrize("name", ["learning_rate", "weight_decay"])
def test_hyperparameter_that_became_no_number_between_steps(name: str, value: Any) -> None:
    optimizer = AdamOptimizer(LinearExecutor(), weight_decay=0.1)
    optimizer.step(batch_of(clusters()))
    setattr(optimizer, name, value)
    if (name, value) == ("weight_decay", None):
        optimizer.step(batch_of(clusters()))  # which is none
        return

    with pytest.raises(TrainingError, match="accepted are finite numbers"):
        optimizer.step(batch_of(clusters()))


@pytest.mark.parametrize("count", [0, -1, 2.5, "x", None])
def test_accumulation_that_became_none_between_steps(count: Any) -> None:
    optimizer = MomentumOptimizer(LinearExecutor(), accumulation_steps=2)
    optimizer.step(batch_of(clusters()))
    optimizer.accumulation_steps = count

    with pytest.raises(TrainingError, match="accumulation_steps was given as"):
        optimizer.step(batch_of(clusters()))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (3, "parameter_groups was given as 3; accepted is a list of pairs"),
        ("*.bias", "parameter_groups was given as"),
        ({"*": {"learning_rate": 0.1}}, "parameter_groups was given as"),
        ([(lambda name, descriptor: 1 / 0, {})], "failed on the parameter '.*': ZeroDivisionError"),
        ([(lambda name: True, {})], r"failed on the parameter .* called with \(name, descriptor\)"),
        ([(lambda name, descriptor: np.array([1, 2]), {})], "failed on the parameter"),
    ],
)
def test_groups_that_are_none(groups: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        MomentumOptimizer(LinearExecutor(), parameter_groups=groups)


@pytest.mark.parametrize("copy_of", [pickle.dumps, copy.deepcopy])
def test_an_optimizer_cannot_be_pickled_but_its_state_can(copy_of: Any) -> None:
    optimizer = MomentumOptimizer(LinearExecutor())
    optimizer.step(batch_of(clusters()))

    with pytest.raises(TrainingError, match=r"cannot be pickled or deeply copied.*optimizer.state\(\)"):
        copy_of(optimizer)
    copied = copy.copy(optimizer)
    assert copied.learning_rate == optimizer.learning_rate
    other = MomentumOptimizer(LinearExecutor())
    other.restore(pickle.loads(pickle.dumps(optimizer.state())))
    assert other.step_count == 1


@pytest.mark.parametrize("wrong", [None, 3, "x", [], float("nan")])
def test_states_that_are_of_another_form(wrong: Any) -> None:
    optimizer = AdamOptimizer(LinearExecutor())
    optimizer.step(batch_of(clusters()))
    state = optimizer.state()
    for name in state:
        lacking = {key: value for key, value in state.items() if key != name}
        for changed in (lacking, lacking if (name, wrong) == ("step_count", 3) else {**state, name: wrong}):
            with pytest.raises(CheckpointError):
                AdamOptimizer(LinearExecutor()).restore(changed)
