from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep500.core.quantities import scaled, significant


@pytest.mark.parametrize(
    ("unit", "numbers", "expected"),
    [
        ("s", (0.00231, 0.00229), ("2.31 ms", "2.29")),
        ("s", (0.0,), ("0 s",)),
        ("s", (7200.0,), ("7200 s",)),
        ("s", (3e-11,), ("0.03 ns",)),
        ("s", (999.96e-6, 1.2e-3), ("1000 us", "1200")),
        ("FLOP/s", (2.5e12,), ("2.5 TFLOP/s",)),
        ("B", (1536.0,), ("1.536 kB",)),
        ("", (-1500.0,), ("-1.5 k",)),
    ],
)
def test_scaled(unit: str, numbers: tuple[float, ...], expected: tuple[str, ...]) -> None:
    assert scaled(unit, *numbers) == expected


@given(st.floats(1e-9, 1e12))
def test_text_says_the_number(value: float) -> None:
    text, prefix = scaled("m", value)[0].split(" ")
    power = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}[prefix[:-1]]

    assert math.isclose(float(text) * power, value, rel_tol=1e-3)


def test_significant() -> None:
    assert (significant(1.23456), significant(34119.7), significant(1e20)) == ("1.235", "34120", "1e+20")
