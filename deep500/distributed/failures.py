"""What goes on when a rank fails: the others form a smaller world and repeat the step from where all were equal."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from deep500.core.errors import TrainingError
from deep500.core.stateful import State
from deep500.distributed.rank_process import take_over_output
from deep500.distributed.scheme import Scheme, StepContext
from deep500.distributed.surviving_communicator import SurvivingCommunicator

if TYPE_CHECKING:
    from deep500.distributed.distributed_optimizer import DistributedOptimizer

__all__ = ["Shrink", "Survival"]

_logger = logging.getLogger(__name__)

Result = TypeVar("Result")


@dataclass(frozen=True)
class Shrink:
    """What those are told that listen to :attr:`DistributedOptimizer.on_shrink`, on each rank that is left.

    Attributes:
        lost: The ranks that failed, by the numbers that they started with.
        survivors: Those that are left, by the numbers that they started with; their place here is their new number.
        rank: The new number of this rank.
        size: The new number of ranks.
        step: The step that is repeated, or that comes next.
        state_lost: What the lost ranks had that nobody else has, in words; what is repeated goes on without it.
    """

    lost: tuple[int, ...]
    survivors: tuple[int, ...]
    rank: int
    size: int
    step: int
    state_lost: tuple[str, ...]

    def __str__(self) -> str:
        """Return what happened in a sentence."""
        ranks = ", ".join(map(str, self.lost))
        if not self.state_lost:
            return f"Rank {ranks} failed; {self.size} ranks go on from step {self.step}."
        what = "; ".join(self.state_lost)
        return f"Rank {ranks} failed; {self.size} ranks go on and repeat step {self.step}. Lost: {what}."


class Survival:
    """Repeats what ranks do together until all that are left have done it.

    A snapshot of this rank is taken before each try. After each, the ranks agree whether all have done it. Where one
    has failed the others shrink, go back to their snapshots, which are of the same step, take parameters and states of
    the first rank that is left, and try again. So a step costs a copy of parameters and optimizer state, and one more
    exchange of a few bytes. What changes nothing of the optimizer costs no copy.

    Only failures of ranks are survived: any other error is raised, and ends the rank that has it, which is a failure
    for the others.
    """

    def __init__(self, optimizer: DistributedOptimizer) -> None:
        """Watch over an optimizer whose scheme is not bound yet.

        Args:
            optimizer: An optimizer with a :class:`SurvivingCommunicator`.

        Raises:
            TrainingError: Its scheme exchanges beyond its steps, so that there is no point to go back to.
        """
        scheme = optimizer.scheme
        if type(scheme).finish is not Scheme.finish:
            raise TrainingError(
                f"{type(scheme).__name__} lets ranks be in different steps, so that those that are left when one fails "
                f"have no step in common to go back to. Accepted with on_failure='shrink' are schemes that exchange "
                f"within each step, such as 'allreduce'; use that, or on_failure='abort' and checkpoints."
            )
        self._optimizer = optimizer
        self._unbound = copy.deepcopy(scheme)
        self._abandoned: list[Any] = []  # buffers of exchanges that failed, which the transport may still look at

    def check_bound(self, context: StepContext) -> None:
        """Check what is known only once the scheme is bound.

        Raises:
            TrainingError: The framework exchanges by itself, where a failure cannot be survived.
        """
        if context.differentiate is not None:
            name = type(self._optimizer.scheme).__name__
            raise TrainingError(
                f"{name} leaves the exchange to the framework, which cannot go on when a rank fails. Accepted with "
                f"on_failure='shrink' are schemes that exchange through the communicator, such as 'allreduce'."
            )

    @property
    def communicator(self) -> SurvivingCommunicator:
        """What carries the messages."""
        communicator = self._optimizer.communicator
        assert isinstance(communicator, SurvivingCommunicator)
        return communicator

    def run(self, action: Callable[[], Result], *, changes: bool = True) -> Result:
        """Carry out what all ranks do together, and again with those that are left where one fails.

        Args:
            action: Called on every rank; it may change the optimizer and its executor only.
            changes: Whether it changes them.
        """
        if self.communicator.size == 1:
            return action()
        before = self._optimizer.snapshot() if changes else None
        done: list[Result] = []
        lost: tuple[int, ...] = ()
        ready = self._attempt(lambda: done.append(action()))
        while not ready:
            done.clear()
            before = self._optimizer.snapshot() if before is None else before
            lost += self.communicator.shrink()
            state_lost = self._state_lost(in_step=changes)
            ready = self._attempt(lambda: self._go_back(before)) and self._attempt(  # noqa: B023 - called at once
                lambda: self._tell(lost, state_lost, done, action)  # noqa: B023
            )
        return done[0]

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Return whether all ranks have done something."""
        communicator = self.communicator
        try:
            action()
        except Exception:
            # Frameworks that call the scheme from their own threads raise errors of their own kinds in its place.
            if not communicator.is_broken():
                raise
            communicator.revoke()
            return communicator.agree(False)
        return communicator.agree(True)

    def _go_back(self, before: State) -> None:
        self._abandoned.append(self._optimizer.rejoin(copy.deepcopy(self._unbound), before))

    def _tell(
        self, lost: tuple[int, ...], state_lost: tuple[str, ...], done: list[Result], action: Callable[[], Result]
    ) -> None:
        communicator, optimizer = self.communicator, self._optimizer
        shrink = Shrink(
            lost,
            communicator.world_ranks,
            communicator.rank,
            communicator.size,
            optimizer.steps_begun,
            state_lost,
        )
        if communicator.rank == 0:
            take_over_output()  # of a first rank that may be among those that were lost
            _logger.warning("%s", shrink)
        for listener in optimizer.on_shrink:
            listener(shrink)
        done.append(action())

    def _state_lost(self, *, in_step: bool) -> tuple[str, ...]:
        """Say what lost ranks had that nobody else has."""
        scheme, optimizer = self._optimizer.scheme, self._optimizer
        lost = ["their minibatches of this step"] if in_step else []
        if scheme.kept:
            lost.append(f"what {type(scheme).__name__} kept there ({', '.join(scheme.kept)})")
        if not scheme.keeps_replicas_equal:
            lost.append("their parameters, which differed; all take those of the first rank that is left")
        if optimizer.shares_updates:
            lost.append("the optimizer's state of the parameters that they updated, which begins anew")
        return tuple(lost)
