"""Native operators in TensorFlow: one generic operation, in ``_custom_operator.cpp``, that calls any of them."""

from __future__ import annotations

import contextlib
import functools
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.core.texts import shown
from deep500.frameworks.tensorflow._errors import operator_error, traced_errors
from deep500.frameworks.tensorflow._native_adapter import load_adapter, placement
from deep500.frameworks.tensorflow._symbolic_sizes import SymbolicTypes, infer_symbolic
from deep500.operators.custom.custom_op import CustomOp
from deep500.operators.custom.native_op import NativeOp

__all__ = ["attribute_text", "infer_types", "native_operation", "refuse_xla", "to_tensors"]

#: Shapes and dtypes of inputs, of each operator, whose outputs are known without asking ``infer`` again.
_MOST_KNOWN = 1024


#: What an operation is told of inputs that were met before: shapes and dtypes of its outputs, which inputs are given.
_Known: TypeAlias = tuple[list[tf.Tensor], list[tf.DType], dict[str, Any]]


def native_operation(op: NativeOp) -> Callable[..., Any]:
    """Return a native operator as a function of tensors.

    Args:
        op: The operator; its attributes are read now.
    """
    operation = _NativeOperation(op)
    known, run, library, operator, attributes = operation.known, operation.run, *operation.fixed
    is_eager, has_one_output, is_anywhere = tf.executing_eagerly, op.output_count == 1, operation.is_anywhere
    trace = tf.autograph.experimental.do_not_convert(operation.trace)

    # What TensorFlow's own operators take at 16 elements is some 20 us, so here each us counts.
    def call(*inputs: Any) -> Any:
        if not is_eager():
            return trace(inputs)
        for x in inputs:
            if not isinstance(x, tf.Tensor):
                return operation.call(inputs)
        types = known.get(tuple([(x.shape, x.dtype) for x in inputs]))
        if types is None or not is_anywhere:
            return operation.call(inputs)
        try:
            outputs = run(inputs, types[0], types[1], library, operator, attributes)
        except tf.errors.OpError as error:
            raise operator_error(operation.name, error) from error
        return outputs[0] if has_one_output else tuple(outputs)

    call.__name__ = call.__qualname__ = op.name
    return call


class _NativeOperation:
    """What is known of a native operator before it is called."""

    def __init__(self, op: NativeOp) -> None:
        library = op.library
        self.op = op
        self.name = op.name
        self.run = load_adapter().deep500_call
        self.fixed = (
            os.fspath(library.path),
            library.name,
            attribute_text(op.name, op.attributes, library.description.attributes),
        )
        self.placement = functools.partial(placement, library.description)
        with tf.init_scope():  # of eager calls, also where the operator is made while a graph is traced
            self.is_anywhere = isinstance(self.placement(), contextlib.nullcontext)
        self.known: dict[Any, _Known] = {}

    def call(self, inputs: Sequence[Any]) -> Any:
        """Run the operator on what may not be tensors, or not have been met before."""
        tensors = to_tensors(self.name, inputs)
        key = tuple(x if x is None else (x.shape, x.dtype) for x in tensors)
        if key not in self.known:
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            with tf.device("/CPU:0"):
                self.known[key] = self.learned(infer_types(self.op, tensors), tensors)
        try:
            return self.added(tensors, *self.known[key])
        except tf.errors.OpError as error:
            raise operator_error(self.name, error) from error

    def trace(self, inputs: Sequence[Any]) -> Any:
        """Add the operator to the graph that is being traced."""
        with traced_errors():
            refuse_xla(self.name)
            tensors = to_tensors(self.name, inputs)
            types = infer_types(self.op, tensors)
        checks = [
            tf.debugging.Assert(holds, [f"Deep500 operator {self.name!r} refuses its inputs: {why}"])
            for holds, why in types.checks
        ]
        with tf.control_dependencies(checks):
            return self.added(tensors, *self.learned(types, tensors), name=self.name)

    def learned(self, types: SymbolicTypes, tensors: Sequence[Any]) -> _Known:
        """Return what an operation is told."""
        shapes = [] if types.is_like_first else [_shape_tensor(shape) for shape in types.shapes]
        given = [x is not None for x in tensors]
        return shapes, [tf.as_dtype(dtype) for dtype in types.dtypes], {} if all(given) else {"given": given}

    def added(self, tensors: Sequence[Any], shapes: Any, dtypes: Any, given: Any, name: str | None = None) -> Any:
        """Run the operation, or add it to the graph that is being traced."""
        with self.placement():
            outputs = self.run([x for x in tensors if x is not None], shapes, dtypes, *self.fixed, **given, name=name)
        return outputs[0] if self.op.output_count == 1 else tuple(outputs)


# --- what both kinds of operators need -------------------------------------------------------------------------------


def to_tensors(name: str, inputs: Sequence[Any]) -> list[Any]:
    """Return inputs as tensors; ``None`` for those that are absent.

    Raises:
        OperatorError: One of them is nothing that TensorFlow makes a tensor of.
    """
    tensors = []
    for index, x in enumerate(inputs):
        try:
            if isinstance(x, np.ndarray) and not x.dtype.isnative:
                x = x.astype(
                    x.dtype.newbyteorder("=")
                )  # of constants in a graph, TensorFlow takes the bytes as they are
            tensors.append(x if x is None or isinstance(x, tf.Tensor) else tf.convert_to_tensor(x))
        except (TypeError, ValueError) as error:
            raise OperatorError(
                f"{name} was given {shown(x)} as input {index}; accepted are tensors and what TensorFlow makes a "
                f"tensor of: {error}"
            ) from error
    return tensors


def infer_types(op: CustomOp, tensors: Sequence[Any]) -> SymbolicTypes:
    """Return what an operator's outputs are like, whose sizes may be known only when the graph runs.

    Raises:
        OperatorError: The operator refuses shapes, dtypes or number of its inputs, or a rank is not known.
    """
    dtypes = [None if x is None else x.dtype.name for x in tensors]
    shapes: list[Any] = []
    for index, x in enumerate(tensors):
        if x is None or x.shape.is_fully_defined():
            shapes.append(None if x is None else tuple(x.shape))
        elif x.shape.rank is None:
            if op.infers:
                raise OperatorError(
                    f"{op.name} was given a tensor of unknown rank as input {index}, so that the shapes of its outputs "
                    f"cannot be inferred. Say what is known, by tf.ensure_shape(x, [None, 3]) or an input_signature."
                )
            shapes.append(())  # only whether the input is there matters
        else:
            sizes = tf.shape(x, out_type=tf.int64)
            shapes.append(tuple(sizes[i] if size is None else size for i, size in enumerate(x.shape)))
    types = infer_symbolic(op.name, lambda wrapped: op.infer_outputs(wrapped, dtypes), shapes)
    first = shapes[0] if shapes else None
    is_like_first = first is not None and all(_is_same(shape, first) for shape in types.shapes)
    return replace(types, is_like_first=is_like_first)


def refuse_xla(name: str) -> None:
    """Refuse to be traced for XLA.

    Raises:
        OperatorError: The function that is being traced is to be compiled by XLA.
    """
    from tensorflow.python.ops import control_flow_util  # no public name says it

    if not tf.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        raise OperatorError(
            f"{name} is called in a function that XLA is to compile (jit_compile=True). XLA cannot compile custom "
            f"operators; leave jit_compile out, or call the operator outside of the compiled part."
        )


# --- helpers ---------------------------------------------------------------------------------------------------------


def attribute_text(name: str, attributes: Mapping[str, Any], kinds: Mapping[str, str]) -> bytes:
    """Return attributes as the text that ``_custom_operator.h`` reads: a line of ``name kind count values`` for each.

    Args:
        name: Name of the operator, for messages.
        attributes: Their values.
        kinds: The kinds that the library declares; others are told from the values.

    Raises:
        OperatorError: A value is not of its kind, or does not fit into 64 bits.
    """
    lines = []
    for key, value in attributes.items():
        is_list = isinstance(value, (tuple, list))
        values = value if is_list else [value]
        is_float = any(isinstance(entry, float) for entry in values)
        kind = kinds.get(key) or ("string" if isinstance(value, str) else "float" if is_float else "int")
        try:
            if kind == "string":
                content = value.encode()
                count = len(content)
            else:
                kind = kind.rstrip("s") + "s" * is_list
                # Floats by their bits, so that none is rounded and no locale matters.
                code = "<d" if kind.startswith("float") else "<q"
                content = b" ".join(str(*struct.unpack("<q", struct.pack(code, entry))).encode() for entry in values)
                count = len(values)
        except (AttributeError, UnicodeError, struct.error, OverflowError) as error:
            raise OperatorError(f"{name}: the attribute {key} is {shown(value)}; accepted is {kind}.") from error
        lines.append(f"{key} {kind} {count} ".encode() + content + b"\n")
    return b"".join(lines)


def _is_same(shape: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two shapes are known to be the same."""
    return len(shape) == len(other) and all(
        a is b or (isinstance(a, int) and isinstance(b, int) and a == b) for a, b in zip(shape, other)
    )


def _shape_tensor(shape: Sequence[Any]) -> tf.Tensor:
    if all(isinstance(size, int) for size in shape):
        return tf.constant(shape, tf.int64, [len(shape)])
    return tf.stack([tf.cast(size, tf.int64) for size in shape])
