"""Reductions of every dtype, over any axes, and over nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.unit.frameworks.pytorch.lowering.nodes import run  # noqa: E402


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint64", "uint8", "bool"])
@pytest.mark.parametrize(("op_type", "is_max"), [("ReduceMax", True), ("ReduceMin", False)])
def test_extremes_of_nothing(dtype: str, op_type: str, is_max: bool) -> None:
    (y,) = run(op_type, [np.zeros((0, 3), dtype), np.array([0])], expected=np.zeros((1, 3), dtype))

    neutral: Any = {"float32": -np.inf if is_max else np.inf, "bool": not is_max}.get(dtype)
    if neutral is None:
        neutral = np.iinfo(dtype).min if is_max else np.iinfo(dtype).max
    assert y.dtype == np.dtype(dtype)
    assert y.tolist() == [[neutral] * 3]


@pytest.mark.parametrize("axes", [None, np.array([], np.int64), np.array([-1]), np.array([0, 2])])
@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes(axes: Any, noop: int, keepdims: int) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    named = () if axes is None else tuple(int(axis) for axis in axes)
    over: Any = named or (() if noop else None)
    expected = np.sum(x * x, axis=over, keepdims=bool(keepdims))

    (y,) = run("ReduceSumSquare", [x, axes], expected=expected, keepdims=keepdims, noop_with_empty_axes=noop)

    np.testing.assert_array_equal(y, expected)


def test_integers_keep_all_their_digits() -> None:
    x = np.array([[2**64 - 1, 2], [2**63, 2**63]], np.uint64)
    vector = np.zeros(2, np.uint64)

    assert run("ReduceSum", [x, np.array([1])], keepdims=0, expected=vector)[0].tolist() == [1, 0]
    assert run("ReduceMax", [x, np.array([0])], keepdims=0, expected=vector)[0].tolist() == [2**64 - 1, 2**63]
    assert run("ReduceMean", [np.array([2**63, 2**62], np.uint64)])[0].tolist() == [3 * 2**61]
    assert run("CumSum", [x, np.array(1)], reverse=1)[0].tolist() == [[1, 2], [0, 2**63]]
    assert run("ArgMin", [x], axis=1, select_last_index=1)[0].tolist() == [[1], [1]]


@pytest.mark.parametrize("last", [0, 1])
def test_of_equal_elements_the_first_or_the_last_counts(last: int) -> None:
    x = np.array([[3, 1, 3, 1]], np.float32)

    assert run("ArgMax", [x], axis=-1, select_last_index=last)[0].tolist() == [[2 if last else 0]]
    assert run("ArgMin", [x], axis=1, keepdims=0, select_last_index=last)[0].tolist() == [3 if last else 1]


@pytest.mark.parametrize(
    ("exclusive", "reverse", "sums", "products"),
    [
        (0, 0, [1, 3, 6], [1, 2, 6]),
        (1, 0, [0, 1, 3], [1, 1, 2]),
        (0, 1, [6, 5, 3], [6, 6, 3]),
        (1, 1, [5, 3, 0], [6, 3, 1]),
    ],
)
def test_running_sums_and_products(exclusive: int, reverse: int, sums: list[int], products: list[int]) -> None:
    x, axis = np.array([1, 2, 3], np.int32), np.array(-1, np.int32)

    assert run("CumSum", [x, axis], exclusive=exclusive, reverse=reverse)[0].tolist() == sums
    assert run("CumProd", [x, axis], exclusive=exclusive, reverse=reverse)[0].tolist() == products
    empty = run("CumSum", [x[:0], axis], exclusive=exclusive, reverse=reverse)[0]
    assert empty.shape == (0,)
