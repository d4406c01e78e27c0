"""Numbers of things, as people read them."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, what: str) -> str:
    """Return a number with what it counts, given in the singular.

    Example:
        >>> counted(1, "cluster"), counted(1832, "job")
        ('1 cluster', '1,832 jobs')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")
