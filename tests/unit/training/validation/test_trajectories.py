from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError
from deep500.frameworks.reference.executor import ReferenceExecutor
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.training.optimizers.adam import AdamOptimizer
from deep500.training.optimizers.gradient_descent import GradientDescent
from deep500.training.validation.trajectories import compare_trajectories
from tests.unit.training.support import clusters, linear_network


class Other(ReferenceExecutor):
    framework = "other"


class Breaking(Other):
    """Ends at its second step."""

    steps = 0

    def _run_and_differentiate(self, *arguments: Any) -> dict[str, Any]:
        self.steps += 1
        if self.steps == 2:
            raise InvalidInputError("no more")
        return super()._run_and_differentiate(*arguments)


def compare(frameworks: Any = (ReferenceExecutor, Other), optimizer: Any = "gradient_descent", **options: Any) -> Any:
    return compare_trajectories(linear_network(), clusters(), list(frameworks), 5, optimizer=optimizer, **options)


def test_equal_trainings_agree() -> None:
    told: list[str] = []
    network = linear_network()
    before = network.weights_hash()
    report = compare_trajectories(network, clusters(), [ReferenceExecutor, Other], 4, batch_size=7, tell=told.append)

    assert report.passed
    assert report.steps == len(report.of("other").losses) == 4
    assert set(report.of("other").distances) == {0.0}
    assert all(allowed > 0 for allowed in report.allowed)
    assert told == [f"step {step} of 4" for step in range(1, 5)]
    assert network.weights_hash() == before


def test_wrong_update_is_found_at_its_step() -> None:
    class Late(GradientDescent):
        def update(self, gradient: Any, parameter: Any, slots: Any, scalars: Any) -> Any:
            factor = 1.001 if self.step_count == 2 and parameter.ndim == 2 else 1.0
            return super().update(factor * gradient, parameter, slots, scalars)

    report = compare(optimizer=[GradientDescent, Late])
    parting = report.of("other").parting

    assert not report.passed
    assert parting.step == 3
    assert [tensor.name for tensor in parting.tensors] == [linear_network().get_params()[0]]
    assert "it is the update by Late that differs" in parting.cause
    assert parting.node is None


def test_given_tolerance_takes_the_place_of_the_twins() -> None:
    makers = [functools.partial(GradientDescent, learning_rate=rate) for rate in (0.1, 0.1001)]

    assert not compare(optimizer=makers).passed
    loose = compare(optimizer=makers, tolerance=0.1)
    assert loose.passed
    assert loose.noise == 0.0
    assert set(loose.allowed) == {0.1}


def test_framework_that_breaks_is_told_and_the_others_go_on() -> None:
    report = compare((ReferenceExecutor, Breaking, Other), AdamOptimizer)

    assert report.failures == (("other", "at step 2: no more"),)
    assert [trajectory.framework for trajectory in report.trajectories] == ["other (3)"]
    assert not report.passed


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"frameworks": [ReferenceExecutor]}, "two or more"),
        ({"optimizer": 3}, "accepted are names"),
        ({"optimizer": ["adam"]}, "1 optimizers were given for 2 frameworks"),
        ({"loss": "cost"}, "has the losses loss"),
        ({"tolerance": -1.0}, "finite numbers from 0"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        compare(**options)


def test_network_that_draws_is_refused() -> None:
    network = create_model("gpt", classes=5, layers=1, features=8, heads=2, context=4, dropout=0.1)
    network.append_loss("SoftmaxCrossEntropyLoss")
    batch = {"input": np.zeros((1, 4), np.int64), "label": np.zeros((1, 4), np.int64)}
    with pytest.raises(InvalidInputError, match="draws numbers"):
        compare_trajectories(network, batch, [ReferenceExecutor, Other], 1)
    with pytest.raises(InvalidInputError, match="accepted is a Network"):
        compare_trajectories("lenet", batch, [ReferenceExecutor, Other], 1)  # type: ignore[arg-type]
    assert isinstance(network, Network)
