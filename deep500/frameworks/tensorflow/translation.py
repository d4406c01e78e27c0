"""Programs as TensorFlow graphs: every node's lowering is called once, while a ``tf.function`` is traced."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf
from numpy.typing import NDArray

from deep500.core.errors import Deep500Error, InvalidNetworkError, OperatorError
from deep500.frameworks.tensorflow._dtypes import held_array
from deep500.frameworks.tensorflow._layout import (
    Layout,
    NodePlan,
    composed,
    inverse,
    order_of,
    plan_layouts,
)
from deep500.frameworks.tensorflow.lowering import lowerings
from deep500.networks.operator_node import OperatorNode, Subprogram
from deep500.networks.program import Program

__all__ = ["Translation", "permute", "trace_subprogram"]


class Translation:
    """A program with the lowering and the layout of every node.

    Attributes:
        program: What is translated.
    """

    def __init__(self, program: Program, stored: Mapping[str, Layout], constants: Mapping[str, NDArray[Any]]) -> None:
        """Look up the lowerings and plan the layouts.

        Args:
            program: What to translate.
            stored: Layout of the parameters and states that are not held as ONNX declares them.
            constants: Values of the constants; they become part of the graph.

        Raises:
            UnsupportedOperatorError: A node has no lowering.
        """
        self.program = program
        self._stored_layouts = stored
        self._constants = constants
        self._read = {name for node in program.nodes for name in node.inputs if name} | set(program.outputs)
        current = dataclasses.replace(program, nodes=tuple(self._with_current_constants(n) for n in program.nodes))
        plans = plan_layouts(current, stored)
        self._steps = [(plan, lowerings.find(plan.node)) for plan in plans]

    def trace(self, inputs: Sequence[Any], stored: Mapping[str, tf.Variable]) -> Mapping[str, Any]:
        """Add the program's operations to the graph that is being traced.

        Args:
            inputs: Tensors in the order of ``program.inputs``; lists of them for sequences, ``None`` for optionals that
                are absent.
            stored: Parameters and states by name.

        Returns:
            The outputs and the next values of the states, by name, in ONNX's layout.
        """
        values = _Values()
        for name, value in zip(self.program.inputs, inputs, strict=True):
            values.put(name, Layout.ONNX, value)
        for name in (*self.program.parameters, *self.program.states):
            values.put(name, self._stored_layouts.get(name, Layout.ONNX), tf.convert_to_tensor(stored[name]))
        for name in self.program.constants:
            values.put(name, Layout.ONNX, tf.constant(held_array(self._constants[name])))
        for plan, lowering in self._steps:
            _trace_node(plan, lowering, values)
        wanted = dict.fromkeys([*self.program.outputs, *self.program.state_updates.values()])
        return {name: values.get(name, Layout.ONNX) for name in wanted}

    def _with_current_constants(self, node: OperatorNode) -> OperatorNode:
        """Return the node with the constants as they were fed last."""
        constants = {i: self._constants.get(node.inputs[i], value) for i, value in node.constants.items()}
        attributes = node.attributes
        if node.op_type == "BatchNormalization" and any(name in self._read for name in node.outputs[1:]):
            # TensorFlow's fused kernel has no gradient through the statistics; the lowering must do without it.
            attributes = {**attributes, "statistics_are_read": 1}
        return dataclasses.replace(node, constants=constants, attributes=attributes)


def trace_subprogram(program: Subprogram, inputs: Sequence[Any], captured: Mapping[str, Any]) -> tuple[Any, ...]:
    """Add the operations of a graph that a node holds to the graph that is being traced.

    Args:
        program: The held graph.
        inputs: Values of its own inputs.
        captured: What is around it by name, at least ``program.captured``; see ``OperatorNode.captured``.

    Returns:
        Its outputs.

    Raises:
        UnsupportedOperatorError: A node has no lowering.
    """
    if program not in _SUBPROGRAM_STEPS:
        _SUBPROGRAM_STEPS[program] = [(plan, lowerings.find(plan.node)) for plan in plan_layouts(program)]
    values = _Values()
    for name, value in zip(program.inputs, inputs, strict=True):
        values.put(name, Layout.ONNX, value)
    for name in program.captured:
        values.put(name, Layout.ONNX, captured[name])
    for name, array in program.stored.items():
        values.put(name, Layout.ONNX, tf.constant(held_array(array)))
    for plan, lowering in _SUBPROGRAM_STEPS[program]:
        _trace_node(plan, lowering, values)
    return tuple(values.get(name, Layout.ONNX) for name in program.outputs)


#: The planned nodes of held graphs: an unrolled loop traces its body again and again.
_SUBPROGRAM_STEPS: WeakKeyDictionary[Subprogram, list[tuple[NodePlan, Any]]] = WeakKeyDictionary()


def _trace_node(plan: NodePlan, lowering: Any, values: _Values) -> None:
    node = plan.node
    if plan.permutation is not None:
        values.transpose(node.inputs[0], node.outputs[0], plan.permutation)
        return
    arguments = [
        values.get(name, layout, plan.broadcast_rank) if name else None
        for name, layout in zip(node.inputs, plan.inputs, strict=True)
    ]
    for index, value in plan.constants.items():
        arguments += [None] * (index + 1 - len(arguments))
        arguments[index] = tf.constant(value)
    arguments += [values.get(name, Layout.ONNX) for name in node.captured]
    try:
        # The scope lets TensorFlow's profiler and run-time errors name the node.
        with tf.name_scope(_scope_name(node)):
            results = lowering(node, *arguments)
    except Deep500Error:
        raise
    except (TypeError, ValueError, tf.errors.OpError) as error:
        given = ", ".join(map(_shown, arguments))
        raise OperatorError(f"TensorFlow refuses {node.label} on {given}: {error}") from error
    results = results if isinstance(results, tuple) else (results,)
    wanted = max((index + 1 for index, name in enumerate(node.outputs) if name), default=0)
    if len(results) < wanted:
        raise InvalidNetworkError(f"{node.label} has {wanted} outputs; its lowering gives {len(results)}.")
    for name, layout, result in zip(node.outputs, plan.outputs, results, strict=False):
        if name:
            values.put(name, layout, result)


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a sequence of {len(value)}"
    return "absent" if value is None else f"{value.dtype.name}{value.shape}"


class _Values:
    """The values of a trace in the layouts that were asked for; each conversion is made once.

    A tensor is kept with its order: the permutation that brings what ONNX declares to what is held. Values that are no
    tensors (lists for sequences, ``None`` for absent optionals) have none.
    """

    def __init__(self) -> None:
        self._held: dict[str, tuple[tuple[int, ...] | None, Any]] = {}
        self._converted: dict[tuple[str, tuple[int, ...]], tf.Tensor] = {}

    def put(self, name: str, layout: Layout, value: Any) -> None:
        """Add a value in the layout in which it was computed."""
        rank = value.shape.rank if isinstance(value, tf.Tensor) else None
        self._held[name] = None if rank is None else order_of(layout, rank), value

    def transpose(self, source: str, name: str, permutation: Sequence[int]) -> None:
        """Add a value that is another one with its dimensions in another order."""
        order, held = self._held[source]
        self._held[name] = composed(inverse(permutation), order or range(len(permutation))), held

    def get(self, name: str, layout: Layout, rank: int | None = None) -> Any:
        """Return a value in a layout, with leading ones in ONNX's layout up to a rank."""
        order, held = self._held[name]
        if order is None:
            return held
        given = len(order)
        wanted = max(given, rank or 0) if given else 0
        missing = wanted - given
        # From what is held, with the ones in front, to what is wanted.
        all_axes = (*range(missing), *(axis + missing for axis in inverse(order)))
        moves = composed(all_axes, order_of(layout, wanted))
        if not missing and moves == tuple(range(given)):
            return held
        key = (name, moves)
        if key not in self._converted:
            tensor = held
            if missing:
                tensor = tf.reshape(tensor, tf.concat([[1] * missing, tf.shape(tensor)], 0))
            self._converted[key] = permute(tensor, moves)
        return self._converted[key]


def permute(tensor: tf.Tensor, order: Sequence[int]) -> tf.Tensor:
    """Return a tensor with its dimensions in another order; by a reshape, which costs nothing, where that is the same.

    Args:
        tensor: A tensor of known rank.
        order: The dimension that comes to each place.
    """
    sizes = tensor.shape.as_list()
    moved = [axis for axis in order if sizes[axis] != 1]
    if moved != sorted(moved):
        return tf.transpose(tensor, order)
    unknown = [axis for axis in order if sizes[axis] is None]
    if len(unknown) > 1 or 0 in sizes:
        return tf.reshape(tensor, tf.gather(tf.shape(tensor), list(order)))
    return tf.reshape(tensor, [-1 if sizes[axis] is None else sizes[axis] for axis in order])


def _scope_name(node: OperatorNode) -> str:
    """Return the node's name in the characters that TensorFlow accepts."""
    return re.sub(r"[^A-Za-z0-9_./-]", "_", node.name).strip("_./-") or node.op_type
