"""What came of one piece of work: a job of a pipeline, a cell of a matrix, a test, a job of a cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from deep500.core.errors import FleetError, near_miss
from deep500.core.texts import shown

__all__ = ["STATUSES", "Outcome", "check_status"]

#: What can come of it. Only ``passed`` and ``failed`` say something about the work itself: ``no_match`` found no
#: machine, ``environment`` found no libraries that fit together, ``unreachable`` lost its machine, ``timeout`` did not
#: end in the time it had, ``cancelled`` was ended by someone, ``missing`` left nothing (or still runs).
STATUSES = ("passed", "failed", "no_match", "environment", "unreachable", "timeout", "cancelled", "missing")


@dataclass(frozen=True)
class Outcome:
    """What came of one piece of work.

    Times are in seconds since 1970 (UTC), or since the beginning of the trace where that is all it tells.

    Attributes:
        key: What it was: the same key in another group is the same work again.
        group: What it was done for: a commit, a campaign, a user. Outcomes of one group stand side by side.
        status: One of :data:`STATUSES`.
        cause: Why, in few words; ``None`` where nothing is known.
        submitted: When it was asked for.
        started: When it began; ``None`` when it never did, or nobody wrote it down.
        ended: When it ended; ``None`` while it runs, or when nobody wrote it down.
        gpus: GPUs that it had, in parts where they are shared; ``None`` where that is unknown.
        cost: Hours of GPUs that it took; of its machine where it had no GPU; ``None`` where that is unknown.
        labels: Whatever else is known of it, by name: texts, numbers and truths.

    Raises:
        FleetError: The status is none, a text is none or empty, or a number is not one.
    """

    key: str
    group: str
    status: str
    cause: str | None = None
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    gpus: float | None = None
    cost: float | None = None
    labels: Mapping[str, str | float | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the fields."""
        check_status(self.status)
        for name in ("key", "group"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise FleetError(f"The {name} of an outcome is {shown(value)}; a text that is not empty is needed.")
        for name in ("submitted", "started", "ended", "gpus", "cost"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and math.isfinite(value)):
                raise FleetError(f"{name!r} of the outcome of {self.key!r} is {shown(value)}; a number is needed.")

    @property
    def duration_s(self) -> float | None:
        """How long it ran in seconds; ``None`` where that is unknown."""
        return None if self.started is None or self.ended is None else self.ended - self.started


def check_status(status: object) -> str:
    """Return the status.

    Raises:
        FleetError: It is none of :data:`STATUSES`.
    """
    if status not in STATUSES:
        raise FleetError(
            f"There is no status {shown(status)}.{near_miss(status, STATUSES)} Accepted: {', '.join(STATUSES)}."
        )
    return str(status)
