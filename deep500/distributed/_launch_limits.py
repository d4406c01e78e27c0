"""How many ranks can be started: what a slip of the keyboard asks for is refused before it takes the machine down."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from deep500.core.errors import CommunicationError
from deep500.measure.environment.free_memory import free_memory_bytes

try:
    import resource

    _HAS_LIMITS = True
except ImportError:  # a system without limits of this kind
    _HAS_LIMITS = False

__all__ = ["MOST_RANKS", "allow_files", "check_ranks_fit"]

#: More ranks than this are a slip of the keyboard on any machine that can run them with one command.
MOST_RANKS = 65_536

#: What a rank takes for itself before it has read anything: Python, Deep500 and MPI; a framework comes on top.
LEAST_RANK_BYTES = 64 << 20

#: Variables by which a launcher of MPI is told of other machines, by batch systems or by hand.
_OF_OTHER_MACHINES = (
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "PBS_NODEFILE",
    "PE_HOSTFILE",
    "LSB_MCPU_HOSTS",
    "LSB_HOSTS",
    "COBALT_NODEFILE",
    "HYDRA_HOST_FILE",
    "I_MPI_HYDRA_HOST_FILE",
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
)

#: Files that the launcher opens for each rank, and for itself.
_FILES_A_RANK, _OWN_FILES = 4, 64


def check_ranks_fit(ranks: int, variables: Mapping[str, str]) -> None:
    """Check that so many ranks can be there at all: on this machine, unless a batch system has others.

    Args:
        ranks: How many.
        variables: Environment variables.

    Raises:
        CommunicationError: They are too many.
    """
    if ranks > MOST_RANKS:
        raise CommunicationError(
            f"{ranks} ranks were asked for; accepted are up to {MOST_RANKS}, each of which is a process. Name fewer."
        )
    if any(variables.get(name) for name in _OF_OTHER_MACHINES):
        return
    free = free_memory_bytes()
    if ranks > 1 and ranks * LEAST_RANK_BYTES > free:
        most = max(1, free // LEAST_RANK_BYTES)
        raise CommunicationError(
            f"{ranks} ranks were asked for, each of which is a process that takes {LEAST_RANK_BYTES >> 20} MiB before "
            f"it begins; of this machine's memory {free >> 20:,} MiB are free, for {most} such processes. Start fewer, "
            f"or on several machines through their batch system."
        )


def allow_files(ranks: int) -> None:
    """Let this process open as many files as it takes to watch over some ranks, where the system lets it.

    Raises:
        CommunicationError: The system does not.
    """
    if not _HAS_LIMITS:
        return
    needed = ranks * _FILES_A_RANK + _OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise CommunicationError(
            f"{ranks} ranks were asked for, for which {needed} files have to be open at once; this system allows "
            f"{hard} (ulimit -Hn). Start fewer ranks, or have the limit raised."
        )
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
