"""Nodes that run on the host, by ONNX' own reference implementation: texts, and what TensorFlow cannot compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.errors import UnsupportedOperatorError
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.frameworks.tensorflow._dtypes import held_array, held_dtype, released_array, to_array
from deep500.networks.host_operator import NodeEvaluator
from deep500.networks.operator_node import OperatorNode

__all__ = ["call_on_host", "on_host"]


def on_host(
    node: OperatorNode, *values: tf.Tensor | None, fallback: Sequence[TensorDescriptor] = ()
) -> tuple[tf.Tensor, ...]:
    """Run a node on the host; its outputs are not differentiable.

    Args:
        node: The node; its outputs are tensors.
        *values: Its inputs.
        fallback: What its outputs are like where the network does not know.
    """
    evaluate = NodeEvaluator(node)
    given = [index for index, value in enumerate(values) if value is not None]
    declared = [kind.dtype if kind is not None else "" for kind in (node.input_types[index] for index in given)]

    def run(*arrays: NDArray[Any]) -> list[NDArray[Any]]:
        inputs: list[Any] = [None] * len(values)
        for index, dtype, array in zip(given, declared, arrays, strict=True):
            inputs[index] = released_array(array, dtype)
        return list(evaluate(inputs))

    kinds = [kind or _at(fallback, index, node) for index, kind in enumerate(node.output_types)]
    return call_on_host(run, [values[index] for index in given], kinds)


def _at(kinds: Sequence[TensorDescriptor], index: int, node: OperatorNode) -> TensorDescriptor:
    if index < len(kinds):
        return kinds[index]
    raise UnsupportedOperatorError(
        f"The element type of output {node.outputs[index]!r} of {node.label} is not known; TensorFlow needs it. "
        f"Declare it in the network."
    )


def call_on_host(run: Any, tensors: Sequence[Any], kinds: Sequence[TensorDescriptor]) -> tuple[tf.Tensor, ...]:
    """Call a function of NumPy arrays when the graph runs.

    Args:
        run: From arrays (texts are objects of ``str``) to a sequence of arrays.
        tensors: Its arguments.
        kinds: What it returns.
    """

    def call(*arrays: Any) -> list[Any]:
        results = run(*(to_array(array) for array in arrays))
        return [_plain(result, kind) for result, kind in zip(results, kinds, strict=True)]

    results = tf.numpy_function(call, list(tensors), [held_dtype(kind.dtype) for kind in kinds], stateful=False)
    for result, kind in zip(results, kinds, strict=True):
        if kind.shape is not None:
            result.set_shape([size if isinstance(size, int) else None for size in kind.shape])
    return tuple(results)


def _plain(result: Any, kind: TensorDescriptor) -> NDArray[Any]:
    array = held_array(np.asarray(result))
    if array.dtype.kind not in "OUS":
        return array.astype(held_dtype(kind.dtype).as_numpy_dtype, copy=False)
    texts = np.empty(array.shape, dtype=object)
    texts.ravel()[:] = [str(text).encode() for text in array.ravel()]
    return texts
