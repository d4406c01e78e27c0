"""A cluster under SLURM: an array of jobs for each shape of a request."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from deep500.core.errors import FleetError
from deep500.core.files import write_atomically
from deep500.core.texts import message_of
from deep500.fleet.compat.backend import Backend, SchedulerState, Tell
from deep500.fleet.compat.backends._lock import locked
from deep500.fleet.compat.backends._shapes import by_shape
from deep500.fleet.compat.backends._slurm_commands import RefusedError, queued, submit_script
from deep500.fleet.compat.backends._slurm_memory import Array, Memory
from deep500.fleet.compat.backends._slurm_script import (
    OPTIONS,
    SlurmOptions,
    array_script,
    collect_script,
    deadline_s,
)
from deep500.fleet.compat.backends._slurm_seen import find_lost, look, state_of
from deep500.fleet.compat.campaign import Campaign
from deep500.fleet.compat.cell import Cell

__all__ = ["SlurmBackend"]

#: SLURM's own limit of an array (MaxArraySize) is 1001 where nobody changed it, which counts from 0.
_LARGEST_ARRAY = 1000


class SlurmBackend(Backend):
    """Hands cells to SLURM: one array for each shape of a request, and a job that collects when all have ended.

    Each array is remembered before it is submitted, under a name that no other has; a number that was lost, because the
    process was killed while ``sbatch`` ran, is found again by it. ``sbatch`` keeps the lock of the memory until it has
    ended, so that nothing is submitted twice.
    """

    @classmethod
    def option_names(cls) -> dict[str, str]:
        """Return the options."""
        return dict(OPTIONS)

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the options.

        Raises:
            FleetError: One is not accepted.
        """
        super().__init__(options)
        self._options = SlurmOptions.of(self.options)

    def generate(self, campaign: Campaign, cells: Sequence[Cell]) -> list[Path]:
        """Write a script and a list of cells for each array; those that were written before and not submitted go.

        Raises:
            FleetError: SLURM cannot be asked for what a cell needs.
        """
        folder = campaign.scheduler_folder
        with locked(folder):
            memory = Memory.read(folder)
            for array in (each for each in memory.arrays if each.phase == "generated"):
                for path in _files(folder, array.name):
                    path.unlink(missing_ok=True)
            memory.arrays = [each for each in memory.arrays if each.phase != "generated"]
            (folder / "logs").mkdir(exist_ok=True)
            unique, written = uuid.uuid4().hex[:8], list[Path]()
            for shape, all_of_it in by_shape(cells).items():
                for begin in range(0, len(all_of_it), _LARGEST_ARRAY):
                    ids = [cell.cell_id for cell in all_of_it[begin : begin + _LARGEST_ARRAY]]
                    name = f"cells-{unique}-{len(written) // 2 + 1}"
                    script, listed = _files(folder, name)
                    text = array_script(name, listed.name, shape, len(ids), self._options)
                    write_atomically(listed, "".join(f"{cell_id}\n" for cell_id in ids))
                    write_atomically(script, text)
                    memory.arrays.append(Array(name, ids, deadline_s(shape, len(ids), self._options)))
                    written += [script, listed]
            memory.write(folder)
        return written

    def submit(self, campaign: Campaign, cells: Sequence[Cell], tell: Tell) -> None:
        """Submit the arrays, and the job that collects after them.

        Raises:
            FleetError: There is no SLURM here, or it failed to take an array for a reason that is not what the array
                asks for. The others were submitted; run the campaign again for the rest.
        """
        folder, wanted, faults = campaign.scheduler_folder, {cell.cell_id for cell in cells}, list[str]()
        with locked(folder) as lock:
            memory = Memory.read(folder)
            find_lost(memory, queued())
            arrays = [each for each in memory.arrays if each.phase == "generated" and wanted >= set(each.cells)]
            for number, array in enumerate(arrays):
                tell(f"Submitting array {number + 1} of {len(arrays)}")
                fault = self._submit_array(folder, memory, array, lock)
                faults += [fault] if fault else []
            begun = [each for each in arrays if each.phase == "submitted"]
            if begun and self._options.collect:
                fault = self._submit_collecting(folder, begun, lock)
                if fault:
                    tell(f"Nothing will collect by itself: {fault}")
        if faults:
            more = f" ({len(faults) - 1} other arrays failed, too)" if len(faults) > 1 else ""
            raise FleetError(f"{faults[0]}{more}")

    def states(self, campaign: Campaign) -> dict[str, SchedulerState]:
        """Return the states of the cells that were submitted, and remember them.

        SLURM's controller forgets a job minutes after its end; where it keeps accounts, they are asked then. Where the
        commands are missing or fail, it is what was last seen.
        """
        folder = campaign.scheduler_folder
        if not folder.is_dir():
            return {}
        with locked(folder):
            memory = Memory.read(folder)
            if not memory.arrays:
                return {}
            fault = ""
            try:
                elements = queued()
                find_lost(memory, elements)
                look(memory, elements)
            except FleetError as error:
                fault = message_of(error)
            found: dict[str, SchedulerState] = {}
            for array in memory.arrays:
                for index, cell_id in enumerate(array.cells):
                    began = (campaign.cell_folder(cell_id) / "record.json").exists()
                    state = state_of(memory, array, index, began, fault, datetime.now(timezone.utc).timestamp())
                    if state is not None:
                        found[cell_id] = state
            memory.write(folder)
        return found

    def _submit_array(self, folder: Path, memory: Memory, array: Array, lock: int) -> str | None:
        """Submit one array and return what kept it from being submitted, other than what it asks for."""
        array.phase, array.submitted = "submitting", datetime.now(timezone.utc).timestamp()
        memory.write(folder)
        fault = None
        try:
            array.job_id = submit_script(folder, f"{array.name}.sh", lock)
            array.phase = "submitted"
        except RefusedError as refused:
            array.phase, array.message = "refused", str(refused)
        except FleetError as error:
            array.phase, array.submitted, fault = "generated", None, message_of(error)
        memory.write(folder)
        return fault

    def _submit_collecting(self, folder: Path, begun: Sequence[Array], lock: int) -> str | None:
        name = f"collect-{begun[0].name.split('-')[1]}"
        write_atomically(folder / f"{name}.sh", collect_script(name, self._options))
        try:
            submit_script(folder, f"{name}.sh", lock, "afterany:" + ":".join(str(array.job_id) for array in begun))
        except (FleetError, RefusedError) as error:
            return message_of(error)
        return None


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.sh", folder / f"{name}.txt"
