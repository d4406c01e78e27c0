"""How many processes work together in a system, and on which device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deep500.core.texts import shown
from deep500.measure.document_view import DocumentView, SystemView, number_of, text_of

__all__ = ["is_on_accelerator", "ranks_of", "stated"]

_RANKS = ("ranks", "world_size", "mpi_ranks", "processes", "workers")


def ranks_of(system: SystemView) -> float:
    """Return the number of processes that work together; 1 when nothing tells of more."""
    return number_of(system.setting(*_RANKS)) or 1


def is_on_accelerator(system: SystemView) -> bool:
    """Whether a system ran on another device than the CPU."""
    _, at, place = system.spec.rpartition("@")  # a callable is package.module:function, which names no device
    device = text_of(system.setting("device")) or (text_of(place.partition(":")[2]) if at else None) or "cpu"
    return not device.lower().startswith("cpu")


def stated(document: DocumentView, system: SystemView, *words: str) -> str | None:
    """Return what a factor of the system, or a setting of the plan, says whose key holds one of the words."""
    sources: tuple[Mapping[str, Any], ...] = (system.factors, system.identity)
    plan = document.part("design.plan")
    for source in (*sources, plan if isinstance(plan, Mapping) else {}):
        for key, value in source.items():
            if any(word in str(key).lower() for word in words) and value not in (None, False, ""):
                return f"{key}: {shown(value)}"
    return None
