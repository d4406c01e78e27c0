"""Settings of the machine, not of the recipe: which transport ranks use, and what is done about one that fails."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deep500.core.errors import CommunicationError
from deep500.core.texts import shown

__all__ = ["ON_FAILURE", "RankOptions"]

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
        timeout = self.timeout_s
        if timeout is not None and not (isinstance(timeout, (int, float)) and 0 < timeout < math.inf):
            raise CommunicationError(
                f"timeout_s was given as {shown(timeout)}; accepted is a positive number of seconds, or None."
            )
        if self.on_failure not in ON_FAILURE:
            raise CommunicationError(
                f"on_failure was given as {shown(self.on_failure)}; accepted is one of: {', '.join(ON_FAILURE)}."
            )
