from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.frameworks.tensorflow import custom_op
from deep500.frameworks.tensorflow._errors import explain_run
from deep500.operators.custom import CustomPythonOp
from deep500.operators.validation.differences import numerical_gradient
from tests.unit.frameworks.tensorflow.operators import traced


class IPowOp(CustomPythonOp):
    """Seed 002's, as printed there."""

    def __init__(self, power: Any) -> None:
        super().__init__()
        self.power = power
        assert int(power) == power

    def forward(self, inputs: Any) -> Any:
        return inputs[0] ** self.power

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return grads[0] * self.power * (fwd_inputs[0] ** (self.power - 1))


class Columns(CustomPythonOp):
    """Sums of the columns of x and products of x and a row, shifted labels; several inputs and outputs."""

    output_count = 3

    def forward(self, x: Any, row: Any, labels: Any) -> Any:
        return x.sum(0), x * row, labels + 1

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        x, row, _ = fwd_inputs
        return np.broadcast_to(grads[0], x.shape) + grads[1] * row, (grads[1] * x).sum(0), None

    def infer(self, shapes: Any, dtypes: Any) -> Any:
        return [shapes[0][1:], (*shapes[0][:1], max(shapes[0][1], 1)), shapes[2]], [dtypes[0], dtypes[0], dtypes[2]]


class FromOutputs(CustomPythonOp):
    gradient_needs = (False, True)

    def forward(self, x: Any) -> Any:
        return np.exp(x)

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return grads[0] * fwd_outputs[0]


class Sign(CustomPythonOp):
    def forward(self, x: Any) -> Any:
        return np.sign(x)


class Blocked(CustomPythonOp):
    """No gradient by its second input."""

    def forward(self, x: Any, y: Any) -> Any:
        return x + y

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return grads[0], None


class Faulty(CustomPythonOp):
    def __init__(self, fault: Callable[[Any], Any]) -> None:
        super().__init__()
        self.fault = fault

    def forward(self, x: Any) -> Any:
        return self.fault(x)


def unknown(function: Any, *dtypes: Any, rank: int = 1) -> Any:
    return traced(function, *[([None] * rank, dtype) for dtype in dtypes])


WAYS: dict[str, Callable[[Any, int], Any]] = {
    "eager": lambda function, rank: function,
    "static": lambda function, rank: traced(function),
    "dynamic": lambda function, rank: unknown(function, tf.float64, rank=rank),
    "any rank": lambda function, rank: traced(function, (None, tf.float64)),
}


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> Callable[[Any, int], Any]:
    return WAYS[request.param]


def numerical(op: CustomPythonOp, arrays: list[Any], weights: list[Any], index: int) -> Any:
    return numerical_gradient(op, arrays, weights, index)


@pytest.mark.parametrize("op", [IPowOp(3), FromOutputs()], ids=repr)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)])
def test_forward_and_gradient(way: Callable[[Any, int], Any], op: CustomPythonOp, shape: tuple[int, ...]) -> None:
    x = np.asarray(np.random.default_rng(1).standard_normal(shape))
    given = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(given)
        y = way(custom_op(op), len(shape))(given)
    np.testing.assert_allclose(y, op(x), rtol=1e-15)
    expected = numerical(op, [x], [np.ones(shape)], 0)
    np.testing.assert_allclose(tape.gradient(y, given), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype: str) -> None:
    x = tf.cast([1.0, 2.0], dtype)
    for run in (custom_op(IPowOp(2)), traced(custom_op(IPowOp(2)))):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        assert (y.dtype, y.numpy().tolist()) == (x.dtype, [1, 4])
        assert tape.gradient(y, x).numpy().tolist() == [2, 4]


@pytest.mark.parametrize("name", ["eager", "static", "dynamic"])
def test_several_inputs_and_outputs(name: str) -> None:
    op = Columns()
    stream = np.random.default_rng(2)
    arrays = [stream.standard_normal((2, 3)), stream.standard_normal(3), np.arange(4)]
    function = custom_op(op)
    run = {
        "eager": function,
        "static": traced(function),
        "dynamic": traced(function, ([None, 3], tf.float64), ([None], tf.float64), ([None], tf.int64)),
    }
    given = [tf.constant(x) for x in arrays]
    if name == "dynamic":
        shapes = [y.shape.as_list() for y in run[name].get_concrete_function().structured_outputs]
        assert shapes == [[3], [None, 3], [None]]
    weights = [stream.standard_normal(3), stream.standard_normal((2, 3)), None]
    with tf.GradientTape() as tape:
        tape.watch(given)
        outputs = run[name](*given)
        loss = tf.reduce_sum(outputs[0] * weights[0]) + tf.reduce_sum(outputs[1] * weights[1])
    for y, reference in zip(outputs, op(*arrays), strict=True):
        np.testing.assert_allclose(y, reference)
    found = tape.gradient(loss, given)
    assert found[2] is None
    for index in (0, 1):
        expected = numerical(op, arrays, weights, index)
        np.testing.assert_allclose(found[index], expected, rtol=1e-7, atol=1e-9)


def test_no_gradient_by_an_input_is_zero() -> None:
    x = tf.constant([1.0, 2.0])
    for run in (custom_op(Blocked()), unknown(custom_op(Blocked()), tf.float32, tf.float32)):
        y = tf.constant([3.0, 4.0])
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = run(x, y)
        assert [g.numpy().tolist() for g in tape.gradient(z, [x, y])] == [[1, 1], [0, 0]]


def second_derivative(run: Any, x: Any, weight: float) -> Any:
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = run(x)
        first = inner.gradient(y, x) * weight
    return outer.gradient(first, x)


def test_second_derivative_is_refused(way: Callable[[Any, int], Any]) -> None:
    x = tf.constant([1.0, 2.0], tf.float64)
    run = way(custom_op(IPowOp(3)), 1)
    with pytest.raises((OperatorError, tf.errors.OpError), match="'IPowOp' failed in its backward: it cannot be diff"):
        second_derivative(run, x, 1.0)
    np.testing.assert_array_equal(second_derivative(run, x, 0.0), [0, 0])


def test_without_a_backward(way: Callable[[Any, int], Any]) -> None:
    x = tf.constant([-1.0, 2.0], tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = way(custom_op(Sign()), 1)(x)
        ignored = x * x + 0.0 * y
    assert y.numpy().tolist() == [-1, 1]
    with pytest.raises((OperatorError, tf.errors.OpError), match="it cannot be differentiated: it has no backward"):
        tape.gradient(y, x)
    assert tape.gradient(ignored, x).numpy().tolist() == [-2, 4]


def broken(x: Any) -> Any:
    raise KeyError("no such\nthing")


def overwrites(x: Any) -> Any:
    x += 1
    return x


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (broken, r"failed in its forward: KeyError: 'no such\\nthing'"),
        (overwrites, "read-only"),
        (lambda x: (x, x), "returned 2 outputs"),
        (lambda x: None, "None instead of an array"),
        (lambda x: np.array(["a"]), "TensorFlow has no tensors|forward returned str"),
    ],
)
def test_a_fault_of_the_forward(fault: Callable[[Any], Any], reason: str) -> None:
    function = custom_op(Faulty(fault))
    x = tf.constant([1.0, 2.0])
    if "str" not in reason:
        with pytest.raises(OperatorError, match=reason):
            function(x)
    run = traced(function)
    with pytest.raises(tf.errors.OpError, match=reason):
        run(x)
    with pytest.raises(OperatorError, match=reason) as raised, explain_run("net"):
        run(x)
    assert "Traceback" not in str(raised.value)


@pytest.mark.parametrize("fault", [lambda x: x.astype("float64"), lambda x: x[:1], lambda x: x[None]])
def test_a_graph_holds_what_infer_promised(fault: Callable[[Any], Any]) -> None:
    function = custom_op(Faulty(fault))
    assert function(tf.constant([1.0, 2.0])) is not None
    with pytest.raises(
        tf.errors.OpError, match=r"forward returned .* the graph was traced for float32 of shape \(2,\)"
    ):
        traced(function)(tf.constant([1.0, 2.0]))


def test_wrong_inputs() -> None:
    class Pair(Blocked):
        input_count = 2

    function = custom_op(Pair())
    for run in (function, tf.function(lambda *x: function(*x), autograph=False)):
        with pytest.raises(OperatorError, match="Pair was given 1 inputs; accepted are 2"):
            run(tf.constant([1.0]))
    with pytest.raises(OperatorError, match="unknown rank as input 0"):
        traced(custom_op(Columns()), *[(None, tf.float64)] * 3).get_concrete_function()
