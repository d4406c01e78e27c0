"""Where the time went: what the timers of :mod:`deep500.measure.regions` collected, as rows, a table and JSON."""

from __future__ import annotations

import array
import dataclasses
import statistics
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import UnknownNameError, near_miss
from deep500.core.texts import escaped
from deep500.measure import clock

__all__ = ["KEPT_SAMPLES", "RegionBreakdown", "RegionCost", "RegionNode", "RegionRow"]

#: Number of calls of a region whose durations are kept one by one.
KEPT_SAMPLES = 10_000

#: Number of durations that wait to be summed up; a longer list costs memory, a shorter one time.
_WAITING = 1024

#: Deepest level that the table indents.
_DEEPEST_INDENT = 12

_HEADER = ("region", "calls", "total", "self", "share", "min", "median", "max", "timers")


@dataclass(frozen=True)
class RegionCost:
    """What an empty region costs on this machine.

    Attributes:
        inside_s: The part that the region counts as its own.
        whole_s: All of it, which the enclosing region counts as its own.
    """

    inside_s: float
    whole_s: float


@dataclass(frozen=True)
class RegionRow:
    """One region of a breakdown. A region is told from others of its name by the regions around it.

    Attributes:
        path: Names of the regions around it and its own, from the outside in: ``("training", "forward")``.
        calls: How often it was left.
        total_s: Sum of all its durations, seconds, whatever ran within.
        self_s: Seconds of it outside of the regions within; at least 0, also where these overlapped in time because
            they ran in several threads or tasks.
        share_of_parent: Its share of the enclosing region's ``total_s``, or of the breakdown's ``elapsed_s`` where
            there is none; ``None`` where that is 0. More than 1 when it ran in several threads.
        min_s: Shortest call; ``None`` when it has not been left yet.
        median_s: Median call; ``None`` also when there were more calls than :data:`KEPT_SAMPLES`.
        max_s: Longest call; ``None`` when it has not been left yet.
        overhead_s: Seconds of ``total_s`` that the timers took themselves, its own and those within: what an empty
            region costs, times the calls.
        samples_s: Durations of the first :data:`KEPT_SAMPLES` calls, seconds, in the order in which they ended.
    """

    path: tuple[str, ...]
    calls: int
    total_s: float
    self_s: float
    share_of_parent: float | None
    min_s: float | None
    median_s: float | None
    max_s: float | None
    overhead_s: float
    samples_s: tuple[float, ...] = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the row in JSON's types."""
        values = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {**values, "path": list(self.path), "samples_s": list(self.samples_s)}


class RegionNode:
    """Collects the durations of one region, from any number of threads.

    Attributes:
        children: The regions within, by name, in the order in which they were first entered.
        calls: Number of durations, without those that still wait.
        total_ns: Their sum.
        min_ns: The shortest.
        max_ns: The longest.
        samples_ns: The first of them.
    """

    __slots__ = ("_folding", "_lock", "_waiting", "calls", "children", "max_ns", "min_ns", "samples_ns", "total_ns")

    def __init__(self) -> None:
        """Start without any."""
        self.children: dict[str, RegionNode] = {}
        self.calls = self.total_ns = 0
        self.min_ns: int | None = None
        self.max_ns: int | None = None
        self.samples_ns = array.array("q")
        self._waiting: list[int] = []
        # A garbage collection may leave a region, in an abandoned generator, in the middle of what is locked here.
        self._lock = threading.RLock()
        self._folding = False

    def child(self, name: str) -> RegionNode:
        """Return the region of this name within, a new one at its first call."""
        return self.children.setdefault(name, RegionNode())

    def record(self, duration_ns: int) -> None:
        """Keep a duration."""
        waiting = self._waiting
        waiting.append(duration_ns)  # atomic, so that a thread need not wait for another
        if len(waiting) >= _WAITING:
            self.fold()

    def fold(self) -> None:
        """Sum up what waits."""
        with self._lock:
            if self._folding:
                return
            try:
                self._folding = True
                durations = self._waiting[:]
                del self._waiting[: len(durations)]  # others may have been appended
                self._add(durations)
            finally:
                self._folding = False

    def _add(self, durations: list[int]) -> None:
        if not durations:
            return
        self.calls += len(durations)
        self.total_ns += sum(durations)
        shortest, longest = min(durations), max(durations)
        self.min_ns = shortest if self.min_ns is None else min(self.min_ns, shortest)
        self.max_ns = longest if self.max_ns is None else max(self.max_ns, longest)
        self.samples_ns.extend(durations[: max(0, KEPT_SAMPLES - len(self.samples_ns))])


class RegionBreakdown:
    """The regions that were timed while it was collected: calls, total, own time and share of each.

    It can be read at any time; regions count when they are left. ``print(breakdown)`` shows a table.
    """

    def __init__(self, cost: Callable[[], RegionCost]) -> None:
        """Start, without any region.

        Args:
            cost: Returns what an empty region costs; called when it is first needed.
        """
        self.root = RegionNode()
        self._cost = cost
        self._start_ns = clock.now_ns()
        self._end_ns: int | None = None

    def stop(self) -> None:
        """Note the end of the collection, for :attr:`elapsed_s`."""
        self._end_ns = clock.now_ns()

    @property
    def elapsed_s(self) -> float:
        """Seconds from the start of the collection to its end; so far, when it has not ended."""
        end_ns = clock.now_ns() if self._end_ns is None else self._end_ns
        return (end_ns - self._start_ns) / 1e9

    @property
    def overhead_s_per_call(self) -> float:
        """What one region costs on this machine, in seconds, measured with empty ones; without ``synchronize``."""
        return self._cost().whole_s

    @property
    def overhead_s(self) -> float:
        """What all timers together cost, in seconds."""
        return sum(row.calls for row in self.rows()) * self.overhead_s_per_call

    def rows(self) -> list[RegionRow]:
        """Return all regions, each followed by those within, in the order in which they were first entered."""
        nodes = list(_walk(self.root))
        for _, _, node in nodes:
            node.fold()
        nested = {id(node): 0 for _, _, node in nodes}
        for _, parent, node in reversed(nodes):  # those within come first
            if parent is not self.root:
                nested[id(parent)] += nested[id(node)] + node.calls
        cost, elapsed_s = self._cost(), self.elapsed_s
        rows = []
        for path, parent, node in nodes:
            whole_s = elapsed_s if parent is self.root else parent.total_ns / 1e9
            overhead_s = node.calls * cost.inside_s + nested[id(node)] * cost.whole_s
            rows.append(_row(path, node, whole_s, overhead_s))
        return rows

    def __getitem__(self, path: str | tuple[str, ...]) -> RegionRow:
        """Return the row of a path: ``breakdown["training", "forward"]``.

        Raises:
            UnknownNameError: There is no such region.
        """
        wanted = (path,) if isinstance(path, str) else tuple(path)
        rows = {row.path: row for row in self.rows()}
        if wanted not in rows:
            known = [" > ".join(known) for known in rows]
            asked = " > ".join(map(str, wanted))
            raise UnknownNameError(
                f"No region {asked!r} was timed.{near_miss(asked, known)} Timed were: {', '.join(known) or 'none'}."
            )
        return rows[wanted]

    def to_dict(self) -> dict[str, Any]:
        """Return the breakdown in JSON's types, raw samples included."""
        rows = self.rows()
        return {
            "elapsed_s": self.elapsed_s,
            "overhead_s_per_call": self.overhead_s_per_call,
            "overhead_s": sum(row.calls for row in rows) * self.overhead_s_per_call,
            "rows": [row.to_dict() for row in rows],
        }

    def __str__(self) -> str:
        rows = self.rows()
        if not rows:
            return "No region was timed."
        table = [_HEADER, *map(_cells, rows)]
        widths = [max(map(len, column)) for column in zip(*table)]
        lines = [
            "  ".join([cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:]))])
            for cells in table
        ]
        calls = sum(row.calls for row in rows)
        cost_s = self.overhead_s_per_call
        lines.append(
            f"elapsed {_duration(self.elapsed_s)}; the timers took {_duration(calls * cost_s)} of it "
            f"({calls} {'call' if calls == 1 else 'calls'} of {_duration(cost_s)})"
        )
        return "\n".join(lines)


def _walk(root: RegionNode) -> Iterator[tuple[tuple[str, ...], RegionNode, RegionNode]]:
    """Yield path, enclosing region and region, depth first; without recursion, since regions may lie very deep."""
    ahead: list[tuple[tuple[str, ...], RegionNode, RegionNode]] = [((), root, root)]
    while ahead:
        path, parent, node = ahead.pop()
        if path:
            yield path, parent, node
        ahead += [((*path, name), node, child) for name, child in reversed(list(node.children.items()))]


def _row(path: tuple[str, ...], node: RegionNode, whole_s: float, overhead_s: float) -> RegionRow:
    samples_s = tuple(sample / 1e9 for sample in node.samples_ns)
    within_ns = sum(child.total_ns for child in list(node.children.values()))
    return RegionRow(
        path=path,
        calls=node.calls,
        total_s=node.total_ns / 1e9,
        self_s=max(0, node.total_ns - within_ns) / 1e9,
        share_of_parent=node.total_ns / 1e9 / whole_s if whole_s > 0 else None,
        min_s=None if node.min_ns is None else node.min_ns / 1e9,
        median_s=statistics.median(samples_s) if samples_s and len(samples_s) == node.calls else None,
        max_s=None if node.max_ns is None else node.max_ns / 1e9,
        overhead_s=overhead_s,
        samples_s=samples_s,
    )


def _cells(row: RegionRow) -> tuple[str, ...]:
    depth = len(row.path) - 1
    indent = "  " * depth if depth <= _DEEPEST_INDENT else f"{'  ' * _DEEPEST_INDENT}[{depth}] "
    share = "-" if row.share_of_parent is None else f"{100 * row.share_of_parent:.1f} %"
    times = (row.min_s, row.median_s, row.max_s, row.overhead_s)
    return (
        f"{indent}{escaped(row.path[-1])}",
        str(row.calls),
        _duration(row.total_s),
        _duration(row.self_s),
        share,
        *("-" if time_s is None else _duration(time_s) for time_s in times),
    )


def _duration(seconds: float) -> str:
    from deep500.core.quantities import scaled

    return scaled("s", seconds)[0]
