from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.strict_json import is_deep, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_what_json_writes_is_read(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[1] 2", "Extra data"),
        ("[NaN]", "holds NaN"),
        ("-Infinity", "holds -Infinity"),
        ("1e999", "the number 1e999"),
        ("1" + "0" * 350, "351 digits"),
        ("1" + "0" * 5000, "5001 digits"),
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' twice"),
        ("[" * 101 + "]" * 101, "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text)


def test_depth_counts_lists_and_objects() -> None:
    value: Any = 1
    for _ in range(50):
        value = [{"a": value}]

    assert not is_deep(value)
    assert is_deep([value])
