"""Networks whose gradients are special to hand out: of several dtypes, of branches, of loops, of several losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import TensorProto

from deep500.distributed.flat_buffers import Bucket, FlatBuffers
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network

__all__ = [
    "SPECIAL",
    "batch_of",
    "branching_network",
    "buffers_of",
    "expected_gradients",
    "handed_out",
    "looping_network",
    "two_dtypes_network",
    "two_losses_network",
]

DOUBLE, FLOAT = TensorProto.DOUBLE, TensorProto.FLOAT


def _network(
    nodes: Sequence[onnx.NodeProto],
    parameters: dict[str, tuple[int, ...]],
    outputs: Sequence[str] = ("loss",),
    single: Sequence[str] = (),
    flags: Sequence[str] = (),
    constants: dict[str, Any] | None = None,
) -> Network:
    """Return a network of ``x`` with parameters of random numbers, float32 those in ``single``."""
    stream = np.random.default_rng(3)
    stored = [
        onnx.numpy_helper.from_array(stream.normal(size=shape).astype("f4" if name in single else "f8"), name)
        for name, shape in parameters.items()
    ]
    stored += [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    inputs = [oh.make_tensor_value_info("x", DOUBLE, ["n", 4])]
    inputs += [oh.make_tensor_value_info(name, TensorProto.BOOL, []) for name in flags]
    kinds = [oh.make_tensor_value_info(name, DOUBLE, []) for name in outputs]
    graph = oh.make_graph(list(nodes), "special", inputs, kinds, stored)
    return Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))


def _squares(name: str, loss: str = "loss") -> list[onnx.NodeProto]:
    return [
        oh.make_node("Mul", [name, name], [f"{name} squared"]),
        oh.make_node("ReduceMean", [f"{name} squared"], [loss], keepdims=0),
    ]


def _branch(name: str, source: str, parameter: str) -> onnx.GraphProto:
    made = f"{name} of {source}"
    node = oh.make_node("MatMul", [source, parameter], [made])
    return oh.make_graph([node], name, [], [oh.make_tensor_value_info(made, DOUBLE, None)])


def two_dtypes_network() -> Network:
    """Return a network that computes in float64, then in float32, then in float64 again."""
    nodes = [
        oh.make_node("MatMul", ["x", "first"], ["a"]),
        oh.make_node("Cast", ["a"], ["b"], to=FLOAT),
        oh.make_node("MatMul", ["b", "second"], ["c"]),
        oh.make_node("Add", ["c", "offset"], ["d"]),
        oh.make_node("Cast", ["d"], ["e"], to=DOUBLE),
        oh.make_node("MatMul", ["e", "last"], ["y"]),
        *_squares("y"),
    ]
    shapes: dict[str, tuple[int, ...]] = {"first": (4, 3), "second": (3, 5), "offset": (5,), "last": (5, 2)}
    return _network(nodes, shapes, single=("second", "offset"))


def branching_network() -> Network:
    """Return a network that multiplies by ``left`` or by ``right``, as the input ``flag`` says."""
    branches = {"then_branch": _branch("taken", "h", "left"), "else_branch": _branch("other", "h", "right")}
    nodes = [
        oh.make_node("MatMul", ["x", "common"], ["a"]),
        oh.make_node("Tanh", ["a"], ["h"]),
        oh.make_node("If", ["flag"], ["y"], **branches),
        *_squares("y"),
    ]
    return _network(nodes, {"common": (4, 4), "left": (4, 3), "right": (4, 3)}, flags=("flag",))


def looping_network() -> Network:
    """Return a network with a branch in the body of a loop: ``left`` in the first run, ``right`` in the others."""
    branches = {"then_branch": _branch("taken", "state", "left"), "else_branch": _branch("other", "state", "right")}
    body = oh.make_graph(
        [
            oh.make_node("Identity", ["goes_on"], ["goes_on_after"]),
            oh.make_node("Equal", ["i", "zero"], ["is_first"]),
            oh.make_node("If", ["is_first"], ["product"], **branches),
            oh.make_node("Tanh", ["product"], ["after"]),
        ],
        "body",
        [
            oh.make_tensor_value_info("i", TensorProto.INT64, []),
            oh.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            oh.make_tensor_value_info("state", DOUBLE, ["n", 4]),
        ],
        [
            oh.make_tensor_value_info("goes_on_after", TensorProto.BOOL, []),
            oh.make_tensor_value_info("after", DOUBLE, ["n", 4]),
        ],
    )
    nodes = [oh.make_node("Loop", ["count", "", "x"], ["y"], body=body), *_squares("y")]
    constants = {"count": np.array(3, np.int64), "zero": np.array(0, np.int64)}
    return _network(nodes, {"left": (4, 4), "right": (4, 4)}, constants=constants)


def two_losses_network() -> Network:
    """Return a network with a common layer and two losses, each with a layer of its own."""
    nodes = [
        oh.make_node("MatMul", ["x", "common"], ["h"]),
        oh.make_node("MatMul", ["h", "left"], ["y"]),
        oh.make_node("MatMul", ["h", "right"], ["z"]),
        *_squares("y", "first_loss"),
        *_squares("z", "second_loss"),
    ]
    shapes: dict[str, tuple[int, ...]] = {"common": (4, 4), "left": (4, 3), "right": (4, 2)}
    return _network(nodes, shapes, outputs=("first_loss", "second_loss"))


def batch_of(size: int = 5, number: int = 0, **others: Any) -> dict[str, Any]:
    """Return a minibatch."""
    return {"x": np.random.default_rng(number).normal(size=(size, 4)), **others}


def buffers_of(executor: GraphExecutor) -> FlatBuffers:
    """Return buffers for an executor's gradients."""
    network = executor.network
    return FlatBuffers({name: network.parameters[name] for name in network.get_params()})


def handed_out(executor: Any, inputs: Any, loss: str, size_bytes: int) -> tuple[list[tuple[str, ...]], dict[str, Any]]:
    """Return the names in the buckets as they were handed out, and what was in them then."""
    gradients = buffers_of(executor)
    for buffer in gradients:
        buffer.array[...] = 9  # of a step before, which nothing may be left of
    order: list[tuple[str, ...]] = []
    values: dict[str, Any] = {}

    def take(bucket: Bucket) -> None:
        order.append(bucket.names)
        values.update({name: gradients[name].copy() for name in bucket.names})
        bucket.array[...] = np.nan

    executor.gradient_buckets(inputs, loss, gradients, gradients.buckets(size_bytes), take)
    return order, values


def expected_gradients(executor: GraphExecutor, inputs: Any, loss: str) -> dict[str, Any]:
    """Return the gradients without buckets, zeros by parameters that the loss ignores."""
    executor.inference_and_backprop(inputs, loss)
    names = executor.network.get_params()
    found = dict(zip(names, map(np.zeros_like, executor.network.fetch_tensors(names))))
    for name, gradient in executor.network.gradient(loss):
        found[name] = executor.network.fetch_tensors([gradient])[0]
    return found


#: By name: what makes a network, what it is fed besides a minibatch, and the loss.
SPECIAL: dict[str, tuple[Callable[[], Network], dict[str, Any], str]] = {
    "two dtypes": (two_dtypes_network, {}, "loss"),
    "a branch": (branching_network, {"flag": np.array(True)}, "loss"),
    "the other branch": (branching_network, {"flag": np.array(False)}, "loss"),
    "a branch in a loop": (looping_network, {}, "loss"),
    "one of two losses": (two_losses_network, {}, "first_loss"),
    "the other loss": (two_losses_network, {}, "second_loss"),
}
