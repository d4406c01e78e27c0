"""What is tried in the environment of a cell: ``python probe.py FOLDER``.

The stages ``import`` to ``recipe``, each written to ``record.json`` when it begins and when it ends, so that a crash
still tells how far it came. What is special about a framework lies in a file of ``probes`` beside this one, named for
its distribution: ``device_count()``, ``kernel(device, left, right)`` and ``collective(rank, ranks, rendezvous)``, each
of which may be absent.

A job runs this file where Deep500 is not installed: it needs nothing but the standard library.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import json
import math
import random
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from deep500.fleet.compat.exchange import exchange, mpi_rank
    from deep500.fleet.compat.job_record import JobRecord
    from deep500.fleet.compat.processes import end_when_alone
else:  # as a job: the neighbours lie beside it
    from exchange import exchange, mpi_rank
    from job_record import JobRecord
    from processes import end_when_alone

__all__ = ["ProbeError", "main", "probe_cell", "snippets_of"]

#: Seconds after the time limit at which the process ends by itself, should nobody have ended it.
_GRACE_S = 15.0

#: Rows and columns of the matrices.
_SIZE = 16

#: A product may be wrong by so much of the sum of the magnitudes: what float32 gives on a processor, and what GPUs do
#: with float32 by default (TF32, whose mantissa has 10 bits).
_TOLERANCE = {"cpu": 2.0**-20, "gpu": 2.0**-9}

Matrix = list[list[float]]


class ProbeError(Exception):
    """A stage found something wrong."""


def main(arguments: list[str]) -> int:
    """Run the probe of a folder, or one rank of its collective; return the exit code."""
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path != here]  # no neighbour must stand for a library of its name
    folder = Path(arguments[0])
    cell = json.loads((folder / "cell.json").read_text(encoding="utf-8"))
    end_when_alone(float(cell["timeout_s"]) + _GRACE_S)
    if "--mpi" in arguments:
        return _tell(mpi_rank())
    if "--rank" in arguments:
        own: Any = snippets_of(cell, Path(__file__).resolve().parent / "probes")
        return _tell(own.collective(int(arguments[2]), cell["ranks"], json.loads(arguments[3])))
    return probe_cell(cell, folder)


def _tell(text: str) -> int:
    """Write what a rank found for the process that started it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    return 0


def probe_cell(cell: dict[str, Any], folder: Path) -> int:
    """Go through the stages until one fails, and return the exit code."""
    record = JobRecord.load(folder)

    @functools.cache
    def snippets() -> Any:  # they import the framework, so they come after the stage that tries to
        return snippets_of(cell, Path(__file__).resolve().parent / "probes")

    stages: tuple[tuple[str, Callable[[], tuple[str, dict[str, Any]]]], ...] = (
        ("import", lambda: _import(cell)),
        ("device_count", lambda: _device_count(cell, snippets(), record.content["facts"].get("gpus", []))),
        ("kernel", lambda: _kernel(cell, snippets())),
        ("collective", lambda: _collective(cell, snippets(), folder)),
        ("recipe", lambda: _recipe(cell, folder)),
    )
    for name, act in stages:
        record.begin(name)
        try:
            detail, facts = act()
        except (Exception, SystemExit) as error:  # noqa: BLE001, RUF100 - whatever a framework raises is the result
            traceback.print_exc()
            record.fail(type(error).__name__, str(error) or "no message")
            return 0
        record.end(detail, **facts)
    return 0


def snippets_of(cell: dict[str, Any], folder: Path) -> Any:
    """Return the module of a framework's snippets; ``None`` where there is none.

    It is the file that the cell names, or that is named for its distribution or for its module.
    """
    for name in (cell.get("probe"), cell["framework"], cell["module"].partition(".")[0]):
        path = folder / f"{re.sub(r'[-_.]+', '_', name.lower())}.py" if name else None
        if path is not None and path.exists():
            spec = importlib.util.spec_from_file_location("snippets", path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return None


def _import(cell: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    module = importlib.import_module(cell["module"])
    version = getattr(module, "__version__", None)
    if not isinstance(version, str):
        version = importlib.metadata.version(cell["framework"])
    return f"{cell['module']} {version}, Python {sys.version.split()[0]}", {"version": version}


def _device_count(cell: dict[str, Any], snippets: Any, gpus: list[dict[str, str]]) -> tuple[str, dict[str, Any]]:
    asked = int(cell["gpus"])
    if hasattr(snippets, "device_count"):
        seen, whose = int(snippets.device_count()), cell["framework"]
    else:
        seen, whose = len(gpus), "nvidia-smi"
    if seen < asked:
        raise ProbeError(f"{asked} GPUs were asked for, {whose} sees {seen}")
    capability = cell["compute_capability"]
    others = sorted({gpu["compute_cap"] for gpu in gpus} - {capability}) if capability is not None else []
    if others:
        raise ProbeError(f"compute capability {capability} was asked for, the machine's GPUs have {', '.join(others)}")
    return f"{seen} GPUs seen by {whose}, {asked} asked for", {"gpus_seen": seen}


def _kernel(cell: dict[str, Any], snippets: Any) -> tuple[str, dict[str, Any]]:
    """Multiply two small matrices on the device and compare with sums in float64, each rounded once."""
    if not hasattr(snippets, "kernel"):
        return f"skipped: there are no snippets for {cell['framework']}", {}
    device = "gpu" if cell["gpus"] else "cpu"
    stream = random.Random(500)
    left, right = ([[stream.uniform(-1, 1) for _ in range(_SIZE)] for _ in range(_SIZE)] for _ in range(2))
    found: Matrix = snippets.kernel(device, left, right)
    if [len(row) for row in found] != [_SIZE] * _SIZE:
        raise ProbeError(f"a product of two {_SIZE} x {_SIZE} matrices on the {device} has another shape")
    worst = 0.0
    for row, found_row in zip(left, found):
        for column, value in zip(zip(*right), found_row):
            products = [a * b for a, b in zip(row, column)]
            worst = max(worst, abs(float(value) - math.fsum(products)) / math.fsum(map(abs, products)))
            if math.isnan(float(value)):
                raise ProbeError(f"a product of two {_SIZE} x {_SIZE} matrices on the {device} holds NaN")
    if worst > _TOLERANCE[device]:
        raise ProbeError(
            f"a product of two {_SIZE} x {_SIZE} matrices on the {device} is wrong by {worst:.1e} of the sum of the "
            f"magnitudes; accepted is {_TOLERANCE[device]:.1e}"
        )
    return f"product of two {_SIZE} x {_SIZE} matrices on the {device}, wrong by {worst:.1e}", {"kernel_error": worst}


def _collective(cell: dict[str, Any], snippets: Any, folder: Path) -> tuple[str, dict[str, Any]]:
    device = "gpu" if cell["gpus"] else "cpu"
    own = hasattr(snippets, "collective")
    return exchange(Path(__file__).resolve(), folder, int(cell["ranks"]), device, own), {}


def _recipe(cell: dict[str, Any], folder: Path) -> tuple[str, dict[str, Any]]:
    if cell["recipe"] is None:
        return "skipped: no recipe was named", {}
    command = [sys.executable, "-m", "deep500", "run", cell["recipe"], "--framework", cell["adapter"]]
    command += ["--output", str(folder / "recipe.json")]
    command += ["--ranks", str(cell["ranks"])] if cell["ranks"] > 1 else []
    command += ["--device", "gpu"] if cell["gpus"] else []
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    assert process.stdout is not None
    last, verdicts = "nothing was said", []
    for line in process.stdout:
        sys.stdout.write(line)
        last = line.strip() or last
        if last.endswith(("PASSED", "FAILED")) and line.strip():  # each metric, and all together
            verdicts.append(last)
    code = process.wait()
    said = "; ".join(verdicts) or last
    if code != 0:
        raise ProbeError(said if code == 1 and verdicts else f"deep500 run ended with code {code}: {last}")
    return said, {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
