from __future__ import annotations

import pytest

from deep500.core.errors import TrainingError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.training.loss_scaling import LossScaledOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.precision import PRECISIONS, apply_precision, precise_optimizer


def network() -> Network:
    made = create_model("mlp", shape=(4,), hidden=(5,), classes=3)
    made.append_loss("SoftmaxCrossEntropyLoss")
    return made


def test_float32_is_left_as_it_is() -> None:
    given = network()
    optimizer = GradientDescent(from_model(given))

    assert apply_precision(given, "float32") is given
    assert precise_optimizer(optimizer, "float32") is optimizer


@pytest.mark.parametrize("precision", PRECISIONS)
def test_parameters_stay_float32(precision: str) -> None:
    executor = from_model(apply_precision(network(), precision))
    optimizer = precise_optimizer(GradientDescent(executor), precision)

    assert {descriptor.dtype for descriptor in executor.network.parameters.values()} == {"float32"}
    assert isinstance(optimizer, LossScaledOptimizer) is (precision == "float16")


def test_unknown_precision_is_refused() -> None:
    with pytest.raises(TrainingError, match="Did you mean 'bfloat16'"):
        apply_precision(network(), "bfloat")
