"""The times of a rank's steps, taken around what its communicators do, for as long as somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deep500.core.errors import MeasurementError
from deep500.distributed.communicator import Call, Communicator, Work
from deep500.distributed.schemes._server import Server
from deep500.distributed.time_split import StepTimes
from deep500.measure.clock import now_ns

if TYPE_CHECKING:
    from typing_extensions import Self

    from deep500.distributed.distributed_optimizer import DistributedOptimizer

__all__ = ["ExchangeRecorder"]


class ExchangeRecorder:
    """Tells of each step how long the rank computed, how long exchanges were under way, and how long it waited.

    It stands between a distributed optimizer and its communicators within a ``with`` block, and leaves nothing behind:
    steps that nobody records cost nothing more. An exchange is under way from its call to the moment in which the rank
    knows that it is done. A receive that was posted ahead is none until the rank waits for it.

    Attributes:
        steps: The times of the steps.
        arrivals_s: When the rank first waited for others in each step, in seconds of its own clock; the end of the step
            where it did not.

    Example:
        >>> with ExchangeRecorder(optimizer) as recorder:  # doctest: +SKIP
        ...     for batch in batches:
        ...         recorder.begin_step()
        ...         optimizer.step(batch)
        ...         recorder.end_step()
    """

    def __init__(self, optimizer: DistributedOptimizer) -> None:
        """Record the steps of an optimizer."""
        self.steps: list[StepTimes] = []
        self.arrivals_s: list[float] = []
        self._optimizer = optimizer
        self._undo: list[tuple[Any, str]] = []
        self._begun_ns: int | None = None
        self._arrived_ns: int | None = None
        self._under_way = 0
        self._under_way_since_ns = 0
        self._exchange_ns = 0
        self._exposed_ns = 0
        self._waits = 0

    def __enter__(self) -> Self:
        """Stand in between.

        Raises:
            MeasurementError: Another recorder does.
        """
        scheme = self._optimizer.scheme
        found = [self._optimizer.communicator, *(v for v in vars(scheme).values() if isinstance(v, Communicator))]
        communicators = list({id(communicator): communicator for communicator in found}.values())
        if any("_complete" in vars(communicator) for communicator in communicators):
            raise MeasurementError(
                "The exchanges of this optimizer are recorded already, and one recorder at a time can be. Use the one "
                "that is there; of the metrics that record them, name one."
            )
        for communicator in communicators:
            self._replace(communicator, "_complete", self._waiting(communicator._complete, is_exchange=True))
            self._replace(communicator, "_begin", self._starting(communicator._begin))
        if isinstance(scheme, Server):  # it looks for messages in turns, rather than to wait for one of them
            self._replace(scheme, "_next", self._waiting(scheme._next, is_exchange=True))
        return self

    def __exit__(self, *_: object) -> None:
        """Step aside."""
        for owner, name in self._undo:
            delattr(owner, name)
        self._undo.clear()

    def begin_step(self) -> None:
        """Start the clock of a step."""
        self._exchange_ns = self._exposed_ns = 0
        self._arrived_ns = None
        self._begun_ns = self._under_way_since_ns = now_ns()

    def end_step(self) -> StepTimes:
        """Stop the clock of the step, and return its times.

        Raises:
            MeasurementError: No step was begun.
        """
        end = now_ns()
        if self._begun_ns is None:
            raise MeasurementError("A step was ended that was not begun; call begin_step before each step.")
        if self._under_way:
            self._exchange_ns += end - self._under_way_since_ns
        compute = max(end - self._begun_ns - self._exposed_ns, 0)
        times = StepTimes(compute * 1e-9, self._exchange_ns * 1e-9, self._exposed_ns * 1e-9)
        self.steps.append(times)
        self.arrivals_s.append((end if self._arrived_ns is None else self._arrived_ns) * 1e-9)
        self._begun_ns = None
        return times

    def _replace(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        setattr(owner, name, function)
        self._undo.append((owner, name))

    def _waiting(self, inner: Callable[..., Any], *, is_exchange: bool) -> Callable[..., Any]:
        """Return a function in which the rank waits; ``is_exchange``: which is an exchange of its own, too."""

        def wait(*arguments: Any, **named: Any) -> Any:
            start = now_ns()
            if self._arrived_ns is None:
                self._arrived_ns = start
            self._waits += 1
            if is_exchange:
                self._begin_exchange(start)
            try:
                return inner(*arguments, **named)
            finally:
                end = now_ns()
                if is_exchange:
                    self._end_exchange(end)
                self._waits -= 1
                if not self._waits:
                    self._exposed_ns += end - start

        return wait

    def _starting(self, inner: Callable[..., Work]) -> Callable[..., Work]:
        """Return what starts an exchange; the rank computes nothing meanwhile."""

        def begin(call: Call, after: Callable[[], None] | None = None) -> Work:
            start = now_ns()
            is_posted = call.operation == "recv"
            if not is_posted:
                self._begin_exchange(start)
            work = inner(call, after)
            if not is_posted:
                work.then(lambda: self._end_exchange(now_ns()))
            vars(work)["wait"] = self._waiting(work.wait, is_exchange=is_posted)
            if not self._waits:
                self._exposed_ns += now_ns() - start
            return work

        return begin

    def _begin_exchange(self, at_ns: int) -> None:
        if not self._under_way:
            self._under_way_since_ns = at_ns
        self._under_way += 1

    def _end_exchange(self, at_ns: int) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._exchange_ns += max(at_ns - self._under_way_since_ns, 0)
