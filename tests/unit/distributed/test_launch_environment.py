from __future__ import annotations

import pytest

from deep500.core.errors import CommunicationError, UnknownNameError
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.launch_environment import LaunchEnvironment, create_communicator, detect

MPICH = {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
SRUN = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "6", "SLURM_LOCALID": "2", "SLURM_STEP_ID": "0"}


@pytest.fixture(autouse=True)
def started_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {**MPICH, **OPEN_MPI, **TORCHRUN, **SRUN}:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, LaunchEnvironment("none", 0, 1, None)),
        (MPICH, LaunchEnvironment("mpiexec", 1, 4, 1)),
        (OPEN_MPI, LaunchEnvironment("Open MPI's mpiexec", 2, 8, 0)),
        (TORCHRUN, LaunchEnvironment("torchrun", 3, 4, 1)),
        (SRUN, LaunchEnvironment("srun", 5, 6, 2)),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, LaunchEnvironment("mpiexec", 0, 1, None)),
        ({"RANK": "0"}, LaunchEnvironment()),
        # srun starts the launcher, one a node, which starts the ranks.
        ({**SRUN, **TORCHRUN}, LaunchEnvironment("torchrun", 3, 4, 1)),
        ({**SRUN, **MPICH}, LaunchEnvironment("mpiexec", 1, 4, 1)),
        # A batch script and an interactive shell are one process, whatever the number of tasks.
        ({**SRUN, "SLURM_STEP_ID": "4294967291"}, LaunchEnvironment()),
        ({name: value for name, value in SRUN.items() if name != "SLURM_STEP_ID"}, LaunchEnvironment()),
    ],
)
def test_launcher_is_recognised(variables: dict[str, str], expected: LaunchEnvironment) -> None:
    assert detect(variables) == expected


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({**TORCHRUN, "RANK": "one"}, "RANK='one'"),
        ({**TORCHRUN, "WORLD_SIZE": "-4"}, "WORLD_SIZE='-4'"),
        ({**TORCHRUN, "WORLD_SIZE": ""}, "WORLD_SIZE=''"),
        ({**TORCHRUN, "RANK": "4"}, "rank 4 of 4"),
        ({**MPICH, "PMI_SIZE": "0"}, "rank 1 of 0"),
        ({**MPICH, **TORCHRUN}, "rank 1 of 4 .mpiexec. and rank 3 of 4 .torchrun."),
        ({**MPICH, **OPEN_MPI}, "one launcher"),
    ],
)
def test_contradictions_are_refused(variables: dict[str, str], reason: str) -> None:
    with pytest.raises(CommunicationError, match=reason):
        detect(variables)


def test_process_that_was_started_alone_is_its_only_rank() -> None:
    communicator = create_communicator(timeout_s=5)

    assert isinstance(communicator, LocalCommunicator)
    assert (communicator.rank, communicator.size, communicator.timeout_s) == (0, 1, 5)


def test_single_rank_among_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in MPICH.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(CommunicationError, match="each train alone"):
        create_communicator("local")


@pytest.mark.parametrize("name", [None, "mpi"])
def test_mpi_under_torchrun_is_refused(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in TORCHRUN.items():
        monkeypatch.setenv(variable, value)

    with pytest.raises(CommunicationError, match="torchrun started 4 ranks"):
        create_communicator(name)


def test_unknown_name_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Known: local, mpi"):
        create_communicator("pigeons")


@pytest.mark.parametrize(
    ("name", "variables", "reason"),
    [
        ("mpi", MPICH, "'mpi', which cannot go on when a rank fails"),
        ("simulated", OPEN_MPI, "'simulated', which cannot go on"),
        (None, TORCHRUN, "'torch_distributed', which cannot go on"),
        ("ulfm", TORCHRUN, "torchrun started 4 ranks"),
    ],
)
def test_communicator_that_does_not_survive_is_refused(
    name: str | None, variables: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name is None:
        pytest.importorskip("torch")
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)

    with pytest.raises(CommunicationError, match=reason):
        create_communicator(name, on_failure="shrink")


def test_single_rank_has_nobody_to_lose() -> None:
    assert isinstance(create_communicator(on_failure="shrink"), LocalCommunicator)


def test_unknown_way_to_fail_is_refused() -> None:
    with pytest.raises(
        CommunicationError, match=r"on_failure was given as 'ignore'; accepted is one of: abort, shrink"
    ):
        create_communicator(on_failure="ignore")


def test_simulated_ranks_are_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in MPICH.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CommunicationError, match=r"'simulated', whose ranks are a clock .* mpiexec started 4 ranks"):
        create_communicator("simulated")
