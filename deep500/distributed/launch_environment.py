"""How the process was started: alone, or as one rank of many by ``mpiexec``, ``srun`` or ``torchrun``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from deep500.core.errors import CommunicationError
from deep500.core.texts import shown
from deep500.distributed.catalogue import COMMUNICATORS
from deep500.distributed.communicator import Communicator
from deep500.distributed.rank_options import ON_FAILURE, checked_timeout
from deep500.distributed.surviving_communicator import SurvivingCommunicator

__all__ = ["LaunchEnvironment", "create_communicator", "detect"]

#: What each launcher tells a rank: its number, the number of ranks, its number on the machine. Where several have left
#: variables, the earlier one counts: MPI's launcher and torchrun are often started by srun, one a node.
_LAUNCHERS = (
    ("Open MPI's mpiexec", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
)

#: The communicator of ranks that ``torchrun`` started, and the one of those that are to go on when one fails.
_OF_TORCHRUN = "torch_distributed"
_SURVIVING = "ulfm"

#: Slurm numbers the steps that are no ``srun`` (a batch script, an interactive shell) from here.
_SLURM_OTHER_STEPS = 0xFFFFFFF0


@dataclass(frozen=True)
class LaunchEnvironment:
    """What the launcher says.

    Attributes:
        launcher: ``"mpiexec"``, ``"Open MPI's mpiexec"``, ``"srun"``, ``"torchrun"``, or ``"none"``.
        rank: Number of this process.
        size: Number of processes.
        local_rank: Number among those of this machine; ``None`` where the launcher does not say.
    """

    launcher: str = "none"
    rank: int = 0
    size: int = 1
    local_rank: int | None = None


def detect(variables: Mapping[str, str] | None = None) -> LaunchEnvironment:
    """Return how this process was started.

    Args:
        variables: Environment variables; by default those of the process.

    Raises:
        CommunicationError: A variable is not a number, or two launchers contradict each other.
    """
    given = os.environ if variables is None else variables
    found = [
        LaunchEnvironment(
            launcher,
            _number(given, rank),
            _number(given, size),
            _number(given, local_rank) if local_rank in given else None,
        )
        for launcher, rank, size, local_rank in _LAUNCHERS
        if rank in given and size in given and (launcher != "srun" or _is_slurm_step(given))
    ]
    for environment in found:
        if not 0 <= environment.rank < environment.size:
            raise CommunicationError(
                f"The environment of {environment.launcher} names rank {environment.rank} of {environment.size}. "
                "Accepted are ranks from 0 to one less than the size; start the program again from a clean shell."
            )
    if not found:
        return LaunchEnvironment()
    started = [environment for environment in found if environment.launcher != "srun"] or found
    first = started[0]
    for other in started[1:]:
        if (other.rank, other.size) != (first.rank, first.size):
            raise CommunicationError(
                f"The environment names rank {first.rank} of {first.size} ({first.launcher}) and rank {other.rank} of "
                f"{other.size} ({other.launcher}). Accepted is one launcher; start the program with one of them."
            )
    return first


def create_communicator(
    name: str | None = None, *, timeout_s: float | None = None, on_failure: str = "abort"
) -> Communicator:
    """Return the communicator of this rank, chosen by how the process was started.

    Args:
        name: ``"mpi"``, ``"local"`` or another of ``COMMUNICATORS``; by default the one that fits.
        timeout_s: After how long a peer that does not answer is an error; ``None`` waits for ever.
        on_failure: ``"abort"``, or ``"shrink"`` for a communicator that can go on when a rank fails.

    Raises:
        CommunicationError: The communicator does not see the ranks that the launcher started, or cannot go on without
            one of them though it is to.
        UnknownNameError: There is no communicator of this name.
    """
    if on_failure not in ON_FAILURE:
        raise CommunicationError(
            f"on_failure was given as {shown(on_failure)}; accepted is one of: {', '.join(ON_FAILURE)}."
        )
    checked_timeout(timeout_s)
    environment = detect()
    shrinks = on_failure == "shrink"
    chosen = _fitting(environment, shrinks) if name is None else name
    kind = COMMUNICATORS.get(chosen)
    started = f"{environment.launcher} started {environment.size} ranks"
    if shrinks and environment.size > 1 and not issubclass(kind, SurvivingCommunicator):
        raise CommunicationError(
            f"Received on_failure='shrink' with the communicator {chosen!r}, which cannot go on when a rank fails. "
            f"Accepted is {_SURVIVING!r}, which runs on Open MPI under mpiexec --with-ft ulfm (pip install "
            f"'deep500[ulfm]'); or on_failure='abort'."
        )
    if chosen == "local" and environment.size > 1:
        raise CommunicationError(
            f"Received the communicator 'local' of a single rank, but {started}, which would each train alone. Leave "
            "the name out, or start a single process."
        )
    if chosen == "simulated" and environment.size > 1:
        raise CommunicationError(
            f"Received the communicator 'simulated', whose ranks are a clock in a single process, but {started}. Start "
            "a single process, or leave the name out."
        )
    if chosen in ("mpi", _SURVIVING) and environment.launcher == "torchrun" and environment.size > 1:
        raise CommunicationError(
            f"Received the communicator {chosen!r}, but {started}, of which MPI sees each alone (size 1). Start them "
            f"with mpiexec -n {environment.size}, or name a communicator that torchrun serves."
        )
    communicator: Communicator = kind(timeout_s=timeout_s)
    if (communicator.size, communicator.rank) != (
        environment.size,
        environment.rank,
    ) and environment.launcher != "none":
        raise CommunicationError(
            f"The communicator {chosen!r} sees rank {communicator.rank} of {communicator.size}, but {started} and "
            f"named this one {environment.rank}. The launcher belongs to another MPI library than mpi4py; use the "
            "launcher of mpi4py's (python -c 'from mpi4py import MPI; print(MPI.Get_library_version())'), "
            "or with srun its --mpi."
        )
    return communicator


def _fitting(environment: LaunchEnvironment, shrinks: bool) -> str:
    if environment.size == 1:
        return "local"
    if environment.launcher != "torchrun":
        return _SURVIVING if shrinks else "mpi"
    if _OF_TORCHRUN in COMMUNICATORS:
        return _OF_TORCHRUN
    raise CommunicationError(
        f"torchrun started {environment.size} ranks (WORLD_SIZE), of which MPI would see each alone (size 1). Start "
        f"them with mpiexec -n {environment.size}, or install a communicator named {_OF_TORCHRUN}."
    )


def _number(variables: Mapping[str, str], name: str) -> int:
    text = variables[name]
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise CommunicationError(
            f"Received {name}={shown(text)} in the environment. Accepted are whole numbers from 0."
        )
    return int(text)


def _is_slurm_step(variables: Mapping[str, str]) -> bool:
    """Return whether ``srun`` started the process: a batch script has most of the variables too."""
    step = variables.get("SLURM_STEP_ID", "")
    return step.isascii() and step.isdigit() and int(step) < _SLURM_OTHER_STEPS
