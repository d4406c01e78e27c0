"""How algorithms divide a vector, and fold ranks that are no power of two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from deep500.core.errors import CommunicationError
from deep500.distributed.simulation.schedule import Action, Phase, Round
from deep500.distributed.volume import part_sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["chunk_bounds", "equal_block", "fold", "folded_ranks", "levels_above", "levels_below", "ranks", "unfold"]


def ranks(size: int) -> NDArray[np.int64]:
    """Return all ranks."""
    return np.arange(size, dtype=np.int64)


def levels_below(size: int) -> int:
    """Return the largest ``k`` with ``2**k <= size``."""
    return size.bit_length() - 1


def levels_above(size: int) -> int:
    """Return the least ``k`` with ``2**k >= size``."""
    return (size - 1).bit_length()


def chunk_bounds(count: int, parts: int) -> NDArray[np.int64]:
    """Return the ``parts + 1`` bounds of chunks whose lengths differ by one at most."""
    return np.concatenate([[0], np.cumsum(part_sizes(count, parts), dtype=np.int64)])


def equal_block(size: int, count: int) -> int:
    """Return the elements of each rank's block.

    Raises:
        CommunicationError: The elements cannot be divided equally.
    """
    if count % size:
        raise CommunicationError(
            f"{count} elements were to be divided among {size} ranks. Accepted is a multiple of the number of ranks, "
            "since each has a block of the same size; pad the buffer."
        )
    return count // size


def folded_ranks(size: int) -> NDArray[np.int64]:
    """Return the ranks that take part where only a power of two can: those at which pairs were folded, then the rest.

    Of the ``r = size - 2**k`` pairs among the first ``2 r`` ranks, the odd one takes part.
    """
    core = 1 << levels_below(size)
    pairs = size - core
    numbers = ranks(core)
    return np.where(numbers < pairs, 2 * numbers + 1, numbers + pairs)


def fold(size: int, count: int) -> Iterator[Phase]:
    """Each even rank of a pair sends its vector to the odd one; nothing where the ranks are a power of two."""
    pairs = ranks(size - (1 << levels_below(size)))
    if len(pairs):
        yield Phase((Round.of(2 * pairs, 2 * pairs + 1, 0, count),), Action.REDUCE)


def unfold(size: int, count: int) -> Iterator[Phase]:
    """Each odd rank of a pair sends the result back."""
    pairs = ranks(size - (1 << levels_below(size)))
    if len(pairs):
        yield Phase((Round.of(2 * pairs + 1, 2 * pairs, 0, count),), Action.COPY)
