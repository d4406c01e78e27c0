from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from deep500.core.errors import InvalidNetworkError
from deep500.networks.network import Network
from deep500.networks.normalise.model import IR_VERSION, OPSET_VERSION
from tests.unit.networks.support import batch_normalization, evaluate, make_model, relu_model, value

GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((2, 3, 5, 5)).astype(np.float32)
STORED = {
    "w": GENERATOR.standard_normal((4, 3, 2, 2)).astype(np.float32),
    "scale": np.array([1, 2, 3, 4], np.float32),
    "bias": np.array([0, 1, 0, 1], np.float32),
    "mean": np.array([0.5, 0, 0, 0], np.float32),
    "var": np.array([1, 4, 1, 4], np.float32),
}


def old_network(opset: int, ir_version: int) -> Network:
    """Return convolution, normalisation, Clip, ReduceMean and Softmax as an old opset writes them."""
    bounded = (
        [helper.make_node("Clip", ["n"], ["k"], min=0.0, max=6.0)]
        if opset < 11
        else [
            helper.make_node("Constant", [], ["low"], value=numpy_helper.from_array(np.float32(0))),
            helper.make_node("Constant", [], ["high"], value=numpy_helper.from_array(np.float32(6))),
            helper.make_node("Clip", ["n", "low", "high"], ["k"]),
        ]
    )
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", kernel_shape=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"], epsilon=1e-3),
        *bounded,
        helper.make_node("ReduceMean", ["k"], ["r"], axes=[3], keepdims=0),
        helper.make_node("Softmax", ["r"], ["y"], **({} if opset < 13 else {"axis": -1})),
    ]
    proto = make_model(
        nodes, [value("x", "N", 3, 5, 5)], [value("y", "N", 4, 4)], STORED, opset=opset, ir_version=ir_version
    )
    return Network.load(proto)


def expected_output(opset: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(X.astype(np.float64), (2, 2), axis=(2, 3))
    y = np.einsum("nchwij,ocij->nohw", windows, STORED["w"])
    parameters = {name: STORED[name].reshape(1, -1, 1, 1).astype(np.float64) for name in STORED if name != "w"}
    y = (y - parameters["mean"]) / np.sqrt(parameters["var"] + 1e-3) * parameters["scale"] + parameters["bias"]
    y = np.clip(y, 0, 6).mean(axis=3)
    axes = (1, 2) if opset < 13 else (2,)  # before opset 13, Softmax ran over all axes from the first on
    powers = np.exp(y - y.max(axis=axes, keepdims=True))
    return powers / powers.sum(axis=axes, keepdims=True)


@pytest.mark.parametrize(("opset", "ir_version"), [(9, 3), (9, 4), (11, 6), (12, 7), (13, 7), (17, 8)])
def test_old_opsets_are_converted(opset: int, ir_version: int) -> None:
    network = old_network(opset, ir_version)

    assert network.model.opset_imports[""] == OPSET_VERSION
    assert network.model.ir_version >= IR_VERSION
    assert list(network.inputs) == ["x"]
    assert list(network.parameters) == ["w", "scale", "bias"]
    assert list(network.states) == ["mean", "var"]
    np.testing.assert_allclose(evaluate(network, x=X)["y"], expected_output(opset), rtol=1e-4)
    onnx.checker.check_model(network.to_proto(), full_check=True)
    again = Network.load(network.to_proto())
    assert (again.parameters, again.states, again.constants) == (network.parameters, network.states, network.constants)
    assert network.flops(2) > 0


def test_newest_opset_is_kept() -> None:
    newest = onnx.defs.onnx_opset_version()

    assert Network.load(relu_model(2, opset=newest)).model.opset_imports[""] == newest


def test_opset_that_onnx_does_not_know_is_refused() -> None:
    with pytest.raises(InvalidNetworkError, match=r"uses opset 999; the installed ONNX .* knows opsets up to"):
        Network.load(relu_model(2, opset=999))


def test_operator_that_is_no_more_becomes_its_successor() -> None:
    node = helper.make_node("Upsample", ["x"], ["y"], scales=[1.0, 1.0, 2.0, 2.0], mode="nearest")
    proto = make_model([node], [value("x", 1, 1, 2, 2)], [value("y", 1, 1, 4, 4)], opset=7, ir_version=3)
    network = Network.load(proto)
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)

    assert [node.op_type for node in network.model.graph] == ["Resize"]
    assert not network.parameters
    np.testing.assert_array_equal(evaluate(network, x=x)["y"], x.repeat(2, axis=2).repeat(2, axis=3))


def test_model_that_the_converter_refuses() -> None:
    proto = batch_normalization(outputs=("y", "m", "v", "saved_m", "saved_v"), opset=9)

    with pytest.raises(InvalidNetworkError, match=r"uses opset 9, which cannot be converted to opset 23: .*Batch"):
        Network.load(proto)


@pytest.mark.parametrize("opset", [11, 13, 23])
def test_constants_are_lifted_and_not_trained(opset: int) -> None:
    nodes = [
        helper.make_node("Constant", [], ["half"], value=numpy_helper.from_array(np.float32(0.5))),
        helper.make_node("Mul", ["x", "half"], ["h"]),
        helper.make_node("Mul", ["h", "w"], ["y"]),
    ]
    proto = make_model(
        nodes, [value("x", "N", 2)], [value("y", "N", 2)], {"w": np.ones(2, np.float32)}, opset=opset, ir_version=8
    )
    network = Network.load(proto)

    assert list(network.parameters) == ["w"]
    assert list(network.constants) == ["half"]
    assert [node.op_type for node in network.model.graph] == ["Mul", "Mul"]
    assert list(Network.load(network.to_proto()).constants) == ["half"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"value_float": 1.5},
        {"value_floats": [1.5, 2.5]},
        {"value_int": 3},
        {"value_ints": [3, 4]},
        {"value": numpy_helper.from_array(np.ones((2, 2), np.float16))},
    ],
)
def test_every_kind_of_constant_is_lifted(attributes: dict[str, Any]) -> None:
    node = helper.make_node("Constant", [], ["c"], **attributes)
    cast = helper.make_node("Cast", ["c"], ["f"], to=TensorProto.FLOAT)
    add = helper.make_node("Add", ["x", "f"], ["y"])
    network = Network.load(make_model([node, cast, add], [value("x", "N", 2)], [value("y", "A", 2)]))

    assert list(network.constants) == ["c"]
    assert not network.parameters


def test_initializers_listed_as_inputs_are_not_fed() -> None:
    proto = make_model(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        [value("x", "N", 2), value("w", 2)],
        [value("y", "N", 2)],
        {"w": np.full(2, 3, np.float32)},
    )
    network = Network.load(proto)

    assert list(network.inputs) == ["x"]
    assert list(network.parameters) == ["w"]


@pytest.mark.parametrize("opset", [13, 17, 23])
def test_functions_are_inlined(opset: int) -> None:
    imports = [helper.make_opsetid("", opset)]
    half = numpy_helper.from_array(np.float32(0.5))
    body = [
        helper.make_node("Constant", [], ["half"], value=half),
        helper.make_node("Mul", ["a", "half"], ["h"]),
        helper.make_node("Mul", ["h", "f"], ["b"]),
    ]
    function = helper.make_function("mine", "Half", ["a", "f"], ["b"], body, imports)
    calls = [
        helper.make_node("Half", ["x", "w"], ["z"], domain="mine"),
        helper.make_node("Half", ["z", "w"], ["y"], domain="mine"),
    ]
    proto = make_model(
        calls,
        [value("x", "N", 2)],
        [value("y", "N", 2)],
        {"w": np.full(2, 3, np.float32)},
        opset=opset,
        ir_version=10,
        functions=[function],
        domains=["mine"],
    )
    network = Network.load(proto)

    assert {node.op_type for node in network.model.graph} == {"Mul"}
    assert list(network.parameters) == ["w"]
    assert evaluate(network, x=np.ones((1, 2), np.float32))["y"].tolist() == [[2.25, 2.25]]


@pytest.mark.parametrize("opset", [9, 13, 23])
def test_operators_of_other_domains_stay(opset: int) -> None:
    nodes = [helper.make_node("Mine", ["x"], ["z"], domain="mine"), helper.make_node("Relu", ["z"], ["y"])]
    network = Network.load(
        make_model(nodes, [value("x", 2)], [value("y", 2)], opset=opset, ir_version=8, domains=["mine"])
    )

    assert [(node.domain, node.op_type) for node in network.model.graph] == [("mine", "Mine"), ("", "Relu")]


def test_nodes_are_sorted() -> None:
    proto = make_model(
        [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])],
        [value("x", 2)],
        [value("y", 2)],
    )

    assert [node.op_type for node in Network.load(proto).model.graph] == ["Relu", "Neg"]


def test_shapes_are_inferred() -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["m"]),
        helper.make_node("Relu", ["m"], ["y"]),
    ]
    stored: dict[str, Any] = {"shape": np.array([0, 12]), "w": np.ones((12, 5), np.float32)}
    network = Network.load(make_model(nodes, [value("x", "N", 3, 4)], [value("y", "N", 5)], stored))

    assert [str(node.outputs[0].shape) for node in network.model.graph] == ["[N,12]", "[N,5]", "[N,5]"]


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_batch_normalization_of_every_form(opset: int) -> None:
    proto = batch_normalization(opset=opset)
    network = Network.load(proto)
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)
    scale, bias, mean, var = (t.reshape(1, -1, 1, 1) for t in network.fetch_tensors(["scale", "bias", "mean", "var"]))

    expected = (x - mean) / np.sqrt(var + 1e-5) * scale + bias
    np.testing.assert_allclose(evaluate(network, x=x)["y"], expected, rtol=1e-4, atol=1e-5)
