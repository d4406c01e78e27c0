"""Process groups of torch.distributed: where ranks meet, and the backends that carry their messages."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import socket
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from deep500.core.errors import CommunicationError, MissingDependencyError
from deep500.core.texts import one_line
from deep500.distributed.launch_environment import LaunchEnvironment, detect

__all__ = ["check_backend", "count_of_machine", "meet", "named", "new_group", "seconds", "translated"]

#: The same module: what it offers without saying so in its types.
_untyped: Any = dist

#: In place of no limit, since torch.distributed always has one.
_FOR_EVER = datetime.timedelta(days=3650)

#: Communicators of this process: all ranks make them in the same order, so the numbers agree.
_numbers = itertools.count()


def seconds(timeout_s: float | None) -> datetime.timedelta:
    """Return a limit of time in the form of torch.distributed."""
    return _FOR_EVER if timeout_s is None else datetime.timedelta(seconds=timeout_s)


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn the errors of torch.distributed into ours.

    Args:
        what: What is done, for the message.
    """
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if isinstance(error, CommunicationError):
            raise
        raise CommunicationError(
            f"{what} failed in torch.distributed: {one_line(str(error))}. A peer has ended, was stopped, or calls "
            "something else (other operations, lengths or tags); look at what the other ranks do, or raise timeout_s."
        ) from error


def check_backend(backend: str) -> None:
    """Check that this build of PyTorch has a backend.

    Raises:
        MissingDependencyError: It has not.
    """
    is_there = dist.is_available() and {"gloo": dist.is_gloo_available, "nccl": dist.is_nccl_available}[backend]()
    if not is_there:
        raise MissingDependencyError(
            f"The communicator 'torch_distributed' needs PyTorch with {backend}, which this build "
            f"({torch.__version__}) lacks. Install one that has it (GPUs need a build with CUDA), or use 'mpi'."
        )


def meet(timeout_s: float | None) -> tuple[Any, LaunchEnvironment]:
    """Return a store that all ranks of a launcher share, with names of its own, and how this one was started.

    Args:
        timeout_s: How long to wait for the others.

    Raises:
        CommunicationError: The ranks do not know where to meet, or others do not come.
    """
    environment = detect()
    name = f"deep500/{next(_numbers)}"
    if environment.size == 1:
        return named(name, _untyped.HashStore()), environment
    missing = [variable for variable in ("MASTER_ADDR", "MASTER_PORT") if variable not in os.environ]
    if missing:
        raise CommunicationError(
            f"{environment.launcher} started {environment.size} ranks, but the environment lacks "
            f"{' and '.join(missing)}, where torch.distributed has them meet. Start them with torchrun "
            f"--nproc-per-node {environment.size}, which sets all, or set an address and a free port of the first "
            "rank's machine."
        )
    what = f"The meeting of {environment.size} ranks at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    with translated(what):
        found: Iterator[tuple[Any, int, int]] = _untyped.rendezvous(
            "env://", environment.rank, environment.size, timeout=seconds(timeout_s)
        )
        store, _, _ = next(found)
    return named(name, store), environment


def named(name: str, store: Any) -> Any:
    """Return a part of a store in which names do not meet those outside."""
    return _untyped.PrefixStore(name, store)


def new_group(backend: str, store: Any, rank: int, size: int, timeout_s: float | None) -> Any:
    """Return a process group of its own, beside that of ``init_process_group``.

    ``new_group`` of torch.distributed must be called by all ranks of the world, or names groups by how many a rank is
    in, which differs between ranks as soon as groups are split again; a store with a name of the group's own has
    neither limit.

    Args:
        backend: ``"gloo"`` or ``"nccl"``.
        store: Where the ranks of the group meet.
        rank: Number of this rank in the group.
        size: Number of its ranks.
        timeout_s: After how long a peer that does not answer is an error.

    Raises:
        CommunicationError: Others do not come.
    """
    with translated(f"Forming a group of {size} ranks"):
        if backend == "gloo":
            return dist.ProcessGroupGloo(store, rank, size, seconds(timeout_s))
        options = dist.ProcessGroupNCCL.Options()
        # Its watchdog ends the process; a wait that is ours raises an error before.
        options._timeout = seconds(None if timeout_s is None else 2 * timeout_s + 10)
        return dist.ProcessGroupNCCL(store, rank, size, options)


def count_of_machine(store: Any, rank: int, size: int) -> int:
    """Return the number of a rank among those of its machine, found through the store."""
    with translated("Comparing the machines of all ranks"):
        store.set(f"machine/{rank}", socket.gethostname())
        machines = [store.get(f"machine/{other}") for other in range(size)]
    return machines[:rank].count(machines[rank])
