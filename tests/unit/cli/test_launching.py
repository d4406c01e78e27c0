"""``deep500 run`` with ranks: what is wrong is one line, said before any rank is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from deep500.cli import launching
from deep500.cli.launching import launch_if_asked, told_once
from deep500.cli.main import run_command
from deep500.core.errors import CommunicationError
from deep500.distributed.rank_options import RankOptions


class _Ended(BaseException):
    """In the place of the end of the process."""


Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PMI_RANK", "PMI_SIZE", "RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("deep500.distributed._launch_limits.free_memory_bytes", lambda: 8 << 30)
    monkeypatch.setattr("deep500.distributed.launch.find_mpiexec", None)  # nothing is started


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ranks", "0"], "--ranks was given as 0; accepted are whole numbers from 1"),
        (["--ranks", "-1"], "--ranks was given as -1"),
        (["--ranks", "a"], "Invalid value for '--ranks'"),
        (["--ranks", "1.5"], "Invalid value for '--ranks'"),
        (["--ranks", "1000000000"], "accepted are up to 65536"),
        (["--ranks", "999"], "for 128 such processes"),
        (["--ranks", "2", "--timeout", "nan"], "--timeout was given as nan; accepted is a number of seconds above 0"),
        (["--ranks", "2", "--timeout", "inf"], "--timeout was given as inf"),
        (["--ranks", "2", "--timeout", "-1"], "--timeout was given as -1"),
        (["--ranks", "2", "--communicator", "mpj"], "There is no communicator named 'mpj'"),
        (["--ranks", "2", "--rank-logs", ""], "--rank-logs was given as an empty text"),
        (["--rank-logs", "logs"], "Accepted with --ranks N"),
        (["--ranks", "2", "--output", "no/such/r.json"], "The result cannot be written to no/such/r.json"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: Capture, tmp_path: Path) -> None:
    assert run_command(["run", "digits_mlp", *arguments]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert message in captured.err
    assert not list(tmp_path.iterdir())


def test_single_rank_whose_output_is_to_be_kept_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(
        "deep500.distributed.launch.launch",
        lambda command, ranks, *, rank_logs, **more: started.append((command[-1], ranks, rank_logs)) or 0,
    )
    assert launch_if_asked(["run", "x"], 1, None, RankOptions()) is None
    assert launch_if_asked(["run", "x"], 1, "logs", RankOptions()) == 0
    assert started == [("x", 1, "logs")]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """Be rank 1 of 4, and return what ends all of them."""
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "4")
    found: list[tuple[str, int, str]] = []

    def end_all_ranks(message: str, code: int, *, text: str = "", error: str = "") -> None:
        found.append((message, code, error))
        raise _Ended

    monkeypatch.setattr("deep500.distributed.rank_process.end_all_ranks", end_all_ranks)
    return found


def test_mistake_of_a_rank_ends_all(told: list[tuple[str, int, str]]) -> None:
    for arguments in (["--ranks", "2"], ["--timeout", "nan"]):
        with pytest.raises(_Ended):
            run_command(["run", "digits_mlp", *arguments])
    assert [(code, error) for _, code, error in told] == [(2, "CommunicationError")] * 2
    assert "Received --ranks 2, but mpiexec started 4 ranks" in told[0][0]


def test_output_that_nobody_reads_any_more_is_no_fault(told: list[tuple[str, int, str]]) -> None:
    of_rich = SystemExit(1)
    of_rich.__context__ = BrokenPipeError()
    for error in (BrokenPipeError(), of_rich):
        with pytest.raises(_Ended), told_once():
            raise error
    assert told == [("", 141, "BrokenPipeError")] * 2


def test_process_that_is_alone_raises_as_ever() -> None:
    with pytest.raises(CommunicationError, match="wrong"), told_once():
        raise CommunicationError("wrong")
    assert launching.DEFAULT_TIMEOUT_S == 300
