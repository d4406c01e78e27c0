from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from deep500.measure.environment.probe import PROBES, UNAVAILABLE
from deep500.measure.environment.system import System
from tests.unit.measure.environment.support import (
    CPU,
    command,
    machine,
    section,
    values,
    write,
    write_groups_v1,
    write_groups_v2,
)

GPU_ROW = (
    "NVIDIA H100 80GB HBM3, 575.1, 96.00, 9.0, 81559, 4, 345, 1980, 2619, 700.00, 30, 0, "
    "P0, Enabled, Default, {}, [N/A]"
)
EVERY_PROBE = pytest.mark.parametrize(
    "name", PROBES.names(), ids="probe {}".format
)  # the bare "gpu" is a marker's name


def test_cpu_of_two_sockets_with_smt(tmp_path: Path) -> None:
    found = section("cpu", machine(tmp_path))

    assert found.reasons == {}
    assert found.values == {
        "model": "Made-up CPU @ 2.00GHz",
        "vendor": "GenuineIntel",
        "family": "6/85/7",
        "flags": ["avx2", "hypervisor", "sse"],
        "microcode": "0x5",
        "sockets": 2,
        "cores": 4,
        "threads": 8,
        "smt_active": True,
        "smt_control": "on",
        "core_threads": ["0,4", "1,5", "2,6", "3,7"],
        "isolated": "",
        "caches": [
            {"level": 1, "type": "Data", "size_bytes": 32768, "count": 4},
            {"level": 3, "type": "Unified", "size_bytes": 16777216, "count": 2},
        ],
        "numa_nodes": [
            {"node": 0, "cpus": "0-1", "memory_bytes": 8192000},
            {"node": 1, "cpus": "2-3", "memory_bytes": 8192000},
        ],
        "governor": ["performance"],
        "frequency_driver": ["intel_cpufreq"],
        "frequency_current_mhz": {"least": 2000, "median": 2003.5, "most": 2007},
        "frequency_min_mhz": 1000,
        "frequency_max_mhz": 3000,
        "turbo": False,
        "vulnerabilities": {"meltdown": "Mitigation: PTI"},
    }


def test_cpu_of_cpuinfo_alone(tmp_path: Path) -> None:
    full = machine(tmp_path / "full")
    write(tmp_path / "bare", "/proc/cpuinfo", full.read("/proc/cpuinfo"))

    found = section("cpu", System(tmp_path / "bare"))

    assert [found.values[name] for name in ("sockets", "cores", "threads", "smt_active")] == [2, 4, 8, True]
    assert found.values["frequency_current_mhz"] == {"least": 2000.5, "median": 2004, "most": 2007.5}
    assert found.values["governor"] == found.values["turbo"] == found.values["caches"] == UNAVAILABLE
    assert "no policy" in found.reasons["governor"]
    assert "no_turbo" in found.reasons["turbo"]


def test_cpu_of_arm(tmp_path: Path) -> None:
    write(tmp_path, "/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c")

    found = values("cpu", System(tmp_path))

    assert found["model"] == "ARM implementer 0x41 part 0xd0c"
    assert found["flags"] == ["asimd", "fp"]
    assert found["sockets"] == UNAVAILABLE


def test_garbage_of_cpu_spoils_its_own_fields_only(tmp_path: Path) -> None:
    system = machine(tmp_path)
    write(tmp_path, f"{CPU}/cpu0/topology/thread_siblings_list", "\x00what")
    write(tmp_path, f"{CPU}/cpu0/cache/index0/size", "huge")
    write(tmp_path, f"{CPU}/cpufreq/policy0/scaling_max_freq", "fast")
    write(tmp_path, f"{CPU}/intel_pstate/no_turbo", "maybe")

    found = section("cpu", system)

    spoilt = {"sockets", "cores", "threads", "smt_active", "core_threads", "caches", "frequency_max_mhz", "turbo"}
    assert found.reasons.keys() == spoilt
    assert "is not a size" in found.reasons["caches"]
    assert found.values["model"] == "Made-up CPU @ 2.00GHz"


def test_several_governors_are_told(tmp_path: Path) -> None:
    system = machine(tmp_path)
    write(tmp_path, f"{CPU}/cpufreq/policy3/scaling_governor", "powersave")

    assert values("cpu", system)["governor"] == ["performance", "powersave"]


def test_memory(tmp_path: Path) -> None:
    found = section("memory", machine(tmp_path))

    assert found.values["total_bytes"] == 16384000
    assert found.values["available_bytes"] == 9216000
    assert found.values["swap_used_bytes"] == 1024000
    assert found.values["process_swapped_bytes"] == 8192
    assert found.values["transparent_huge_pages"] == "madvise"
    assert found.values["huge_pages_reserved"] == 2
    assert found.reasons.keys() == {"swappiness", "transparent_huge_pages_defrag", "numa_balancing"}


def test_garbage_of_memory_is_told(tmp_path: Path) -> None:
    system = machine(tmp_path)
    write(tmp_path, "/proc/meminfo", "MemTotal: lots kB\nSwapTotal:")

    found = section("memory", system)

    assert found.reasons["total_bytes"] == "MemTotal is 'lots', not a number"
    assert found.reasons["swap_total_bytes"] == "the kernel's table has no entry 'SwapTotal'"


@pytest.mark.parametrize(
    ("groups", "version", "quota", "memory"), [(write_groups_v1, 1, 0.5, 2097152), (write_groups_v2, 2, 1.5, 1048576)]
)
def test_process(tmp_path: Path, groups: Any, version: int, quota: float, memory: int) -> None:
    system = machine(tmp_path, OMP_NUM_THREADS="4", CUDA_VISIBLE_DEVICES="0,1", HOME="/home/me")
    groups(tmp_path)

    found = section("process", system)

    assert found.reasons == {}
    assert (found.values["affinity"], found.values["affinity_count"]) == ("0-3,6", 5)
    assert (found.values["nice"], found.values["scheduling_policy"], found.values["threads"]) == (5, "batch", 3)
    assert found.values["thread_variables"] == {"CUDA_VISIBLE_DEVICES": "0,1", "OMP_NUM_THREADS": "4"}
    assert found.values["control_group_version"] == version
    assert (found.values["cpu_quota"], found.values["memory_limit_bytes"]) == (quota, memory)
    assert found.values["involuntary_context_switches"] >= 0


def test_load(tmp_path: Path) -> None:
    system = machine(tmp_path)
    write(tmp_path, "/proc/pressure/cpu", "some avg10=1.50 avg60=2.00 avg300=3.00 total=4\nfull avg10=0.00")

    found = section("load", system)

    assert [found.values[f"average_{minutes}min"] for minutes in (1, 5, 15)] == [0.5, 0.4, 0.3]
    assert found.values["runnable_tasks"] == 2
    assert found.values["cpu_pressure_10s_percent"] == 1.5
    assert found.values["steal_share"] == 0.1
    assert found.reasons == {"uptime_s": "/proc/uptime: No such file or directory"}


def test_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "my-secret-host")
    system = machine(tmp_path, KUBERNETES_SERVICE_HOST="10.0.0.1")
    write_groups_v1(tmp_path)
    write(tmp_path, "/etc/os-release", 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12"')
    write(tmp_path, "/sys/class/dmi/id/sys_vendor", "QEMU")
    write(tmp_path, "/.dockerenv", "")

    found = section("host", system)

    assert found.reasons == {}
    assert found.values["operating_system"] == "Debian GNU/Linux 12"
    assert found.values["virtual_machine_hints"] == ["CPU flag hypervisor", "sys_vendor QEMU"]
    assert found.values["container_hints"] == [
        "/.dockerenv",
        "control group of docker",
        "variable KUBERNETES_SERVICE_HOST",
    ]
    assert "my-secret-host" not in str(found)
    assert len(found.values["hostname_hash"]) == 16


def test_interpreter() -> None:
    found = values("interpreter", System())

    assert found["version"] == sys.version.split()[0]
    assert found["garbage_collector"]["enabled"] is True


def test_versions_of_installed_libraries() -> None:
    versions = values("libraries", System())["versions"]

    assert versions["numpy"]
    assert versions["deep500"]
    assert versions["impi-rt"] is None


def test_builds_of_libraries_that_are_loaded_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scipy", raising=False)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))  # loaded, but not as it should be
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    import numpy as np

    found = section("libraries", System())

    assert "Compilers" in found.values["numpy_build"], np.__version__
    assert "scipy is not imported" in found.reasons["scipy_build"]
    assert "tensorflow is not imported" in found.reasons["tensorflow_build"]
    assert found.reasons["torch_build"].startswith("AttributeError: module 'torch'")


def test_thread_pools_leave_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KMP_DUPLICATE_LIB_OK", raising=False)
    monkeypatch.delitem(sys.modules, "threadpoolctl", raising=False)

    pools = values("libraries", System())["thread_pools"]

    assert "KMP_DUPLICATE_LIB_OK" not in os.environ
    assert all("/" not in pool["filepath"] for pool in pools)


def test_determinism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = types.ModuleType("config")
    config.is_op_determinism_enabled = lambda: True  # type: ignore[attr-defined]
    switches = types.SimpleNamespace(tensor_float_32_execution_enabled=lambda: False)
    tensorflow = types.ModuleType("tensorflow")
    tensorflow.config = types.SimpleNamespace(experimental=switches)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setitem(sys.modules, "tensorflow.python.framework.config", config)
    monkeypatch.delitem(sys.modules, "torch", raising=False)

    found = section("determinism", System(tmp_path, {"PYTHONHASHSEED": "0"}))

    assert found.values["variables"] == {"PYTHONHASHSEED": "0"}
    assert found.values["tensorflow"] == {"op_determinism": True, "tensor_float_32": False}
    assert found.values["torch"] == UNAVAILABLE


def test_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = ["-c", "user.name=me", "-c", "user.email=me@x", "-c", "commit.gpgsign=false"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "not a git repository" in section("git", _patient()).reasons["commit"]
    subprocess.run(["git", "init", "-q", "-b", "trunk", "."], check=True)
    assert section("git", _patient()).reasons["commit"] == "the repository has no commit yet"
    (tmp_path / "file").write_text("1")
    subprocess.run(["git", "add", "file"], check=True)
    subprocess.run(["git", *identity, "commit", "-q", "-m", "first"], check=True)
    (tmp_path / "untracked").write_text("1")

    clean = values("git", _patient())
    (tmp_path / "file").write_text("2")
    dirty = values("git", _patient())

    assert (clean["branch"], clean["dirty"], dirty["dirty"]) == ("trunk", False, True)
    assert clean["commit"] == dirty["commit"]
    assert len(clean["commit"]) == 40


def _patient() -> System:
    return System(command_budget_s=20)


def test_missing_git_is_told(tmp_path: Path) -> None:
    reasons = section("git", System(environment={"PATH": str(tmp_path)})).reasons

    assert "the command git is neither on PATH" in reasons["commit"]
    assert "Deep500 does not run from a checkout" in reasons["deep500_commit"]


def test_gpu(tmp_path: Path) -> None:
    system = machine(tmp_path)
    write(tmp_path, "/proc/driver/nvidia/version", "NVRM version: 575.1\nGCC")
    write(tmp_path, "/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t NVIDIA H100\nIRQ: 1")
    command(tmp_path, "nvidia-smi", f"echo '{GPU_ROW.format('Enabled')}'; echo '{GPU_ROW.format('[Not Supported]')}'")

    found = section("gpu", system)

    assert found.reasons == {}
    assert found.values["models"] == ["NVIDIA H100"]
    assert found.values["kernel_driver"] == "NVRM version: 575.1"
    assert [device["ecc"] for device in found.values["devices"]] == ["Enabled", None]
    assert found.values["devices"][0]["memory_total_bytes"] == 81559 * 2**20
    assert found.values["devices"][0]["power_limit_w"] == 700


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'No devices were found'", "nvidia-smi answered 'No devices were found"),
        ("echo 'NVIDIA-SMI has failed'; exit 9", "exit code 9: NVIDIA-SMI has failed"),
        (f"echo '{GPU_ROW.format('x').replace('81559', 'many')}'", "ValueError: could not convert string to float"),
    ],
)
def test_gpu_that_cannot_be_asked_is_told(tmp_path: Path, script: str, reason: str) -> None:
    system = machine(tmp_path)
    command(tmp_path, "nvidia-smi", script)

    assert reason in section("gpu", system).reasons["devices"]


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("HYDRA build details:\\n    Version:    4.2.1\\n", "MPICH Hydra 4.2.1"),
        ("mpiexec (OpenRTE) 4.1.4\\n\\nReport bugs\\n", "mpiexec (OpenRTE) 4.1.4"),
    ],
)
def test_mpi(tmp_path: Path, output: str, version: str) -> None:
    system = machine(tmp_path, PMI_SIZE="4", PMI_RANK="1", PMI_PORT="host:1")
    command(tmp_path, "mpiexec", f"printf '{output}'")

    assert values("mpi", system) == {
        "launcher": "PMI (such as MPICH's Hydra)",
        "variables": {"PMI_RANK": "1", "PMI_SIZE": "4"},
        "mpiexec": version,
    }


def test_process_without_launcher(tmp_path: Path) -> None:
    assert values("mpi", machine(tmp_path))["launcher"] is None


def test_clock(tmp_path: Path) -> None:
    write(tmp_path, "/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc")

    found = values("clock", System(tmp_path))

    assert found["source"] == "tsc"
    assert found["monotonic"] is True
    assert 0 < found["least_step_ns"] < 1e8
    assert 1 < found["call_cost_ns"] < 1e6


@EVERY_PROBE
def test_probe_reads_nothing_when_called_and_each_field_is_described(tmp_path: Path, name: str) -> None:
    for key, field in PROBES.get(name)(System(tmp_path / "nothing")).items():
        assert field.about.endswith("."), key
        assert set(field.type.split("|")) <= {"string", "number", "integer", "boolean", "array", "object", "null"}


@EVERY_PROBE
def test_field_that_is_unavailable_has_a_reason_on_an_empty_machine(tmp_path: Path, name: str) -> None:
    found = section(name, System(tmp_path, {}, command_budget_s=0))

    assert {key for key, value in found.values.items() if value == UNAVAILABLE} == found.reasons.keys()
    assert all(found.reasons.values())
