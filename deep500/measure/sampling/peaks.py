"""The measured peaks that systems are held against."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from deep500.core.errors import InvalidInputError
from deep500.measure.results.document import System

__all__ = ["peaks_of"]


def peaks_of(systems: Iterable[System], threads: int | None = None) -> list[dict[str, Any]]:
    """Return what this machine reaches in the dtypes of systems on the CPU whose operations are counted, as JSON.

    Dtypes that NumPy's BLAS does not multiply have no peak here, and are left out.

    Args:
        systems: The systems.
        threads: Number of threads that they were told to use; ``None`` for as many as the libraries choose.
    """
    import threadpoolctl

    from deep500.measure.peak import measured_peak

    on_cpu = [system for system in systems if str(system.factors.get("device", "cpu")).startswith("cpu")]
    dtypes = sorted({s.work.dtype for s in on_cpu if s.work.flops and s.work.dtype is not None})
    peaks = []
    for dtype in dtypes:
        try:
            with threadpoolctl.threadpool_limits(threads):
                peak = measured_peak(dtype)
        except InvalidInputError:
            continue
        peaks.append({**dataclasses.asdict(peak), "device": "cpu"})
    return peaks
