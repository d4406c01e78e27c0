from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from deep500.core.errors import Deep500Error
from deep500.measure.environment.isolation import IsolationError, IsolationVerdict, check_isolation
from deep500.measure.environment.noise import NoiseInterval
from deep500.measure.environment.probe import PROBES, read_section
from deep500.measure.environment.system import System
from tests.unit.measure.environment.support import CPU, MEMINFO, STATUS, machine, write, write_cpu_time, write_groups_v2

NAMES = ["governor", "turbo", "smt", "affinity", "cpu_quota", "load", "steal", "swap"]


def quiet(root: Path, **environment: str) -> System:
    """A machine that passes every check: four of its CPUs are used, one thread of each core."""
    system = machine(root, **environment)
    write(root, "/proc/self/status", STATUS.replace("0-3,6", "0-3"))
    write(root, "/proc/meminfo", MEMINFO.replace("SwapFree:        3000", "SwapFree:        4000"))
    write_cpu_time(root, idle=900, user=99, steal=1)
    write_groups_v2(root, quota="400000 100000")
    return system


def noise(**values: float) -> NoiseInterval:
    return NoiseInterval(0.5, 0.1, 0, 0, 0, 0, **values)  # type: ignore[arg-type]


def verdicts(system: System, interval: NoiseInterval | None = None) -> dict[str, str]:
    sections = {name: read_section(name, system) for name in ("cpu", "load", "memory", "process")}
    return {check.name: check.verdict.value for check in check_isolation(sections, interval)}


def test_quiet_machine_passes(tmp_path: Path) -> None:
    assert verdicts(quiet(tmp_path)) == dict.fromkeys(NAMES, "ok")
    assert verdicts(quiet(tmp_path), noise(steal_share=0, others_share=0.01)) == dict.fromkeys(NAMES, "ok")


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        (f"{CPU}/cpufreq/policy5/scaling_governor", "powersave", "governor"),
        (f"{CPU}/intel_pstate/no_turbo", "0", "turbo"),
        ("/proc/self/status", STATUS.replace("0-3,6", "0-2,6"), "smt"),
        ("/sys/fs/cgroup/job/cpu.max", "150000 100000", "cpu_quota"),
        ("/proc/loadavg", "1.5 0 0 1/2 3", "load"),
        ("/proc/stat", "cpu 100 0 0 800 0 0 0 100", "steal"),
        ("/proc/meminfo", MEMINFO, "swap"),
    ],
)
def test_each_fault_fails_its_check_only(tmp_path: Path, path: str, text: str, name: str) -> None:
    system = quiet(tmp_path)
    write(tmp_path, path, text)

    assert verdicts(system) == {**dict.fromkeys(NAMES, "ok"), name: "failed"}


def test_boost_switch_of_other_drivers(tmp_path: Path) -> None:
    system = quiet(tmp_path)
    (tmp_path / CPU.lstrip("/") / "intel_pstate/no_turbo").unlink()
    write(tmp_path, f"{CPU}/cpufreq/boost", 1)
    assert verdicts(system)["turbo"] == "failed"
    write(tmp_path, f"{CPU}/cpufreq/boost", 0)
    assert verdicts(system)["turbo"] == "ok"


@pytest.mark.parametrize(
    ("variables", "verdict"),
    [({}, "failed"), ({"OMP_PROC_BIND": "false"}, "failed"), ({"OMP_PROC_BIND": "close"}, "ok")],
)
def test_process_on_all_cpus_has_to_be_bound(tmp_path: Path, variables: dict[str, str], verdict: str) -> None:
    system = quiet(tmp_path, **variables)
    write(tmp_path, "/proc/self/status", STATUS.replace("0-3,6", "0-7"))

    assert verdicts(system)["affinity"] == verdict


def test_observed_noise_counts_more_than_averages(tmp_path: Path) -> None:
    system = quiet(tmp_path)

    found = verdicts(system, noise(steal_share=0.02, others_share=0.06))

    assert found == {**dict.fromkeys(NAMES, "ok"), "load": "failed", "steal": "failed"}


def test_what_cannot_be_read_is_unavailable_with_the_reason(tmp_path: Path) -> None:
    sections = {name: read_section(name, System(tmp_path, {})) for name in PROBES.names() if name != "git"}

    checks = check_isolation(sections)

    assert {check.verdict for check in checks} == {IsolationVerdict.UNAVAILABLE}
    reasons = {check.name: check.reason for check in checks}
    assert reasons["swap"] == "memory.swap_used_bytes is unavailable: /proc/meminfo: No such file or directory"
    assert {check.verdict for check in check_isolation({})} == {IsolationVerdict.UNAVAILABLE}


def test_error_names_each_failure_with_its_remedy(tmp_path: Path) -> None:
    system = quiet(tmp_path)
    write(tmp_path, f"{CPU}/intel_pstate/no_turbo", "0")
    checks = check_isolation({name: read_section(name, system) for name in ("cpu", "load", "memory", "process")})
    error = IsolationError(check for check in checks if check.verdict is IsolationVerdict.FAILED)

    assert isinstance(error, Deep500Error)
    assert "turbo: turbo is on" in str(error)
    assert "remedy: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.failed, str(again)) == (error.failed, str(error))
