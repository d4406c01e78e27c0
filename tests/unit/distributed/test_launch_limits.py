"""More ranks than can be there are refused before anything is started."""

from __future__ import annotations

import resource

import pytest

from deep500.core.errors import CommunicationError
from deep500.distributed import _launch_limits
from deep500.distributed._launch_limits import allow_files, check_ranks_fit
from deep500.distributed.launch import launch


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_launch_limits, "free_memory_bytes", lambda: 1 << 30)


def test_slip_of_the_keyboard_is_refused_everywhere() -> None:
    with pytest.raises(CommunicationError, match="1000000000 ranks were asked for; accepted are up to 65536"):
        check_ranks_fit(10**9, {"SLURM_JOB_ID": "7"})


def test_memory_of_this_machine_is_the_limit_where_there_is_no_other() -> None:
    check_ranks_fit(16, {})
    with pytest.raises(CommunicationError, match=r"17 ranks .* 1,024 MiB are free, for 16 such processes"):
        check_ranks_fit(17, {})
    for variable in ("SLURM_JOB_ID", "PBS_NODEFILE", "HYDRA_HOST_FILE"):
        check_ranks_fit(17, {variable: "x"})


def test_single_rank_is_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_launch_limits, "free_memory_bytes", lambda: 0)
    check_ranks_fit(1, {})


def test_launch_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deep500.distributed.launch.find_mpiexec", None)  # nothing is looked for
    with pytest.raises(CommunicationError, match="1000 ranks were asked for"):
        launch(["-m", "this"], 1000, variables={})


def test_limit_of_open_files_is_raised_as_far_as_the_system_lets(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 1000))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: found.append(limits))
    allow_files(10)
    allow_files(100)
    assert found == [(464, 1000)]
    with pytest.raises(CommunicationError, match=r"4064 files .* allows 1000"):
        allow_files(1000)
