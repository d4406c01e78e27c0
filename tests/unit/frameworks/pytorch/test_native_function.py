"""PyTorch's functions as operators of Deep500."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep500.core.errors import InvalidInputError, OperatorError  # noqa: E402
from deep500.core.tensor_descriptor import tensordesc  # noqa: E402
from deep500.frameworks.pytorch import custom_op, custom_op_from_native  # noqa: E402
from deep500.operators.validation import test_op_gradient  # noqa: E402

conv2d = torch.nn.functional.conv2d


def arrays(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((2, 3, 6, 5)), rng.standard_normal((4, 3, 3, 3))


def test_arrays_give_arrays() -> None:
    x, w = arrays()

    y = custom_op_from_native(conv2d)(x, w)

    assert isinstance(y, np.ndarray)
    np.testing.assert_array_equal(y, conv2d(torch.from_numpy(x), torch.from_numpy(w)).numpy())


def test_gradients_are_autograds_and_right() -> None:
    x, w = arrays()
    op = custom_op_from_native(functools.partial(conv2d, padding=1))

    assert op.name == "conv2d"
    assert test_op_gradient(op, [x[:1, :, :3, :3], w[:1]]).passed


def test_tensors_stay_tensors_and_remember() -> None:
    x, w = (torch.from_numpy(a).requires_grad_() for a in arrays())
    calls = []

    def counted(*inputs: Any) -> Any:
        calls.append(inputs)
        return conv2d(*inputs)

    op = custom_op_from_native(counted)
    y = op(x, w)
    g = torch.ones_like(y)
    first, second = (op.run_backward([g], [x, w], [y]) for _ in range(2))

    assert calls == [(x, w)]  # the very same objects, once
    expected = torch.autograd.grad(conv2d(x, w), (x, w), g)
    torch.testing.assert_close(first, expected)
    torch.testing.assert_close(second, expected)
    assert custom_op(op) is counted


def test_tensors_that_remember_nothing_are_differentiated_by_a_second_run() -> None:
    x, w = (torch.from_numpy(a) for a in arrays())
    op = custom_op_from_native(conv2d)
    y = op(x, w)

    by_x, by_w = op.run_backward([torch.ones_like(y)], [x, w], [y])

    assert by_x.shape == x.shape
    assert by_w.shape == w.shape
    assert not x.requires_grad


def test_gradients_that_do_not_exist_are_none() -> None:
    op = custom_op_from_native(lambda table, index, other: table[index] * 2)
    table, index, other = np.ones((5, 2)), np.array([1, 3]), np.ones(3)

    y = op(table, index, other)
    by_table, by_index, by_other = op.run_backward([np.ones_like(y)], [table, index, other], [y])

    assert by_index is None
    assert by_other is None
    np.testing.assert_array_equal(by_table, [[0, 0], [2, 2], [0, 0], [2, 2], [0, 0]])


def test_shapes_are_those_of_the_function() -> None:
    op = custom_op_from_native(
        conv2d, inputs=[tensordesc("float32", (2, 3, 6, 5)), tensordesc("float32", (4, 3, 3, 3))]
    )

    assert op.infer_outputs([(2, 3, 6, 5), (4, 3, 3, 3)], ["float32", "float32"]) == (((2, 4, 4, 3),), ("float32",))
    assert op.input_count == 2
    with pytest.raises(OperatorError, match="was given 1 inputs; accepted are 2"):
        op(np.ones((2, 3, 6, 5)))


def test_several_outputs_are_announced() -> None:
    outputs = [tensordesc("float64", (2,)), tensordesc("int64", (2,))]
    x = np.array([[1.0, 5.0], [7.0, 2.0]])

    with pytest.raises(OperatorError, match="returned 2 outputs; accepted are 1"):
        custom_op_from_native(functools.partial(torch.max, dim=1))(x)
    op = custom_op_from_native(functools.partial(torch.max, dim=1), outputs=outputs)
    values, places = op(x)

    np.testing.assert_array_equal(values, [5, 7])
    np.testing.assert_array_equal(places, [1, 0])
    (gradient,) = op.run_backward([np.ones(2), None], [x], [values, places])
    np.testing.assert_array_equal(gradient, [[0, 1], [1, 0]])


def test_names() -> None:
    assert custom_op_from_native(lambda x: x).name == "lambda"
    assert custom_op_from_native(torch.nn.ReLU()).name == "ReLU"
    assert custom_op_from_native(torch.relu, name="mine").name == "mine"
    with pytest.raises(OperatorError, match="cannot name an operator"):
        custom_op_from_native(torch.relu, name="not this")


def test_errors() -> None:
    with pytest.raises(OperatorError, match=r"accepted is a function of torch\.Tensor"):
        custom_op_from_native(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="accepted are descriptors"):
        custom_op_from_native(conv2d, inputs=[(2, 3)])  # type: ignore[list-item]
    with pytest.raises(OperatorError, match=r"^conv2d: "):
        custom_op_from_native(conv2d)(np.ones((2, 3)), np.ones((4, 3)))
    with pytest.raises(OperatorError, match="returned 3"):
        custom_op_from_native(lambda x: 3)(np.ones(2))
