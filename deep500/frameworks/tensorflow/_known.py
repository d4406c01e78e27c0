"""Values that a lowering needs while a graph is traced: constants, and what a graph is traced anew for.

Some parameters decide what the graph looks like: how many parts a sequence has, which of two branches with different
types runs. Where such a value is computed from constants, it is evaluated. Where it is computed from small inputs of
the network, it is evaluated for the values that were fed, and the graph is used for these values only; for others
another one is traced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.tensorflow._dtypes import to_array
from deep500.networks.operator_node import OperatorNode

__all__ = ["Assumptions", "StaticShapesNeededError", "constant_value", "known_value", "needed_value"]

#: Inputs with more elements than this are no parameters, and no graph is traced for their values.
_MOST_ELEMENTS = 64


class StaticShapesNeededError(Exception):
    """A graph cannot be traced for all sizes of its inputs; for those that were fed it perhaps can."""


class Assumptions:
    """The values of inputs for which a graph is traced.

    Attributes:
        values: The value, by the number of the input.
        has_static_shapes: Whether the graph is traced for the shapes of the inputs.
    """

    def __init__(self, inputs: Sequence[tf.Tensor], has_static_shapes: bool = False) -> None:
        """Keep the tensors that are fed."""
        self.has_static_shapes = has_static_shapes
        self.values: dict[int, NDArray[Any]] = {}
        self._inputs = list(inputs)
        self._numbers: dict[str, int] = {}
        self._graph: tf.Graph | None = None

    @contextlib.contextmanager
    def tracing(self, placeholders: Sequence[tf.Tensor]) -> Iterator[None]:
        """Let lowerings ask for values while a graph is traced.

        Args:
            placeholders: The inputs in the graph.
        """
        self._graph = placeholders[0].graph if placeholders else None
        self._numbers = {placeholder.op.name: number for number, placeholder in enumerate(placeholders)}
        token = _ACTIVE.set(self)
        try:
            yield
        finally:
            _ACTIVE.reset(token)
            self._inputs, self._graph = [], None

    def hold_for(self, inputs: Sequence[tf.Tensor]) -> bool:
        """Return whether the graph may be used for inputs."""
        return all(_are_equal(to_array(inputs[number]), value) for number, value in self.values.items())

    def assume(self, operation: tf.Operation) -> NDArray[Any] | None:
        """Return what was fed for a placeholder, and trace the graph for it; ``None`` if it is none or too large."""
        number = self._numbers.get(operation.name) if operation.graph is self._graph else None
        if number is None or (self._inputs[number].shape.num_elements() or 0) > _MOST_ELEMENTS:
            return None
        if number not in self.values:
            self.values[number] = np.array(to_array(self._inputs[number]))
        return self.values[number]


_ACTIVE: ContextVar[Assumptions | None] = ContextVar("assumptions", default=None)


def known_value(tensor: Any) -> NDArray[Any] | None:
    """Return the value of a tensor in the graph that is being traced; ``None`` where it is known at run time only.

    Args:
        tensor: A tensor that is computed from constants, shapes that are known, and small inputs of the network.
    """
    if not isinstance(tensor, tf.Tensor):
        return None if tensor is None else np.asarray(tensor)
    if hasattr(tensor, "numpy"):
        return to_array(tensor)
    static = tf.get_static_value(tensor)
    return _evaluated(tensor, assume=True) if static is None else to_array(static)


def constant_value(tensor: Any) -> NDArray[Any] | None:
    """Return the value of a tensor that is the same in all runs; ``None`` for others."""
    static = tf.get_static_value(tensor)
    return _evaluated(tensor, assume=False) if static is None else to_array(static)


def needed_value(node: OperatorNode, tensor: Any, what: str) -> NDArray[Any]:
    """Return the value of a tensor that the graph depends on.

    Args:
        node: Whose input it is.
        tensor: The tensor.
        what: What the value is, for the message.

    Raises:
        UnsupportedOperatorError: It is known at run time only.
        StaticShapesNeededError: It is, unless the graph is traced for the shapes of the inputs.
    """
    value = known_value(tensor)
    if value is None:
        active = _ACTIVE.get()
        if active is not None and not active.has_static_shapes:
            raise StaticShapesNeededError
        raise UnsupportedOperatorError(
            f"{node.label} depends on {what}, which is computed from data at run time; for TensorFlow it must follow "
            f"from constants, shapes, or inputs of the network with up to {_MOST_ELEMENTS} elements. Feed it as an "
            f"input of its own, or use another framework."
        )
    return value


def _evaluated(tensor: tf.Tensor, assume: bool) -> NDArray[Any] | None:
    """Return the value of a tensor that depends on constants, and on inputs if they may be assumed, alone."""
    leaves = _leaves(tensor)
    if leaves is None:
        return None
    feeds: dict[str, Any] = {}
    captured = {inner.op.name: outer for outer, inner in getattr(tensor.graph, "captures", ())}
    for leaf in leaves:
        outer = captured.get(leaf.name)
        active = _ACTIVE.get()
        if outer is not None:
            value = known_value(outer) if assume else constant_value(outer)
        else:
            value = active.assume(leaf) if assume and active is not None else None
        if value is None:
            return None
        feeds[leaf.outputs[0].name] = value
    with tf.init_scope(), tf.compat.v1.Session(graph=tensor.graph) as session:
        return to_array(session.run(tensor.name, feeds))


def _leaves(tensor: tf.Tensor) -> list[tf.Operation] | None:
    """Return the placeholders that a tensor depends on; ``None`` where it depends on chance or on a state."""
    leaves: list[tf.Operation] = []
    seen: set[str] = set()
    pending = [tensor.op]
    while pending:
        operation = pending.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        if operation.type == "Placeholder":
            if operation.outputs[0].dtype in (tf.resource, tf.variant):
                return None
            leaves.append(operation)
        elif operation.op_def is None or operation.op_def.is_stateful:
            return None
        pending.extend(value.op for value in operation.inputs)
        pending.extend(operation.control_inputs)
    return leaves


def _are_equal(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
