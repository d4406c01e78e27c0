"""Small networks, not convex, with parameters of every rank from 0 to 4, for the tests of optimizers."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh

from deep500.networks.network import Network

__all__ = ["batches", "network_of_all_ranks"]


def network_of_all_ranks(dtype: str = "float64", *, convolutions: bool = True) -> Network:
    """Return a network whose parameters have the ranks 0 to 4; those of rank 3 and 4 are kernels of convolutions.

    Args:
        dtype: Of all tensors.
        convolutions: Whether there are any; without them, products of matrices have parameters of rank 3 and 4. ONNX
            Runtime has no convolutions in float64.
    """
    random = np.random.default_rng(7)
    scale, bias = np.array(1.3), random.normal(size=5) / 4
    weight, offset = random.normal(size=(4, 3)), random.normal(size=3) / 2
    if convolutions:
        kernel, row = random.normal(size=(5, 2, 3, 3)) / 4, random.normal(size=(4, 5, 3)) / 2
        first = [oh.make_node("Conv", ["x", "kernel", "bias"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2])]
        second = [oh.make_node("Reshape", ["c", "flat"], ["d"]), oh.make_node("Conv", ["d", "row"], ["e"])]
    else:
        kernel, row = random.normal(size=(1, 2, 6, 5)) / 3, random.normal(size=(4, 5, 3)) / 2
        first = [oh.make_node("MatMul", ["x", "kernel"], ["p"]), oh.make_node("Add", ["p", "bias"], ["a"])]
        second = [
            oh.make_node("ReduceMean", ["c", "channels"], ["d"], keepdims=1),
            oh.make_node("MatMul", ["d", "row"], ["q"]),
            oh.make_node("ReduceSum", ["q", "last"], ["e"], keepdims=0),
        ]
    nodes = [
        *first,
        oh.make_node("Mul", ["a", "scale"], ["b"]),
        oh.make_node("Tanh", ["b"], ["c"]),
        *second,
        oh.make_node("Tanh", ["e"], ["f"]),
        oh.make_node("ReduceMean", ["f", "last"], ["g"], keepdims=0),
        oh.make_node("MatMul", ["g", "weight"], ["h"]),
        oh.make_node("Add", ["h", "offset"], ["y"]),
    ]
    parameters = {"kernel": kernel, "bias": bias, "scale": scale, "row": row, "weight": weight, "offset": offset}
    stored = {name: value.astype(dtype) for name, value in parameters.items()}
    stored |= {"flat": np.int64([0, 5, 9])} if convolutions else {"channels": np.int64([1])}
    stored |= {"last": np.int64([-1])}
    kind = oh.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = oh.make_graph(
        nodes,
        "ranks",
        [oh.make_tensor_value_info("x", kind, ["n", 2, 6, 6])],
        [oh.make_tensor_value_info("y", kind, ["n", 3])],
        [onnx.numpy_helper.from_array(value, name) for name, value in stored.items()],
    )
    network = Network.load(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 23)], ir_version=11))
    network.append_loss("SoftmaxCrossEntropyLoss")
    return network


def batches(count: int, dtype: str = "float64", *, size: int = 8, noise: float = 0.0) -> list[dict[str, np.ndarray]]:
    """Return minibatches whose labels can be learnt, except for a share of them that is given at random."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(3, 2, 6, 6))
    found = []
    for _ in range(count):
        classes, others = random.integers(0, 3, (2, size))
        labels = np.where(random.random(size) < noise, others, classes)
        found.append({"x": (centres[classes] + random.normal(size=(size, 2, 6, 6))).astype(dtype), "label": labels})
    return found
