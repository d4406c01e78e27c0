from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import onnx_ir as ir
import pytest
from onnxscript import GraphBuilder

from deep500.core.errors import InvalidNetworkError, OperatorError, UnsupportedOperatorError
from deep500.frameworks import FRAMEWORKS, installed_frameworks
from deep500.frameworks.reference.executor import ReferenceExecutor
from deep500.networks import Network
from deep500.networks.custom_node import CUSTOM_VERSION, call_custom_op, node_operator
from deep500.networks.normalise.model import IR_VERSION, OPSET_VERSION
from deep500.networks.operator_node import OperatorNode
from deep500.operators.custom import catalogue
from deep500.operators.custom.catalogue import register_custom_op
from deep500.operators.custom.custom_op import CUSTOM_DOMAIN, CustomPythonOp


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "_ENTRIES", {})


class Halves(CustomPythonOp):
    """Splits the last dimension, and multiplies."""

    name = "halves"
    input_count = 1
    output_count = 2

    def __init__(self, factor: float = 1.0, sizes: Any = (1,), mode: str = "plain") -> None:
        super().__init__()
        self.factor, self.sizes, self.mode = factor, sizes, mode

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        *outer, last = shapes[0]
        return [(*outer, last // 2)] * 2, [dtypes[0]] * 2

    def forward(self, x: Any) -> Any:
        left, right = np.split(x, 2, axis=-1)
        factor = x.dtype.type(self.factor)
        return factor * left, factor * right

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return np.concatenate(grads, axis=-1) * fwd_inputs[0].dtype.type(self.factor)


def build(op: CustomPythonOp, shape: Any = ("batch", 6), element: Any = ir.DataType.FLOAT) -> Network:
    """Return a network y = first(op(x * w)) - second(op(x * w)) with one parameter w."""
    graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET_VERSION}, name="custom")
    builder = GraphBuilder(graph)
    x = builder.input("x", element, shape)
    weight = np.arange(1.0, 7.0).astype(element.numpy())
    w = builder.initializer(ir.tensor(weight, name="w"))
    first, second = call_custom_op(builder.op, op, builder.op.Mul(x, w))
    builder.add_output(builder.op.Sub(first, second), "y")
    return Network(ir.Model(graph, ir_version=IR_VERSION))


def node_of(network: Network) -> Any:
    return next(node for node in network.model.graph if node.domain == CUSTOM_DOMAIN)


def test_node_and_types() -> None:
    network = build(Halves(factor=0.1, sizes=[1, 2], mode="m"))
    node = node_of(network)

    assert (node.op_type, len(node.outputs)) == ("halves", 2)
    assert network.model.graph.opset_imports[CUSTOM_DOMAIN] == CUSTOM_VERSION
    assert {name: a.value for name, a in node.attributes.items()} == {"factor": 0.1, "sizes": (1, 2), "mode": "m"}
    assert str(node.outputs[1].shape) == "[batch,3]"
    assert node.outputs[0].dtype == ir.DataType.FLOAT


@pytest.mark.parametrize(
    ("shape", "inferred"),
    [
        (("batch", 6), ["batch", 3]),
        ((4, "batch", 6), [4, "batch", 3]),
        ((None, 6), [None, 3]),
        ((5, 6), [5, 3]),
    ],
)
def test_symbolic_sizes(shape: Any, inferred: list[Any]) -> None:
    node = node_of(build(Halves(), shape))

    assert [d if isinstance(d, int) else d.value for d in node.outputs[0].shape] == inferred


def test_size_that_cannot_be_told() -> None:
    register_custom_op(Halves)
    proto = model(custom("halves", ["x"], ["y", "z"]), inputs=[("x", ("n", "width"))])

    assert Network.load(proto).outputs["y"].shape == ("n", None)


def test_saved_network_finds_the_operator_by_its_name(tmp_path: Path) -> None:
    network = build(Halves(factor=0.1))
    x = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    expected = ReferenceExecutor(network).inference({"x": x})["y"]
    network.save(tmp_path / "network.onnx")

    loaded = Network.load(tmp_path / "network.onnx")

    assert loaded.outputs["y"].shape == ("batch", 3)
    np.testing.assert_array_equal(ReferenceExecutor(loaded).inference({"x": x})["y"], expected)
    both = x * np.arange(1, 7, dtype=np.float32) * np.float32(0.1)
    np.testing.assert_allclose(expected, both[:, :3] - both[:, 3:], rtol=1e-5, atol=1e-6)


def test_gradient_in_a_network() -> None:
    network = build(Halves(factor=2.0), (2, 6), ir.DataType.DOUBLE)
    network.append_loss("MeanSquaredError")
    executor = ReferenceExecutor(network)
    stream = np.random.default_rng(0)
    feed = {"x": stream.standard_normal((2, 6)), "label": stream.standard_normal((2, 3))}
    executor.inference_and_backprop(feed, "loss")
    (name,) = [gradient for _, gradient in executor.network.gradient("loss")]
    (gradient,) = executor.network.fetch_tensors([name])

    weight, step = np.arange(1.0, 7.0), 1e-6
    for i in range(6):
        losses = []
        for sign in (1, -1):
            executor.network.feed_tensor("w", weight + sign * step * np.eye(6)[i])
            losses.append(executor.inference(feed)["loss"])
        assert gradient[i] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-6, abs=1e-8)


def model(*nodes: Any, outputs: Any = (("y", (None, None)),), inputs: Any = (("x", (2, 6)),)) -> onnx.ModelProto:
    graph = oh.make_graph(
        list(nodes),
        "g",
        [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in inputs],
        [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in outputs],
    )
    imports = [oh.make_opsetid("", OPSET_VERSION), oh.make_opsetid(CUSTOM_DOMAIN, 1)]
    return oh.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def custom(op_type: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return oh.make_node(op_type, inputs, outputs, domain=CUSTOM_DOMAIN, name=f"node of {op_type}", **attributes)


def test_types_are_inferred_on_loading_through_several_operators() -> None:
    register_custom_op(Halves)
    network = Network.load(
        model(
            custom("halves", ["x"], ["a", "b"]),
            oh.make_node("Concat", ["a", "b", "a", "b"], ["c"], axis=1),
            custom("halves", ["c"], ["d", "e"]),
            oh.make_node("Relu", ["e"], ["y"]),
        )
    )

    assert str(network.outputs["y"]) == "float32[2, 6]"


def test_unknown_operators_are_left_alone_until_they_run() -> None:
    proto = model(custom("missing", ["x"], ["a"]), oh.make_node("Relu", ["a"], ["y"]))
    network = Network.load(proto)
    executor = ReferenceExecutor(network)

    with pytest.raises(
        UnsupportedOperatorError,
        match=r"node 'node of missing' \(deep500.custom::missing, version 1\) cannot run: There is no custom op",
    ):
        executor.inference({"x": np.ones((2, 6), np.float32)})
    register_custom_op(type("Missing", (CustomPythonOp,), {"name": "missing", "forward": lambda self, x: x + 1}))
    assert executor.inference({"x": np.ones((2, 6), np.float32)})["y"].tolist() == [[2.0] * 6] * 2


def test_operators_of_other_domains_are_left_alone() -> None:
    proto = model(oh.make_node("halves", ["x"], ["y"], domain="somebody.else", name="n"))
    proto.opset_import.append(oh.make_opsetid("somebody.else", 3))
    register_custom_op(Halves)

    with pytest.raises(UnsupportedOperatorError, match=r"somebody.else::halves, version 3"):
        ReferenceExecutor(Network.load(proto)).inference({"x": np.ones((2, 6), np.float32)})


@pytest.mark.parametrize(
    ("declared", "inferred"),
    [((None, None), (2, 3)), (("n", "m"), (2, 3)), ((2, "m"), (2, 3)), ((2, 3), (2, 3))],
)
def test_what_the_network_says_is_completed(declared: Any, inferred: Any) -> None:
    register_custom_op(Halves)
    network = Network.load(model(custom("halves", ["x"], ["y", "z"]), outputs=[("y", declared)]))

    assert network.outputs["y"].shape == inferred


@pytest.mark.parametrize("declared", [(2, 4), (2,), (2, 3, 1)])
def test_what_the_network_says_is_wrong(declared: Any) -> None:
    register_custom_op(Halves)

    with pytest.raises(InvalidNetworkError, match=r"output 0 of halves is float32\[2, 3\]; the network says"):
        Network.load(model(custom("halves", ["x"], ["y", "z"]), outputs=[("y", declared)]))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (custom("halves", ["x", "x"], ["a", "y"]), "halves was given 2 inputs; accepted are 1"),
        (custom("halves", ["x"], ["y", "a", "b"]), "has 3 outputs; the custom operator gives 2"),
        (custom("halves", ["x"], ["y", "a"], depth=3), "'halves' with depth=3 cannot be made: .*depth"),
    ],
)
def test_nodes_that_do_not_fit(node: Any, message: str) -> None:
    register_custom_op(Halves)

    with pytest.raises(InvalidNetworkError, match=f"node 'node of halves'.*{message}"):
        Network.load(model(node))


def test_operator_that_refuses_its_inputs() -> None:
    def infer(self: Any, shapes: Any, dtypes: Any) -> Any:
        raise OperatorError("only float64")

    register_custom_op(type("Picky", (CustomPythonOp,), {"name": "picky", "infer": infer}))

    with pytest.raises(InvalidNetworkError, match=r"node 'node of picky'.*: only float64"):
        Network.load(model(custom("picky", ["x"], ["y"])))


def test_clashing_names() -> None:
    build(Halves())
    other = type("Other", (Halves,), {"name": "halves"})()

    with pytest.raises(OperatorError, match="There is a custom operator named 'halves' already"):
        build(other)


def test_what_the_operator_returns_is_checked_in_a_network() -> None:
    register_custom_op(type("Short", (CustomPythonOp,), {"name": "short", "forward": lambda self, x: (x, x)}))
    executor = ReferenceExecutor(Network.load(model(custom("short", ["x"], ["y"]))))

    with pytest.raises(OperatorError, match=r"node 'node of short'.*short.forward returned 2 outputs"):
        executor.inference({"x": np.ones((2, 6), np.float32)})


def test_node_operator() -> None:
    register_custom_op(Halves)
    node = OperatorNode("n", CUSTOM_DOMAIN, "halves", 1, {"factor": 2.0, "sizes": [1]}, ("x",), ("a", "b"))

    assert node_operator(node).attributes == {"factor": 2.0, "sizes": (1,), "mode": "plain"}


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda self, x: x.astype(np.float64), "returned float64 of shape .* like the first input"),
        (lambda self, x: x[:1], r"returned float32 of shape \(1, 6\).*Give the operator an infer"),
        (lambda self, x: np.add(x, 1, out=x), "odd.forward failed: ValueError: output array is read-only"),
        (lambda self, x: {}["nothing"], "odd.forward failed: KeyError: 'nothing'"),
    ],
    ids=["dtype", "shape", "modifies", "raises"],
)
@pytest.mark.parametrize("framework", installed_frameworks("custom_op"))
def test_what_an_author_does_wrong_is_named_in_a_network(framework: str, forward: Any, message: str) -> None:
    register_custom_op(type("Odd", (CustomPythonOp,), {"name": "odd", "forward": forward}))
    executor = FRAMEWORKS.get(framework).from_model(Network.load(model(custom("odd", ["x"], ["y"]))))

    with pytest.raises(OperatorError, match=message):
        executor.inference({"x": np.ones((2, 6), np.float32)})


def test_an_operator_outside_of_a_network_promises_nothing() -> None:
    halved = type("Halved", (CustomPythonOp,), {"name": "halved", "forward": lambda self, x: x[: len(x) // 2]})()
    register_custom_op(halved)
    found = node_operator(OperatorNode("n", CUSTOM_DOMAIN, "halved", 1, {}, ("x",), ("y",)))

    assert halved(np.ones(4)).shape == (2,)
    with pytest.raises(OperatorError, match="like the first input"):
        found(np.ones(4))
    assert halved(np.ones(4)).shape == (2,)
