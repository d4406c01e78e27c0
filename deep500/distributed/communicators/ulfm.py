"""Ranks of MPI that go on when one of them fails."""

from __future__ import annotations

import atexit
import time
from typing import Any

import numpy as np

from deep500.core.errors import CommunicationError
from deep500.core.texts import one_line
from deep500.distributed.communicators._mpi_calibration import Calibration
from deep500.distributed.communicators._mpi_departures import Departures
from deep500.distributed.communicators._mpi_library import mpi
from deep500.distributed.communicators._mpi_survival import (
    check_survival,
    come_to_the_end_without_waiting,
    end_alone,
    end_alone_when_it_fails,
    is_failure,
)
from deep500.distributed.communicators.mpi import MPICommunicator
from deep500.distributed.surviving_communicator import SurvivingCommunicator
from deep500.measure.clock import Stopwatch

__all__ = ["ULFMCommunicator"]

#: What ranks bring to an agreement: all bits that every rank has set are in its result.
_NOT_DONE, _DONE, _LEAVING = 0, 1, 2

#: How long a rank that has come to its end waits for the others before it has them look, s.
_PATIENCE_S = 2.0
_PAUSE_S = 1e-3

#: How long a rank stays for those that learn later that all have come to their end, s.
_FAREWELL_S = 1.0


class ULFMCommunicator(MPICommunicator, SurvivingCommunicator):
    """A rank of Open MPI with user-level failure mitigation (ULFM), started by ``mpiexec --with-ft ulfm``.

    It is :class:`MPICommunicator` but for what happens when a rank ends early, by a signal, an exception that nothing
    catches, or ``sys.exit``: operations of the others raise :class:`CommunicationError`, and they may go on after
    :meth:`shrink`, which :class:`~deep500.distributed.distributed_optimizer.DistributedOptimizer` does for them. A rank
    that is stopped, rather than ended, has not failed for MPI: with ``timeout_s`` those that wait for it end.
    """

    #: Open MPI's non-blocking allreduce was measured to take this much longer. It is not measured here, since a failure
    #: in between would leave ranks with different results, which then call different operations.
    calibration = Calibration(blocking_s=1.0, nonblocking_s=2.6)

    def _watch_over(self, communicator: Any) -> Departures | None:
        """Have this rank end alone when it fails, and part from the others when it comes to its end."""
        check_survival(communicator.size)
        if communicator.size > 1:
            end_alone_when_it_fails()
            atexit.register(self._leave)
        return None

    def _set_up(self, comm: Any, chunk_bytes: int) -> None:
        super()._set_up(comm, chunk_bytes)
        self._parts: list[ULFMCommunicator] = []

    def split(self, color: int | None, key: int = 0) -> MPICommunicator | None:
        """Return a communicator of the ranks that name the same color; it ends with this one."""
        part = super().split(color, key)
        if isinstance(part, ULFMCommunicator):
            self._parts.append(part)
        return part

    def is_broken(self) -> bool:
        """Return whether a rank is known to have failed; see :class:`SurvivingCommunicator`."""
        known = self._comm.Is_revoked() or self._comm.Get_failed().size > 0
        return known or any(part.is_broken() for part in self._parts)

    def revoke(self) -> None:
        """End what is under way, on all ranks; see :class:`SurvivingCommunicator`."""
        for communicator in (self, *self._parts):
            if not communicator._comm.Is_revoked():
                communicator._comm.Revoke()
        for part in self._parts:
            part.revoke()

    def agree(self, done: bool) -> bool:
        """Return whether all say that it is done; see :class:`SurvivingCommunicator`."""
        return self._agreed(self._comm, _DONE if done else _NOT_DONE) == _DONE

    def _shrink(self) -> None:
        """Go on with the ranks that are left; see :class:`SurvivingCommunicator`."""
        before = self._comm
        comm = before.Shrink()
        while True:
            try:
                machine = comm.Split_type(mpi().COMM_TYPE_SHARED, key=comm.rank)
                settled = _DONE
            except mpi().Exception as error:
                if not is_failure(error):
                    raise
                comm.Revoke()
                settled = _NOT_DONE
            if self._agreed(comm, settled) == _DONE:
                break
            comm = comm.Shrink()  # another one has failed
        survivors = mpi().Group.Translate_ranks(comm.group, list(range(comm.size)), before.group)
        world = tuple(self.world_ranks[rank] for rank in survivors)
        self._comm, self._parts = comm, []
        self.rank, self.size, self.local_rank = comm.rank, comm.size, machine.rank
        self.world_ranks = world
        self._is_world = world == tuple(range(len(world)))
        vars(self).pop("_others", None)

    def _agreed(
        self, comm: Any, flag: int, patience_s: float | None = None, limit_s: float | None = None
    ) -> int | None:
        """Return what all ranks agree on; ``None``, on all, where one has failed.

        Args:
            comm: mpi4py's communicator.
            flag: What this rank brings.
            patience_s: After how long to revoke the communicator, where others may wait in it for this rank.
            limit_s: After how long to give it up, where nothing depends on it; ``None`` is returned then.
        """
        agreed = np.array([flag], np.intc)
        watch = Stopwatch()
        is_revoked = False
        try:
            request = comm.Iagree(agreed)
            while not request.Test():
                if limit_s is not None and watch.elapsed_s() > limit_s:
                    return None
                if patience_s is not None and not is_revoked and watch.elapsed_s() > patience_s:
                    self.revoke()
                    is_revoked = True
                if watch.elapsed_s() > _PATIENCE_S / 4:
                    time.sleep(_PAUSE_S)
        except mpi().Exception as error:
            if is_failure(error):
                return None
            raise CommunicationError(
                f"MPI refused an agreement of the ranks: {one_line(str(error))}. Without one they cannot go on; start "
                "them again from a checkpoint."
            ) from error
        return int(agreed[0])

    def _leave(self) -> None:
        """Come to MPI's end together with the others, or end alone where they go on."""
        while self.size > 1 and not mpi().Is_finalized():
            agreed = self._agreed(self._comm, _LEAVING, _PATIENCE_S)
            if agreed == _LEAVING:
                break
            if agreed is not None:
                end_alone("This rank has come to its end before the others (sys.exit, or the end of its program).")
            self.shrink()  # a rank has failed here: what the others do is not known yet
        if self.lost and not mpi().Is_finalized():
            if self.size > 1:  # others may need this rank's messages to learn what has been agreed on
                self._agreed(self._comm, _LEAVING, limit_s=_FAREWELL_S)
            come_to_the_end_without_waiting()
