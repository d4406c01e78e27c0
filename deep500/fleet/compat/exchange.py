"""Several processes of one cell that exchange something: with the framework's own means, or with MPI.

A job runs this file where Deep500 is not installed: it needs nothing but the standard library.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

__all__ = ["CollectiveError", "exchange", "mpi_rank"]


class CollectiveError(Exception):
    """The ranks could not exchange what they should, or got a wrong result."""


def exchange(probe: Path, folder: Path, ranks: int, device: str, has_own: bool) -> str:
    """Let the ranks exchange something and return what came of it, in one line.

    Args:
        probe: The file to start for each rank.
        folder: That of the cell.
        ranks: How many.
        device: ``"cpu"`` or ``"gpu"``.
        has_own: Whether the framework's snippets have a collective.

    Raises:
        CollectiveError: A rank failed.
    """
    if ranks == 1:
        return "skipped: one rank has nobody to exchange with"
    if has_own:
        with tempfile.TemporaryDirectory() as scratch:
            meeting = json.dumps(
                {"folder": scratch, "host": "127.0.0.1", "ports": _free_ports(ranks), "device": device}
            )
            commands = [
                [sys.executable, str(probe), str(folder), "--rank", str(rank), meeting] for rank in range(ranks)
            ]
            return _together(commands)
    launcher = _launcher()
    if launcher is None:
        return "skipped: the framework has no collective of its own that is known here, and there is no MPI for Python"
    return _together([[launcher, "-n", str(ranks), sys.executable, str(probe), str(folder), "--mpi"]])


def mpi_rank() -> str:
    """Add up numbers over the ranks of an MPI job, each in float64, and return what was done.

    Raises:
        CollectiveError: The sum is not what it is by hand.
    """
    mpi: Any = importlib.import_module("mpi4py.MPI")
    ranks = mpi.COMM_WORLD.Get_size()
    found = mpi.COMM_WORLD.allreduce(float(mpi.COMM_WORLD.Get_rank() + 1))
    if found != ranks * (ranks + 1) / 2:
        raise CollectiveError(f"MPI's sum of 1 to {ranks} is {found}")
    return f"MPI, sum over {ranks} ranks"


def _launcher() -> str | None:
    """Return ``mpiexec`` where it and mpi4py are there."""
    return shutil.which("mpiexec") if importlib.util.find_spec("mpi4py") is not None else None


def _free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on now; all are held until the last is known, so that they differ."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _together(commands: Sequence[Sequence[str]]) -> str:
    """Run commands side by side, end all as soon as one fails, and return the last line of the first."""
    outputs: list[IO[str]] = [
        tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed below
        for _ in commands
    ]
    processes = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        for command, output in zip(commands, outputs)
    ]
    try:
        while True:
            codes = [process.poll() for process in processes]
            failed = next((rank for rank, code in enumerate(codes) if code), None)
            if failed is not None:
                said = _last_line(outputs[failed])
                raise CollectiveError(f"rank {failed} ended with code {codes[failed]}: {said}")
            if all(code == 0 for code in codes):
                return _last_line(outputs[0])
            time.sleep(0.05)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for output in outputs:
            output.seek(0)
            sys.stdout.write(output.read())
            output.close()
        sys.stdout.flush()


def _last_line(output: IO[str]) -> str:
    output.seek(0)
    lines = output.read().strip().splitlines()
    return lines[-1] if lines else "nothing was said"
