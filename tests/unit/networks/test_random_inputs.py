from __future__ import annotations

from typing import Any

import numpy as np
import onnx.helper as oh
import onnx.numpy_helper as onh
import pytest
from onnx import TensorProto

from deep500.core.errors import InvalidInputError, UnknownNameError
from deep500.core.random import random_stream
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.networks.network import Network
from deep500.networks.random_inputs import index_limit, random_inputs, random_tensor

FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float4_e2m1fn", "complex64", "complex128")
WHOLE = ("int64", "int8", "uint8", "uint64", "int4", "uint4", "int2", "bool")


def stream() -> np.random.Generator:
    return random_stream(0, "test")


def load(
    nodes: list[Any],
    inputs: dict[str, tuple[int, list[Any]]],
    outputs: dict[str, int],
    kind: int = TensorProto.FLOAT,
    **stored: Any,
) -> Network:
    graph = oh.make_graph(
        nodes,
        "graph",
        [oh.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [oh.make_tensor_value_info(name, kind, [None] * rank) for name, rank in outputs.items()],
        [onh.from_array(value, name) for name, value in stored.items()],
    )
    return Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))


@pytest.mark.parametrize("name", [*FLOATS, *WHOLE])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_drawn_tensor_is_what_was_asked_for(name: str, shape: tuple[int, ...]) -> None:
    drawn = random_tensor(TensorDescriptor(name, shape), stream())

    assert isinstance(drawn, np.ndarray)
    assert (drawn.dtype.name, drawn.shape) == (name, shape)
    assert drawn.tobytes() == random_tensor(TensorDescriptor(name, shape), stream()).tobytes()


def test_drawn_values_have_the_range_that_was_asked_for() -> None:
    floats, whole = TensorDescriptor("float32", (1000,)), TensorDescriptor("int64", (1000,))

    assert random_tensor(floats, stream()).min() < -1
    positive = random_tensor(floats, stream(), positive=True)
    assert positive.dtype == np.float32
    assert 0.5 <= positive.min() < 0.6
    assert 1.4 < positive.max() < 1.5
    assert set(random_tensor(whole, stream())) == {0, 1}
    assert set(random_tensor(whole, stream(), below=5)) == {0, 1, 2, 3, 4}
    assert set(random_tensor(TensorDescriptor("bool", (100,)), stream(), below=5)) == {False, True}
    assert random_tensor(TensorDescriptor("int8", (10_000,)), stream(), below=50_000).max() == 127


def test_texts_and_tensors_beyond_memory_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="they are texts"):
        random_tensor(TensorDescriptor("string", (2,)), stream())
    with pytest.raises(InvalidInputError, match="do not fit into memory"):
        random_tensor(TensorDescriptor("float32", (2**40, 2**20)), stream())


@pytest.mark.parametrize(
    ("op_type", "index", "shape", "axis", "limit"),
    [
        ("SoftmaxCrossEntropyLoss", 1, (4, 10), None, 10),
        ("NegativeLogLikelihoodLoss", 1, ("n", 3, 8), None, 3),
        ("SoftmaxCrossEntropyLoss", 2, (4, 10), None, None),
        ("SoftmaxCrossEntropyLoss", 1, (4, None), None, None),
        ("SoftmaxCrossEntropyLoss", 1, (4,), None, None),
        ("SoftmaxCrossEntropyLoss", 1, None, None, None),
        ("Gather", 1, (4, 10), None, 4),
        ("Gather", 1, (4, 10), -1, 10),
        ("Gather", 1, (4, 10), 5, None),
        ("Gather", 0, (4, 10), None, None),
        ("Gather", 1, (0, 10), None, None),
        ("GatherElements", 1, (4, 10), 1, 10),
        ("ScatterElements", 1, (4, 10), 0, 4),
        ("GatherND", 1, (4, 3, "n"), None, 3),
        ("ScatterND", 1, ("n",), None, None),
        ("Add", 1, (4, 10), None, None),
    ],
)
def test_limits_of_positions_and_classes(op_type: str, index: int, shape: Any, axis: int | None, limit: Any) -> None:
    assert index_limit(op_type, index, shape, axis) == limit


def test_positions_are_followed_to_where_they_are_used() -> None:
    nodes = [
        oh.make_node("Cast", ["i"], ["c"], to=TensorProto.INT64),
        oh.make_node("Unsqueeze", ["c", "axes"], ["u"]),
        oh.make_node("Gather", ["small", "u"], ["a"]),
        oh.make_node("Gather", ["large", "i"], ["b"]),
    ]
    inputs = {"i": (TensorProto.INT32, ["n", 100])}
    tables = {"small": np.zeros((5, 2), np.float32), "large": np.zeros((50, 2), np.float32), "axes": np.array([0])}

    assert set(np.unique(random_inputs(load(nodes, inputs, {"a": 4, "b": 3}, **tables))["i"])) == set(range(5))
    assert set(np.unique(random_inputs(load(nodes[3:], inputs, {"b": 3}, large=tables["large"]))["i"])) == set(
        range(50)
    )


def test_sizes_are_bound_and_checked() -> None:
    network = load([oh.make_node("Relu", ["x"], ["y"])], {"x": (TensorProto.FLOAT, ["n", "width", 3])}, {"y": 3})

    assert random_inputs(network)["x"].shape == (2, 2, 3)
    assert random_inputs(network, {"width": 7, "n": 0})["x"].shape == (0, 7, 3)
    with pytest.raises(UnknownNameError, match=r"size named 'wdth'. Did you mean 'width'"):
        random_inputs(network, {"wdth": 7})
    for size in (-1, 2.0, True, "3", 2**70):
        with pytest.raises(InvalidInputError, match="size 'n' was given as"):
            random_inputs(network, {"n": size})


def test_inputs_without_values_are_refused() -> None:
    text = load(
        [oh.make_node("Identity", ["t"], ["y"])], {"t": (TensorProto.STRING, [2])}, {"y": 1}, kind=TensorProto.STRING
    )
    row = oh.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    listed = oh.make_graph(
        [oh.make_node("SequenceLength", ["s"], ["y"])],
        "graph",
        [row],
        [oh.make_tensor_value_info("y", TensorProto.INT64, [])],
    )

    with pytest.raises(InvalidInputError, match=r"input 't' .*texts"):
        random_inputs(text)
    model = oh.make_model(listed, opset_imports=[oh.make_opsetid("", 23)], ir_version=11)
    with pytest.raises(InvalidInputError, match=r"sequence of .* no tensor"):
        random_inputs(Network.load(model))
    assert random_inputs(Network.load(model), without=["s"]) == {}
