from __future__ import annotations

import os
import shutil
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from deep500.fleet.compat.environments import (
    EnvironmentFailedError,
    EnvironmentMaker,
    MadeEnvironment,
    _mark,
    cache_folder,
    find_python,
    private_folder,
)
from deep500.fleet.compat.processes import OutOfTimeError
from tests.unit.fleet.compat.support import HERE, fleet_cache  # noqa: F401 - a fixture
from tests.unit.fleet.compat.tiny_wheels import make_frameworks, make_wheel


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    make_frameworks(tmp_path / "wheels")
    return tmp_path / "wheels"


def made_of(cache: Path, wheels: Path, *lines: str, limit_s: float = 120.0) -> MadeEnvironment:
    requirements = wheels.parent / "requirements.txt"
    requirements.write_text("\n".join(["--no-index", f"--find-links {wheels}", *lines]) + "\n")
    with (wheels.parent / "out").open("a") as output, (wheels.parent / "err").open("a") as errors:
        return EnvironmentMaker(cache, time.monotonic() + limit_s, output, errors).make(requirements, HERE)


def version_in(made: MadeEnvironment, name: str) -> str:
    program = f"import {name}; print({name}.__version__)"
    return subprocess.run(
        [str(made.python), "-I", "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_made_once_for_each_lock_and_never_half(fleet_cache: Path, wheels: Path) -> None:  # noqa: F811
    first = made_of(fleet_cache, wheels, "fleetlow==1.0")
    assert version_in(first, "fleetlow") == "1.0"
    assert "fleetlow==1.0 --hash=sha256:" in first.lock
    assert "MB" in first.text
    assert "GB left" in first.text
    again = made_of(fleet_cache, wheels, "fleetlow<2")  # another request with the same answer
    assert (again.reused, again.python, again.lock_hash) == (True, first.python, first.lock_hash)
    folder = first.python.parent.parent
    assert stat.S_IMODE(fleet_cache.stat().st_mode) == 0o700
    shutil.rmtree(folder / "bin")  # someone cleaned up
    repaired = made_of(fleet_cache, wheels, "fleetlow==1.0")
    assert (repaired.reused, repaired.lock_hash) == (False, first.lock_hash)


@pytest.mark.slow
def test_another_file_of_the_same_name_is_another_environment(fleet_cache: Path, wheels: Path) -> None:  # noqa: F811
    first = made_of(fleet_cache, wheels, "fleetlow==1.0")
    make_wheel(wheels, "fleetlow", "1.0", "__version__ = 'changed'\n")
    other = made_of(fleet_cache, wheels, "fleetlow==1.0")
    assert other.lock_hash != first.lock_hash
    assert version_in(other, "fleetlow") == "changed"


@pytest.mark.parametrize("text", [None, "", "{", "[]"])
def test_only_a_mark_that_can_be_read_says_that_it_is_whole(text: str | None, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    if text is not None:
        (tmp_path / "finished.json").write_text(text)
    assert _mark(tmp_path) is None
    (tmp_path / "finished.json").write_text('{"pip": "25.0"}')
    assert _mark(tmp_path) == {"pip": "25.0"}
    (tmp_path / "bin" / "python").unlink()  # the Python that it was made with was taken away
    assert _mark(tmp_path) is None


@pytest.mark.slow  # a whole campaign has such a cell by default
def test_what_contradicts_what_is_said(fleet_cache: Path, wheels: Path) -> None:  # noqa: F811
    with pytest.raises(EnvironmentFailedError) as raised:
        made_of(fleet_cache, wheels, "fleetgamma==2.0")
    assert "fleetgamma 2.0 depends on fleetlow<2" in str(raised.value)
    assert str(wheels.parent) not in str(raised.value)
    with pytest.raises(EnvironmentFailedError, match="No matching distribution found for fleetnone"):
        made_of(fleet_cache, wheels, "fleetnone")
    assert "No matching distribution" in (wheels.parent / "err").read_text()


def test_a_failed_installation_leaves_nothing(fleet_cache: Path, wheels: Path) -> None:  # noqa: F811
    make_wheel(wheels, "fleetevil", "1.0", "", more={"../../../../evil.txt": "outside"})  # pip notices when it unpacks
    with pytest.raises(EnvironmentFailedError, match=r"The installation failed: .*outside"):
        made_of(fleet_cache, wheels, "fleetevil")
    made = [folder for folder in (fleet_cache / "environments").iterdir() if folder.is_dir()]
    assert all((folder / "finished.json").exists() for folder in made)


@pytest.mark.slow
def test_from_nothing(tmp_path: Path, wheels: Path) -> None:
    assert version_in(made_of(tmp_path / "cache", wheels, "fleetlow==1.0"), "fleetlow") == "1.0"


def test_deadlines(fleet_cache: Path, wheels: Path) -> None:  # noqa: F811
    with pytest.raises(OutOfTimeError):
        made_of(fleet_cache, wheels, "fleetlow==1.0", limit_s=0.0)


@pytest.mark.slow  # cells of one campaign that make one environment at once do so by default
def test_two_at_a_time_wait_for_each_other(fleet_cache: Path, wheels: Path) -> None:  # noqa: F811
    make_wheel(wheels, "fleetlow", "3.0", f"mark = {time.time()}\n")  # one that no other test has made
    found: list[MadeEnvironment] = []
    threads = [
        threading.Thread(target=lambda: found.append(made_of(fleet_cache, wheels, "fleetlow==3.0"))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made.reused for made in found) == [False, True]
    assert version_in(found[0], "fleetlow") == "3.0"


def test_pythons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentFailedError, match=r"There is no Python 3\.99 on this machine"):
        find_python("3.99")
    launcher = tmp_path / "python3.99"
    launcher.write_text("#!/bin/sh\nexit 127\n")  # as launchers are that know no such version
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(EnvironmentFailedError):
        find_python("3.99")
    launcher.write_text("#!/bin/sh\necho 3.99\n")
    assert find_python("3.99") == str(launcher)


def test_cache_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEP500_FLEET_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    (tmp_path / "own").mkdir(mode=0o755)
    private_folder(tmp_path / "own")
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700
    monkeypatch.setattr("os.getuid", lambda: -1)
    with pytest.raises(EnvironmentFailedError, match="belongs to another user"):
        private_folder(tmp_path / "own")
