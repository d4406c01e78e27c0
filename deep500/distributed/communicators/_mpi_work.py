"""MPI requests that have to be done, with a limit of time for a peer that was stopped."""

from __future__ import annotations

import time
from typing import Any

from deep500.core.errors import CommunicationError
from deep500.distributed._work import Call, Work
from deep500.distributed.communicators._mpi_departures import Departures, Wait
from deep500.distributed.communicators._mpi_library import mpi, translated
from deep500.measure.clock import Stopwatch

__all__ = ["MPIWork"]

#: So long a wait tests without a pause, as MPI's own waits do for ever; then it sleeps between tests.
_SPIN_S = 0.5
_SLEEP_S = 0.001

#: So many tests are made between two looks at the clock.
_TESTS = 64

#: Buffers of exchanges that were given up: MPI may still write into them.
_GIVEN_UP: list[Any] = []


class MPIWork(Work):
    """Requests of one call."""

    def __init__(
        self, requests: list[Any], call: Call, wait: Wait, departures: Departures | None, timeout_s: float | None
    ) -> None:
        """Keep the requests and the call's buffers, which MPI uses until they are done."""
        super().__init__(timeout_s)
        self._requests = requests
        self._call = call
        self._awaited = wait
        self._departures = departures
        self._statuses = [mpi().Status() for _ in requests] if call.operation in ("recv", "isendrecv") else None

    def _poll(self) -> bool:
        with translated(self._call.operation):
            if not mpi().Request.Testall(self._requests, self._statuses):
                return False
        self._check_message()
        return True

    def _wait(self, timeout_s: float | None) -> None:
        if self._departures is not None:
            self._departures.begin(self._awaited)
        try:
            if timeout_s is None:
                with translated(self._call.operation):
                    mpi().Request.Waitall(self._requests, self._statuses)
                self._check_message()
            else:
                self._wait_at_most(timeout_s)
        finally:
            if self._departures is not None:
                self._departures.end()

    def _wait_at_most(self, timeout_s: float) -> None:
        watch = Stopwatch()
        while not self._spin():
            waited = watch.elapsed_s()
            if waited > timeout_s:
                _GIVEN_UP.append((self._requests, self._call))
                raise CommunicationError(self._awaited.late(timeout_s))
            if waited > _SPIN_S:
                time.sleep(_SLEEP_S)

    def _spin(self) -> bool:
        """Test many times: each test moves a large message on by a piece, so what is between two tests counts."""
        testall, requests, statuses = mpi().Request.Testall, self._requests, self._statuses
        with translated(self._call.operation):
            done = any(testall(requests, statuses) for _ in range(_TESTS))
        if done:
            self._check_message()
        return done

    def _check_message(self) -> None:
        """Note the sender, and refuse a message that does not fill the buffer."""
        if self._statuses is None:
            return
        status = self._statuses[0]
        buffer = self._call.buffer if self._call.operation == "recv" else self._call.other
        count = status.Get_count(mpi().BYTE)
        self.source = status.Get_source()
        if buffer is not None and count != buffer.nbytes:
            raise CommunicationError(
                f"Received {count} bytes from rank {self.source} into a buffer of {buffer.nbytes}. Accepted are "
                "messages of exactly the size of the receiver's buffer."
            )
