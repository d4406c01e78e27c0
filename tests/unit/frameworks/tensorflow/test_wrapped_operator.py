from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import tensordesc
from deep500.frameworks.tensorflow import custom_op, custom_op_from_native
from deep500.operators.validation import test_op_gradient

A = np.random.default_rng(3).standard_normal((2, 3))
B = np.random.default_rng(4).standard_normal((3, 4))


def test_arrays_in_arrays_out() -> None:
    op = custom_op_from_native(tf.matmul)
    product = op(A, B)
    assert type(product) is np.ndarray
    np.testing.assert_allclose(product, A @ B, rtol=1e-14)
    assert (op.name, op.output_count, op.differentiable) == ("matmul", 1, True)


def test_tensors_stay_tensors() -> None:
    op = custom_op_from_native(tf.matmul)
    for inputs in ([tf.constant(A), tf.constant(B)], [tf.Variable(A), B]):
        (product,) = op.run_forward(inputs)
        assert isinstance(product, tf.Tensor)
        gradients = op.run_backward([tf.ones((2, 4), tf.float64)], inputs, [product])
        assert [isinstance(g, tf.Tensor) for g in gradients] == [True, True]
        np.testing.assert_allclose(gradients[0], np.ones((2, 4)) @ B.T, rtol=1e-14)


def test_nothing_stands_between_the_function_and_its_caller() -> None:
    assert custom_op(custom_op_from_native(tf.matmul)) is tf.matmul


def test_gradients_are_the_numerical_derivatives() -> None:
    assert test_op_gradient(custom_op_from_native(tf.matmul), [A, B]).passed

    def wrong(x: Any) -> Any:
        return tf.sin(x) + tf.stop_gradient(0.01 * x)

    assert test_op_gradient(custom_op_from_native(tf.sin), [A]).passed
    with pytest.raises(OperatorError, match="The gradient of wrong by input 0 is wrong"):
        test_op_gradient(custom_op_from_native(wrong), [A])


def test_several_outputs_integers_and_sparse_gradients() -> None:
    def parts(table: Any, index: Any) -> Any:
        return tf.gather(table, index), tf.reduce_sum(table), index + 1

    op = custom_op_from_native(
        parts, outputs=[tensordesc("float64", 2, 3), tensordesc("float64"), tensordesc("int64", 2)]
    )
    index = np.array([1, 1])
    rows, total, following = op(A, index)
    assert (rows.tolist(), following.tolist()) == ([A[1].tolist()] * 2, [2, 2])
    gradients = op.run_backward([np.ones((2, 3)), None, None], [A, index], [rows, total, following])
    assert gradients[0].tolist() == [[0, 0, 0], [2, 2, 2]]
    assert gradients[1] is None
    assert op.run_backward([None, None, None], [A, index], [rows, total, following]) == (None, None)
    for run in (custom_op(op), tf.function(custom_op(op))):
        assert [tuple(y.shape) for y in run(tf.constant(A), index)] == [(2, 3), (), (2,)]


def test_infer_asks_tensorflow() -> None:
    op = custom_op_from_native(tf.matmul)
    assert op.infer_outputs([(2, 3), (3, 4)], ["float32", "float32"]) == (((2, 4),), ("float32",))
    assert op.infer_outputs([(5, 0), (0, 4)], ["bfloat16"] * 2) == (((5, 4),), ("bfloat16",))
    with pytest.raises(OperatorError, match=r"matmul failed: .*Dimensions must be equal"):
        op.infer_outputs([(2, 3), (4, 4)], ["float32"] * 2)
    with pytest.raises(OperatorError, match="infers from numbers only"):
        op.infer_outputs([("n", 3), (3, 4)], ["float32"] * 2)


def test_names() -> None:
    assert custom_op_from_native(lambda x: x).name == "lambda"
    assert custom_op_from_native(tf.keras.layers.Dense(2)).name == "Dense"
    assert custom_op_from_native(tf.sin, name="sine").name == "sine"
    with pytest.raises(OperatorError, match="cannot name an operator"):
        custom_op_from_native(tf.sin, name="2 sines")


def test_what_is_refused() -> None:
    with pytest.raises(OperatorError, match="custom_op_from_native was given 3; accepted are functions"):
        custom_op_from_native(3)  # type: ignore[arg-type]
    with pytest.raises(OperatorError, match="was given 1 inputs; accepted are 2"):
        custom_op_from_native(tf.matmul, [tensordesc("float64", 2, 3), tensordesc("float64", 3, 4)])(A)
    with pytest.raises(OperatorError, match=r"matmul failed: .*Matrix size-incompatible"):
        custom_op_from_native(tf.matmul)(A, A)
    with pytest.raises(OperatorError, match="failed: KeyError: 'why'"):
        custom_op_from_native(lambda x: {}["why"], name="faulty")(A)
    with pytest.raises(OperatorError, match="unstack returned 2 outputs; the operator has 1"):
        custom_op_from_native(tf.unstack)(A)
    with pytest.raises(OperatorError, match="nothing returned 1 outputs"):
        custom_op_from_native(lambda x: None, name="nothing")(A)
    with pytest.raises(OperatorError, match="input 0"):
        custom_op_from_native(tf.sin)(object())
