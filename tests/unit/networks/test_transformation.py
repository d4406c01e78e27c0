from __future__ import annotations

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError, InvalidNetworkError, UnknownNameError
from deep500.frameworks.reference import from_model
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.transformation import TRANSFORMATIONS, Transformation, compare_runs, transform


class Unchanged(Transformation):
    """Change nothing."""

    def apply(self, network: Network) -> Network:
        return network.detached()


class Scaled(Unchanged):
    """Multiply one parameter, a bug."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def apply(self, network: Network) -> Network:
        result = network.detached()
        name = next(iter(result.parameters))
        result.feed_tensor(name, result.fetch_tensors([name])[0] * np.float32(self.factor))
        return result


class Dropping(Unchanged):
    """Drop the losses, a bug."""

    def apply(self, network: Network) -> Network:
        return network.without_losses()


def classifier() -> Network:
    network = create_model("mlp", shape=(4,), hidden=(8,))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def test_registry_finds_each_transformation() -> None:
    assert {"batch_normalization_folding", "freezing", "micro_batching", "precision"} <= set(TRANSFORMATIONS.names())
    assert all(issubclass(TRANSFORMATIONS.get(name), Transformation) for name in TRANSFORMATIONS)


def test_unchanged_network_passes_the_check() -> None:
    network = classifier()

    result = transform(network, Unchanged(), executor=from_model)

    assert result is not network
    assert result.weights_hash() == network.weights_hash()


@pytest.mark.parametrize("factor", [0.0, 1.01, -1.0])
def test_changed_weight_is_caught(factor: float) -> None:
    network = classifier()
    before = network.weights_hash()

    with pytest.raises(InvalidNetworkError, match="Scaled changed what network 'mlp' computes under reference"):
        transform(network, Scaled(factor), executor=from_model)
    assert network.weights_hash() == before


def test_without_an_executor_nothing_is_run() -> None:
    assert transform(classifier(), Scaled(2.0)).parameters == classifier().parameters


def test_dropped_loss_is_caught_without_running() -> None:
    with pytest.raises(InvalidNetworkError, match="Dropping turned the inputs"):
        transform(classifier(), Dropping())


def test_inputs_can_be_given() -> None:
    inputs = {"input": np.ones((3, 4), np.float32), "label": np.array([0, 1, 2])}

    network = classifier()

    result = transform(network, Unchanged(), executor=from_model, inputs=inputs)

    assert result.weights_hash() == network.weights_hash()
    with pytest.raises(InvalidInputError, match="label"):
        transform(
            network,
            Unchanged(),
            executor=from_model,
            inputs={"input": inputs["input"][:2], "label": inputs["label"]},
        )


def test_comparison_covers_outputs_losses_and_gradients() -> None:
    network = classifier()
    inputs = {"input": np.ones((3, 4), np.float32), "label": np.array([0, 1, 2])}

    rows = compare_runs(network, from_model, network, from_model, inputs)

    assert {row.what for row in rows} == {
        "output 'output'",
        "output 'loss'",
        *(f"gradient of {name!r}" for name in network.parameters),
    }
    assert all(row.agrees and row.error == 0 for row in rows)


@pytest.mark.parametrize(
    ("transformation", "error", "match"),
    [
        ("no_such", UnknownNameError, "no transformation named 'no_such'"),
        ("precisoin", UnknownNameError, "Did you mean 'precision'"),
        ("micro_batching", InvalidInputError, "needs arguments"),
        (3, InvalidInputError, "accepted are objects of Transformation"),
        (Unchanged, InvalidInputError, "accepted are objects of Transformation"),
    ],
)
def test_what_is_no_transformation_is_refused(transformation, error, match) -> None:
    with pytest.raises(error, match=match):
        transform(classifier(), transformation)


def test_other_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="accepted is a Network"):
        transform("network", Unchanged())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="without an executor"):
        transform(classifier(), Unchanged(), inputs={})


def test_networks_that_draw_numbers_are_not_compared() -> None:
    from onnx import helper

    from tests.unit.networks.support import make_model, value

    nodes = [helper.make_node("RandomNormalLike", ["x"], ["y"])]
    network = Network.load(make_model(nodes, [value("x", "N", 4)], [value("y", "N", 4)]))

    with pytest.raises(InvalidInputError, match="draws numbers"):
        transform(network, Unchanged(), executor=from_model)


def test_an_executor_is_what_makes_one() -> None:
    with pytest.raises(InvalidInputError, match="executor was given as 3; accepted is what makes one of a network"):
        transform(create_model("mlp"), "loss_attaching", executor=3)  # type: ignore[arg-type]
