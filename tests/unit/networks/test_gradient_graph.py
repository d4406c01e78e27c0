"""The gradient as a network gives what the reference's own differentiation gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest

from deep500.core.errors import InvalidInputError, UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS
from deep500.networks import Network, create_model
from deep500.networks.gradient_graph import gradient_network

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
    derived = gradient_network(network)

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
    network, _ = built("mlp", hidden=())
    name = network.get_params()[0]
    network.feed_tensor(name, 2 * network.fetch_tensors([name])[0])
    derived = gradient_network(network)

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
        ({"shapes": {"inptu": (6, 1, 8, 8)}}, InvalidInputError, "no input named 'inptu'. Did you mean 'input'"),
        ({"shapes": {"input": (6, 2, 9, 9), "label": (6,)}}, InvalidInputError, r"input 'input' .* \(6, 2, 9, 9\)"),
    ],
)
def test_bad_requests_are_told(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    network, _ = built("simple_cnn")

    with pytest.raises(error, match=message):
        refused(network, **arguments)


def differentiated_nodes(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[Any, ...]], **stored: np.ndarray
) -> tuple[Network, Network]:
    """Return a network of some nodes whose loss is the sum of y, and its gradient network."""
    nodes = [*nodes, oh.make_node("ReduceSum", ["y"], ["loss"], name="total", keepdims=0)]
    values = [oh.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, shape) for name, shape in inputs.items()]
    outputs = [oh.make_tensor_value_info("loss", onnx.TensorProto.DOUBLE, [])]
    tensors = [onh.from_array(value, name) for name, value in stored.items()]
    graph = oh.make_graph(nodes, "g", values, outputs, tensors)
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11)).as_declared()
    return network, gradient_network(network)


def test_operator_without_a_rule_is_named() -> None:
    nodes = [
        oh.make_node("Cast", ["w"], ["narrow"], name="narrow", to=onnx.TensorProto.FLOAT),
        oh.make_node("DequantizeLinear", ["x", "narrow"], ["real"], name="scale"),
        oh.make_node("Cast", ["real"], ["y"], name="widen", to=onnx.TensorProto.DOUBLE),
    ]

    with pytest.raises(UnsupportedOperatorError, match=r"no rule for DequantizeLinear \(node 'scale'\)"):
        differentiated_nodes(nodes, {}, w=np.array(0.5), x=np.ones(3, np.int8))


def test_a_product_with_updates_has_the_products_of_all_but_one_factor() -> None:
    """Also where one of the factors is 0. There is no dividing by it."""
    node = oh.make_node("ScatterND", ["w", "places", "u"], ["y"], name="put", reduction="mul")
    _, derived = differentiated_nodes([node], {}, w=np.ones(3) * 2, places=np.array([[1], [1]]), u=np.array([0.0, 5.0]))

    found = REFERENCE.from_model(derived).inference({})

    np.testing.assert_array_equal(found["w.grad"], [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(found["u.grad"], [10.0, 0.0])


def test_an_operator_without_a_rule_off_the_way_does_not_matter() -> None:
    """Between no parameter and the loss: nothing asks for its derivative."""
    nodes = [
        oh.make_node("Cast", ["x"], ["narrow"], name="narrow", to=onnx.TensorProto.FLOAT),
        oh.make_node("QuantizeLinear", ["narrow", "one"], ["whole"], name="quantize"),
        oh.make_node("Cast", ["whole"], ["rounded"], name="widen", to=onnx.TensorProto.DOUBLE),
        oh.make_node("Mul", ["rounded", "w"], ["y"], name="times"),
    ]
    nodes.insert(0, oh.make_node("Constant", [], ["one"], name="one", value_float=1.0))
    _, derived = differentiated_nodes(nodes, {"x": (1,)}, w=np.ones(1))

    found = REFERENCE.from_model(derived).inference({"x": np.full(1, 3.0)})

    np.testing.assert_array_equal(found["w.grad"], [3.0])


@pytest.mark.parametrize("model", ["mlp", "simple_cnn", "resnet"])
@pytest.mark.parametrize("size", [1, 3, 6])
def test_one_gradient_network_takes_every_size_of_batch(model: str, size: int) -> None:
    network, feeds = built(model, **({"depth": 8} if model == "resnet" else {}))
    feeds = {name: x[:size] for name, x in feeds.items()}
    executor = REFERENCE.from_model(network)
    executor.inference_and_backprop(feeds)

    found = REFERENCE.from_model(gradient_network(network)).inference(feeds)

    for _, gradient in executor.network.gradient("loss"):
        (value,) = executor.network.fetch_tensors([gradient])
        np.testing.assert_allclose(found[gradient], value, rtol=1e-9, atol=1e-10 * max(1.0, np.abs(value).max()))


def test_an_empty_batch_has_gradients_of_zero() -> None:
    nodes = [
        oh.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 0], strides=[2]),
        oh.make_node("Relu", ["c"], ["r"], name="relu"),
        oh.make_node("MaxPool", ["r"], ["y"], name="pool", kernel_shape=[2]),
    ]
    _, derived = differentiated_nodes(nodes, {"x": ("n", 2, 7)}, w=np.ones((3, 2, 3)), b=np.ones(3))

    found = REFERENCE.from_model(derived).inference({"x": np.ones((0, 2, 7))})

    np.testing.assert_array_equal(found["w.grad"], np.zeros((3, 2, 3)))
    np.testing.assert_array_equal(found["b.grad"], np.zeros(3))


def test_sizes_that_only_run_time_tells() -> None:
    """A convolution whose image has symbolic sizes, with padding that depends on them."""
    node = oh.make_node("Conv", ["x", "w"], ["y"], name="conv", auto_pad="SAME_LOWER", strides=[2, 3], group=2)
    weight = RANDOM.standard_normal((4, 1, 3, 2))
    network, derived = differentiated_nodes([node], {"x": ("n", 2, "height", "width")}, w=weight)
    for shape in ((2, 2, 5, 7), (1, 2, 4, 6), (3, 2, 2, 3)):
        x = RANDOM.standard_normal(shape)
        executor = REFERENCE.from_model(network)
        executor.network.as_declared()
        executor.inference_and_backprop({"x": x}, "loss")
        (expected,) = executor.network.fetch_tensors(["w.grad"])

        found = REFERENCE.from_model(derived).inference({"x": x})

        np.testing.assert_allclose(found["w.grad"], expected, rtol=1e-11, atol=1e-12)


def test_a_gradient_does_not_take_the_name_of_a_parameter() -> None:
    nodes = [oh.make_node("Mul", ["w", "w.grad"], ["y"], name="times")]
    _, derived = differentiated_nodes(nodes, {}, **{"w": np.array([2.0]), "w.grad": np.array([3.0])})

    found = REFERENCE.from_model(derived).inference({})

    np.testing.assert_array_equal(found["w.grad_"], [3.0])
    np.testing.assert_array_equal(found["w.grad.grad"], [2.0])


def test_what_has_a_derivative_of_zero_has_a_gradient_of_zeros() -> None:
    _, derived = differentiated_nodes([oh.make_node("Floor", ["w"], ["y"])], {}, w=np.array([1.5, 2.5]))

    np.testing.assert_array_equal(REFERENCE.from_model(derived).inference({})["w.grad"], [0.0, 0.0])
