"""Folders end with what uses them; those of a process that was killed are removed by the next one, and no others."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deep500.core.errors import FileWriteError
from deep500.distributed._run_folder import SOCKET_NAME, remove_abandoned, run_folder
from deep500.distributed.launch import _FILES

NAMES = re.compile(r"s|rank-\d+\.log")
HOLDER = """
import re, sys, tempfile
from deep500.distributed._run_folder import run_folder
tempfile.tempdir = sys.argv[1]
with run_folder("d5-", re.compile("s")) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder whose path is short enough for a socket."""
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def made(place: Path, name: str, *files: str, age_s: float = 3600.0) -> Path:
    folder = place / name
    folder.mkdir()
    for file in files:
        (folder / file).write_text("x")
    then = folder.stat().st_mtime - age_s
    os.utime(folder, (then, then))
    return folder


def test_folder_is_private_and_ends_with_its_block(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    with run_folder("d5-", NAMES) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "anything").write_text("")
    assert not folder.exists()


def test_what_nobody_uses_is_removed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    abandoned = [made(place, "d5-empty"), made(place, "d5-full", "rank-1.log")]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(made(place, "d5-closed") / SOCKET_NAME))  # the file stays when nobody listens
    os.utime(place / "d5-closed", (0, 0))
    with run_folder("d5-", NAMES):
        assert not any(folder.exists() for folder in [*abandoned, place / "d5-closed"])


def test_what_may_be_used_or_is_not_of_this_kind_stays(place: Path) -> None:
    young = made(place, "d5-young", age_s=0.0)
    foreign = made(place, "d5-foreign", "rank-1.log", "thesis.tex")
    other = made(place, "e5-other")
    (place / "d5-link").symlink_to(made(place, "target"))
    (place / "d5-file").write_text("")
    with socket.socket(socket.AF_UNIX) as listener:
        answered = made(place, "d5-answered")
        listener.bind(str(answered / SOCKET_NAME))
        listener.listen(1)
        os.utime(answered, (0, 0))
        assert remove_abandoned(str(place), "d5-", NAMES) == []
    assert all(path.exists() for path in (young, foreign / "thesis.tex", other, place / "d5-link", answered))


def test_lock_is_held_as_long_as_the_process_lives(place: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = process.stdout.readline().strip()
        os.utime(folder, (0, 0))
        assert remove_abandoned(str(place), "d5-", NAMES) == []
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
    assert remove_abandoned(str(place), "d5-", NAMES) == [folder]
    assert not list(place.iterdir())


def test_names_of_a_launchers_files_are_known() -> None:
    for name in ("s", "rank-0.log", "rank-12.log", "finished.3.json", "failed.0.json", ".failed.1.4711"):
        assert _FILES.fullmatch(name), name
    assert not _FILES.fullmatch("ss")


def test_place_that_cannot_be_written_to_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(FileWriteError, match="TMPDIR"), run_folder("d5-", NAMES):
        pass
