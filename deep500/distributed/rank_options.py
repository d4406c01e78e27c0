"""Settings of the machine, not of the recipe: which transport ranks use, and what is done about one that fails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.core.errors import CommunicationError
from deep500.core.texts import shown

__all__ = ["ON_FAILURE", "RankOptions", "checked_timeout", "timeout_of_option"]

#: What is done when a rank fails: end all, or go on with those that are left.
ON_FAILURE = ("abort", "shrink")


@dataclass(frozen=True)
class RankOptions:
    """How the ranks of a run hold together.

    Attributes:
        communicator: Name of the transport; ``None`` for the one that fits how the process was started.
        timeout_s: Seconds after which a peer that does not answer is an error; ``None`` waits for ever.
        on_failure: ``"abort"`` ends all ranks when one fails, ``"shrink"`` goes on with the others, which needs a
            transport that survives it.

    Raises:
        CommunicationError: A setting is not accepted.
    """

    communicator: str | None = None
    timeout_s: float | None = None
    on_failure: str = "abort"

    def __post_init__(self) -> None:
        """Check the settings."""
        checked_timeout(self.timeout_s)
        if self.on_failure not in ON_FAILURE:
            raise CommunicationError(
                f"on_failure was given as {shown(self.on_failure)}; accepted is one of: {', '.join(ON_FAILURE)}."
            )


def checked_timeout(seconds: Any) -> float | None:
    """Return the time after which a peer that does not answer is an error; ``None`` waits for ever.

    Raises:
        CommunicationError: It is no such time.
    """
    is_number = isinstance(seconds, (int, float, np.integer, np.floating)) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and 0 < seconds < math.inf):
        raise CommunicationError(
            f"timeout_s was given as {shown(seconds)}; accepted is a number of seconds above 0, or None to wait for "
            f"ever."
        )
    return None if seconds is None else float(seconds)


def timeout_of_option(seconds: float) -> float | None:
    """Return the time that a command's ``--timeout`` stands for; 0, which is none, waits for ever.

    Raises:
        CommunicationError: It is no such number.
    """
    if not 0 <= seconds < math.inf:
        raise CommunicationError(
            f"--timeout was given as {seconds:g}; accepted is a number of seconds above 0, or 0 to wait for ever."
        )
    return seconds or None
