"""What a launcher does by itself; tests/conformance/test_faults.py launches."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deep500.cli.launching import launch_if_asked
from deep500.core.errors import CommunicationError, FileWriteError, MissingDependencyError
from deep500.distributed import _launch_watch
from deep500.distributed import launch as launching
from deep500.distributed._launch_link import BEGUN, HELLO, STARTING
from deep500.distributed._launch_processes import Member, end_sessions, session_of
from deep500.distributed._launch_records import RankRecord, Records, record_of_line
from deep500.distributed._launch_streams import LauncherOutput, RankStreams, last_lines
from deep500.distributed._launch_verdict import verdict
from deep500.distributed._launch_watch import Watch
from deep500.distributed._run_folder import SOCKET_NAME
from deep500.distributed.launch import find_mpiexec, launch
from deep500.distributed.rank_options import RankOptions

BANNER = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 4711 RUNNING AT node
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PMI_RANK", "PMI_SIZE", "RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)


def test_first_word_of_a_rank_counts_and_a_failure_before_an_end(tmp_path: Path) -> None:
    writing, reading = Records(tmp_path), Records(tmp_path)
    assert writing.write(RankRecord(1, False, 2, "ValueError", "first"))
    reading.read()
    assert writing.write(RankRecord(1, False, 2, "ValueError", "second"))
    assert writing.write(RankRecord(1, True, 0))
    assert writing.write(RankRecord(0, True, 3))
    reading.read()

    assert [record.message for record in reading.failed.values()] == ["first"]
    assert {rank: record.code for rank, record in reading.finished.items()} == {0: 3}
    assert [reading.ended(rank) for rank in range(3)] == [True, True, False]
    assert not Records(tmp_path / "elsewhere").write(RankRecord(0, True, 0))


def test_launcher_of_mpi_is_heard_but_for_its_own_words_and_records(tmp_path: Path) -> None:
    record = RankRecord(2, False, 1, "KeyError", "é")
    source, writing = os.pipe()
    target = os.open(tmp_path / "told", os.O_WRONLY | os.O_CREAT)
    found: list[RankRecord] = []
    output = LauncherOutput(source, target, found.append)
    os.write(writing, b"one\n\ntwo\n" + record.line().encode() + BANNER.encode() + b"a question? ")
    assert output.move()
    os.close(writing)
    assert not output.move()
    output.close()

    assert (tmp_path / "told").read_text() == "one\n\ntwo\na question? "
    assert (found, output.ended_pid, output.ended_by) == ([record], 4711, 9)
    assert record_of_line(record.line()[:-5]) is None
    for descriptor in (source, target):
        os.close(descriptor)


def test_rank_0_has_a_terminal_where_its_output_is_kept_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, terminal = os.openpty()
    monkeypatch.setattr("deep500.distributed._launch_streams.STANDARD", (terminal, terminal))
    streams = RankStreams(tmp_path, tmp_path / "logs", lambda source, move: None)
    (out, err), close = streams.of(0)
    assert os.isatty(out)
    assert os.isatty(err)
    os.write(out, b"\x1b[1mbold\x1b[0m\r\n")
    streams.drain()
    close()
    assert os.read(reading, 100).replace(b"\r\r", b"\r") == b"\x1b[1mbold\x1b[0m\r\n"
    assert last_lines(tmp_path / "logs" / "rank-0.log") == ["\x1b[1mbold\x1b[0m"]
    os.close(reading)
    os.close(terminal)


def test_logs_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileWriteError, match="cannot be written to"):
        RankStreams(tmp_path, tmp_path / "file" / "logs", lambda source, move: None)


def seen(tmp_path: Path, *records: RankRecord, ranks: int = 2, **more: Any) -> Any:
    found = Records(tmp_path)
    for record in records:
        found.add(record)
    members = {rank: SimpleNamespace(pid=100 + rank) for rank in range(ranks)}
    values: dict[str, Any] = {"lost": [], "stopped": [], "strangers": 0, "members": members, "outputs": []}
    values |= {
        "log": lambda rank: tmp_path / f"rank-{rank}.log",
        "ended_first": None,
        "signal_that_ended": lambda rank: None,
        **more,
    }
    return SimpleNamespace(ranks=ranks, records=found, **values)


@pytest.mark.parametrize(("codes", "code"), [((0, 0), 0), ((1, 1), 1), ((0, 4), 4)])
def test_code_is_that_of_the_ranks(codes: tuple[int, ...], code: int, tmp_path: Path) -> None:
    watch = seen(tmp_path, *(RankRecord(rank, True, of_rank) for rank, of_rank in enumerate(codes)))
    assert verdict(watch, 7, shrinks=False).told() == code


def test_mistake_is_told_once_by_the_lowest_rank_that_has_it(tmp_path: Path) -> None:
    mistakes = [RankRecord(rank, False, 2, "RecipeError", "wrong") for rank in (2, 1)]
    peer = RankRecord(0, False, 2, "CommunicationError", "rank 1 has ended")
    assert verdict(seen(tmp_path, peer, *mistakes, ranks=3), 1, shrinks=False).lines == ["Error: rank 1: wrong"]
    first = RankRecord(0, False, 2, "RecipeError", "wrong")
    assert verdict(seen(tmp_path, first, *mistakes, ranks=3), 1, shrinks=False).lines == ["Error: wrong"]


def test_traceback_has_the_number_of_its_rank(tmp_path: Path) -> None:
    faults = [RankRecord(rank, False, 1, "ValueError", "", f"Traceback\nof {rank}\n") for rank in (0, 1)]
    found = verdict(seen(tmp_path, *faults), 1, shrinks=False)

    assert found.code == 1
    assert list(found.lines[:2]) == ["[rank 0] Traceback", "[rank 0] of 0"]
    assert found.lines[2].startswith("(Rank 1 failed as well;")


@pytest.mark.parametrize(("number", "message"), [(9, "was ended by SIGKILL.*memory is short"), (None, "os._exit")])
def test_rank_that_says_nothing_is_a_failure(number: int | None, message: str, tmp_path: Path) -> None:
    (tmp_path / "rank-1.log").write_text("last\nwords\n")
    watch = seen(tmp_path, RankRecord(0, True, 0), lost=[1], ended_first=1, signal_that_ended=lambda rank: number)
    found = verdict(watch, 0, shrinks=False)

    assert found.lines == ["[rank 1] last", "[rank 1] words"]
    with pytest.raises(CommunicationError, match=f"Rank 1 of 2 .*{message}"):
        found.told()


def test_missing_end_is_a_failure_whatever_the_launcher_says(tmp_path: Path) -> None:
    with pytest.raises(CommunicationError, match="Rank 1 of 2 did not come to an end"):
        verdict(seen(tmp_path, RankRecord(0, True, 0)), 0, shrinks=False).told()
    with pytest.raises(CommunicationError, match="before any of 2 ranks had begun"):
        verdict(seen(tmp_path, members={}), 0, shrinks=False).told()
    with pytest.raises(CommunicationError, match="another MPI than mpi4py"):
        verdict(seen(tmp_path, strangers=1), 0, shrinks=False).told()
    with pytest.raises(CommunicationError, match="Rank 0 left with exit code 3 while Rank 1 went on"):
        verdict(seen(tmp_path, RankRecord(0, True, 3)), 0, shrinks=False).told()


def test_ranks_that_are_left_may_go_on(tmp_path: Path) -> None:
    found = verdict(seen(tmp_path, RankRecord(1, True, 0), lost=[0]), 9, shrinks=True)
    assert (found.told(), found.lines) == (0, ["Rank 0 of 2 failed; the others went on without it."])


def test_what_cannot_be_launched_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for command, message in (
        ([], "what would follow python"),
        (["-c", "pass"], "what would follow python"),
        (["nothing.py"], "not there"),
    ):
        with pytest.raises(CommunicationError, match=message):
            launch(command, 2)
    with pytest.raises(CommunicationError, match="whole numbers from 1"):
        launch(["-m", "this"], 0)
    with pytest.raises(CommunicationError, match="mpiexec started 3"):
        launch(["-m", "this"], 2, variables={"PMI_RANK": "0", "PMI_SIZE": "3"})


def test_missing_mpi_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"need mpi4py.*pip install 'deep500\[mpi\]'"):
        find_mpiexec()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"need mpiexec.*pip install 'deep500\[mpi\]'"):
        find_mpiexec()


def test_cores_are_shared_out_unless_somebody_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "_cores", lambda: 8)
    assert launching._defaults({}, 3)["OMP_NUM_THREADS"] == "2"
    assert launching._defaults({}, 16)["OMP_NUM_THREADS"] == "1"
    given = {"OMP_NUM_THREADS": "5", "MASTER_ADDR": "node", "MASTER_PORT": "1"}
    assert launching._defaults(given, 2) == {}


def test_command_under_a_launcher_is_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    options = RankOptions()
    assert launch_if_asked(["run", "x"], None, None, options) is None
    assert launch_if_asked(["run", "x"], 1, None, options) is None
    with pytest.raises(CommunicationError, match="--rank-logs"):
        launch_if_asked(["run", "x"], None, "logs", options)
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "4")
    assert launch_if_asked(["run", "x"], 4, None, options) is None
    with pytest.raises(CommunicationError, match="Received --ranks 2, but mpiexec started 4"):
        launch_if_asked(["run", "x"], 2, None, options)


def test_nothing_of_a_session_is_left() -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    member = Member(1, process.pid)
    assert member.session == process.pid
    assert session_of(os.getpid()) is None
    member.send(signal.SIGSTOP)
    deadline = time.monotonic() + 30
    while not member.is_stopped():
        assert time.monotonic() < deadline
    assert member.signal_that_ended() is None
    end_sessions([process.pid], patience_s=0.1)
    if sys.platform == "linux":
        assert member.signal_that_ended() == signal.SIGKILL
    assert process.wait(timeout=30) == -signal.SIGKILL
    member.close()
    process.stdout.close()


def test_launcher_that_cannot_be_started_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "mpiexec"
    broken.write_text("not a program")
    broken.chmod(0o755)
    monkeypatch.setattr(launching, "find_mpiexec", lambda: [str(broken)])
    with tempfile.TemporaryDirectory(dir="/tmp") as place:  # the path of a socket is short
        monkeypatch.setattr("tempfile.tempdir", place)
        with pytest.raises(CommunicationError, match=r"MPI's launcher .*mpiexec cannot be started: Exec format error"):
            launch(["-m", "this"], 1, variables={})
        assert not list(Path(place).iterdir())


def test_ranks_that_start_up_need_not_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_launch_watch, "_AFTER_SIGNAL_AT_START_S", 0.0)
    with tempfile.TemporaryDirectory(dir="/tmp") as place:  # the path of a socket is short
        watch = Watch(1, Path(place), None, None, False)
        answers = threading.Thread(target=watch._greet)
        answers.start()
        with socket.socket(socket.AF_UNIX) as called:
            called.connect(f"{place}/{SOCKET_NAME}")
            called.sendall(HELLO.pack(0, 1, os.getpid()))
            answers.join()
            monkeypatch.setattr(watch.members[0], "send", lambda number: None)
            watch.pass_on(signal.SIGTERM)
            found = [watch._is_over()]
            for news in (STARTING, BEGUN, STARTING):
                called.sendall(news)
                watch._hear(watch._links[0], watch.members[0])
                watch._is_over()
                found.append(watch._is_over())
        assert found == [False, True, False, False]
        watch._selector.close()
        for stream in (watch._listener, *watch._links):
            stream.close()
        watch.members[0].close()
