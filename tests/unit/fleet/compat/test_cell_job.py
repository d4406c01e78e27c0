from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.cell_job import LOCK_FILE, run_cell
from deep500.fleet.compat.joining import join, read_record
from tests.unit.fleet.compat.support import HERE, campaign_of, cell, fleet_cache, until  # noqa: F401 - a fixture

#: A cell whose environment cannot be made on any machine, so that its job ends at once.
HOPELESS = cell(python="3.99")


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    monkeypatch.setenv("DEEP500_FLEET_CACHE", str(tmp_path / "cache"))
    made = campaign_of(tmp_path, HOPELESS)
    made.prepare([HOPELESS])
    return made


def test_code_0_says_that_the_record_is_whole(campaign: Campaign) -> None:
    folder = campaign.cell_folder(HOPELESS)
    done = subprocess.run([*campaign.job_command(HOPELESS, sys.executable)], check=False)
    assert done.returncode == 0
    outcome = join(HOPELESS, "november", read_record(folder), None)
    assert (outcome.status, (outcome.cause or "")[:27]) == ("environment", "There is no Python 3.99 on ")


def test_the_job_runs_where_its_files_were_brought_to(campaign: Campaign, tmp_path: Path) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    (place / "job").symlink_to(campaign.job_folder)
    for name in ("cell.json", "requirements.txt"):
        (place / name).write_bytes((campaign.cell_folder(HOPELESS) / name).read_bytes())
    command = campaign.job_command(HOPELESS, sys.executable, shared=False)
    assert subprocess.run(command, cwd=place, check=False).returncode == 0
    assert read_record(place).finished


def test_two_jobs_do_not_share_a_folder(campaign: Campaign) -> None:
    folder = campaign.cell_folder(HOPELESS)
    with (folder / LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run_cell(folder) == 75
    assert not (folder / "record.json").exists()


def test_a_job_that_is_asked_to_end_says_so(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(version: str) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return version

    monkeypatch.setattr("deep500.fleet.compat.environments.find_python", ended)
    assert run_cell(campaign.cell_folder(HOPELESS)) == 0
    record = read_record(campaign.cell_folder(HOPELESS))
    outcome = join(HOPELESS, "november", record, None)
    assert (outcome.status, outcome.cause) == ("cancelled", "in environment: ended by SIGTERM")


def test_a_fault_of_the_job_is_in_the_record(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(version: str) -> str:
        raise RuntimeError(f"no {version}")

    monkeypatch.setattr("deep500.fleet.compat.environments.find_python", broken)
    with pytest.raises(RuntimeError):
        run_cell(campaign.cell_folder(HOPELESS))
    record = read_record(campaign.cell_folder(HOPELESS))
    assert record.finished
    assert join(HOPELESS, "november", record, None).status == "environment"
