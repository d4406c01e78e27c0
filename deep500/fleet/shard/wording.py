"""Times, as people read them."""

from __future__ import annotations

from deep500.core.quantities import scaled

__all__ = ["duration"]


def duration(seconds: float | None) -> str:
    """Return a time in the unit that suits it, from parts of a second to hours.

    Example:
        >>> duration(0.0042), duration(45), duration(600), duration(7200), duration(None)
        ('4.2 ms', '45.0 s', '10.0 min', '2.00 h', 'unknown')
    """
    if seconds is None:
        return "unknown"
    if abs(seconds) < 0.1:
        return scaled("s", seconds)[0]
    if abs(seconds) < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if abs(seconds) < 7200 else f"{seconds / 3600:.2f} h"
