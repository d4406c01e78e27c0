from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deep500.fleet.compat.cell import Cell
from deep500.fleet.compat.job_record import JobRecord
from deep500.fleet.compat.joining import ReadRecord, read_record
from tests.unit.fleet.compat.support import campaign_of, cell

RIGHT = "def kernel(d, a, b): return [[sum(x * y for x, y in zip(r, c)) for c in zip(*b)] for r in a]\n"


def probed(folder: Path, tried: Cell, snippets: str | None = None, gpus: Any = ()) -> ReadRecord:
    """Run the probe in the Python of the tests, as a job would in the cell's."""
    if snippets is not None:
        (folder / "own.py").write_text(snippets)
        tried = Cell(**{**tried.__dict__, "probe": str(folder / "own.py")})
    made = campaign_of(folder, tried)
    made.prepare([tried])
    place = made.cell_folder(tried)
    record = JobRecord.new(place, tried.cell_id, 1)
    for stage in ("matched", "environment"):
        record.begin(stage)
        record.end(gpus=list(gpus))
    done = subprocess.run(
        [sys.executable, str(made.job_folder / "probe.py"), str(place)],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    return read_record(place)


def error_of(record: ReadRecord) -> tuple[str, str]:
    assert record.content is not None
    return record.content["error"]["stage"], record.content["error"]["message"]


def details(record: ReadRecord) -> dict[str, str]:
    assert record.content is not None
    assert record.content["error"] is None
    return {stage: said["detail"] for stage, said in record.stages.items()}


STDLIB = {"framework": "json", "module": "json"}


def test_without_snippets_what_cannot_be_tried_is_skipped(tmp_path: Path) -> None:
    record = probed(tmp_path, cell(**STDLIB))
    said = details(record)
    assert said["import"].startswith(f"json {json.__version__}, Python 3.")
    assert said["device_count"] == "0 GPUs seen by nvidia-smi, 0 asked for"
    assert record.skipped == ["kernel", "collective", "recipe"]


def test_numpy(tmp_path: Path) -> None:
    import numpy as np

    said = details(probed(tmp_path, cell(framework="numpy", module="numpy", ranks=2)))
    assert said["import"].startswith(f"numpy {np.__version__}")
    assert said["kernel"].startswith("product of two 16 x 16 matrices on the cpu, wrong by ")


def test_what_cannot_be_imported(tmp_path: Path) -> None:
    assert error_of(probed(tmp_path, cell(module="no_such_module"))) == ("import", "No module named 'no_such_module'")


@pytest.mark.parametrize(
    ("snippets", "changes", "gpus", "stage", "message"),
    [
        ("def device_count(): return 1\n", {"ranks": 2}, [], "device_count", "2 GPUs were asked for, json sees 1"),
        ("", {}, [], "device_count", "1 GPUs were asked for, nvidia-smi sees 0"),
        ("", {}, [{"compute_cap": "8.0"}], "device_count", "compute capability 9.0 was asked for, the machine's GPUs"),
        ("def device_count(): raise OSError('no driver')", {}, [], "device_count", "no driver"),
        ("raise SystemExit(0)", {}, [], "device_count", "0"),
    ],
)
def test_devices(
    snippets: str, changes: dict[str, Any], gpus: list[Any], stage: str, message: str, tmp_path: Path
) -> None:
    found = error_of(probed(tmp_path, cell(**STDLIB, compute_capability="9.0", **changes), snippets, gpus))
    assert found[0] == stage
    assert found[1].startswith(message)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("def kernel(d, a, b): return a\n", "is wrong by"),
        ("def kernel(d, a, b): return a[:3]\n", "has another shape"),
        ("def kernel(d, a, b): return [[float('nan')] * 16] * 16\n", "holds NaN"),
        (
            RIGHT.replace("def kernel", "def exact") + "def kernel(d, a, b):\n"
            "    c = exact(d, a, b)\n    c[15][15] *= 1.001\n    return c\n",
            "is wrong by",
        ),
    ],
)
def test_wrong_products_are_found(kernel: str, message: str, tmp_path: Path) -> None:
    stage, said = error_of(probed(tmp_path, cell(**STDLIB), kernel))
    assert stage == "kernel"
    assert message in said


def test_ranks_meet(tmp_path: Path) -> None:
    own = RIGHT + (
        "import os, time\n"
        "def collective(rank, ranks, rendezvous):\n"
        "    open(os.path.join(rendezvous['folder'], str(rank)), 'w').close()\n"
        "    while len(os.listdir(rendezvous['folder'])) < ranks: time.sleep(0.01)\n"
        "    assert len(set(rendezvous['ports'])) == ranks and rendezvous['device'] == 'cpu'\n"
        "    return f'{ranks} files of rank {rank}'\n"
    )
    assert details(probed(tmp_path, cell(**STDLIB, ranks=3), own))["collective"] == "3 files of rank 0"


def test_a_rank_that_fails_ends_the_others(tmp_path: Path) -> None:
    own = RIGHT + (
        "import time\n"
        "def collective(rank, ranks, rendezvous):\n"
        "    if rank == 1: raise ValueError('no peer')\n"
        "    time.sleep(600)\n"
    )
    stage, said = error_of(probed(tmp_path, cell(**STDLIB, ranks=2, timeout_s=60.0), own))
    assert stage == "collective"
    assert said == "rank 1 ended with code 1: ValueError: no peer"


def test_recipes(tmp_path: Path) -> None:
    named = {"recipe": "no_such_recipe", "adapter": "reference"}
    stage, said = error_of(probed(tmp_path, cell(**STDLIB, **named, timeout_s=120.0)))
    assert stage == "recipe"
    assert "deep500 run ended with code 2: Error: " in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "module", "ranks"),
    [("torch", "torch", 2), ("tensorflow-cpu", "tensorflow", 2), ("onnxruntime", "onnxruntime", 1)],
)
def test_real_frameworks(framework: str, module: str, ranks: int, tmp_path: Path) -> None:
    pytest.importorskip(module)
    said = details(probed(tmp_path, cell(framework=framework, module=module, ranks=ranks, timeout_s=200.0)))
    assert said["kernel"].startswith("product of two 16 x 16 matrices on the cpu")
    if ranks > 1:
        assert said["collective"].endswith("sum over 2 ranks")
