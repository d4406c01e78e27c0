"""Order statistics of all pairwise averages or differences, without holding all of them when they are many."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PairSums", "differences", "walsh_averages"]

#: Up to this many pairs are held and sorted; more are counted by bisection in O(n log n) each step.
MAXIMUM_HELD = 20_000


@dataclass(frozen=True)
class PairSums:
    """The sums ``left[i] + right[j]`` of two ascending rows, or those with ``i <= j`` of one row with itself.

    Attributes:
        left: Ascending.
        right: Ascending.
        half: Whether only pairs with ``i <= j`` count; ``left`` and ``right`` are equal then.
        held: The sums, ascending, where they are few.
    """

    left: NDArray[np.float64]
    right: NDArray[np.float64]
    half: bool
    held: NDArray[np.float64] | None

    @property
    def count(self) -> int:
        """Number of pairs."""
        size = len(self.left)
        return size * (size + 1) // 2 if self.half else size * len(self.right)

    def at_most(self, value: float) -> int:
        """Return how many sums are ``value`` or less."""
        if self.held is not None:
            return int(np.searchsorted(self.held, value, side="right"))
        total = int(np.searchsorted(self.right, value - self.left, side="right").sum())
        if not self.half:
            return total
        return (total + int(np.count_nonzero(2 * self.left <= value))) // 2

    def below(self, value: float) -> int:
        """Return how many sums are less than ``value``."""
        if self.held is not None:
            return int(np.searchsorted(self.held, value, side="left"))
        return self.at_most(float(np.nextafter(value, -np.inf)))

    def ranked(self, rank: int) -> float:
        """Return the sum of a rank, counted from 1 for the smallest."""
        if self.held is not None:
            return self.held.item(rank - 1)
        low = float(np.nextafter(self.left[0] + self.right[0], -np.inf))
        high = float(np.nextafter(self.left[-1] + self.right[-1], np.inf))
        while low < (middle := (low + high) / 2) < high:
            if self.at_most(middle) >= rank:
                high = middle
            else:
                low = middle
        return high

    def median(self) -> float:
        """Return the median of the sums."""
        count = self.count
        upper = self.ranked(count // 2 + 1)
        return upper if count % 2 else (self.ranked(count // 2) + upper) / 2


def walsh_averages(values: NDArray[np.float64]) -> PairSums:
    """Return the averages of all pairs of values, each with itself included."""
    halves = np.sort(values) / 2
    size = len(halves)
    held = None
    if size * (size + 1) // 2 <= MAXIMUM_HELD:
        rows, columns = _pairs(size)
        held = np.sort(halves[rows] + halves[columns])
    return PairSums(halves, halves, True, held)


def differences(values: NDArray[np.float64], others: NDArray[np.float64]) -> PairSums:
    """Return all differences of a value and another."""
    left, right = np.sort(values), np.sort(-others)
    held = np.sort((left[:, None] + right).ravel()) if left.size * right.size <= MAXIMUM_HELD else None
    return PairSums(left, right, False, held)


@functools.lru_cache(maxsize=64)
def _pairs(size: int) -> tuple[NDArray[np.intp], ...]:
    pairs: tuple[NDArray[Any], ...] = np.triu_indices(size)
    return pairs
