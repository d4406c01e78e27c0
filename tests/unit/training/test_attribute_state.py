from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.errors import CheckpointError
from deep500.training._attribute_state import restored_value, saved_value
from tests.unit.training.support import LinearExecutor

EXECUTOR = LinearExecutor()
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
ARRAYS = st.lists(st.floats(-1e6, 1e6), max_size=4).map(np.array)
VALUES = st.recursive(
    PLAIN | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner)
    ),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@given(VALUES)
def test_what_is_saved_is_restored(value: Any) -> None:
    assert same(restored_value("x", saved_value("x", value, EXECUTOR), EXECUTOR), value)


@pytest.mark.parametrize("value", [{1, 2}, frozenset("ab"), np.float32(1.5), np.int64(3)])
def test_other_kinds(value: Any) -> None:
    restored = restored_value("x", saved_value("x", value, EXECUTOR), EXECUTOR)
    assert type(restored) is type(value)
    assert restored == value


def test_it_shares_no_memory() -> None:
    array = np.ones(3)
    saved = saved_value("x", [array], EXECUTOR)
    restored = restored_value("x", saved, EXECUTOR)
    array[:] = 2
    saved["items"][0]["value"][:] = 3
    np.testing.assert_array_equal(restored[0], np.ones(3))


@pytest.mark.parametrize("value", [object(), lambda: 0, {"a": [object()]}, np.array([object()])])
def test_what_cannot_be_saved(value: Any) -> None:
    with pytest.raises(CheckpointError, match="cannot be saved"):
        saved_value("x", value, EXECUTOR)


@pytest.mark.parametrize("saved", [{"kind": "dict"}, {"kind": "array", "value": [1]}, {}, [1], {"kind": "other"}])
def test_what_was_not_saved_so(saved: Any) -> None:
    with pytest.raises(CheckpointError, match="attribute x"):
        restored_value("x", saved, EXECUTOR)
