from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import CheckpointError, InvalidNetworkError, TrainingError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.training.loss_scaling import DynamicLossScale, LossScaledOptimizer, with_scaled_losses
from deep500.training.optimizer import Optimizer
from deep500.training.optimizers.accelegrad import AcceleGradOptimizer
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.sam import SAMOptimizer


def network() -> Network:
    made = create_model("mlp", shape=(4,), hidden=(5,), classes=3)
    made.append_loss("SoftmaxCrossEntropyLoss")
    return made


def batch(scale: float = 1.0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {"input": (scale * random.normal(size=(6, 4))).astype(np.float32), "label": np.arange(6) % 3}


def parameters(optimizer: Optimizer) -> list[np.ndarray]:
    return optimizer.network.fetch_tensors(optimizer.network.get_params())


def test_scale_grows_and_shrinks() -> None:
    scale = DynamicLossScale(8.0, growth=2.0, backoff=0.5, interval=2)
    course = []
    for finite in (True, True, True, False, True, True):
        scale.tell(finite=finite)
        course.append(scale.scale)

    assert course == [8.0, 16.0, 16.0, 8.0, 8.0, 16.0]
    assert scale.skipped == 1


def test_scale_ends_when_it_is_not_to_blame() -> None:
    scale = DynamicLossScale(2.0**-13)
    scale.tell(finite=False)
    scale.tell(finite=False)
    with pytest.raises(TrainingError, match="3 steps were skipped"):
        scale.tell(finite=False)


def test_scaled_training_is_the_training() -> None:
    plain = AdamOptimizer(from_model(network()), "loss", 0.01, clip_norm=0.1)
    scaled = LossScaledOptimizer(AdamOptimizer(from_model(with_scaled_losses(network())), "loss", 0.01, clip_norm=0.1))
    for _ in range(5):
        expected, found = plain.step(batch()), scaled.step(batch())
        assert found.keys() == expected.keys()
        np.testing.assert_array_equal(found["loss"], expected["loss"])

    for one, other in zip(parameters(plain), parameters(scaled), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert scaled.step_count == 5


def test_step_that_overflows_changes_nothing() -> None:
    optimizer = LossScaledOptimizer(
        AdamOptimizer(from_model(with_scaled_losses(network()))), DynamicLossScale(2.0**127, backoff=2.0**-100)
    )
    before = parameters(optimizer)
    optimizer.step(batch(1e4))

    assert all(np.array_equal(a, b) for a, b in zip(before, parameters(optimizer), strict=True))
    assert (optimizer.step_count, optimizer.scaling.skipped, optimizer.scaling.scale) == (0, 1, 2.0**27)

    optimizer.step(batch(1e4))
    assert optimizer.step_count == 1
    assert not any(np.array_equal(a, b) for a, b in zip(before, parameters(optimizer), strict=True))


def test_hyperparameters_are_those_of_the_wrapped_optimizer() -> None:
    optimizer = LossScaledOptimizer(AdamOptimizer(from_model(with_scaled_losses(network())), "loss", 0.01))
    optimizer.learning_rate = 0.5
    optimizer.clip_norm = 2.0

    assert optimizer.optimizer.learning_rate == optimizer.learning_rate == 0.5
    assert optimizer.optimizer.clip_norm == 2.0
    assert optimizer.hyperparameter_names == AdamOptimizer.hyperparameter_names


def test_it_goes_on_from_a_snapshot() -> None:
    def made() -> LossScaledOptimizer:
        return LossScaledOptimizer(AdamOptimizer(from_model(with_scaled_losses(network())), "loss", 0.01))

    first = made()
    first.step(batch())
    first.scaling.skipped = 7
    state, weights = first.state(), first.executor.state()
    first.step(batch())
    second = made()
    second.executor.restore(weights)
    second.restore(state)
    second.step(batch())

    assert all(np.array_equal(a, b) for a, b in zip(parameters(first), parameters(second), strict=True))
    assert second.scaling.state() == first.scaling.state()
    with pytest.raises(CheckpointError, match="without a scaled loss"):
        second.restore(second.optimizer.state())


def test_what_is_refused() -> None:
    executor = from_model(with_scaled_losses(network()))
    for refused in (AcceleGradOptimizer(executor), SAMOptimizer(executor)):
        with pytest.raises(TrainingError, match="Use precision 'bfloat16'"):
            LossScaledOptimizer(refused)
    with pytest.raises(TrainingError, match=r"no output 'loss\.scaled'"):
        LossScaledOptimizer(AdamOptimizer(from_model(network())))
    with pytest.raises(InvalidNetworkError, match="no loss to scale"):
        with_scaled_losses(create_model("mlp", shape=(4,)))
    with pytest.raises(InvalidNetworkError, match="has loss_scale"):
        with_scaled_losses(with_scaled_losses(network()))
    with pytest.raises(TrainingError, match="growth"):
        DynamicLossScale(growth=0.5)
