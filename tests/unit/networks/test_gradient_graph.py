"""The gradient as a network gives what the reference's own differentiation gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest

from deep500.core.errors import InvalidInputError, MissingDependencyError, UnsupportedOperatorError
from deep500.core.requirement import Requirement
from deep500.frameworks import FRAMEWORKS
from deep500.networks import Network, create_model
from deep500.networks.gradient_graph import gradient_network

pytest.importorskip("onnx_ad")

RANDOM = np.random.default_rng(0)
REFERENCE = FRAMEWORKS.get("reference")
FLOAT = onnx.TensorProto.FLOAT


def built(model: str, dtype: str = "float64", **options: Any) -> tuple[Network, dict[str, Any]]:
    network = create_model(model, dtype=dtype, shape=(1, 8, 8), classes=5, **options)
    network.append_loss("SoftmaxCrossEntropyLoss")
    feeds = {"input": RANDOM.standard_normal((6, 1, 8, 8)).astype(dtype), "label": RANDOM.integers(0, 5, 6)}
    return network, feeds


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize(
    ("model", "options"), [("mlp", {"hidden": (7,)}), ("simple_cnn", {}), ("resnet", {"depth": 8})]
)
def test_gradients_are_the_references(model: str, options: dict[str, Any], mode: str) -> None:
    network, feeds = built(model, **options)
    getattr(network, mode)()
    executor = REFERENCE.from_model(network)
    expected = executor.inference_and_backprop(feeds)
    derived = gradient_network(network, shapes={name: x.shape for name, x in feeds.items()})

    found = REFERENCE.from_model(derived).inference(feeds)

    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-12)
    pairs = executor.network.gradient("loss")
    assert [name for name in derived.outputs if name.endswith(".grad")] == [gradient for _, gradient in pairs]
    for parameter, gradient in pairs:
        (value,) = executor.network.fetch_tensors([gradient])
        limit = 1e-10 * max(1.0, np.abs(value).max())
        assert np.abs(found[gradient] - value).max() < limit, parameter
    for state in network.states:  # the derived network hands on what training would make of them
        (value,) = executor.network.fetch_tensors([state])
        assert np.isfinite(value).all()


def test_its_tensors_are_those_of_the_network_now() -> None:
    network, feeds = built("mlp", hidden=())
    name = network.get_params()[0]
    network.feed_tensor(name, 2 * network.fetch_tensors([name])[0])
    derived = gradient_network(network, shapes={key: x.shape for key, x in feeds.items()})

    np.testing.assert_array_equal(derived.fetch_tensors([name])[0], network.fetch_tensors([name])[0])


def test_dropout_in_training_uses_the_mask_of_the_forward() -> None:
    nodes = [
        oh.make_node("Dropout", ["x", "ratio"], ["d"], name="drop"),
        oh.make_node("Mul", ["d", "w"], ["p"], name="times"),
        oh.make_node("ReduceSum", ["p"], ["loss"], name="sum", keepdims=0),
    ]
    stored = [onh.from_array(np.float32(0.5), "ratio"), onh.from_array(np.ones(400, np.float32), "w")]
    values = [oh.make_tensor_value_info("x", FLOAT, [400])]
    outputs = [oh.make_tensor_value_info("loss", FLOAT, []), oh.make_tensor_value_info("d", FLOAT, [400])]
    model = oh.make_model(
        oh.make_graph(nodes, "g", values, outputs, stored), opset_imports=[oh.make_opsetid("", 23)], ir_version=11
    )
    derived = gradient_network(Network.load(model).train())
    found = REFERENCE.from_model(derived).inference({"x": np.ones(400, np.float32)})

    np.testing.assert_array_equal(found["w.grad"], found["d"])
    assert set(np.unique(found["d"])) == {0.0, 2.0}


def refused(network: Network, **arguments: Any) -> Network:
    return gradient_network(network, **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"loss": "los"}, InvalidInputError, "no output named 'los'. Did you mean 'loss'"),
        ({}, InvalidInputError, "The shape of input 'input' .* is not known"),
        ({"shapes": {"input": (6, 2, 9, 9), "label": (6,)}}, InvalidInputError, r"input 'input' .* \(6, 2, 9, 9\)"),
    ],
)
def test_bad_requests_are_told(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    network, _ = built("simple_cnn")

    with pytest.raises(error, match=message):
        refused(network, **arguments)


def test_operator_without_a_rule_is_named() -> None:
    nodes = [oh.make_node("Det", ["w"], ["y"])]
    stored = [onh.from_array(np.eye(3, dtype=np.float32), "w")]
    outputs = [oh.make_tensor_value_info("y", FLOAT, [])]
    model = oh.make_model(
        oh.make_graph(nodes, "g", [], outputs, stored), opset_imports=[oh.make_opsetid("", 23)], ir_version=11
    )

    with pytest.raises(UnsupportedOperatorError, match="no rule for Det"):
        gradient_network(Network.load(model), "y")


def test_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    network, feeds = built("mlp", hidden=())
    monkeypatch.setattr(Requirement, "is_installed", lambda self: False)

    with pytest.raises(MissingDependencyError, match=r"pip install 'deep500\[onnxruntime\]'"):
        gradient_network(network, shapes={name: x.shape for name, x in feeds.items()})
