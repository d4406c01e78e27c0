from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deep500.core.errors import InvalidNetworkError, UnknownNameError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks import saving
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from tests.unit.networks.support import relu_model, two_outputs


class Twice:
    """A store whose tensors are twice those of another."""

    def __init__(self, network: Network) -> None:
        self.network = network

    def fetch(self, name: str) -> NDArray[Any]:
        tensor = self.network.fetch_tensors([name])[0]
        return np.asarray(2 * tensor, tensor.dtype)

    def feed(self, name: str, value: Any) -> None:
        self.network.feed_tensor(name, value / 2)

    def gradient_names(self, loss: str) -> list[tuple[str, str]]:
        return [(name, f"{name}.grad") for name in self.network.parameters]


@pytest.fixture
def network() -> Network:
    return create_model("mlp", shape=(3,), hidden=(2,), classes=2)


def test_description() -> None:
    network = two_outputs()

    assert network.name == "graph"
    assert network.inputs == {"x": TensorDescriptor("float32", ("N", 4))}
    assert list(network.outputs) == ["a", "b"]
    assert network.losses == {}
    assert network.get_params() == []
    assert network.parameter_count == network.parameter_size_bytes == 0
    assert repr(network) == (
        "<Network 'graph' (x: float32[N, 4]) -> (a: float32[N, 4], b: float32[N, 4]), 0 parameters, eval>"
    )


def test_network_without_a_name() -> None:
    proto = relu_model(2)
    network = Network.load(proto)
    network.model.graph.name = None

    assert network.name == "network"


def test_sizes(network: Network) -> None:
    assert network.get_params() == ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    assert network.parameter_count == 3 * 2 + 2 + 2 * 2 + 2
    assert network.parameter_size_bytes == 4 * network.parameter_count
    assert create_model("mlp", shape=(3,), hidden=(2,), classes=2, dtype="float16").parameter_size_bytes == 28


def test_mode(network: Network) -> None:
    assert network.mode == "eval"
    assert network.train() is network
    assert network.mode == "train"
    assert network.eval() is network
    assert network.mode == "eval"


def test_bound_network_has_a_mode_and_tensors_of_its_own(network: Network) -> None:
    bound = network.train().bind(Twice(network))
    network.eval()

    assert (network.mode, bound.mode) == ("eval", "train")
    assert bound.model is network.model
    (own,), (other,) = network.fetch_tensors(["layers.0.weight"]), bound.fetch_tensors(["layers.0.weight"])
    np.testing.assert_array_equal(other, 2 * own)
    bound.feed_tensor("layers.0.bias", np.full(2, 4, np.float32))
    assert network.fetch_tensors(["layers.0.bias"])[0].tolist() == [2, 2]
    assert bound.weights_hash() != network.weights_hash()


def test_bound_network_saves_the_tensors_of_its_store(network: Network) -> None:
    network.append_loss("SoftmaxCrossEntropyLoss")
    bound = network.bind(Twice(network))
    before = network.weights_hash()

    loaded = Network.load(bound.to_proto())

    assert loaded.weights_hash() == bound.weights_hash()
    assert list(loaded.parameters) == list(network.parameters)
    assert list(loaded.losses) == ["loss"]
    assert network.weights_hash() == before


def test_gradients_are_those_of_the_store(network: Network) -> None:
    network.append_loss("SoftmaxCrossEntropyLoss")
    bound = network.bind(Twice(network))

    assert bound.gradient("loss")[0] == ("layers.0.weight", "layers.0.weight.grad")
    assert bound.gradient("output") == bound.gradient()
    with pytest.raises(UnknownNameError, match="no output named 'input'"):
        bound.gradient("input")


def test_hash_covers_names_dtypes_shapes_and_bits(network: Network) -> None:
    same = create_model("mlp", 5, shape=(3,), hidden=(2,), classes=2)
    hashes = {network.weights_hash(), same.weights_hash()}
    assert len(hashes) == 1
    same.feed_tensor("layers.0.bias", np.array([0.0, -0.0], np.float32))  # equal numbers, other bits
    hashes.add(same.weights_hash())
    hashes.add(create_model("mlp", shape=(3,), hidden=(2,), classes=2, dtype="float64").weights_hash())
    hashes.add(create_model("mlp", shape=(3,), hidden=(2,), classes=2, seed=1).weights_hash())

    assert len(hashes) == 4


def test_order_of_parameters_is_that_of_the_nodes_whatever_the_file_says(network: Network) -> None:
    proto = network.to_proto()
    tensors = list(proto.graph.initializer)[::-1]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(tensors)

    assert list(Network.load(proto).parameters) == list(network.parameters)


def test_what_protobuf_cannot_hold_is_saved_and_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "INLINE_LIMIT", 100)

    with pytest.raises(InvalidNetworkError, match=r"has [\d,]+ bytes in its tensors; .* Save it: network.save"):
        create_model("mlp").to_proto()
