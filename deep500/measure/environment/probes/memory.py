"""Main memory, swap and huge pages."""

from __future__ import annotations

import functools

from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError, selected

__all__ = ["memory"]

_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage"


def memory(system: System) -> dict[str, Field]:
    """Tell how much memory there is, how much of it is free, and how it is paged."""
    table = functools.cache(lambda: system.read_table("/proc/meminfo", ":"))
    status = functools.cache(lambda: system.read_table("/proc/self/status", ":"))
    return {
        "total_bytes": Field("integer", "Memory of the machine.", lambda: _bytes(table(), "MemTotal")),
        "available_bytes": Field(
            "integer", "Memory that can be had without swapping.", lambda: _bytes(table(), "MemAvailable")
        ),
        "swap_total_bytes": Field("integer", "Swap space.", lambda: _bytes(table(), "SwapTotal")),
        "swap_used_bytes": Field(
            "integer", "Swap space in use.", lambda: _bytes(table(), "SwapTotal") - _bytes(table(), "SwapFree")
        ),
        "process_swapped_bytes": Field("integer", "This process's swapped pages.", lambda: _bytes(status(), "VmSwap")),
        "swappiness": Field(
            "integer", "How readily the kernel swaps.", lambda: system.read_integer("/proc/sys/vm/swappiness")
        ),
        "transparent_huge_pages": Field(
            "string", "always, madvise or never.", lambda: selected(system.read(f"{_HUGE_PAGES}/enabled"))
        ),
        "transparent_huge_pages_defrag": Field(
            "string", "When memory is compacted for them.", lambda: selected(system.read(f"{_HUGE_PAGES}/defrag"))
        ),
        "huge_pages_reserved": Field("integer", "Explicit huge pages.", lambda: _number(table(), "HugePages_Total")),
        "numa_balancing": Field(
            "integer",
            "Whether pages move between nodes.",
            lambda: system.read_integer("/proc/sys/kernel/numa_balancing"),
        ),
    }


def _number(table: dict[str, str], key: str) -> int:
    words = table.get(key, "").split()
    if not words:
        raise UnreadableError(f"the kernel's table has no entry {key!r}")
    if not words[0].isdigit():
        raise UnreadableError(f"{key} is {words[0][:60]!r}, not a number")
    return int(words[0])


def _bytes(table: dict[str, str], key: str) -> int:
    return _number(table, key) * 1024
