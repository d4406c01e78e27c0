"""What can be written to a checkpoint and continued from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from deep500.core.errors import CheckpointError, Deep500Error

__all__ = ["State", "Stateful", "checkpoint_errors"]

#: A snapshot: names to numbers, texts, ``None``, booleans, lists of these, NumPy arrays, and snapshots again. It shares
#: no memory with what it was taken from.
State = dict[str, Any]


@runtime_checkable
class Stateful(Protocol):
    """Something whose course depends on what it did before: an optimizer, a sampler, an executor, an event.

    What is restored goes on bit for bit as what the snapshot was taken from would have gone on.
    """

    def state(self) -> State:
        """Return a snapshot of all that what comes next depends on."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot.

        Raises:
            CheckpointError: It is of something else: names, dtypes or shapes differ. Nothing is changed then.
        """


@contextlib.contextmanager
def checkpoint_errors(what: str) -> Iterator[None]:
    """Turn what reading a state of another form raises into one clear error.

    Args:
        what: What is restored, for the message.

    Raises:
        CheckpointError: An entry is missing, or of another type.
    """
    try:
        yield
    except Deep500Error:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"the entry {error} is missing" if isinstance(error, KeyError) else str(error)
        raise CheckpointError(
            f"The checkpoint does not hold the state of {what} as this version of Deep500 writes it: {reason}. Go on "
            f"with the version that wrote it, or from another checkpoint."
        ) from error
