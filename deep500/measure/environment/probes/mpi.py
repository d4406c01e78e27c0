"""MPI: how the process was launched, and which launcher is installed."""

from __future__ import annotations

import re

from deep500.measure.environment.probe import Field
from deep500.measure.environment.system import System, UnreadableError

__all__ = ["mpi"]

#: The variable by which each launcher is known; the first that is set counts.
_LAUNCHERS = {
    "OMPI_COMM_WORLD_SIZE": "Open MPI",
    "MV2_COMM_WORLD_SIZE": "MVAPICH",
    "PALS_RANKID": "HPE PALS",
    "FLUX_JOB_SIZE": "Flux",
    "PMI_SIZE": "PMI (such as MPICH's Hydra)",
    "SLURM_STEP_NUM_TASKS": "Slurm",
    "TORCHELASTIC_RUN_ID": "torchrun",
}

_VARIABLES = """
    OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_SIZE OMPI_COMM_WORLD_LOCAL_RANK
    MV2_COMM_WORLD_SIZE MV2_COMM_WORLD_RANK MV2_COMM_WORLD_LOCAL_SIZE MV2_COMM_WORLD_LOCAL_RANK
    PMI_SIZE PMI_RANK PMIX_RANK MPI_LOCALNRANKS MPI_LOCALRANKID PALS_RANKID PALS_LOCAL_RANKID
    FLUX_JOB_SIZE FLUX_JOB_NNODES FLUX_TASK_RANK
    SLURM_NNODES SLURM_NTASKS SLURM_PROCID SLURM_LOCALID SLURM_TASKS_PER_NODE SLURM_CPUS_PER_TASK SLURM_CPU_BIND
    SLURM_STEP_NUM_TASKS SLURM_STEP_NUM_NODES SLURM_DISTRIBUTION
    WORLD_SIZE RANK LOCAL_WORLD_SIZE LOCAL_RANK
    UCX_TLS UCX_NET_DEVICES FI_PROVIDER I_MPI_FABRICS I_MPI_PIN I_MPI_PIN_DOMAIN
    NCCL_ALGO NCCL_PROTO NCCL_IB_DISABLE NCCL_P2P_DISABLE NCCL_NET GLOO_DEVICE_TRANSPORT
"""


def mpi(system: System) -> dict[str, Field]:
    """Tell the launcher of the process, its rank, and the version of mpiexec."""
    return {
        "launcher": Field("string|null", "What launched the process; null: no launcher.", lambda: _launcher(system)),
        "variables": Field(
            "object", "Variables of launchers that are set.", lambda: system.variables(_VARIABLES.split())
        ),
        "mpiexec": Field("string", "The mpiexec that would be used, with its version.", lambda: _mpiexec(system)),
    }


def _launcher(system: System) -> str | None:
    return next((name for variable, name in _LAUNCHERS.items() if variable in system.environment), None)


def _mpiexec(system: System) -> str:
    output = system.run("mpiexec", "--version")
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        raise UnreadableError("mpiexec --version wrote nothing")
    version = re.search(r"^\s*Version:\s*(\S+)", output, re.MULTILINE)
    return f"MPICH Hydra {version[1]}" if lines[0].startswith("HYDRA") and version else lines[0]
