"""Regularisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from deep500.frameworks.reference.lowering import lowerings
from deep500.networks.operator_node import OperatorNode
from deep500.networks.random_streams import node_stream
from deep500.operators.library.dropout import Dropout
from deep500.operators.operator import Array

__all__: list[str] = []


class _StreamedDropout(Dropout):
    """Dropout of a network: each run takes the next numbers of the seed's stream, so that no mask is drawn twice."""

    def __init__(self, stream: np.random.RandomState, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._stream = stream

    def _mask(self, shape: tuple[int, ...], ratio: float) -> Array:
        return np.asarray(self._stream.uniform(0, 1, shape) >= ratio)


@lowerings.register("Dropout", since=12)
def dropout(node: OperatorNode) -> Dropout:
    """Elements set to 0 at random. Source: ONNX Dropout-22."""
    return _StreamedDropout(node_stream(node.outputs, node.attributes.get("seed")), **node.attributes)
