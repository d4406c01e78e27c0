"""What can be written to a checkpoint and continued from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

__all__ = ["State", "Stateful"]

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
