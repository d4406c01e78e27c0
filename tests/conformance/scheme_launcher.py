"""Starts the ranks that check schemes, and reads what came of each case."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

PROJECT = Path(__file__).parents[2]
LAUNCHER = shutil.which("mpiexec") or str(Path(sys.executable).with_name("mpiexec"))

#: A case that takes longer hangs.
SECONDS_A_CASE = 120.0

#: Python, MPI and what the cases import have started within this time, on a busy machine.
SECONDS_TO_START = 120.0

#: So often ranks are started again for the cases that are left, after one that ended or hung all ranks.
STARTS = 8

PAUSE_S = 0.05

#: Where MPI's headers and library are, beside its launcher.
PREFIX = Path(LAUNCHER).parents[1]


@dataclass
class Outcome:
    """What came of a case.

    Attributes:
        why: What was wrong; empty where nothing was.
        seconds: How long it took on rank 0.
    """

    why: str = ""
    seconds: float = 0.0


def run_cases(
    ranks: int,
    names: Sequence[str],
    folder: Path,
    *,
    module: str = "tests.mpi.scheme_ranks",
    seconds_a_case: float = SECONDS_A_CASE,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Outcome]:
    """Run cases on ranks of MPI, all in the same processes; start new ones for the rest where a case ends or hangs all.

    Args:
        ranks: How many.
        names: The cases.
        folder: Empty; for what the ranks write.
        module: What each rank runs, with a folder as its argument; see tests/mpi/case_loop.py.
        seconds_a_case: After how long without an end of a case the ranks are killed.
        environment: Variables besides those of this process.
    """
    outcomes: dict[str, Outcome] = {}
    for start in range(STARTS):
        left = [name for name in names if name not in outcomes]
        if not left:
            break
        here = folder / f"start.{start}"
        here.mkdir()
        (here / "cases").write_text("\n".join(left))
        why = _run(ranks, module, here, seconds_a_case, environment or {})
        ended, begun = _read(here, ranks)
        outcomes.update(ended)
        if why and set(left) <= set(ended):
            outcomes[left[-1]].why = outcomes[left[-1]].why or why
        elif why:
            # Without a case under way all would go wrong in the same way once more.
            for name in [name for name in begun if name not in ended] or ([] if ended else left):
                outcomes[name] = Outcome(why)
        elif not ended:
            break
    return outcomes


def build_counter(folder: Path) -> Path | None:
    """Return a library that counts what MPI is given, or ``None`` where it cannot be built."""
    if shutil.which("cc") is None or not (PREFIX / "include" / "mpi.h").exists():
        return None
    library = folder / "pmpi_bytes.so"
    source = PROJECT / "tests" / "mpi" / "pmpi_bytes.c"
    command = ["cc", "-shared", "-fPIC", "-O1", f"-I{PREFIX / 'include'}", str(source), "-o", str(library)]
    command += [f"-L{PREFIX / 'lib'}", "-lmpi", f"-Wl,-rpath,{PREFIX / 'lib'}"]
    subprocess.run(command, check=True, timeout=60)
    return library


def _run(ranks: int, module: str, folder: Path, seconds_a_case: float, environment: Mapping[str, str]) -> str:
    """Run a program on ranks to its end, or kill it; return what was wrong."""
    command = [LAUNCHER, "-n", str(ranks), sys.executable, "-m", module, str(folder)]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2", **environment}
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(command, cwd=PROJECT, env=variables, stdout=output, stderr=subprocess.STDOUT)
        try:
            wrong = _wait(process, lambda: _size(folder), seconds_a_case)
        finally:
            _kill(process)  # where the test itself is ended
    wrong = wrong or (f"mpiexec returned {process.returncode}" if process.returncode else "")
    return f"{wrong}; the ranks had said:\n{(folder / 'output').read_text()[-4000:]}" if wrong else ""


def _wait(process: subprocess.Popen[bytes], progress: Callable[[], int], limit_s: float) -> str:
    """Wait for the end, as long as something goes on; kill all processes that are left, and return what was wrong."""
    known: set[psutil.Process] = set()
    seen, since = progress(), time.monotonic()
    while process.poll() is None:
        time.sleep(PAUSE_S)
        try:
            known.update(psutil.Process(process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            continue
        if (now := progress()) != seen:
            seen, since = now, time.monotonic()
        if time.monotonic() - since > (limit_s if seen else max(limit_s, SECONDS_TO_START)):
            break
    hangs = process.poll() is None
    left = list(known) if hangs else psutil.wait_procs(known, timeout=10)[1]
    for child in left:
        if child.is_running():
            child.kill()
    _kill(process)
    psutil.wait_procs(left, timeout=10)
    if hangs:
        return f"no case ended within {limit_s:g} s, and the ranks were killed"
    return f"processes were left after 10 s: {left}" if left else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
    process.wait(timeout=10)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("rank.*"))


def _read(folder: Path, ranks: int) -> tuple[dict[str, Outcome], list[str]]:
    """Return the cases that all ranks have ended, or that one rank has failed; and those that were begun."""
    records = [_lines(folder / f"rank.{rank}") for rank in range(ranks)]
    begun = list(dict.fromkeys(record["case"] for rank in records for record in rank))
    outcomes = {}
    for name in begun:
        ended = [record for rank in records for record in rank if record["case"] == name and record["state"] != "begun"]
        failed = [record for record in ended if record["state"] == "failed"]
        if failed:
            outcomes[name] = Outcome(str(failed[0]["why"]))
        elif len(ended) == ranks:
            outcomes[name] = Outcome(seconds=max(float(record["seconds"]) for record in ended))
    return outcomes, begun


def _lines(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    # The last line of a rank that was killed may lack its end.
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
