from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from deep500.core.errors import UnsupportedOperatorError
from deep500.frameworks.tensorflow import from_model
from tests.unit.frameworks.tensorflow.support import check_executor_gradients, random

HEADER = '<ir_version: 10, opset_import: ["" : 23]>\n'

BRANCHES = """
agraph (bool c, float[N,3] x) => (float[A,B] y) {
    y = If (c) <
        then_branch = g1 () => (float[P,Q] a) { a = Mul(x, x) },
        else_branch = g2 () => (float[R,S] b) { one = Constant <value_float = 1.0> () b = Add(x, one) }
    >
}
"""

OTHER_RANKS = """
agraph (bool c, float[N,3] x) => (float[A] y) {
    z = If (c) <
        then_branch = g1 () => (float[P,Q] a) { a = Mul(x, x) },
        else_branch = g2 () => (float[R] b) { m = Constant <value_ints = [-1]> () b = Reshape(x, m) }
    >
    minus = Constant <value_ints = [-1]> ()
    y = Reshape(z, minus)
}
"""

COUNTED = """
agraph (int64 m, bool c, float[N] x) => (float[P] last, float[K, Q] all) {
    last, all = Loop (m, c, x) <
        body = g (int64 i, bool going, float[P] s) => (bool proceed, float[P] t, float[P] u) {
            limit = Constant <value_float = 40.0> ()
            t = Add(s, s)
            total = ReduceSum <keepdims = 0> (t)
            proceed = Less(total, limit)
            f = Cast <to = 1> (i)
            u = Add(t, f)
        }
    >
}
"""

GROWING = """
agraph (int64 m, float[N] x) => (float[P] last) {
    empty = Constant <value_string = ""> ()
    last = Loop (m, , x) <
        body = g (int64 i, bool going, float[P] s) => (bool proceed, float[Q] t) {
            proceed = Identity(going)
            t = Concat <axis = 0> (s, x)
        }
    >
}
"""

COLLECTED = """
agraph (int64 m, float[N] x) => (seq(float[N]) parts, float[L] joined) {
    none = SequenceEmpty ()
    parts = Loop (m, , none) <
        body = g (int64 i, bool going, seq(float[N]) s) => (bool proceed, seq(float[N]) t) {
            proceed = Identity(going)
            f = Cast <to = 1> (i)
            v = Add(x, f)
            t = SequenceInsert(s, v)
        }
    >
    joined = ConcatFromSequence <axis = 0> (parts)
}
"""

SCANNED = """
agraph (float[2] s, float[N, K, 2] x) => (float[2] last, float[A, B, C] all) {
    last, all = Scan <
        num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1],
        scan_input_directions = [1], scan_output_directions = [1],
        body = g (float[2] a, float[N, 2] r) => (float[2] b, float[N, 2] o) {
            mean = ReduceMean <keepdims = 0> (r, zero)
            b = Add(a, mean)
            o = Mul(r, b)
        }
    > (s, x)
}
"""


def read(text: str, **stored: Any) -> onnx.ModelProto:
    model = onnx.parser.parse_model(HEADER + text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in stored.items())
    return onnx.shape_inference.infer_shapes(model)


def check(model: onnx.ModelProto, inputs: dict[str, Any]) -> None:
    expected = ReferenceEvaluator(model).run(None, inputs)
    executor = from_model(model)
    received = executor.inference(inputs)
    for (name, value), reference in zip(received.items(), expected, strict=True):
        array = executor.value_to_numpy(value)
        if isinstance(reference, list):
            assert [a.shape for a in array] == [r.shape for r in reference], name
            for a, r in zip(array, reference, strict=True):
                np.testing.assert_allclose(a, r, rtol=1e-6, err_msg=name)
        else:
            assert (array.dtype, array.shape) == (reference.dtype, reference.shape), name
            np.testing.assert_allclose(array, reference, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("text", [BRANCHES, OTHER_RANKS])
def test_branches(text: str, condition: bool) -> None:
    check(read(text), {"c": np.array(condition), "x": random(2, 3, dtype="float32")})


def test_branches_of_one_kind_are_one_graph() -> None:
    executor = from_model(read(BRANCHES))
    for condition in (True, False):
        executor.inference({"c": np.array(condition), "x": random(2, 3, dtype="float32")})
    assert executor.trace_count() == 1


def test_branches_of_other_ranks_are_a_graph_each() -> None:
    executor = from_model(read(OTHER_RANKS))
    for condition in (True, False, True):
        executor.inference({"c": np.array(condition), "x": random(2, 3, dtype="float32")})
    assert executor.trace_count() == 2


@pytest.mark.parametrize("rounds", [0, 1, 3, 20])
@pytest.mark.parametrize("begins", [True, False])
def test_loop(rounds: int, begins: bool) -> None:
    inputs = {"m": np.array(rounds), "c": np.array(begins), "x": np.array([1, 2], np.float32)}
    executor = from_model(read(COUNTED))
    outputs = executor.inference(inputs)
    x, rows = inputs["x"], []
    for number in range(rounds if begins else 0):
        x = x + x
        rows.append(x + number)
        if x.sum() >= 40:
            break
    np.testing.assert_array_equal(outputs["last"].numpy(), x)
    np.testing.assert_array_equal(outputs["all"].numpy(), np.reshape(rows, (len(rows), 2 if rows else 0)))
    assert executor.trace_count() == 1


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_loop_over_a_state_that_grows(rounds: int) -> None:
    executor = from_model(read(GROWING))
    x = random(4, dtype="float32")
    last = executor.inference({"m": np.array(rounds), "x": x})["last"]
    np.testing.assert_array_equal(last.numpy(), np.tile(x, rounds + 1))


def test_loop_over_a_sequence() -> None:
    executor = from_model(read(COLLECTED))
    x = random(4, dtype="float32")
    for rounds in (1, 3, 1):
        outputs = executor.inference({"m": np.array(rounds), "x": x})
        expected = [x + number for number in range(rounds)]
        np.testing.assert_array_equal(executor.value_to_numpy(outputs["parts"]), expected)
        np.testing.assert_array_equal(outputs["joined"].numpy(), np.concatenate(expected))
    assert executor.trace_count() == 2


def test_loop_over_a_sequence_with_rounds_that_depend_on_data() -> None:
    text = COLLECTED.replace("none = Seq", "m = Cast <to = 7> (count) none = Seq")
    model = read(text.replace("int64 m,", "float[P] many,").replace("m = Cast", "count = ReduceMax(many) m = Cast"))
    executor = from_model(model)
    with pytest.raises(UnsupportedOperatorError, match=r"Loop.*number of rounds.*64 elements"):
        executor.inference({"many": np.ones(100, np.float32), "x": random(4, dtype="float32")})


@pytest.mark.parametrize("size", [0, 1, 4])
def test_scan(size: int) -> None:
    state, x = random(2, dtype="float32"), random(3, size, 2, dtype="float32")
    outputs = from_model(read(SCANNED, zero=np.array([0]))).inference({"s": state, "x": x})
    columns = []
    for index in reversed(range(size)):
        state = state + x[:, index].mean(0)
        columns.insert(0, x[:, index] * state)
    np.testing.assert_allclose(outputs["last"].numpy(), state, rtol=1e-6)
    expected = np.stack(columns, -1) if size else np.zeros((3, 2, 0))
    np.testing.assert_allclose(outputs["all"].numpy(), expected, rtol=1e-6)


def test_gradients() -> None:
    text = """
    agraph (double[N] x, bool c) => (double[1] y, double loss) {
        three = Constant <value_int = 3> ()
        t, all = Loop (three, , w) <
            body = g (int64 i, bool going, double[2] a) => (bool proceed, double[2] b, double[2] o) {
                proceed = Identity(going)
                b = Mul(a, w)
                o = Sin(b)
            }
        >
        u, rows = Scan <num_scan_inputs = 1, body = s (double[2] a, double[2] r) => (double[2] b, double[2] o) {
            b = Mul(a, r)
            o = Add(b, w)
        }> (t, all)
        v = If (c) <
            then_branch = g1 () => (double[3, 2] p) { p = Mul(rows, all) },
            else_branch = g2 () => (double[3, 2] q) { q = Exp(rows) }
        >
        m = ReduceSum <keepdims = 0> (v)
        n = ReduceSum <keepdims = 0> (x)
        loss = Mul(m, n)
        y = Reshape(loss, one)
    }
    """
    for condition in (True, False):
        executor = from_model(read(text, w=np.array([0.7, -1.2]), one=np.array([1])))
        check_executor_gradients(executor, {"x": random(5), "c": np.array(condition)})
