"""Numbers with units, as people read them."""

from __future__ import annotations

__all__ = ["scaled", "significant"]

#: Prefixes by the power of ten that they stand for.
_PREFIXES = {12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "u", -9: "n"}


def scaled(unit: str, value: float, *others: float) -> tuple[str, ...]:
    """Return a value as text with its unit in the thousands that suit it, and further values in the same thousands.

    Example:
        >>> scaled("s", 0.00231, 0.00229), scaled("flop/s", 2.5e12), scaled("s", 1e-10)
        (('2.31 ms', '2.29'), ('2.5 Tflop/s',), ('0.1 ns',))
    """
    size = abs(value)
    largest = 0 if unit == "s" else max(_PREFIXES)
    power = next((p for p in _PREFIXES if p <= largest and size >= 10.0**p), 0 if size == 0 else min(_PREFIXES))
    texts = [significant(number / 10.0**power) for number in (value, *others)]
    return (f"{texts[0]} {_PREFIXES[power]}{unit}", *texts[1:])


def significant(number: float) -> str:
    """Return a number with four digits, or all that stand before the decimal point when these are more."""
    return f"{number:.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"
