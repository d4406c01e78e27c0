"""The reference's deterministic mode: NumPy gives equal bits in equal runs anyway, at a fixed number of threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from threadpoolctl import threadpool_info

__all__ = ["deterministic_operators"]


@contextlib.contextmanager
def deterministic_operators(seed: int) -> Iterator[dict[str, Any]]:
    """Change nothing, and tell how many threads the libraries behind NumPy use.

    Args:
        seed: Not used; NumPy's random numbers are seeded by the executor.

    Yields:
        The threads, in JSON's types.
    """
    pools = {pool["internal_api"]: int(pool["num_threads"]) for pool in threadpool_info()}
    yield {"threads": pools}
