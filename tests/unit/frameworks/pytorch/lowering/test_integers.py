"""Integers that PyTorch has no kernels for, against Python's own of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from deep500.frameworks.pytorch._arrays import to_array, to_tensor  # noqa: E402
from deep500.frameworks.pytorch.lowering import _integers as integers  # noqa: E402
from tests.unit.frameworks.pytorch.lowering.nodes import run  # noqa: E402

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@st.composite
def pairs(draw: Any) -> tuple[Any, Any]:
    """Return two arrays of one dtype, with its extremes among them."""
    dtype = draw(st.sampled_from(DTYPES))
    limits = np.iinfo(dtype)
    number = st.one_of(
        st.sampled_from([limits.min, limits.max, 0, 1, limits.max // 2 + 1, limits.min + 1]),
        st.integers(limits.min, limits.max),
        st.integers(max(limits.min, -9), 9),
    )
    size = draw(st.integers(1, 12))
    both = [np.array(draw(st.lists(number, min_size=size, max_size=size)), dtype) for _ in range(2)]
    return both[0], both[1]


def _wrapped(value: int, dtype: np.dtype[Any]) -> int:
    limits = np.iinfo(dtype)
    return (value - int(limits.min)) % 2**limits.bits + int(limits.min)


def _elements(function: Callable[[int, int], int], a: Any, b: Any) -> list[int]:
    return [_wrapped(function(int(x), int(y)), a.dtype) for x, y in zip(a, b)]


def _truncated(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


@given(pairs())
def test_quotients_and_remainders(arrays: tuple[Any, Any]) -> None:
    a, b = arrays
    tensors = to_tensor(a), to_tensor(b)

    assert to_array(integers.truncated_quotient(*tensors)).tolist() == _elements(_truncated, a, b)
    rests = to_array(integers.remainder(*tensors, truncates=True)).tolist()
    assert rests == _elements(lambda x, y: x - _truncated(x, y) * y if y else 0, a, b)
    rests = to_array(integers.remainder(*tensors, truncates=False)).tolist()
    assert rests == _elements(lambda x, y: x % y if y else 0, a, b)


@given(pairs())
def test_order(arrays: tuple[Any, Any]) -> None:
    a, b = arrays
    first, second = integers.ordered(to_tensor(a)), integers.ordered(to_tensor(b))

    assert (first < second).tolist() == (a < b).tolist()
    greater = integers.unordered(torch.maximum(first, second), to_tensor(a).dtype)
    np.testing.assert_array_equal(to_array(greater), np.maximum(a, b))


@given(pairs())
def test_sums_differences_and_products(arrays: tuple[Any, Any]) -> None:
    a, b = arrays
    wide_a, wide_b = integers.wider(to_tensor(a)), integers.wider(to_tensor(b))

    for function in (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y):
        received = to_array(integers.narrowed(function(wide_a, wide_b), to_tensor(a).dtype))
        assert received.tolist() == _elements(function, a, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts(dtype: str, direction: str) -> None:
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.max, 1, limits.max // 3, limits.max - 1], dtype).reshape(-1, 1)
    by = np.array([0, 1, limits.bits - 1, limits.bits, limits.bits + 3] + ([] if dtype[0] == "u" else [-1]), dtype)

    def shifted(value: int, distance: int) -> int:
        if not 0 <= distance < limits.bits:
            return -1 if direction == "RIGHT" and value < 0 else 0
        return value << distance if direction == "LEFT" else value >> distance

    (y,) = run("BitShift", [x, by], direction=direction)

    assert y.tolist() == [[_wrapped(shifted(int(v), int(d)), x.dtype) for d in by] for v in x[:, 0]]


def test_powers_of_unsigned_exponents() -> None:
    x = np.array([3, -3, 2, 0], np.int64)
    exponents = np.array([2**63 + 1, 2**64 - 1, 2**63, 0], np.uint64)

    (y,) = run("Pow", [x, exponents])

    assert y.tolist() == [_wrapped(pow(int(b), int(e), 2**64), y.dtype) for b, e in zip(x, exponents)]


def test_255_is_not_taken_for_minus_one() -> None:
    (y,) = run("Div", [np.array([255, 7], np.uint8), np.array([255, 255], np.uint8)])

    assert y.tolist() == [1, 0]
