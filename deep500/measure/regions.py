"""Timers of regions of a program, which give a breakdown of where its time went.

    with measure.collect_regions() as breakdown:
        with measure.region("training"):
            for batch in batches:
                with measure.region("forward"):
                    ...
                with measure.region("backward"):
                    ...
    print(breakdown)

Regions lie in each other as they do in time. Outside of every :func:`collect_regions`, they are collected for the
whole process (:func:`regions_so_far`).

An accelerator works on while the program goes on: without ``synchronize``, a region counts only how long it took to ask
for the work, and a later region that waits for the device counts the work itself. With it, the device is idle at entry
and exit, so that the work is counted where it was asked for; but work of different regions no longer overlaps, and the
whole takes longer.

An empty region costs about 1.3 us (Python 3.11 on a server's processor), of which it counts 0.15 us as its own; each
breakdown says what it is on the machine at hand.
"""

from __future__ import annotations

import functools
import inspect
import statistics
import threading
from collections.abc import Callable, Generator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar, cast

from deep500.core.errors import MeasurementError
from deep500.core.texts import shown
from deep500.measure import clock
from deep500.measure.region_breakdown import RegionBreakdown, RegionCost, RegionNode

__all__ = ["Collection", "Region", "calibrate_regions", "collect_regions", "region", "regions_so_far", "reset_regions"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Frame:
    """A region, or a collection, that was entered. What has no owner any more has been left."""

    __slots__ = ("node", "owner", "parent", "start_ns")

    start_ns: int

    def __init__(self, owner: object, parent: _Frame | None, node: RegionNode) -> None:
        self.owner: object | None = owner
        self.parent = parent
        self.node = node


#: The innermost frame of this thread or task.
_current: ContextVar[_Frame | None] = ContextVar("deep500_region", default=None)


class Region:
    """A timer of a region; see :func:`region`. One object may be entered again while it is entered."""

    __slots__ = ("_frame", "_name", "_synchronize")

    def __init__(self, name: str, synchronize: Callable[[], None] | None = None) -> None:
        """Describe the region; see :func:`region`."""
        if not isinstance(name, str) or not name:
            raise MeasurementError(f'A region was named {shown(name)}; accepted is a text, such as region("forward").')
        self._name = name
        self._synchronize = synchronize
        self._frame: _Frame | None = None

    def __enter__(self) -> None:
        if self._synchronize is not None:
            self._synchronize()
        parent = _current.get()
        if parent is None or parent.owner is None:
            parent = _first_open(parent)
        node = _collecting.innermost.root if parent is None else parent.node
        child = node.children.get(self._name)
        if child is None:
            child = node.child(self._name)
        self._frame = frame = _Frame(self, parent, child)
        _current.set(frame)
        frame.start_ns = clock.now_ns()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._synchronize is not None:
                self._synchronize()
        finally:
            end_ns = clock.now_ns()
            frame = _current.get()
            if frame is None or frame.owner is not self:
                frame = self._entered(frame)
                _leave(frame)
            else:
                _current.set(frame.parent)
                frame.owner = None
            self._frame = None
            frame.node.record(end_ns - frame.start_ns)

    def __call__(self, function: _Function) -> _Function:
        """Return a function of which every call is timed; see :func:`region`."""
        is_other = not callable(function) or isinstance(function, (type, staticmethod))
        if is_other or inspect.isasyncgenfunction(function):
            raise MeasurementError(
                f"The region {self._name!r} was to time {shown(function)}; accepted are functions, coroutine functions "
                f"and generator functions, below a @staticmethod or @classmethod. For anything else, write "
                f'"with region(...):" around the work itself.'
            )
        make = _timed_steps if inspect.isgeneratorfunction(function) else _timed_call
        make = _timed_coroutine if inspect.iscoroutinefunction(function) else make
        return cast(_Function, functools.wraps(function)(make(function, self._name, self._synchronize)))

    def _entered(self, frame: _Frame | None) -> _Frame:
        """Find the frame of this region where it is not the innermost one: what was entered later is still open."""
        while frame is not None and frame.owner is not self:
            frame = frame.parent
        # An abandoned generator may be closed in another thread or task.
        frame = frame or self._frame
        if frame is None:
            raise MeasurementError(f"The region {self._name!r} was left without having been entered.")
        return frame


def region(name: str, *, synchronize: Callable[[], None] | None = None) -> Region:
    """Return a timer of a region of the program, for a ``with`` statement or as a decorator.

    It may lie in others and in itself, run in any thread or task, and be left by an exception; what was entered is
    counted. A new thread is outside of all regions; a task of ``asyncio`` is where it was made.

    As a decorator it times every call of a function; of a coroutine function from its first step to its end, waiting
    included; of a generator function each step, as a call of its own, without what happens between the steps.

    Args:
        name: What it is called in the breakdown. Use few different names: each is kept as long as the breakdown.
        synchronize: Waits until the device has finished, such as an executor's ``synchronize``; called at entry and
            exit before the clock is read. The waiting at entry counts for the enclosing region.

    Raises:
        MeasurementError: The name is not a text or is empty, or what it decorates is not a function.

    Example:
        >>> with collect_regions() as breakdown:
        ...     with region("forward"):
        ...         pass
        >>> breakdown["forward"].calls
        1
    """
    return Region(name, synchronize)


def _timed_call(function: Callable[..., Any], name: str, synchronize: Callable[[], None] | None) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        with Region(name, synchronize):
            return function(*args, **kwargs)

    return timed


def _timed_coroutine(
    function: Callable[..., Any], name: str, synchronize: Callable[[], None] | None
) -> Callable[..., Any]:
    async def timed(*args: Any, **kwargs: Any) -> Any:
        with Region(name, synchronize):
            return await function(*args, **kwargs)

    return timed


def _timed_steps(function: Callable[..., Any], name: str, synchronize: Callable[[], None] | None) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        resume, value = generator.send, None
        while True:
            try:
                with Region(name, synchronize):
                    item = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield item)
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:  # noqa: BLE001 - whatever was thrown in is the generator's to treat
                resume, value = generator.throw, error

    return timed


def collect_regions() -> Collection:
    """Collect, within a ``with`` statement, the regions that are entered there; it gives their breakdown.

    A region is collected by the innermost collection around it in its own thread or task, and by no other. A thread
    that has none of its own reports to the collection that was begun last, in whichever thread. What was entered
    within counts when it is left, even if that is after the collection's end.

    Example:
        >>> with collect_regions() as breakdown:
        ...     with region("outer"), region("inner"):
        ...         pass
        >>> [row.path for row in breakdown.rows()]
        [('outer',), ('outer', 'inner')]
    """
    return Collection()


class Collection:
    """Collects regions; see :func:`collect_regions`."""

    __slots__ = ("_breakdown", "_frame")

    def __init__(self) -> None:
        """Be ready to begin."""
        self._frame: _Frame | None = None

    def __enter__(self) -> RegionBreakdown:
        if self._frame is not None:
            raise MeasurementError("A collection of regions was entered again; call collect_regions() for each.")
        self._breakdown = RegionBreakdown(calibrate_regions)
        self._frame = _Frame(self, _current.get(), self._breakdown.root)
        _current.set(self._frame)
        _collecting.begin(self._breakdown)
        return self._breakdown

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._breakdown.stop()
        _collecting.end(self._breakdown)
        if self._frame is not None:
            _leave(self._frame)


def regions_so_far() -> RegionBreakdown:
    """Return the breakdown of all regions outside of every :func:`collect_regions`, in all threads.

    It goes on growing; :func:`reset_regions` begins a new one.
    """
    return _collecting.default


def reset_regions() -> None:
    """Begin the process's breakdown anew. Regions that are entered now still count for the old one."""
    _collecting.default = RegionBreakdown(calibrate_regions)
    frame = _current.get()
    while frame is not None and not isinstance(frame.owner, Collection):
        frame = frame.parent
    if frame is None:
        _current.set(None)


@functools.cache
def calibrate_regions() -> RegionCost:
    """Measure what an empty region costs; a few milliseconds, once a process."""
    root = RegionNode()
    token = _current.set(_Frame(root, None, root))
    whole_ns = []
    try:
        for _ in range(40):
            start_ns = clock.now_ns()
            for _ in range(50):
                with region("empty"):
                    pass
            whole_ns.append((clock.now_ns() - start_ns) / 50)
    finally:
        _current.reset(token)
    empty = root.children["empty"]
    empty.fold()
    return RegionCost(statistics.median(empty.samples_ns) * 1e-9, statistics.median(whole_ns) * 1e-9)


def _first_open(frame: _Frame | None) -> _Frame | None:
    while frame is not None and frame.owner is None:
        frame = frame.parent
    return frame


def _leave(frame: _Frame) -> None:
    """Leave a frame, and all within it that is still open: what is entered next is outside of it."""
    frame.owner = None
    inner = _current.get()
    while inner is not None and inner is not frame:
        inner = inner.parent
    if inner is frame:
        _current.set(frame.parent)


class _Collecting:
    """The collections of the process that have begun and not ended.

    Attributes:
        default: What collects outside of all of them.
        innermost: The one that was begun last; ``default`` where there is none.
    """

    def __init__(self) -> None:
        self._default = RegionBreakdown(calibrate_regions)
        self._begun: list[RegionBreakdown] = []
        self._lock = threading.Lock()
        self.innermost = self._default

    @property
    def default(self) -> RegionBreakdown:
        return self._default

    @default.setter
    def default(self, breakdown: RegionBreakdown) -> None:
        with self._lock:
            self._default = breakdown
            self.innermost = self._begun[-1] if self._begun else self._default

    def begin(self, breakdown: RegionBreakdown) -> None:
        with self._lock:
            self._begun.append(breakdown)
            self.innermost = breakdown

    def end(self, breakdown: RegionBreakdown) -> None:
        with self._lock:
            self._begun.remove(breakdown)
            self.innermost = self._begun[-1] if self._begun else self._default


_collecting = _Collecting()
