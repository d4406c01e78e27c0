"""Who trains together: one process, or one rank of several that must take the same decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["ALONE", "Ranks"]

_Result = TypeVar("_Result")


class Ranks:
    """The processes of a training, and how they agree. This one is for a single process, which decides by itself.

    What decides is rank 0's: whether an event stops the training, whether its time is over, what a test gives. A
    training on several ranks has the ranks in its optimizer's attribute ``ranks``; all ranks call the same methods in
    the same order. Values are what JSON holds.

    Attributes:
        rank: Number of this rank, from 0.
        size: Number of ranks.
        members: The ranks by the numbers that they started with; fewer where a training goes on without some.
        replicas_equal: Whether all ranks have the same parameters after each step.
    """

    rank: int = 0
    size: int = 1
    members: tuple[int, ...] = (0,)
    replicas_equal: bool = True

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which reports and writes."""
        return self.rank == 0

    def decided(self, value: Any) -> Any:
        """Return the value of rank 0."""
        return value

    def gathered(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order."""
        return [value]

    def decided_in_step(self, value: int) -> int:
        """Return the whole number of rank 0, between two steps; rank 0 waits for no other where ranks run apart."""
        return value

    def largest_in_step(self, value: int) -> int:
        """Return the largest number of all ranks, between two steps; rank 0's alone where ranks run apart."""
        return value

    def first_does(self, action: Callable[[], _Result], errors: type[Exception]) -> _Result | None:
        """Let rank 0 do something, and all ranks know whether it could.

        Where rank 0 fails meanwhile and the others go on, the first one that is left does it, perhaps once more.

        Args:
            action: What rank 0 does.
            errors: What it may raise; its only argument is the message.

        Returns:
            What the action returned, on rank 0; ``None`` elsewhere.

        Raises:
            Exception: An error of that kind, on all ranks with the same message.
        """
        result, failure = None, None
        was_here = is_done = False
        while not is_done:
            if self.is_first and not was_here:
                was_here = True
                try:
                    result = action()
                except errors as error:
                    failure = error
            is_done, message = self.decided([was_here, None if failure is None else str(failure)])
        if message is not None:
            raise errors(message) from failure
        return result


#: A single process.
ALONE = Ranks()
