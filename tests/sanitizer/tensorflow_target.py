"""Calls with TensorFlow's tensors, eagerly and in graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow._errors import operator_error
from deep500.frameworks.tensorflow._native_adapter import load_adapter
from deep500.frameworks.tensorflow._native_operator import attribute_text
from deep500.operators.custom import CustomOp
from tests.sanitizer.target import UNKNOWN, Function, Given, Target
from tests.unit.operators.array_forms import FORMS, in_form
from tests.unit.operators.sources import mixed

__all__ = ["TensorFlowTarget"]

#: Dtypes for which TensorFlow has all the operations by which tensors of a form are made, of up to five dimensions.
_COMMON = ("int32", "int64", "bfloat16", "float16", "float32", "float64", "complex64")


class TensorFlowTarget(Target):
    name = "tensorflow"
    forms = ("plain", "slice", "row", "reshaped", "variable", "of NumPy", *(f"array, {form}" for form in FORMS))
    dtypes = (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
        "float64", "complex64", "complex128", "bfloat16", "float8_e5m2", "float8_e4m3fn",
    )  # fmt: skip
    highest_rank = 64
    refusals = (OperatorError,)

    def given(self, array: np.ndarray, form: str) -> Given:
        label = f"{form} {array.dtype}{list(array.shape)}"
        if form.startswith("array, "):
            value = in_form(array, form.removeprefix("array, "))
            native = np.array(value, array.dtype)
            return Given(value, native, label, may_be_refused=True)  # TensorFlow copies most of them
        return Given(_in_form(array, form), array, label)

    def odd(self) -> Sequence[Callable[[], Given]]:
        return [
            lambda: Given(1.5, np.float32(1.5) * np.ones((), np.float32), "1.5"),
            lambda: Given([[1.0, 2.0]], np.array([[1, 2]], np.float32), "a list"),
            lambda: Given([1, 2], np.array([1, 2], np.int32), "a list of whole numbers"),
            *(lambda x=x: Given(x, UNKNOWN, f"{x!r:.40}") for x in (object(), tf, {}, [[1.0], [2.0, 3.0]], tf.float32)),
            lambda: Given(tf.constant("text"), UNKNOWN, "a text"),
            lambda: Given(tf.ragged.constant([[1.0], []]), UNKNOWN, "a ragged tensor"),
            lambda: Given(tf.sparse.from_dense([[1.0, 0.0]]), UNKNOWN, "a sparse tensor"),
            lambda: Given(tf.bitcast(tf.constant([1], tf.int8), tf.qint8), UNKNOWN, "a quantised tensor"),
        ]

    def arrays(self, results: Any) -> list[np.ndarray]:
        return [y.numpy() for y in (results if isinstance(results, (tuple, list)) else (results,))]

    def gradients(
        self, op: CustomOp, inputs: Sequence[Given], outputs: Any, grads: Sequence[Given | None], call: Function
    ) -> list[np.ndarray | None]:
        known: dict[int, Any] = {}
        for given in inputs:
            if given.value is not None:
                known.setdefault(id(given.value), tf.convert_to_tensor(given.value))
        tensors = [None if given.value is None else known[id(given.value)] for given in inputs]
        leaves = [x for x in tensors if x is not None and x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            results = call(*tensors)
            results = list(results) if isinstance(results, (tuple, list)) else [results]
        pairs = [(y, tf.convert_to_tensor(g.value)) for y, g in zip(results, grads) if g is not None]
        found = iter(tape.gradient([y for y, _ in pairs], leaves, [g for _, g in pairs]))
        every = [next(found) if x is not None and x.dtype.is_floating else None for x in tensors]
        return [None if g is None else g.numpy() for g in every]

    def raw(self, data: Any) -> str:
        """Call the generic operation as a graph that somebody else wrote may do: with any text for the attributes."""
        op = mixed(scale=3.0)
        text = attribute_text(op.name, op.attributes, op.library.description.attributes)
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, len(text)))
        middle = data.draw(st.binary(max_size=4) | st.sampled_from([b"9" * 30, b"-1", b" ", b"\n", b"ints 3 1 2 3"]))
        shapes = [tf.constant(data.draw(st.lists(st.integers(-1, 4), max_size=3)), tf.int64) for _ in range(2)]
        try:
            load_adapter().deep500_call(
                [tf.ones(2, tf.float64), tf.constant([1], tf.int64)],
                data.draw(st.sampled_from([shapes, [], shapes[:1]])),
                [tf.float64, tf.int64],
                library=str(op.library.path),
                operator="mixed",
                attributes=text[:begin] + middle + text[end:],
                given=data.draw(st.lists(st.booleans(), max_size=4)),
            )
        except (tf.errors.OpError, ValueError):
            return "refused: generic operation"
        return "right"

    def ways(self) -> Sequence[tuple[str, Callable[[Function], Function]]]:
        return [("", lambda function: function), ("traced ", _traced), ("traced for any sizes ", _traced_for_any)]


def _in_form(array: np.ndarray, form: str) -> Any:
    plain = tf.constant(array)
    if array.dtype.name not in _COMMON or array.ndim > 5:
        return plain
    if form == "slice" and array.ndim and array.shape[0]:  # may share the memory of what it is a part of
        return tf.concat([plain, plain], 0)[: array.shape[0]]
    if form == "row":
        return tf.unstack(tf.stack([plain, plain, plain]))[1]
    if form == "reshaped":
        return tf.reshape(tf.reshape(plain, [-1]), array.shape)
    if form == "variable":
        return tf.Variable(plain)
    if form == "of NumPy":
        return tf.convert_to_tensor(np.array(array))
    return plain


def _traced(function: Function) -> Function:
    return _graph(function, lambda x: tf.TensorSpec(x.shape, x.dtype))


def _traced_for_any(function: Function) -> Function:
    return _graph(function, lambda x: tf.TensorSpec([None] * len(x.shape), x.dtype))


def _graph(function: Function, specification: Callable[[Any], tf.TensorSpec]) -> Function:
    """Return a function that is traced for its tensors; what a graph raises becomes an error of Deep500."""

    def call(*values: Any) -> Any:
        are_tensors = [isinstance(x, tf.Tensor) for x in values]  # all else becomes a constant of the graph
        signature = [specification(x) for x, is_one in zip(values, are_tensors) if is_one]

        def run(*tensors: Any) -> Any:
            rest = iter(tensors)
            return function(*[next(rest) if is_one else x for x, is_one in zip(values, are_tensors)])

        try:
            return tf.function(run, input_signature=signature, autograph=False)(
                *[x for x, is_one in zip(values, are_tensors) if is_one]
            )
        except tf.errors.OpError as error:
            raise operator_error("a graph", error) from error

    return call
