"""What is told while a measurement runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["OnProgress", "Progress"]


@dataclass(frozen=True)
class Progress:
    """Where a measurement is.

    Attributes:
        launch: Number of the process launch, from 1.
        launches: Number of all process launches.
        phase: ``"starting"``, ``"warm-up"``, ``"sampling"`` or ``"done"``.
        samples: Samples so far in this phase.
        detail: What the stopping rule said last, for people.
    """

    launch: int
    launches: int
    phase: str
    samples: int = 0
    detail: str = ""


OnProgress = Callable[[Progress], None]
