"""A parameter server that does not wait for all: updates in the order in which gradients come, and the log of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deep500.core.errors import CommunicationError, TrainingError
from deep500.core.texts import shown
from deep500.distributed.communicator import Work
from deep500.distributed.flat_buffers import FlatBuffers
from deep500.distributed.scheme import Scheme, StepContext
from deep500.measure.clock import Stopwatch

__all__ = ["FINISHED", "Server"]

#: In the place of a version in the log: the rank takes no more steps.
FINISHED = -1

_SERVER = 0
_GRADIENTS, _PARAMETERS = 1, 2  # tags of the messages
_VERSION = slice(0, 8)  # where a message has its version, in bytes

#: How long the server sleeps while no gradient has come, s.
_PAUSE_S = 1e-4


class Server(Scheme):
    """Rank 0 serves, and trains as well: it updates with one gradient at a time, its own or that of another rank.

    The others send their gradients and wait for parameters, at which they compute the next one; so a gradient may be
    of older parameters than those that it changes. The server looks for gradients after each backward pass of its own,
    and serves all others when it has finished: call ``finish()`` of the optimizer on all ranks after the last step, and
    before a checkpoint. Then all have the same parameters.

    Attributes:
        log: On rank 0, for each update the rank whose gradient it was, and the version of the parameters that the
            gradient was computed at: ``[rank, version]``; ``[rank, -1]`` where a rank finished.
        version: Number of updates of the parameters that this rank has.
    """

    kept: ClassVar[tuple[str, ...]] = ("log", "version")
    keeps_replicas_equal = False

    def __init__(self, bound: int | None, replay: Sequence[Sequence[int]] | None) -> None:
        """Choose how far ranks may part, and in which order updates are made.

        Args:
            bound: By how many steps a rank may be ahead of the slowest; ``None`` for any number.
            replay: The log of another run, whose order is followed; ``None`` for the order in which gradients come.

        Raises:
            TrainingError: The log is none.
        """
        self.log: list[list[int]] = []
        self.version = 0
        self._bound = bound
        try:
            self._replay = [(int(rank), int(version)) for rank, version in (() if replay is None else replay)]
        except (TypeError, ValueError) as error:
            raise TrainingError(f"replay was given as {shown(replay)}; accepted is the log of another run.") from error
        self._clocks: dict[int, int] = {}  # steps of each rank that has not finished
        self._waiting: set[int] = set()  # ranks that wait for parameters
        self._receiving: dict[int, tuple[Work, NDArray[np.uint8]]] = {}
        self._own_version = 0

    def staleness(self) -> list[int]:
        """Return for each update, on rank 0, how many others came between the gradient's parameters and it."""
        versions = [version for _, version in self.log if version != FINISHED]
        return [number - version for number, version in enumerate(versions)]

    def before_backward(self, context: StepContext) -> None:
        """Get ready to receive, on the server.

        Raises:
            TrainingError: The base optimizer does not update with every gradient.
        """
        if context.base_optimizer.accumulation_steps != 1:
            raise TrainingError(f"{type(self).__name__} updates with every gradient; accepted is accumulation_steps=1.")
        if context.communicator.rank == _SERVER:
            self._open(context)
            self._own_version = self.version

    def after_backward(self, context: StepContext) -> None:
        """Send the gradients and wait for parameters; on the server update with those that have come."""
        if context.communicator.rank != _SERVER:
            context.updates_itself = False
            context.communicator.send(_packed(self.version, context.gradients), _SERVER, _GRADIENTS)
            message = _packed(0, context.fetch_parameters())
            context.communicator.recv(message, _SERVER, _PARAMETERS)
            self.version = _unpack(message, context.fetch_parameters())
            context.feed_parameters()
            return
        own = [buffer.array.copy() for buffer in context.gradients]
        for worker in self._due():
            self._serve(context, worker)
        for buffer, gradient in zip(context.gradients, own, strict=True):
            buffer.array[...] = gradient

    def after_update(self, context: StepContext) -> None:
        """Count the server's own update, let ranks go on that waited for it, and wait for those that are behind."""
        self._count(_SERVER, self._own_version)
        self._release(context)
        while not self._may_go_on(_SERVER):
            self._serve(context, self._next(context))

    def finish(self, context: StepContext) -> None:
        """Serve until all ranks have finished; then give the server's parameters to all."""
        communicator = context.communicator
        if communicator.rank == _SERVER:
            self._open(context)
            self._leave(_SERVER)
            self._release(context)
            while self._clocks:
                self._serve(context, self._next(context))
        else:
            communicator.send(_packed(FINISHED, context.gradients), _SERVER, _GRADIENTS)
        message = _packed(self.version, context.fetch_parameters())
        communicator.broadcast(message, _SERVER)
        self.version = _unpack(message, context.fetch_parameters())
        context.feed_parameters()

    # The server's side.

    def _open(self, context: StepContext) -> None:
        """Begin to receive from all ranks, unless that has begun."""
        if not self._clocks:
            self._clocks = dict.fromkeys(range(context.communicator.size), 0)
            for worker in range(1, context.communicator.size):
                self._receive(context, worker)

    def _receive(self, context: StepContext, worker: int) -> None:
        message = _packed(0, context.gradients)
        self._receiving[worker] = (context.communicator.irecv(message, worker, _GRADIENTS), message)

    def _due(self) -> Iterator[int]:
        """Yield whom to serve before the server's own update: each that has sent, once; or as the log says."""
        if len(self.log) < len(self._replay):
            while len(self.log) < len(self._replay) and self._replay[len(self.log)][0] != _SERVER:
                yield self._of_log()
        else:
            yield from [worker for worker, (work, _) in sorted(self._receiving.items()) if work.test()]

    def _next(self, context: StepContext) -> int:
        """Return whom to serve next, and wait for it."""
        if len(self.log) < len(self._replay):
            return self._of_log()
        limit = context.communicator.timeout_s
        watch = Stopwatch()
        while True:
            for worker, (work, _) in sorted(self._receiving.items()):
                if work.test():
                    return worker
            if limit is not None and watch.elapsed_s() > limit:
                raise CommunicationError(
                    f"The parameter server has waited {limit} s for a gradient of the ranks "
                    f"{', '.join(map(str, sorted(self._receiving)))}. Every rank must call finish() in the end."
                )
            time.sleep(_PAUSE_S)

    def _of_log(self) -> int:
        """Return the rank that the log names next.

        Raises:
            TrainingError: No gradient of it can come.
        """
        rank = self._replay[len(self.log)][0]
        if rank not in self._receiving:
            raise TrainingError(
                f"The log that is to be replayed has rank {rank} as number {len(self.log)}, whose gradient cannot come "
                f"here. Replay with the same ranks, bound and numbers of steps."
            )
        return rank

    def _serve(self, context: StepContext, worker: int) -> None:
        """Update with the gradient that a rank has sent, or note that it has finished."""
        work, message = self._receiving.pop(worker)
        work.wait()
        version = int(message[_VERSION].view(np.int64)[0])
        if version == FINISHED:
            self._leave(worker)
        else:
            _unpack(message, context.gradients)
            context.update()
            self._count(worker, version)
            self._waiting.add(worker)
            self._receive(context, worker)
        self._release(context)

    def _count(self, rank: int, version: int) -> None:
        self.log.append([rank, version])
        self.version += 1
        self._clocks[rank] += 1

    def _leave(self, rank: int) -> None:
        self.log.append([rank, FINISHED])
        del self._clocks[rank]

    def _may_go_on(self, rank: int) -> bool:
        return self._bound is None or self._clocks[rank] - min(self._clocks.values()) <= self._bound

    def _release(self, context: StepContext) -> None:
        """Send parameters to the ranks that wait for them and may go on."""
        ready = [worker for worker in sorted(self._waiting) if self._may_go_on(worker)]
        if ready:
            message = _packed(self.version, context.fetch_parameters())
            for worker in ready:
                self._waiting.remove(worker)
                context.communicator.send(message, worker, _PARAMETERS)


def _packed(version: int, buffers: FlatBuffers) -> NDArray[np.uint8]:
    """Return a message of a version and all buffers."""
    parts: list[NDArray[Any]] = [np.array([version], np.int64), *(buffer.array for buffer in buffers)]
    return np.concatenate([part.view(np.uint8) for part in parts])


def _unpack(message: NDArray[np.uint8], buffers: FlatBuffers) -> int:
    """Write a message into buffers, and return its version."""
    start = _VERSION.stop
    for buffer in buffers:
        buffer.array.view(np.uint8)[...] = message[start : start + buffer.array.nbytes]
        start += buffer.array.nbytes
    return int(message[_VERSION].view(np.int64)[0])
