"""What the job of one cell runs: it makes the environment and starts the probe in it, within the time that it has.

A job runs this file where Deep500 is not installed: it needs nothing but the standard library and a Python of 3.10 or
newer. ``python cell_job.py FOLDER``, where the folder holds ``cell.json`` and ``requirements.txt``; ``record.json``,
``stdout.txt`` and ``stderr.txt`` are written there. The exit code is 0 when the record is whole, whatever it says.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from deep500.fleet.compat.environments import (
        EnvironmentFailedError,
        EnvironmentMaker,
        MadeEnvironment,
        cache_folder,
    )
    from deep500.fleet.compat.job_record import JobRecord
    from deep500.fleet.compat.processes import (
        Ended,
        OutOfTimeError,
        now_s,
        run,
        terminated_as_exit,
        without_python_settings,
    )
else:  # as a job: the neighbours lie beside it
    from environments import EnvironmentFailedError, EnvironmentMaker, MadeEnvironment, cache_folder
    from job_record import JobRecord
    from processes import Ended, OutOfTimeError, now_s, run, terminated_as_exit, without_python_settings

__all__ = ["LOCK_FILE", "main", "run_cell"]

#: The file that a job holds a lock on while it runs.
LOCK_FILE = "job.lock"

#: Two jobs in one folder would spoil each other's record.
_ALREADY_RUNS = 75


def main() -> int:
    """Run the job of the folder that the command names."""
    if len(sys.argv) != 2:
        sys.stderr.write("Usage: python cell_job.py FOLDER\n")
        return 2
    return run_cell(Path(sys.argv[1]).resolve())


def run_cell(folder: Path) -> int:
    """Run the cell of a folder and return the exit code."""
    cell = json.loads((folder / "cell.json").read_text(encoding="utf-8"))
    with open(folder / LOCK_FILE, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write(f"Another job runs in {folder}.\n")
            return _ALREADY_RUNS
        record = JobRecord.new(folder, cell["cell_id"], cell.get("attempt", 1))
        with (
            open(folder / "stdout.txt", "w", encoding="utf-8", errors="replace") as output,
            open(folder / "stderr.txt", "w", encoding="utf-8", errors="replace") as errors,
        ):
            try:
                with terminated_as_exit():
                    record = _run(cell, folder, record, output, errors)
            except Ended as ended:
                record = _reloaded(record)
                record.fail("Terminated", f"ended by {ended}")
            except Exception as error:  # noqa: BLE001, RUF100 - whatever it is has to be in the record
                record = _reloaded(record)
                record.fail(type(error).__name__, str(error))
                raise
            finally:
                record.finish()
    return 0


def _run(cell: dict[str, Any], folder: Path, record: JobRecord, output: IO[str], errors: IO[str]) -> JobRecord:
    record.begin("matched")
    gpus = _gpus()
    record.end(
        f"{platform.node()}, {platform.machine()}, {_said(gpus)}", gpus=gpus, job_python=platform.python_version()
    )
    record.begin("environment")
    limit = float(cell["environment_timeout_s"])
    try:
        maker = EnvironmentMaker(cache_folder(), now_s() + limit, output, errors)
        made = maker.make(folder / "requirements.txt", cell["python"])
    except EnvironmentFailedError as error:
        record.fail("EnvironmentFailedError", str(error))
        return record
    except OutOfTimeError:
        record.fail("Timeout", f"not done after {limit:g} s")
        return record
    (folder / "lock.txt").write_text(made.lock, encoding="utf-8")
    record.end(made.text, lock_hash=made.lock_hash, environment_bytes=made.size_bytes, free_bytes=made.free_bytes)
    return _probed(cell, folder, record, made, output, errors)


def _probed(
    cell: dict[str, Any], folder: Path, record: JobRecord, made: MadeEnvironment, output: IO[str], errors: IO[str]
) -> JobRecord:
    """Run the probe in the environment, and write how it ended where it could not itself."""
    record.begin("import")  # what ends the probe before its first line is no fault of the environment
    limit = float(cell["timeout_s"])
    probe = Path(__file__).resolve().with_name("probe.py")
    variables = without_python_settings()
    variables["PATH"] = os.pathsep.join([str(made.python.parent), variables.get("PATH", os.defpath)])
    variables["VIRTUAL_ENV"] = str(made.python.parent.parent)
    try:
        code = run(
            [str(made.python), str(probe), str(folder)],
            now_s() + limit,
            output,
            errors,
            folder=folder,
            environment=variables,
        )
    except OutOfTimeError:
        record = _reloaded(record)
        record.fail("Timeout", f"not done after {limit:g} s")
        return record
    record = _reloaded(record)
    if code != 0 and record.content["error"] is None:
        record.fail("Died", f"signal {-code}" if code < 0 else f"exit code {code}")
    return record


def _reloaded(record: JobRecord) -> JobRecord:
    """Return what the probe wrote since; the record at hand where it cannot be read."""
    try:
        return JobRecord.load(record.path.parent)
    except (OSError, ValueError):
        return record


def _gpus() -> list[dict[str, str]]:
    """Return what NVIDIA's tool says of the GPUs of this job; an empty list where there is no such tool."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    fields = ("name", "compute_cap", "driver_version")
    command = [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    rows = [[part.strip() for part in line.split(",")] for line in lines]
    return [dict(zip(fields, row)) for row in rows if len(row) == len(fields)]


def _said(gpus: list[dict[str, str]]) -> str:
    names = sorted({f"{gpu['name']} (compute capability {gpu['compute_cap']})" for gpu in gpus})
    return f"{len(gpus)} GPUs: {', '.join(names)}" if gpus else "no GPU that nvidia-smi knows"


if __name__ == "__main__":
    sys.exit(main())
