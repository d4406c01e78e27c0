from __future__ import annotations

from pathlib import Path

import pytest

from deep500.measure.environment.control_groups import (
    cpu_quota,
    cpu_throttling,
    find_control_group,
    memory_limit_bytes,
)
from deep500.measure.environment.system import System, UnreadableError
from tests.unit.measure.environment.support import write, write_groups_v1, write_groups_v2


def test_version_2(tmp_path: Path) -> None:
    write_groups_v2(tmp_path)
    system = System(tmp_path)

    assert find_control_group(system, "cpu").version == 2
    assert cpu_quota(system) == 1.5
    assert memory_limit_bytes(system) == 1048576
    assert cpu_throttling(system) == (3, 2.5)


def test_limit_of_a_group_above_holds(tmp_path: Path) -> None:
    write_groups_v2(tmp_path, quota="max 100000", memory="max")
    system = System(tmp_path)

    assert cpu_quota(system) == 4
    assert memory_limit_bytes(system) is None


def test_version_1_in_a_container(tmp_path: Path) -> None:
    write_groups_v1(tmp_path)
    system = System(tmp_path)

    assert find_control_group(system, "cpu").version == 1
    assert cpu_quota(system) == 0.5
    assert memory_limit_bytes(system) == 2097152
    assert cpu_throttling(system) == (4, 1.5)


def test_version_1_without_limits(tmp_path: Path) -> None:
    write_groups_v1(tmp_path, quota=-1, memory=0x7FFFFFFFFFFFF000)

    assert cpu_quota(System(tmp_path)) is None
    assert memory_limit_bytes(System(tmp_path)) is None


def test_topmost_group_has_no_limit(tmp_path: Path) -> None:
    write_groups_v2(tmp_path)
    write(tmp_path, "/proc/self/cgroup", "0::/")

    assert cpu_quota(System(tmp_path)) is None


@pytest.mark.parametrize("quota", ["", "much", "100000", "-5 100000"])
def test_garbage_is_told(tmp_path: Path, quota: str) -> None:
    write_groups_v2(tmp_path, quota=quota)

    with pytest.raises(UnreadableError, match=r"cpu\.max: holds"):
        cpu_quota(System(tmp_path))


def test_unmounted_controller_is_told(tmp_path: Path) -> None:
    write(tmp_path, "/proc/self/cgroup", "garbage\n0::/")
    write(tmp_path, "/proc/self/mountinfo", "22 1 0:1 / / rw - ext4 /dev/root rw")

    with pytest.raises(UnreadableError, match="'memory' is not mounted"):
        memory_limit_bytes(System(tmp_path))


def test_invisible_folder_is_told(tmp_path: Path) -> None:
    write(tmp_path, "/proc/self/cgroup", "0::/")
    write(tmp_path, "/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")

    with pytest.raises(UnreadableError, match="not visible"):
        cpu_quota(System(tmp_path))


def test_group_without_counts_is_told(tmp_path: Path) -> None:
    write_groups_v2(tmp_path)
    write(tmp_path, "/sys/fs/cgroup/job/task/cpu.stat", "usage_usec 9")

    with pytest.raises(UnreadableError, match="does not count throttling"):
        cpu_throttling(System(tmp_path))


def test_path_of_another_hierarchy_falls_back_to_the_mount_point(tmp_path: Path) -> None:
    write_groups_v1(tmp_path)
    write(tmp_path, "/proc/self/cgroup", "2:cpu,cpuacct:/elsewhere/with/a/long/path")
    write(tmp_path, "/sys/fs/elsewhere/with/a/long/path/cpu.cfs_quota_us", 1)

    assert find_control_group(System(tmp_path), "cpu").folders == ("/sys/fs/cgroup/cpu",)
    assert cpu_quota(System(tmp_path)) == 0.5
