from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import tensordesc
from deep500.frameworks.tensorflow import custom_op, custom_op_from_native, load_custom_operators
from deep500.frameworks.tensorflow._errors import explain_run
from deep500.operators.custom import CustomPythonOp, compile_custom_cppop_inline
from deep500.operators.validation.differences import numerical_gradient
from tests.unit.frameworks.tensorflow.operators import (
    blend,
    blend_inputs,
    exponential,
    raw,
    shifted,
    traced,
)
from tests.unit.operators import sources

#: Ways to run an operator of blend's inputs in float64.
WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda function: function,
    "static": traced,
    "dynamic": lambda function: traced(function, ([None, None], tf.float64), ([None], tf.float64), ([None], tf.int64)),
    "partly": lambda function: traced(function, ([None, 4], tf.float64), ([2], tf.float64), ([5], tf.int64)),
}


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return WAYS[request.param]


def tensors(inputs: list[Any]) -> list[tf.Tensor]:
    return [tf.constant(x) for x in inputs]


# --- forward ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 2), (1, 1), (4, 0), (0, 0)])
def test_forward_is_that_of_numpy(dtype: str, shape: tuple[int, int]) -> None:
    op = blend()
    inputs = blend_inputs(dtype, *shape)
    expected = op(*inputs)
    for function in (
        custom_op(op),
        traced(custom_op(op)),
        traced(custom_op(op), ([None, 4], dtype), ([None], dtype), ([5], "int64")),
    ):
        for y, reference in zip(function(*tensors(inputs)), expected, strict=True):
            assert (y.dtype.name, tuple(y.shape)) == (dtype, reference.shape)
            np.testing.assert_array_equal(y.numpy(), reference)


def test_arrays_lists_and_variables_are_taken() -> None:
    function = custom_op(exponential())
    for x in ([1.0, 2.0], np.float32([1, 2]), tf.Variable([1.0, 2.0])):
        np.testing.assert_allclose(function(x), np.exp([1.0, 2.0]), rtol=1e-6)


def test_arrays_in_another_order_of_bytes() -> None:
    function, x = custom_op(exponential()), np.array([1.0, 2.0], ">f4")
    for run in (function, lambda x: tf.function(lambda: function(x), autograph=False)()):
        np.testing.assert_allclose(run(x), np.exp([1.0, 2.0]), rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 0, 1), (1,)])
def test_scalars_and_nothing(shape: tuple[int, ...]) -> None:
    function = custom_op(exponential())
    x = tf.fill(shape, 0.5)
    for run in (function, traced(function), traced(function, ([None] * len(shape), tf.float32))):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(y, x), np.exp(x), rtol=1e-6)


def test_static_shapes_stay_known() -> None:
    function = custom_op(blend())
    static = traced(function).get_concrete_function(*tensors(blend_inputs())).structured_outputs
    assert [y.shape.as_list() for y in static] == [[3, 4], [2]]
    assert [y.dtype for y in static] == [tf.float64, tf.float64]
    partly = WAYS["partly"](function).get_concrete_function().structured_outputs
    assert [y.shape.as_list() for y in partly] == [[None, 4], [None]]
    rows = traced(function, ([3, None], tf.float64), ([2], tf.float64), ([None], tf.int64))
    assert [y.shape.as_list() for y in rows.get_concrete_function().structured_outputs] == [[3, None], [2]]


def test_one_graph_serves_all_sizes() -> None:
    run = WAYS["dynamic"](custom_op(blend()))
    for n, k in ((3, 2), (7, 7), (1, 0), (2, 1)):
        inputs = blend_inputs("float64", n, k)
        for y, reference in zip(run(*inputs), blend()(*inputs), strict=True):
            np.testing.assert_array_equal(y, reference)
    assert run.experimental_get_tracing_count() == 1


def test_control_flow_and_layers() -> None:
    function = custom_op(exponential())

    @tf.function
    def loop(x: tf.Tensor, of: Any) -> tf.Tensor:
        for _ in tf.range(3):
            x = of(x) * 0.1
        if tf.reduce_sum(x) > 0.0:
            x = of(x)
        return x

    x = tf.constant([1.0, 2.0])
    found = []
    for of in (function, tf.exp):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loop(x, of)
        found.append((y, tape.gradient(y, x)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_the_class_form() -> None:
    op = compile_custom_cppop_inline(
        "ipowop",
        sources.IPOWOP,
        [tensordesc("float32", 5)],
        [tensordesc("float32", 5)],
        additional_definitions={"DPOWER": 3},
    )
    x = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    for run in (custom_op(op), traced(custom_op(op))):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        np.testing.assert_allclose(y, x**3, rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(y, x), 3 * x**2, rtol=1e-6)
        with pytest.raises(OperatorError, match=r"float32 of shape \(2,\) as input 0; accepted is"):
            run(x[:2])


def test_threads() -> None:
    function = custom_op(exponential())
    values = [np.full(size, 0.1 * size, np.float32) for size in range(1, 40)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(function, values))
    for y, x in zip(results, values, strict=True):
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)


def test_optional_inputs() -> None:
    function = custom_op(shifted())
    x = tf.constant([1.0, 2.0])
    for run in (function, tf.function(function, autograph=False)):
        np.testing.assert_array_equal(run(x, x), [2, 4])
        np.testing.assert_array_equal(run(x, None), [1, 2])
    with pytest.raises(OperatorError, match="input 0 is absent"):
        function(None, x)


# --- gradients -------------------------------------------------------------------------------------------------------


def gradients(function: Any, inputs: list[tf.Tensor], weights: list[Any], *, inside: bool = False) -> list[Any]:
    """Return the gradients of a weighted sum of the outputs; with the tape inside or outside of the function."""

    def differentiate(*given: tf.Tensor) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(given)
            outputs = function(*given)
            loss = tf.add_n([tf.reduce_sum(y * w) for y, w in zip(outputs, weights, strict=True)])
        return list(tape.gradient(loss, given))

    return list((tf.function(differentiate, autograph=False) if inside else differentiate)(*inputs))


def check_gradients(op: Any, way: Callable[[Any], Any], *, inside: bool) -> None:
    arrays = blend_inputs()
    stream = np.random.default_rng(7)
    weights = [stream.standard_normal(y.shape) for y in op(*arrays)]
    found = gradients(way(custom_op(op)), tensors(arrays), weights, inside=inside)
    assert found[2] is None
    for index in (0, 1):
        np.testing.assert_allclose(found[index], numerical_gradient(op, arrays, weights, index), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("inside", [False, True])
def test_gradients_are_the_numerical_derivatives(way: Callable[[Any], Any], inside: bool) -> None:
    check_gradients(blend(), way, inside=inside)


def test_a_gradient_that_is_wrong_by_one_per_cent_is_seen() -> None:
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_gradients(blend(is_wrong=True), WAYS["eager"], inside=False)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_have_the_dtype_of_the_inputs(dtype: str) -> None:
    x, y, k = tensors(blend_inputs(dtype))
    weights = [tf.ones((3, 4), dtype), tf.ones(2, dtype)]
    wide = gradients(custom_op(blend()), tensors(blend_inputs()), [np.ones((3, 4)), np.ones(2)])
    for function in (custom_op(blend()), traced(custom_op(blend()))):
        for gradient, reference in zip(gradients(function, [x, y, k], weights)[:2], wide[:2], strict=True):
            assert gradient.dtype.name == dtype
            tolerance = 0.1 if dtype == "bfloat16" else 1e-5
            np.testing.assert_allclose(tf.cast(gradient, tf.float64), reference, rtol=tolerance, atol=tolerance)


def test_gradient_by_one_input_and_of_one_output(way: Callable[[Any], Any]) -> None:
    run = way(custom_op(blend()))
    x, y, k = tensors(blend_inputs())
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(y)
        u, v = run(x, y, k)
    np.testing.assert_array_equal(tape.gradient(u, y), [0, 0])
    np.testing.assert_allclose(tape.gradient(v, y), [3 * tf.reduce_sum(x)] * 2, rtol=1e-12)


def test_jacobian() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = custom_op(exponential())(x)
    for with_pfor in (True, False):
        jacobian = tape.jacobian(y, x, experimental_use_pfor=with_pfor)
        np.testing.assert_allclose(jacobian, np.diag(np.exp(x)), rtol=1e-6)


EXPONENTIAL_WAYS = {
    "eager": lambda function: function,
    "static": traced,
    "dynamic": lambda function: traced(function, ([None], tf.float64)),
}


def second_derivative(function: Any, x: Any, weight: float = 1.0) -> Any:
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
            y = tf.reduce_sum(y**2) if not isinstance(y, tuple) else tf.reduce_sum(y[0] ** 2)
        first = inner.gradient(y, x)
        squares = tf.reduce_sum(first**2) * weight
    return outer.gradient(squares, x)


@pytest.mark.parametrize("way_name", list(EXPONENTIAL_WAYS))
def test_second_derivative(way_name: str) -> None:
    x = tf.constant([0.5, -1.0], tf.float64)
    run = EXPONENTIAL_WAYS[way_name](custom_op(exponential()))
    # d/dx of (2 exp(2x))^2
    np.testing.assert_allclose(second_derivative(run, x), 16 * np.exp(4 * x), rtol=1e-12)


def test_third_derivative_is_refused() -> None:
    x = tf.constant([0.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = second_derivative(custom_op(exponential()), x)
    with pytest.raises(OperatorError, match="'exponential' cannot be differentiated three times"):
        tape.gradient(y, x)


def test_second_derivative_without_a_second_is_refused(way: Callable[[Any], Any]) -> None:
    x, y, k = tensors(blend_inputs())
    run = way(custom_op(blend()))
    expected = OperatorError if run.__class__.__name__ == "function" else tf.errors.UnimplementedError
    with pytest.raises(expected, match="'blend' cannot be differentiated twice: it has no second"):
        second_derivative(lambda x: run(x, y, k), x)
    # Of a gradient that does not count it is known.
    np.testing.assert_array_equal(second_derivative(lambda x: run(x, y, k), x, weight=-0.0), np.zeros((3, 4)))


def test_without_a_backward() -> None:
    x = tf.constant([1.0])
    for run, expected in ((custom_op(shifted()), OperatorError), (traced(custom_op(shifted())), tf.errors.OpError)):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = run(x, x)
            ignored = x * x + 0.0 * y
        with pytest.raises(expected, match="'shifted' cannot be differentiated: it has no backward"):
            tape.gradient(y, x)
        np.testing.assert_array_equal(tape.gradient(ignored, x), [2.0])


# --- what is refused -------------------------------------------------------------------------------------------------


def test_wrong_inputs_are_refused() -> None:
    function = custom_op(blend())
    x, y, k = blend_inputs()
    for inputs, reason in (
        ((x, y), "blend was given 2 inputs; accepted are 3"),
        ((x.astype("float32"), y, k), r"of the dtypes \(float32, float64, int64\); accepted are"),
        ((x, y, "k"), r"of the dtypes \(float64, float64, string\)"),
        ((x, None, k), "input 1 is absent"),
        ((x[0], y, k), r"infer failed for inputs of shapes \(\(4,\), \(2,\), \(5,\)\)"),
        ((x[:1], y, k), "x has fewer rows than y has elements"),
        ((tf.ragged.constant([[1.0], []]), y, k), "as input 0; accepted are tensors"),
        ((object(), y, k), "as input 0; accepted are tensors"),
    ):
        with pytest.raises(OperatorError, match=reason):
            function(*inputs)
        with pytest.raises(OperatorError, match=reason):
            tf.function(lambda given=inputs: function(*given))()


def test_sizes_that_infer_refuses_are_refused_by_the_graph() -> None:
    run = WAYS["dynamic"](custom_op(blend()))
    with pytest.raises(tf.errors.InvalidArgumentError, match="x has fewer rows than y has elements"):
        run(*blend_inputs("float64", 1, 2))


def test_unknown_rank() -> None:
    run = traced(custom_op(exponential()), (None, tf.float32))
    with pytest.raises(OperatorError, match=r"unknown rank as input 0.*tf\.ensure_shape"):
        run.get_concrete_function()


def test_an_operator_that_throws() -> None:
    x, y, k = blend_inputs()
    function = custom_op(blend())
    y[0] = 77
    with pytest.raises(OperatorError, match=r"^Deep500 operator 'blend' failed in its forward: y must not be 77$"):
        function(x, y, k)
    with pytest.raises(tf.errors.UnknownError, match="'blend' failed in its forward: y must not be 77"):
        traced(function)(x, y, k)
    with pytest.raises(OperatorError, match="y must not be 77"), explain_run("net"):
        traced(function)(x, y, k)


@pytest.mark.parametrize(
    ("value", "reason"),
    [(1, "it gave no reason"), (2, "it gave no reason"), (3, "it gave no reason"), (9, "no reason"), (-1, "xxxx$")],
)
def test_an_operator_that_breaks_the_rules(value: float, reason: str) -> None:
    with pytest.raises(OperatorError, match=f"'raw' failed in its forward: .*{reason}"):
        custom_op(raw())(tf.constant([float(value)]))


def test_xla_is_refused() -> None:
    for op, inputs in ((exponential(), [tf.constant([1.0])]), (Cube(), [tf.constant([1.0])])):
        function = custom_op(op)
        with pytest.raises(OperatorError, match=r"XLA cannot compile custom operators; leave jit_compile out"):
            tf.function(lambda x, function=function: function(x), jit_compile=True)(*inputs)


class Cube(CustomPythonOp):
    def forward(self, x: Any) -> Any:
        return x**3

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return 3 * grads[0] * fwd_inputs[0] ** 2


@pytest.mark.parametrize("value", [None, 3, "blend", Cube, np.exp])
def test_what_is_no_operator_is_refused(value: Any) -> None:
    with pytest.raises(OperatorError, match=r"custom_op was given .*; accepted are CustomPythonOp, CppOp"):
        custom_op(value)


def test_only_native_operators_can_be_loaded() -> None:
    load_custom_operators()
    load_custom_operators(blend())
    for op in (Cube(), custom_op_from_native(tf.exp)):
        with pytest.raises(OperatorError, match="written in C\\+\\+ or CUDA"):
            load_custom_operators(op)
