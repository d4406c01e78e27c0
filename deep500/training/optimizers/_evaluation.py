"""Further evaluations of a minibatch's gradient, for optimizers that look at more than one point."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from deep500.networks.graph_executor import GraphExecutor

__all__ = ["states_kept"]


@contextlib.contextmanager
def states_kept(executor: GraphExecutor) -> Iterator[None]:
    """Leave the network's states, such as running statistics, as they are when what is within has run.

    A minibatch counts once in them, whatever number of points its gradient is taken at.
    """
    names = executor.state_names
    values = executor.network.fetch_tensors(names) if names else []
    try:
        yield
    finally:
        for name, value in zip(names, values, strict=True):
            executor.network.feed_tensor(name, value)
