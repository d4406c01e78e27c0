from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from deep500.core.errors import InvalidInputError
from deep500.frameworks.tensorflow import TensorFlowExecutor, from_model
from tests.unit.frameworks.tensorflow.support import random

HEADER = '<ir_version: 10, opset_import: ["" : 23]>\n'


def executor_of(text: str) -> TensorFlowExecutor:
    return from_model(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(HEADER + text)))


def test_positions_are_parts_of_the_graph() -> None:
    executor = executor_of("""
    agraph (seq(float[N]) s, float[N] x, int64 p) => (seq(float[N]) t, seq(float[N]) u, float[N] v, int64 n) {
        t = SequenceInsert(s, x, p)
        u = SequenceErase(t, p)
        v = SequenceAt(t, p)
        n = SequenceLength(t)
    }
    """)
    s, x = [random(2, seed=i, dtype="float32") for i in range(3)], np.zeros(2, np.float32)
    for position in (0, 2, -1, 3, 0):
        outputs = executor.inference({"s": s, "x": x, "p": np.array(position)})
        expected = list(s)
        expected.insert(position, x)
        np.testing.assert_array_equal(executor.value_to_numpy(outputs["t"]), expected)
        np.testing.assert_array_equal(outputs["v"].numpy(), expected[position])
        del expected[position]
        np.testing.assert_array_equal(executor.value_to_numpy(outputs["u"]), expected)
        assert int(outputs["n"]) == 4
    assert executor.trace_count() == 4
    with pytest.raises(InvalidInputError, match="position 5 in a sequence of 3"):
        executor.inference({"s": s, "x": x, "p": np.array(5)})


def test_position_that_depends_on_data() -> None:
    executor = executor_of("""
    agraph (seq(float[N]) s, float[K] x) => (float[N] v) {
        p = ArgMax <keepdims = 0> (x)
        v = SequenceAt(s, p)
    }
    """)
    s = [random(2, seed=i, dtype="float32") for i in range(3)]
    for position in range(3):
        x = np.zeros(100, np.float32)
        x[position] = 1
        np.testing.assert_array_equal(executor.inference({"s": s, "x": x})["v"].numpy(), s[position])
    assert executor.trace_count() == 1
    with pytest.raises(InvalidInputError, match="no such position"):
        executor.inference({"s": s, "x": np.arange(100, dtype=np.float32)})


def test_parts_of_a_size_that_is_not_declared() -> None:
    executor = executor_of("""
    agraph (float[N, 2] x) => (seq(float[A, 2]) s, int64 n) {
        s = SplitToSequence <axis = 0> (x)
        n = SequenceLength(s)
    }
    """)
    for size in (3, 1, 3):
        x = random(size, 2, dtype="float32")
        outputs = executor.inference({"x": x})
        np.testing.assert_array_equal(executor.value_to_numpy(outputs["s"]), x[:, None])
        assert int(outputs["n"]) == size
    assert executor.trace_count() == 2


@pytest.mark.parametrize("given", [True, False])
def test_optional(given: bool) -> None:
    executor = executor_of("""
    agraph (optional(float[N]) x) => (bool y) {
        y = OptionalHasElement(x)
    }
    """)
    assert bool(executor.inference({"x": random(3, dtype="float32") if given else None})["y"]) is given


def test_sequence_map() -> None:
    executor = executor_of("""
    agraph (seq(float[N]) s, float[N] x) => (seq(float[N]) t) {
        t = SequenceMap <body = g (float[N] a, float[N] b) => (float[N] c) { d = Mul(a, b) c = Add(d, x) }> (s, x)
    }
    """)
    s, x = [random(2, seed=i, dtype="float32") for i in range(3)], random(2, dtype="float32")
    outputs = executor.inference({"s": s, "x": x})
    np.testing.assert_allclose(executor.value_to_numpy(outputs["t"]), [a * x + x for a in s], rtol=1e-6)
