"""Parts: what one runner runs of a file."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from deep500.core.errors import FleetError
from deep500.fleet.shard.cases import Case

__all__ = ["Part", "longest_first", "parts_of"]

#: Most parts of a file.
_MOST = 100_000


@dataclass(frozen=True)
class Part:
    """What one runner runs of a file: all of it, some of its tests, or an even share.

    Attributes:
        file: The file.
        seconds: What it takes.
        cases: The cases: one that is the file, or its tests.
        number: Which part it is, from 1.
        of: Of how many.
        is_whole: Whether it is all of the file that is known.
    """

    file: str
    seconds: float
    cases: tuple[Case, ...]
    number: int = 1
    of: int = 1
    is_whole: bool = True

    @property
    def lines(self) -> list[str]:
        """What a runner is told: the file, tests by node id, or ``file NUMBER/OF`` for an even share."""
        if self.is_whole:
            return [self.file]
        if self.cases[0].is_file:
            return [f"{self.file} {self.number}/{self.of}"]
        return [case.name for case in self.cases]

    @property
    def name(self) -> str:
        """What people call it, in one line."""
        lines = self.lines
        return lines[0] if len(lines) == 1 else f"{self.file}: {len(lines)} tests"

    @property
    def is_even_share(self) -> bool:
        """Whether it is a share of a file of which nothing more is known; shares are taken to be even."""
        return self.of > 1 and self.cases[0].is_file


def longest_first(seconds: Sequence[float], shards: int) -> list[list[int]]:
    """Return, for each shard, the positions of what it runs; ties go to what comes first and to the first shard."""
    heap = [(0.0, shard) for shard in range(shards)]
    assigned: list[list[int]] = [[] for _ in range(shards)]
    for position in sorted(range(len(seconds)), key=lambda i: (-seconds[i], i)):
        load, shard = heap[0]
        assigned[shard].append(position)
        heapq.heapreplace(heap, (load + seconds[position], shard))
    return assigned


def parts_of(cases: Sequence[Case], totals: dict[str, int], limit: float | None) -> list[Part]:
    """Return the parts of the cases of one lane, in the order of the files.

    Args:
        cases: The cases.
        totals: How many cases each file has in all lanes; a file that is not there is whole.
        limit: Files that take longer are divided.

    Raises:
        FleetError: The durations have no finite sum, or a file would have too many parts.
    """
    if not math.isfinite(sum(case.seconds or 0.0 for case in cases)):
        raise FleetError("The durations of the tests are too large to be summed up; correct those of the input.")
    files: dict[str, list[Case]] = {}
    for case in cases:
        files.setdefault(case.file, []).append(case)
    parts: list[Part] = []
    for file, own in files.items():
        whole = len(own) == totals.get(file, len(own))
        total = math.fsum(case.seconds or 0.0 for case in own)
        if limit is not None and total / limit > _MOST:
            raise FleetError(
                f"{file} takes {total:g} s, which parts of at most {limit:g} s would divide into more than {_MOST:,}; "
                "give a larger limit."
            )
        pieces = 1 if limit is None else max(1, math.ceil(total / limit))
        if pieces == 1:
            parts.append(Part(file, total, tuple(own), is_whole=whole))
        elif own[0].is_file:
            parts += [Part(file, total / pieces, (own[0],), i + 1, pieces, False) for i in range(pieces)]
        else:
            bins = longest_first([case.seconds or 0.0 for case in own], min(pieces, len(own)))
            for number, positions in enumerate(bins, 1):
                chosen = tuple(own[i] for i in sorted(positions))
                seconds = math.fsum(case.seconds or 0.0 for case in chosen)
                parts.append(Part(file, seconds, chosen, number, len(bins), whole and len(bins) == 1))
    return parts
