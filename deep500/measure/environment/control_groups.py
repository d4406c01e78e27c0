"""Limits that control groups put on this process, under either version of them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass

from deep500.measure.environment.system import System, UnreadableError

__all__ = ["ControlGroup", "cpu_quota", "cpu_throttling", "find_control_group", "memory_limit_bytes"]

#: Version 1 has no word for "no limit": a number of bytes beyond any machine stands for it.
_NO_LIMIT_BYTES = 2**60


@dataclass(frozen=True)
class ControlGroup:
    """The folders of one controller that apply to this process.

    Attributes:
        version: 1 or 2.
        folders: The group's own folder and those above it, up to the mount point; a limit of any of them holds.
    """

    version: int
    folders: tuple[str, ...]


def find_control_group(system: System, controller: str) -> ControlGroup:
    """Return where a controller's limits for this process are.

    Args:
        system: What to read from.
        controller: ``"cpu"`` or ``"memory"``.

    Raises:
        UnreadableError: The process is in no group, or its controller is not mounted.
    """
    groups = {}
    for line in system.read("/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            groups.update(dict.fromkeys(controllers.split(","), path))
    mounts = _mounts(system, controller)
    for version, name in ((1, controller), (2, "")):
        for mounted, root, point in mounts:
            if mounted == version and name in groups:
                return ControlGroup(version, _folders(system, point, root, groups[name]))
    raise UnreadableError(f"the control groups' controller {controller!r} is not mounted for this process")


def _mounts(system: System, controller: str) -> list[tuple[int, str, str]]:
    """Return version, root within the hierarchy and mount point of each mount that may hold a controller."""
    found = []
    for line in system.read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            found.append((2, fields[3], fields[4]))
        elif kind[0] == "cgroup" and controller in kind[2].split(","):
            found.append((1, fields[3], fields[4]))
    return found


def _folders(system: System, point: str, root: str, path: str) -> tuple[str, ...]:
    # Inside a container, the path may be told from the host's root, of which only a part is mounted.
    inside = posixpath.relpath(path or "/", root or "/")
    folder = point if inside.startswith("..") else posixpath.normpath(posixpath.join(point, inside))
    folders = []
    while len(folder) > len(point):
        folders.append(folder)
        folder = posixpath.dirname(folder)
    return tuple(candidate for candidate in [*folders, point] if system.exists(candidate))


def cpu_quota(system: System) -> float | None:
    """Return how many CPUs' time the process may use, ``None`` for no limit.

    Raises:
        UnreadableError: That cannot be told.
    """
    group = find_control_group(system, "cpu")
    return _least(group, lambda folder: _quota(system, group.version, folder))


def memory_limit_bytes(system: System) -> int | None:
    """Return how much memory the process may use, ``None`` for no limit.

    Raises:
        UnreadableError: That cannot be told.
    """
    group = find_control_group(system, "memory")
    name = "memory.max" if group.version == 2 else "memory.limit_in_bytes"

    def limit(folder: str) -> int | None:
        path = f"{folder}/{name}"
        if not system.exists(path) or system.read(path) == "max":
            return None
        size = system.read_integer(path)
        return size if size < _NO_LIMIT_BYTES else None

    least = _least(group, limit)
    return None if least is None else int(least)


def cpu_throttling(system: System) -> tuple[int, float]:
    """Return how often the process's group was stopped for its quota, and for how many seconds in all.

    Raises:
        UnreadableError: The group does not count it.
    """
    group = find_control_group(system, "cpu")
    for folder in group.folders:
        if system.exists(f"{folder}/cpu.stat"):
            table = system.read_table(f"{folder}/cpu.stat")
            if "nr_throttled" in table:
                microseconds = table.get("throttled_usec") or int(table.get("throttled_time", 0)) / 1000
                return int(table["nr_throttled"]), float(microseconds) / 1e6
    raise UnreadableError("the process's control group does not count throttling")


def _least(group: ControlGroup, limit: Callable[[str], float | None]) -> float | None:
    if not group.folders:
        raise UnreadableError("the folder of the process's control group is not visible")
    limits = [value for value in map(limit, group.folders) if value is not None]
    return min(limits, default=None)


def _quota(system: System, version: int, folder: str) -> float | None:
    if version == 1:
        path = f"{folder}/cpu.cfs_quota_us"
        if not system.exists(path):
            return None
        quota = system.read_integer(path)
        return quota / system.read_integer(f"{folder}/cpu.cfs_period_us") if quota > 0 else None
    path = f"{folder}/cpu.max"
    if not system.exists(path):  # the topmost group has none
        return None
    words = system.read(path).split()
    if words[:1] == ["max"]:
        return None
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise UnreadableError(f"{path}: holds {' '.join(words)[:60]!r}, not a quota and a period")
    return int(words[0]) / int(words[1])
