from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from onnxscript import OpBuilder

from deep500.core.errors import InvalidInputError, UnknownNameError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.creation import create_model
from deep500.networks.loss import LOSSES, Loss, find_loss
from deep500.networks.losses.mean_squared_error import MeanSquaredError
from deep500.networks.losses.softmax_cross_entropy_loss import SoftmaxCrossEntropyLoss
from deep500.networks.network import Network
from tests.unit.networks.support import evaluate, make_model, relu_model, two_outputs, value


class MeanOutput(Loss):
    """A loss of someone else's: the mean prediction, whatever the label."""

    def label_type(self, prediction: TensorDescriptor) -> TensorDescriptor:
        return TensorDescriptor("float32", ())

    def build(self, op: OpBuilder, prediction: ir.Value, label: ir.Value) -> ir.Value:
        result: ir.Value = op.Mul(op.ReduceMean(prediction, keepdims=0), label)
        return result


def test_losses_are_found() -> None:
    assert set(LOSSES.names()) >= {"mean_squared_error", "softmax_cross_entropy_loss"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLoss),
        ("softmax_cross_entropy_loss", SoftmaxCrossEntropyLoss),
        ("MeanSquaredError", MeanSquaredError),
        ("mean_squared_error", MeanSquaredError),
    ],
)
def test_names_of_losses(name: str, kind: type[Loss]) -> None:
    assert type(find_loss(name)) is kind


def test_unknown_loss() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no loss named 'mean_square_error'. Did you mean 'mean_squared_error'\?"
    ):
        find_loss("MeanSquareError")


@pytest.mark.parametrize("loss", [5, None, MeanSquaredError])
def test_what_is_no_loss_is_refused(loss: Any) -> None:
    with pytest.raises(InvalidInputError, match="accepted are a loss's name and a Loss"):
        find_loss(loss)


def test_loss_becomes_an_output_with_a_label() -> None:
    network = create_model("mlp", shape=(6,), hidden=())

    assert network.append_loss("SoftmaxCrossEntropyLoss") == "loss"

    assert network.inputs["label"] == TensorDescriptor("int64", ("batch",))
    assert list(network.outputs) == ["output"]
    assert network.losses == {"loss": TensorDescriptor("float32", ())}


def test_loss_of_the_batch_size_of_the_network() -> None:
    network = create_model("mlp", 5, shape=(6,), hidden=())
    network.append_loss("MeanSquaredError", label="target", name="error")

    assert network.inputs["target"] == TensorDescriptor("float32", (5, 10))
    assert list(network.losses) == ["error"]


def test_loss_of_someone_else() -> None:
    network = Network.load(relu_model("N", 3))
    network.append_loss(MeanOutput(), label="weight")

    result = evaluate(network, x=np.ones((2, 3), np.float32), weight=np.float32(4))

    assert result["loss"] == 4


def test_two_losses_share_a_label_or_not() -> None:
    network = two_outputs()
    network.append_loss("SoftmaxCrossEntropyLoss", prediction="a")
    network.append_loss("SoftmaxCrossEntropyLoss", prediction="b", name="loss_b")
    network.append_loss("MeanSquaredError", prediction="b", name="distance", label="target")
    x, target = np.eye(2, 4, dtype=np.float32), np.zeros((2, 4), np.float32)

    onnx.checker.check_model(network.to_proto(), full_check=True)
    result = evaluate(network, x=x, label=np.array([0, 1]), target=target)

    assert list(network.inputs) == ["x", "label", "target"]
    assert list(network.losses) == ["loss", "loss_b", "distance"]
    assert list(network.outputs) == ["a", "b"]
    np.testing.assert_allclose(result["loss"], np.log(np.e + 3) - 1, rtol=1e-6)
    np.testing.assert_allclose(result["loss_b"], np.log(1 / np.e + 3) + 1 / np.e * 0 + 1, rtol=1e-6)
    np.testing.assert_allclose(result["distance"], 0.25, rtol=1e-6)


def test_an_input_may_be_the_label() -> None:
    network = Network.load(relu_model("N", 3))
    network.append_loss("MeanSquaredError", label="x")

    assert list(network.inputs) == ["x"]
    assert evaluate(network, x=np.full((2, 3), -2, np.float32))["loss"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "received None. Accepted: a, b."),
        ({"prediction": "aa"}, "received 'aa'. Did you mean 'a'? Accepted: a, b."),
        ({"prediction": "x"}, "received 'x'"),
        ({"prediction": "a", "name": "b"}, "The loss cannot be named 'b'"),
        ({"prediction": "a", "name": "x"}, "The loss cannot be named 'x'"),
        ({"prediction": "a", "label": "b"}, "The label cannot be named 'b'"),
        ({"prediction": "a", "label": "x"}, "Input 'x' is float32[N, 4]; as a label of this loss it must be int64[N]"),
        ({"prediction": "a", "name": ""}, "The loss cannot be named ''"),
        ({"prediction": "a", "label": None}, "The label cannot be named None"),
        ({"prediction": "a", "label": "both", "name": "both"}, "Loss and label cannot both be named 'both'"),
    ],
)
def test_refused_loss_leaves_the_network_as_it_was(arguments: dict[str, Any], message: str) -> None:
    network = two_outputs()
    before = network.to_proto()

    with pytest.raises(InvalidInputError) as caught:
        network.append_loss("SoftmaxCrossEntropyLoss", **arguments)

    assert message in str(caught.value)
    assert network.to_proto() == before


def test_second_loss_needs_a_name_of_its_own() -> None:
    network = create_model("mlp", shape=(6,))
    network.append_loss("SoftmaxCrossEntropyLoss")

    with pytest.raises(InvalidInputError, match="The loss cannot be named 'loss'"):
        network.append_loss("SoftmaxCrossEntropyLoss")
    with pytest.raises(InvalidInputError, match="Accepted: output"):
        network.append_loss("MeanSquaredError", prediction="loss", name="other", label="other_label")


def test_a_network_without_a_floating_output_has_no_loss() -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT64)]
    integers = value("y", "N", 3, element=TensorProto.INT64)
    network = Network.load(make_model(nodes, [value("x", "N", 3)], [integers]))

    with pytest.raises(InvalidInputError, match=r"Output 'y' is int64\[N, 3\]; a loss needs a floating prediction"):
        network.append_loss("MeanSquaredError")


def test_losses_survive_saving() -> None:
    network = two_outputs()
    network.append_loss("MeanSquaredError", prediction="a", name="first")
    loaded = Network.load(network.to_proto())
    loaded.append_loss("MeanSquaredError", prediction="b", name="second")

    assert list(loaded.losses) == ["first", "second"]
    onnx.checker.check_model(loaded.to_proto(), full_check=True)
