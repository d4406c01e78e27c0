"""The algorithms of exchanges, found by name, one file each."""

from __future__ import annotations

from deep500.core.registry import Registry

__all__ = ["ALGORITHMS"]

#: Functions ``(size, count, item_bytes, **options)`` to a ``Schedule``, ``deep500/distributed/simulation/algorithms``.
#: The closed form of an algorithm's time is the function of its name in ``simulation/closed_forms.py``.
ALGORITHMS = Registry("exchange algorithm", "deep500.distributed.simulation.algorithms")
