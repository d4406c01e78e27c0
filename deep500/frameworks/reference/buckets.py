"""Gradients that are handed out in flat buffers while the backward sweep goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deep500.distributed.flat_buffers import Bucket, FlatBuffers
from deep500.frameworks.reference._calls import Course

__all__ = ["BufferGradients", "HandOver"]


class HandOver:
    """Writes gradients into their buffers, and hands out each bucket when no call can add to its gradients any more.

    Attributes:
        gradients: The buffers.
    """

    def __init__(self, gradients: FlatBuffers, buckets: Sequence[Bucket], on_bucket: Callable[[Bucket], None]) -> None:
        """Say where the gradients go.

        Args:
            gradients: The buffers.
            buckets: All buckets, in the order in which they are to be handed out.
            on_bucket: Called for each.
        """
        self.gradients = gradients
        self._waiting = list(reversed(buckets))
        self._on_bucket = on_bucket

    def after_call(self, count: int, course: Course, found: Mapping[str, Any]) -> None:
        """Hand out what is complete.

        Args:
            count: How many calls have been differentiated, from the last one backwards.
            course: When which gradient is complete.
            found: The gradients so far.
        """
        while self._waiting and course.complete_after(self._waiting[-1].names) <= count:
            bucket = self._waiting.pop()
            for name in bucket.names:
                gradient = found.get(name)
                self.gradients[name][...] = 0 if gradient is None else gradient
            self._on_bucket(bucket)

    def updated(self, course: Course, found: Mapping[str, Any]) -> list[str]:
        """Return the names of what is updated.

        It is the same on every rank: where a branch was not taken, or a loop not entered, on this rank, the gradient is
        zero, and another rank may have one that is not.

        Args:
            course: What depends on branches and loops.
            found: The gradients of this rank.
        """
        return [name for name in self.gradients.names if found.get(name) is not None or name in course.depends_on_data]


class BufferGradients(MutableMapping[str, NDArray[Any]]):
    """Gradients that stand in flat buffers, where an exchange may change them until they are read.

    What is read is a copy: an optimizer may keep it, and the buffers are used again.
    """

    def __init__(self, buffers: FlatBuffers, names: Sequence[str]) -> None:
        """Name what there is.

        Args:
            buffers: The flat buffers.
            names: The parameters that have a gradient.
        """
        self._buffers = buffers
        self._names: dict[str, NDArray[Any] | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a gradient as it is now."""
        replaced = self._names[name]
        return np.array(self._buffers[name]) if replaced is None else replaced

    def __setitem__(self, name: str, gradient: NDArray[Any]) -> None:
        """Replace a gradient."""
        self._names[name] = gradient

    def __delitem__(self, name: str) -> None:
        """Take a gradient away."""
        del self._names[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Number of gradients."""
        return len(self._names)
