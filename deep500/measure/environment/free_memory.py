"""How much memory there is to take."""

from __future__ import annotations

import logging

from deep500.measure.environment.control_groups import memory_limit_bytes
from deep500.measure.environment.system import System, UnreadableError

__all__ = ["free_memory_bytes"]

_logger = logging.getLogger(__name__)


def free_memory_bytes() -> int:
    """Return how much memory the process may still take: what the system has, within the control group's limit."""
    import psutil

    free = int(psutil.virtual_memory().available)
    try:
        limit = memory_limit_bytes(System())
    except UnreadableError as error:
        _logger.debug("The memory limit of the control group is not known: %s", error)
        limit = None
    return free if limit is None else max(0, min(free, limit - psutil.Process().memory_info().rss))
