"""Which GPUs a test takes, and how the processes that it starts can say which they use."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import NoReturn, SupportsIndex

from deep500.core.texts import shown

__all__ = ["USED_FILE_VARIABLE", "GpuUse", "Gpus", "lack_of_gpus", "say_used", "used_by_processes"]

#: The variable with the file to which processes write the GPUs that they use, a line each. It is set while a test
#: runs that declares GPUs or takes them through the fixture ``gpus``.
USED_FILE_VARIABLE = "DEEP500_GPUS_USED_FILE"


@dataclass(frozen=True)
class GpuUse:
    """How many GPUs a test used.

    Attributes:
        count: How many.
        source: What saw it: ``fixture``, ``said``, ``driver`` or ``ranks``.
        may_be_more: Whether it may have used more that cannot be told from what was there before.
    """

    count: int
    source: str
    may_be_more: bool = False


class Gpus:
    """The GPUs that a test may use, as the fixture ``gpus`` gives them; what is taken is recorded.

    Attributes:
        given: How many there are.
        declared: How many the test declared, ``None`` when it declared none.
        taken: The indices that were handed out.
    """

    def __init__(self, given: int, declared: int | None, lacking: Callable[[int], NoReturn]) -> None:
        """Keep what is there.

        Args:
            given: How many there are.
            declared: How many the test declared.
            lacking: Ends the test that needs so many.
        """
        self.given = given
        self.declared = declared
        self.taken: tuple[int, ...] = ()
        self._lacking = lacking

    def take(self, count: int | None = None) -> tuple[int, ...]:
        """Return the indices of further GPUs, counted from 0 as frameworks count those that are visible.

        Args:
            count: How many; by default as many as the test declared, without those that it has.

        Raises:
            ValueError: The number is none or negative, or none was given and none was declared.
        """
        wanted: object = count
        if count is None and self.declared is not None:
            wanted = max(0, self.declared - len(self.taken))
        number = index(wanted) if isinstance(wanted, SupportsIndex) and not isinstance(wanted, bool) else -1
        if number < 0:
            raise ValueError(
                f"take({shown(count)}) asks for GPUs of a test that declares {self.declared}; give a whole number from "
                f"0, or mark the test with @pytest.mark.gpus(n)."
            )
        needed = len(self.taken) + number
        if needed > self.given:
            self._lacking(needed)
        indices = tuple(range(len(self.taken), needed))
        self.taken += indices
        return indices


def lack_of_gpus(needed: int, given: int) -> str:
    """Return why a test is skipped."""
    return f"needs {needed} GPU{'' if needed == 1 else 's'}, {given} {'is' if given == 1 else 'are'} given (--max-gpus)"


def say_used(*gpus: int | str) -> None:
    """Say, in a process that a test started, which GPUs it uses; nothing happens where no test wants to know.

    Other languages write the same: a line with the number of a GPU, appended to the file that the variable
    ``DEEP500_GPUS_USED_FILE`` names.
    """
    path = os.environ.get(USED_FILE_VARIABLE)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write("".join(f"{gpu}\n" for gpu in gpus))


def used_by_processes(path: str) -> set[str]:
    """Return the GPUs that processes wrote to the file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return {line.strip() for line in file if line.strip()}
    except FileNotFoundError:
        return set()
