"""Equal runs, equal bits: what a framework offers for it, and the seeds of all that draws."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from deep500.core.errors import TrainingError
from deep500.core.random import check_seed
from deep500.core.texts import shown
from deep500.networks.graph_executor import GraphExecutor

__all__ = ["deterministic_mode"]


@contextlib.contextmanager
def deterministic_mode(executor: GraphExecutor, seed: int) -> Iterator[dict[str, Any]]:
    """Let equal runs of an executor give equal bits, for the time of a block.

    Each framework's own switches are turned (``determinism.py`` of its adapter), and are as they were afterwards. The
    operators that draw random numbers and have no seed are seeded. Bits are equal on one machine, with the same
    versions and number of threads, which are told: sums are formed in another order by another number of threads.

    Enter it before the network is run for the first time, and before a checkpoint is restored, whose random streams
    would begin anew otherwise.

    Args:
        executor: What runs the network.
        seed: Seed of the operators that have none.

    Yields:
        Framework, seed and switches, in JSON's types.

    Raises:
        TrainingError: It is no executor.
    """
    if not isinstance(executor, GraphExecutor):
        raise TrainingError(f"deterministic_mode was given {shown(executor)}; accepted is an executor.")
    checked = check_seed(seed)
    with executor.deterministic(checked) as switches:
        executor.seed_random(checked)
        yield {"framework": executor.framework, "seed": checked, "switches": switches}
