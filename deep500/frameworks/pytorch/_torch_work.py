"""Work of torch.distributed that has to be done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from deep500.core.errors import CommunicationError
from deep500.distributed.communicator import Work
from deep500.frameworks.pytorch._process_group import seconds, translated
from deep500.measure.clock import Stopwatch

__all__ = ["TorchWork"]

#: How long a wait sleeps between two looks, s, where it has to look.
_PAUSE_S = 1e-3


class TorchWork(Work):
    """Handles of one call.

    gloo finds out that a message has come only where somebody waits for it, and gives the whole connection up where
    that wait has a limit; so the first :meth:`test` of a message starts a thread that waits.
    """

    def __init__(
        self,
        what: str,
        handles: Sequence[Any],
        after: Callable[[], None] | None = None,
        *,
        receive: Any = None,
        waits_by_looking: bool = False,
        completes_by_waiting: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Keep the handles.

        Args:
            what: Name of the call, for messages.
            handles: Handles of torch.distributed, which keep the tensors.
            after: Called once all are done, to put results where they belong.
            receive: The handle of a message that comes from any rank, whose sender is wanted.
            waits_by_looking: Whether a wait with a limit looks until it is done, since the backend's own is on a
                stream of the GPU.
            completes_by_waiting: Whether a handle is only done where somebody waits for it.
            timeout_s: After how long a wait is an error.
        """
        super().__init__(timeout_s)
        self._what = what
        self._handles = list(handles)
        self._after = after
        self._receive = receive
        self._waits_by_looking = waits_by_looking
        self._completes_by_waiting = completes_by_waiting
        self._waiter: threading.Thread | None = None
        self._error: BaseException | None = None

    def _wait(self, timeout_s: float | None) -> None:
        if self._waiter is not None:
            self._waiter.join(timeout_s)
            if self._waiter.is_alive():
                raise self._late(timeout_s)
            self._raise_error()
        elif self._waits_by_looking and timeout_s is not None:
            watch = Stopwatch()
            while not all(handle.is_completed() for handle in self._handles):
                if watch.elapsed_s() > timeout_s:
                    raise self._late(timeout_s)
                time.sleep(_PAUSE_S)
            self._wait_for_handles(None)
        else:
            self._wait_for_handles(timeout_s)
        self._settle()

    def _poll(self) -> bool:
        if not self._completes_by_waiting:
            if not all(handle.is_completed() for handle in self._handles):
                return False
            self._wait_for_handles(None)  # raises what went wrong
        else:
            if self._waiter is None:
                self._waiter = threading.Thread(target=self._wait_aside, name=f"waits in {self._what}", daemon=True)
                self._waiter.start()
            if self._waiter.is_alive():
                return False
            self._raise_error()
        self._settle()
        return True

    def _wait_aside(self) -> None:
        try:
            self._wait_for_handles(self.timeout_s)
        except CommunicationError as error:
            self._error = error

    def _wait_for_handles(self, timeout_s: float | None) -> None:
        with translated(self._what):
            for handle in self._handles:
                handle.wait() if timeout_s is None else handle.wait(seconds(timeout_s))

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _settle(self) -> None:
        if self._receive is not None:
            self.source = self._receive._source_rank()
        if self._after is not None:
            self._after()

    def _late(self, timeout_s: float | None) -> CommunicationError:
        return CommunicationError(
            f"{self._what} was not done within {timeout_s:g} s: a peer does not answer (it was stopped, is stuck, or "
            "calls something else). Look at what the other ranks do, or raise timeout_s."
        )
