"""What is remembered of a campaign on SLURM: which arrays there are, and what was last seen of their elements."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deep500.core.errors import FleetError
from deep500.core.files import read_regular, write_atomically
from deep500.core.strict_json import parse_json
from deep500.core.texts import message_of, shown_path
from deep500.fleet.compat.backend import SchedulerState

__all__ = ["Array", "Memory"]

MEMORY_FILE = "slurm.json"

#: What an array went through: its files were written; ``sbatch`` may have been called; it was; no machine meets it.
PHASES = ("generated", "submitting", "submitted", "refused")


@dataclass
class Array:
    """One array of jobs.

    Attributes:
        name: Its own name, which no other array has: by it, it is found when its number was lost.
        cells: The ids of its cells, in the order of its elements.
        deadline_s: Seconds from its submission to its deadline.
        phase: One of ``PHASES``.
        job_id: SLURM's number.
        submitted: When it was submitted, in seconds since 1970 (UTC).
        message: Why it was refused.
    """

    name: str
    cells: list[str]
    deadline_s: float
    phase: str = "generated"
    job_id: int | None = None
    submitted: float | None = None
    message: str = ""


@dataclass
class Memory:
    """What is remembered.

    Attributes:
        arrays: All arrays, oldest first.
        seen: What was last seen of each element: its state by ``"JOB_INDEX"``.
        waited: What an element last waited for, where SLURM said so.
    """

    arrays: list[Array] = field(default_factory=list)
    seen: dict[str, SchedulerState] = field(default_factory=dict)
    waited: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Memory:
        """Return what was written into a campaign's folder for its scheduler; nothing where nothing was.

        Raises:
            FleetError: It cannot be read.
        """
        path = folder / MEMORY_FILE
        try:
            content = parse_json(read_regular(path).decode("utf-8"))
            return cls(
                [_array(said) for said in content["arrays"]],
                {label: SchedulerState(**said) for label, said in content["seen"].items()},
                {label: str(reason) for label, reason in content["waited"].items()},
            )
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FleetError(
                f"{shown_path(path)}, which holds the numbers of the jobs, cannot be read: {message_of(error)}. The "
                "jobs go on; squeue lists them."
            ) from error

    def write(self, folder: Path) -> None:
        """Write it, whole or not at all.

        Raises:
            FileWriteError: It cannot be written.
        """
        content: dict[str, Any] = {
            "arrays": [dataclasses.asdict(array) for array in self.arrays],
            "seen": {label: dataclasses.asdict(state) for label, state in self.seen.items()},
            "waited": self.waited,
        }
        write_atomically(folder / MEMORY_FILE, json.dumps(content, indent=1) + "\n")


def _array(said: dict[str, Any]) -> Array:
    array = Array(**said)
    if array.phase not in PHASES or not isinstance(array.cells, list):
        raise ValueError(f"an array has the phase {array.phase!r}")
    return array
