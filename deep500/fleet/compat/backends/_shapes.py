"""What cells ask of a machine: those that ask for the same go to a scheduler together."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deep500.core.errors import FleetError
from deep500.core.texts import shown

if TYPE_CHECKING:
    from deep500.fleet.compat.cell import Cell

__all__ = ["PENDING_S", "Shape", "by_shape", "checked", "number_of", "plain_id"]

#: How long a job may wait where nothing else is said: a day.
PENDING_S = 86400.0

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, order=True)
class Shape:
    """What is asked of a machine.

    Attributes:
        gpus: GPUs.
        compute_capability: That of the GPUs; empty where there is none.
        cuda: The CUDA runtime that the driver has to bear; empty where there is none.
        cpus: Processor cores.
        memory_mb: Memory; 0 leaves it to the scheduler.
        limit_s: Longest time, by which the job has ended by itself.
    """

    gpus: int
    compute_capability: str
    cuda: str
    cpus: int
    memory_mb: int
    limit_s: float

    @classmethod
    def of(cls, cell: Cell) -> Shape:
        """Return what a cell asks for."""
        return cls(
            cell.gpus, cell.compute_capability or "", cell.cuda or "", cell.cpus, cell.memory_mb or 0, cell.limit_s
        )

    @property
    def minutes(self) -> int:
        """The limit for a scheduler: later than the job's own, so that the job itself can say why it ended."""
        return math.ceil(self.limit_s / 60) + 1

    def __str__(self) -> str:
        """Return it for people."""
        gpus = f"{self.gpus} GPU{'s' if self.gpus > 1 else ''} of capability {self.compute_capability}, "
        memory = f", {self.memory_mb} MB" if self.memory_mb else ""
        return (
            f"{gpus if self.gpus else ''}{self.cpus} core{'s' if self.cpus > 1 else ''}{memory}, {self.minutes} minutes"
        )


def by_shape(cells: Sequence[Cell]) -> dict[Shape, list[Cell]]:
    """Return the cells of each shape, smallest shapes first.

    Raises:
        FleetError: What a cell is named, or asks for, could be taken for something else in a script.
    """
    shapes: dict[Shape, list[Cell]] = {}
    for cell in cells:
        plain_id(cell.cell_id)
        shape = Shape.of(cell)
        for what, value in (("compute capability", shape.compute_capability), ("CUDA version", shape.cuda)):
            checked(what, value, r"(\d+(\.\d+)*)?", "numbers with points between them, such as 8.0")
        shapes.setdefault(shape, []).append(cell)
    return dict(sorted(shapes.items()))


def plain_id(cell_id: str) -> str:
    """Return the id of a cell, which goes into scripts and names of files.

    Raises:
        FleetError: It could mean something there.
    """
    return checked("id of a cell", cell_id, _ID.pattern, "letters, digits, '.', '_' and '-'")


def checked(what: str, value: str, pattern: str, accepted: str) -> str:
    """Return a text that goes into a script.

    Raises:
        FleetError: It does not match the pattern.
    """
    if not re.fullmatch(pattern, value, re.ASCII):
        raise FleetError(f"The {what} is {shown(value)}; accepted are {accepted}.")
    return value


def number_of(options: Mapping[str, str], name: str, default: float | None) -> float | None:
    """Return an option that is a number above zero.

    Raises:
        FleetError: It is none.
    """
    text = options.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf):
        raise FleetError(f"The option {name!r} is {shown(text)}; a number above zero is needed.")
    return number
