from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from deep500.core.errors import InvalidNetworkError
from deep500.core.tensor_descriptor import EXTENDED_DTYPES, TensorDescriptor
from deep500.networks.network import Network
from deep500.networks.operator_node import OperatorNode, describe_value, read_node
from tests.unit.networks.support import make_model, value


def read(nodes: list[Any], stored: dict[str, Any], *outputs: str) -> OperatorNode:
    proto = make_model(nodes, [value("x", "N", 3)], [value(name, "A", "B") for name in outputs], stored)
    return read_node(list(Network.load(proto).model.graph)[-1], {"": 23})


def test_names_types_and_constants() -> None:
    node = read(
        [helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape", allowzero=1)],
        {"shape": np.array([3, -1])},
        "y",
    )

    assert (node.name, node.domain, node.op_type, node.version) == ("reshape", "", "Reshape", 23)
    assert (node.inputs, node.outputs) == (("x", "shape"), ("y",))
    assert node.attributes == {"allowzero": 1}
    assert node.input_types == (TensorDescriptor("float32", ("N", 3)), TensorDescriptor("int64", (2,)))
    assert node.rank(0) == 2
    assert node.rank(1) == 1
    shape = node.constant(1)
    assert shape is not None
    assert shape.tolist() == [3, -1]
    assert node.constant(2) is None


def test_absent_inputs_and_outputs_are_empty_names() -> None:
    node = read([helper.make_node("Clip", ["x", "", "high"], ["y"])], {"high": np.float32(6).reshape(())}, "y")

    assert node.name == "y"
    assert node.inputs == ("x", "", "high")
    assert node.input_types[1] is None
    assert node.constant(1) is None
    assert node.constant(2) == np.float32(6)


def test_what_is_trained_or_computed_is_no_constant() -> None:
    node = read([helper.make_node("Mul", ["x", "w"], ["y"])], {"w": np.ones(3, np.float32)}, "y")

    assert node.constants == {}
    for index, name in enumerate("xw"):
        with pytest.raises(InvalidNetworkError, match=f"Input {index} \\('{name}'\\) of node 'y' .* only a constant"):
            node.constant(index)


def test_unknown_rank_is_named() -> None:
    node = OperatorNode("n", "mine", "Op", 3, {}, ("x", "y"), ("z",), (None, TensorDescriptor("float32")))

    for index in (0, 1, 2):
        if index == 2:
            with pytest.raises(IndexError):
                node.rank(index)
        else:
            with pytest.raises(InvalidNetworkError, match=rf"input {index} \('{'xy'[index]}'\) of node 'n' \(mine::Op"):
                node.rank(index)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, 3),
        (1.5, 1.5),
        ("text", "text"),
        ([1, 2], [1, 2]),
        ([0.5, 1.5], [0.5, 1.5]),
        (["a", "b"], ["a", "b"]),
        (numpy_helper.from_array(np.array([[1, 2]], np.int32)), np.array([[1, 2]], np.int32)),
    ],
)
def test_attributes_are_python_values(given: Any, expected: Any) -> None:
    proto = make_model(
        [helper.make_node("Op", ["x"], ["y"], domain="mine", setting=given)],
        [value("x", 2)],
        [value("y", 2)],
        domains=["mine"],
    )
    found = read_node(next(iter(Network.load(proto).model.graph)), {}).attributes["setting"]

    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "name", ["bool", "int8", "int64", "uint16", "float16", "float32", "float64", "complex64", *EXTENDED_DTYPES]
)
def test_every_element_type_is_described(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    described = describe_value(
        ir.Value(name="v", type=ir.TensorType(ir.DataType.from_numpy(dtype)), shape=ir.Shape([2, "n", None]))
    )

    assert described == TensorDescriptor(name, (2, "n", None))


@pytest.mark.parametrize(
    "type_",
    [
        None,
        ir.TensorType(ir.DataType.UNDEFINED),
        ir.SequenceType(ir.TensorType(ir.DataType.FLOAT)),
        ir.OptionalType(ir.TensorType(ir.DataType.FLOAT)),
    ],
)
def test_what_is_no_tensor_is_not_described(type_: Any) -> None:
    assert describe_value(None) is None
    assert describe_value(ir.Value(name="v", type=type_, shape=ir.Shape([2]))) is None


def test_network_of_sequences_says_so() -> None:
    sequence = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, [2])
    network = Network.load(
        make_model([helper.make_node("SequenceConstruct", ["x"], ["y"])], [value("x", 2)], [sequence])
    )

    assert str(network.outputs["y"]) == "sequence of float32[2]"
