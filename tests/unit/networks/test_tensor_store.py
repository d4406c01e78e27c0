from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import InvalidInputError, UnknownNameError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.creation import create_model
from deep500.networks.network import Network
from deep500.networks.tensor_store import check_fed_tensor


@pytest.fixture
def network() -> Network:
    return create_model("simple_cnn", widths=(4,), shape=(1, 4, 4))


def test_fetched_tensors_are_copies(network: Network) -> None:
    (first,) = network.fetch_tensors(["norms.0.scale"])
    first[:] = 7
    (second,) = network.fetch_tensors(["norms.0.scale"])

    assert second.tolist() == [1, 1, 1, 1]
    assert [t.shape for t in network.fetch_tensors([*network.parameters, *network.states])][:2] == [(4, 1, 3, 3), (4,)]


def test_fed_tensors_are_copied(network: Network) -> None:
    before = network.weights_hash()
    values = np.arange(4, dtype=np.float32)
    network.feed_tensor("norms.0.running_mean", values)
    values[:] = 7

    assert network.fetch_tensors(["norms.0.running_mean"])[0].tolist() == [0, 1, 2, 3]
    assert network.weights_hash() != before
    network.feed_tensor("norms.0.running_mean", np.zeros(4, np.float32))
    assert network.weights_hash() == before


def test_unknown_names(network: Network) -> None:
    with pytest.raises(UnknownNameError, match=r"no tensor named 'norms.0.scal'. Did you mean 'norms.0.scale'\?"):
        network.fetch_tensors(["norms.0.scal"])
    with pytest.raises(UnknownNameError, match="no tensor named 'input'"):
        network.feed_tensor("input", np.zeros(1))


def test_a_text_is_no_list_of_names(network: Network) -> None:
    with pytest.raises(InvalidInputError, match=r"received 'norms.0.scale'. Use \['norms.0.scale'\]"):
        network.fetch_tensors("norms.0.scale")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(4), r"given as float64\[4\]; accepted is float32\[4\].*astype\('float32'\)"),
        ([0.0] * 4, r"given as float64\[4\]"),
        (np.zeros(3, np.float32), r"given as float32\[3\]; accepted is float32\[4\]\.$"),
        (np.zeros((4, 1), np.float32), r"given as float32\[4, 1\]"),
        (np.float32(0), r"given as float32\[\]"),
        (["a"] * 4, r"'norms.0.scale' was given as str32\[4\]; accepted is float32"),
        (None, r"'norms.0.scale' was given as object\[\]; accepted is float32"),
        ([[0.0], [0.0, 0.0]], "The value given for 'norms.0.scale' is no tensor"),
    ],
)
def test_other_tensors_are_refused_and_change_nothing(network: Network, value: Any, message: str) -> None:
    before = network.weights_hash()

    with pytest.raises(InvalidInputError, match=message):
        network.feed_tensor("norms.0.scale", value)
    assert network.weights_hash() == before


def test_an_unbound_network_has_no_gradients(network: Network) -> None:
    network.append_loss("SoftmaxCrossEntropyLoss")

    with pytest.raises(UnknownNameError, match=r"not bound to an executor. Use executor.network after"):
        network.gradient()
    with pytest.raises(UnknownNameError, match=r"no output named 'los'. Did you mean 'loss'\?"):
        network.gradient("los")


def test_check_of_a_tensor_of_unknown_type() -> None:
    check_fed_tensor("w", "float32", (3,), None)
    check_fed_tensor("w", "float32", (3,), TensorDescriptor("float32"))


def test_no_message_lists_hundreds_of_names() -> None:
    deep = create_model("mlp", shape=(2,), hidden=(2,) * 40)

    with pytest.raises(UnknownNameError, match=r"It holds: layers.0.weight, .* and 42 more\.$"):
        deep.fetch_tensors(["nothing"])
