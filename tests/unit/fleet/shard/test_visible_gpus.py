from __future__ import annotations

from pathlib import Path

import pytest

from deep500.fleet.shard import visible_gpus as module
from deep500.fleet.shard.visible_gpus import visible_gpus


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0,1", ("0", "1")),
        (" 3 , 1 ", ("3", "1")),
        ("", ()),
        ("-1", ()),
        ("0,-1,1", ("0",)),
        ("NoDevFiles", ()),
        ("0,0,1", ("0",)),
        ("GPU-8932f937,MIG-GPU-1/2/3", ("GPU-8932f937", "MIG-GPU-1/2/3")),
    ],
)
def test_a_variable(text: str, names: tuple[str, ...]) -> None:
    found = visible_gpus({"CUDA_VISIBLE_DEVICES": text, "HIP_VISIBLE_DEVICES": "0,1,2,3,4"})
    assert (found.names, found.count, found.source) == (names, len(names), "CUDA_VISIBLE_DEVICES")


def test_variables_of_amd() -> None:
    assert visible_gpus({"HIP_VISIBLE_DEVICES": "0", "ROCR_VISIBLE_DEVICES": "0,1"}).count == 1
    assert visible_gpus({"ROCR_VISIBLE_DEVICES": "0,1"}).source == "ROCR_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ("echo 'GPU 0: A (UUID: x)'; echo '  MIG 1g Device 0: (UUID: y)'; echo 'GPU 1: A (UUID: z)'", 2),
        ("echo 'No devices were found'", 0),
    ],
)
def test_the_tool_of_nvidia(script: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (visible_gpus({}).count, visible_gpus({}).source) == (count, "nvidia-smi")


def test_the_kernel_of_amd_and_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexit 9\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "_KFD_NODES", tmp_path / "nodes")
    assert (visible_gpus({}).count, visible_gpus({}).names) == (0, ())
    for number, units in enumerate((0, 304, 304)):
        node = tmp_path / "nodes" / str(number)
        node.mkdir(parents=True)
        (node / "properties").write_text(f"cpu_cores_count 1\nsimd_count {units}\n")
    found = visible_gpus({})
    assert (found.count, found.names, found.source) == (2, ("0", "1"), "the kernel's list of AMD GPUs")
