"""What runs the cells of a campaign: the contract of the files in ``backends``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deep500.core.errors import FleetError, near_miss
from deep500.core.registry import Registry
from deep500.core.texts import shown

if TYPE_CHECKING:
    from deep500.fleet.compat.campaign import Campaign
    from deep500.fleet.compat.cell import Cell

__all__ = ["BACKENDS", "STATES", "Backend", "SchedulerState", "Tell", "new_backend"]

#: What a scheduler can say of a job. ``refused`` when it was submitted; ``expired``: pending until the deadline, then
#: taken back; ``pending``; ``running``; ``completed``: ended with code 0; ``failed``: ended with another code or by a
#: signal; ``timeout``: ended by the scheduler at the time limit; ``out_of_memory``; ``node_lost``; ``cancelled`` by
#: someone; ``unknown``: the scheduler knows nothing of it (any more).
STATES = (
    "refused",
    "expired",
    "pending",
    "running",
    "completed",
    "failed",
    "timeout",
    "out_of_memory",
    "node_lost",
    "cancelled",
    "unknown",
)

#: Is told where the work is, in one line.
Tell = Callable[[str], None]

BACKENDS = Registry("backend of a campaign", "deep500.fleet.compat.backends")


@dataclass(frozen=True)
class SchedulerState:
    """What the scheduler knows of the job of one cell. Times are in seconds since 1970 (UTC).

    Attributes:
        state: One of :data:`STATES`.
        exit_code: That of the job; the negative number of a signal that ended it; ``None`` while unknown.
        reason: The scheduler's own words, such as why it refused.
        submitted: When it was asked for.
        started: When it began.
        ended: When it ended.
        label: What the scheduler calls the job, such as ``"1234_7"``; ``None`` where it has no name.
    """

    state: str
    exit_code: int | None = None
    reason: str = ""
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        """Check the state, and that the rest is of its kind: it may come from a file that something else wrote."""
        if self.state not in STATES:
            raise FleetError(
                f"There is no state {shown(self.state)} of a job.{near_miss(self.state, STATES)} Accepted: "
                f"{', '.join(STATES)}."
            )
        for name in ("exit_code", "submitted", "started", "ended"):
            value = getattr(self, name)
            kinds = (int,) if name == "exit_code" else (int, float)
            if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise FleetError(f"{name!r} of a job is {shown(value)}; a number or nothing is needed.")

    @property
    def active(self) -> bool:
        """Whether the job still waits or runs, so that its cell must not be started again."""
        return self.state in ("pending", "running")


class Backend(ABC):
    """One way to run cells; a file of ``backends`` each, found by its name.

    A backend keeps all that it has to remember in the campaign's folder ``scheduler``, so that another process can
    ask for the states after the one that submitted was killed.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the options that are given as ``--option KEY=VALUE``.

        Args:
            options: Texts by name.

        Raises:
            FleetError: An option is unknown, or its value is not accepted.
        """
        unknown = sorted(set(options) - set(self.option_names()))
        if unknown:
            known = self.option_names()
            raise FleetError(
                f"This backend has no option {unknown[0]!r}.{near_miss(unknown[0], known)} It has: "
                f"{', '.join(f'{name} ({what})' for name, what in known.items()) or 'none'}."
            )
        self.options = dict(options)

    @classmethod
    def option_names(cls) -> dict[str, str]:
        """Return what options there are, each with what it is for, in few words."""
        return {}

    @abstractmethod
    def generate(self, campaign: Campaign, cells: Sequence[Cell]) -> list[Path]:
        """Write plain files from which the cells can be submitted, also by hand; return them.

        :meth:`Campaign.prepare` was called with these cells before.
        """

    @abstractmethod
    def submit(self, campaign: Campaign, cells: Sequence[Cell], tell: Tell) -> None:
        """Submit the cells; :meth:`generate` was called with them before.

        A cell that the scheduler refuses is remembered (state ``refused``) and does not keep others from being
        submitted. What waits for the end, as a pool of this process does, returns when all of them have ended; what
        hands over to a scheduler returns at once.

        Raises:
            FleetError: There is no such scheduler here.
        """

    @abstractmethod
    def states(self, campaign: Campaign) -> dict[str, SchedulerState]:
        """Return the states of all jobs that were submitted, by cell; the last attempt of each.

        Raises:
            FleetError: What was remembered cannot be read.
        """


def new_backend(name: str, options: Mapping[str, str]) -> Backend:
    """Return a backend by its name.

    Raises:
        UnknownNameError: There is none of this name.
        FleetError: An option is not accepted.
    """
    made: Backend = BACKENDS.get(name)(options)
    return made
