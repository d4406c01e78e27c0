"""PyTorch's own data parallel training, ``DistributedDataParallel``, around the programs of an executor."""

from __future__ import annotations

import atexit
import os
import socket
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed, fx, nn
from torch.nn.parallel import DistributedDataParallel

from deep500.core.errors import CommunicationError, TrainingError
from deep500.frameworks.pytorch._process_group import seconds, translated
from deep500.frameworks.pytorch.buckets import parameters_of_loss
from deep500.networks.program import Program

if TYPE_CHECKING:
    from deep500.distributed.communicator import Communicator

__all__ = ["DataParallelRuns", "process_group"]

_LOCAL_HOST = "127.0.0.1"


class DataParallelRuns:
    """The programs of an executor, each wrapped in ``DistributedDataParallel``, which averages gradients in backward.

    It exchanges through ``torch.distributed``: gloo between processors, NCCL between GPUs (not run on such hardware).
    """

    def __init__(self, communicator: Communicator, device: torch.device) -> None:
        """Connect the ranks; all of them together.

        Args:
            communicator: Whose ranks train together.
            device: Where the parameters are.

        Raises:
            TrainingError: Two ranks are in one process.
            CommunicationError: PyTorch cannot connect the ranks, or has connected others.
        """
        self._device = device
        self._group = process_group(communicator, "nccl" if device.type == "cuda" else "gloo")
        self._wrapped: dict[tuple[Program, str], nn.Module] = {}

    def function(self, module: fx.GraphModule, program: Program, loss: str) -> Callable[..., Any]:
        """Return what runs a program in place of its module."""
        wrapped = self._wrapped.get((program, loss))
        if wrapped is None:
            reached, depending = parameters_of_loss(program, loss)
            with warnings.catch_warnings():
                # What replaces the argument gives all ranks the states of rank 0 when it begins.
                warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
                wrapped = self._wrapped[program, loss] = DistributedDataParallel(
                    _OneLoss(module, program.outputs.index(loss)),
                    device_ids=[self._device] if self._device.type == "cuda" else None,
                    process_group=self._group,
                    broadcast_buffers=False,  # states are each rank's own, as with all schemes
                    find_unused_parameters=bool(depending) or reached != frozenset(program.parameters),
                )
        return wrapped


class _OneLoss(nn.Module):
    """A program of whose outputs only the loss can be differentiated, so that it alone tells what is used."""

    def __init__(self, module: fx.GraphModule, index: int) -> None:
        super().__init__()
        self._module, self._index = module, index

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        results = nn.Module.__call__(self._module, *inputs)
        return tuple(result if i == self._index else _detached(result) for i, result in enumerate(results))


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def process_group(communicator: Communicator, backend: str) -> distributed.ProcessGroup:
    """Return PyTorch's group of a communicator's ranks; they are connected where they are not.

    Args:
        communicator: Carries the address at which the ranks meet.
        backend: ``"gloo"`` or ``"nccl"``.

    Raises:
        TrainingError: Two ranks are in one process.
        CommunicationError: PyTorch cannot connect the ranks, or has connected others.
    """
    places = _gathered(communicator, f"{socket.gethostname()} {os.getpid()}")
    if len(set(places)) < len(places):
        raise TrainingError(
            f"Received {communicator.size} ranks of which some are in one process. torch.distributed accepts one rank "
            f"a process; start the ranks by 'deep500 run RECIPE --ranks {communicator.size}' or mpiexec, or use "
            f"another scheme."
        )
    with translated(f"Connecting {communicator.size} ranks by {backend}"):
        if not distributed.is_initialized():
            _connect(communicator, backend, places)
        group = distributed.group.WORLD
        ranks = (distributed.get_rank(), distributed.get_world_size())
    if group is None or ranks != (communicator.rank, communicator.size):
        raise CommunicationError(
            f"Received a communicator in which this is rank {communicator.rank} of {communicator.size}; "
            f"torch.distributed is started already, with this as rank {ranks[0]} of {ranks[1]}. Accepted are the same "
            f"ranks in both; pass the communicator of all ranks."
        )
    return group


def _connect(communicator: Communicator, backend: str, places: list[str]) -> None:
    hosts = [place.rsplit(" ", 1)[0] for place in places]
    host = _LOCAL_HOST if len(set(hosts)) == 1 else hosts[0]
    limit = seconds(communicator.timeout_s)
    make_store: Any = distributed.TCPStore  # type: ignore[attr-defined] # documented, but not in its __all__
    port = np.zeros(1, np.int64)
    store = None
    if communicator.rank == 0:
        store = make_store(host, 0, communicator.size, is_master=True, wait_for_workers=False, timeout=limit)
        port[0] = store.port
    communicator.broadcast(port, root=0)
    if store is None:
        store = make_store(host, int(port[0]), communicator.size, is_master=False, timeout=limit)
    distributed.init_process_group(
        backend, store=store, rank=communicator.rank, world_size=communicator.size, timeout=limit
    )
    atexit.register(_disconnect)


def _disconnect() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _gathered(communicator: Communicator, text: str) -> list[str]:
    """Return the short texts of all ranks, in their order."""
    own = np.zeros(512, np.uint8)
    encoded = np.frombuffer(text.encode()[-own.size :], np.uint8)
    own[: encoded.size] = encoded
    everyone = np.empty(own.size * communicator.size, np.uint8)
    communicator.allgather(own, everyone)
    return [bytes(row).rstrip(b"\0").decode(errors="replace") for row in everyone.reshape(communicator.size, -1)]
