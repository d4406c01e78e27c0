from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deep500.core.errors import OperatorError
from deep500.core.tensor_descriptor import tensordesc
from deep500.frameworks.reference import custom_op, custom_op_from_native
from deep500.operators.custom import CustomPythonOp
from deep500.operators.validation import test_op_gradient
from tests.unit.operators.sources import cube_sum, failing, mixed

X = np.random.default_rng(0).standard_normal((3, 2))


class Square(CustomPythonOp):
    def forward(self, x: Any) -> Any:
        return x * x

    def backward(self, grads: Any, fwd_inputs: Any, fwd_outputs: Any) -> Any:
        return 2 * grads[0] * fwd_inputs[0]


def test_python_operator() -> None:
    square = custom_op(Square())
    np.testing.assert_array_equal(square(X), X * X)
    np.testing.assert_array_equal(square([1.0, 2.0]), [1, 4])
    with pytest.raises(OperatorError, match="cannot take 2 inputs"):
        square(X, X)


def test_native_operator() -> None:
    cubes, sums = custom_op(cube_sum())(X)
    np.testing.assert_allclose(cubes, X**3)
    np.testing.assert_allclose(sums, X.sum(1))
    y, n = custom_op(mixed(scale=2.0))(X, np.array([1, 2]), None)
    np.testing.assert_array_equal(y, 2 * X)
    assert n.tolist() == [2]
    with pytest.raises(OperatorError, match="the pump is broken"):
        custom_op(failing("runtime_error"))(X.astype("float32"))
    with pytest.raises(OperatorError, match="dtypes"):
        custom_op(cube_sum())(X.astype("int64"))


@pytest.mark.parametrize("value", [None, 3, Square, np.exp])
def test_what_is_no_operator_is_refused(value: Any) -> None:
    with pytest.raises(OperatorError, match=r"custom_op was given .*; accepted are CustomPythonOp, CppOp"):
        custom_op(value)


def test_functions_of_numpy() -> None:
    op = custom_op_from_native(np.matmul, backward=lambda g, x, y: (g[0] @ x[1].T, x[0].T @ g[0]))
    assert (op.name, op.differentiable, op.output_count) == ("matmul", True, 1)
    np.testing.assert_array_equal(op(X, X.T), X @ X.T)
    np.testing.assert_array_equal(custom_op(op)(X, X.T), X @ X.T)
    assert test_op_gradient(op, [X, X.T]).passed
    wrong = custom_op_from_native(np.matmul, backward=lambda g, x, y: (1.01 * g[0] @ x[1].T, x[0].T @ g[0]))
    with pytest.raises(OperatorError, match="The gradient of matmul by input 0 is wrong"):
        test_op_gradient(wrong, [X, X.T])


def test_single_array_goes_from_the_function_to_the_caller_as_it_is() -> None:
    result = X @ X.T
    fast = custom_op(custom_op_from_native(lambda *inputs: result, [tensordesc("float64", 3, 2)] * 2))

    assert fast(X, X) is result
    assert custom_op(custom_op_from_native(np.matmul))([[1.0, 2.0]], X[:2]).shape == (1, 2)  # what is no array yet
    assert custom_op(custom_op_from_native(lambda x: 3.0))(X).dtype == np.float64  # nor what is returned
    low, high = custom_op(custom_op_from_native(lambda x: [x.min(1), x.max(1)], None, [tensordesc("float64", 3)] * 2))(
        X
    )
    assert (low <= high).all()
    with pytest.raises(OperatorError, match="was given 1 inputs; accepted are 2"):
        fast(X)
    with pytest.raises(OperatorError, match="matmul failed: ValueError: matmul: Input operand 1 has a mismatch"):
        custom_op(custom_op_from_native(np.matmul))(X, X)
    with pytest.raises(OperatorError, match="divmod returned 2 outputs; the operator has 1"):
        custom_op(custom_op_from_native(np.divmod))(X, X)

    def refusing(x: Any) -> Any:
        raise OperatorError("not this one")

    with pytest.raises(OperatorError, match=r"^not this one$"):
        custom_op(custom_op_from_native(refusing))(X)


def test_several_outputs() -> None:
    described = [tensordesc("float64", 3), tensordesc("float64", 3)]
    op = custom_op_from_native(lambda x: (x.min(1), x.max(1)), [tensordesc("float64", 3, 2)], described, name="range")
    low, high = op(X)
    assert (low <= high).all()
    assert op.infer_outputs([(3, 2)], ["float64"]) == (((3,), (3,)), ("float64", "float64"))
    with pytest.raises(OperatorError, match="range was given 2 inputs; accepted are 1"):
        op(X, X)


def test_without_descriptors_outputs_are_like_the_first_input() -> None:
    assert custom_op_from_native(np.sin).infer_outputs([(5, 2)], ["float32"]) == (((5, 2),), ("float32",))


def test_names() -> None:
    assert custom_op_from_native(lambda x: x).name == "lambda"
    assert custom_op_from_native(np.sin, name="sine").name == "sine"
    with pytest.raises(OperatorError, match="cannot name an operator"):
        custom_op_from_native(np.sin, name="2 sines")


def test_what_is_refused() -> None:
    for arguments in ({"function": 3}, {"function": None}, {"function": np.sin, "backward": 3}):
        with pytest.raises(OperatorError, match=r"custom_op_from_native was given .*; accepted are functions"):
            custom_op_from_native(**arguments)
    with pytest.raises(OperatorError, match="sin cannot be differentiated: it has no backward"):
        custom_op_from_native(np.sin).run_backward([X], [X], [X])
    with pytest.raises(OperatorError, match="matmul failed: ValueError: matmul: Input operand 1 has a mismatch"):
        custom_op_from_native(np.matmul)(X, X)
    with pytest.raises(OperatorError, match="divmod returned 2 outputs; the operator has 1"):
        custom_op_from_native(np.divmod)(X, X)
    with pytest.raises(OperatorError, match="nothing returned 1 outputs"):
        custom_op_from_native(lambda x: None, name="nothing")(X)
    short = custom_op_from_native(np.matmul, backward=lambda g, x, y: g[0])
    with pytest.raises(OperatorError, match="backward of matmul returned 1 gradients for 2 inputs"):
        short.run_backward([X @ X.T], [X, X.T], [X @ X.T])
