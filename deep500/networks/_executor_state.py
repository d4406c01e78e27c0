"""What an executor's course depends on: its parameters and states, and the random numbers of its operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from deep500.core.errors import CheckpointError
from deep500.core.stateful import State
from deep500.networks.tensor_store import check_fed_tensor

if TYPE_CHECKING:
    from deep500.networks.graph_executor import GraphExecutor

__all__ = ["executor_state", "restore_executor"]


def executor_state(executor: GraphExecutor) -> State:
    """Return a snapshot of an executor; see :meth:`GraphExecutor.state`."""
    network = executor.network
    return {
        "parameters": {name: executor.fetch(name) for name in network.parameters},
        "states": {name: executor.fetch(name) for name in network.states},
        "random": executor.random_state(),
    }


def restore_executor(executor: GraphExecutor, state: Mapping[str, Any]) -> None:
    """Let an executor go on from a snapshot; see :meth:`GraphExecutor.restore`."""
    network = executor.network
    saved: dict[str, Any] = {}
    for kind, here in (("parameters", network.parameters), ("states", network.states)):
        tensors = state.get(kind)
        if not isinstance(tensors, Mapping):
            raise CheckpointError(f"The checkpoint holds no {kind} of a network.")
        differing = sorted({*tensors} ^ {*here})
        if differing:
            first = differing[0]
            where = "the checkpoint" if first in tensors else "the network"
            raise CheckpointError(
                f"The checkpoint is of another network: {len(differing)} of the {kind} are in one of both only, such "
                f"as {first!r}, which is in {where}."
            )
        for name, descriptor in here.items():
            saved[name] = np.asarray(tensors[name])
            try:
                check_fed_tensor(name, saved[name].dtype.name, saved[name].shape, descriptor)
            except ValueError as error:
                raise CheckpointError(f"The checkpoint is of another network: {error}") from error
    random = state.get("random")
    if not isinstance(random, Mapping):
        raise CheckpointError("The checkpoint holds no random streams of a network.")
    executor.restore_random(random)
    for name, value in saved.items():
        executor.feed(name, value)
