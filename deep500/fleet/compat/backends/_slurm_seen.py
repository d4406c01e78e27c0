"""From what SLURM says of jobs to the states of cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from deep500.fleet.compat.backend import SchedulerState
from deep500.fleet.compat.backends._slurm_commands import Element, accounted
from deep500.fleet.compat.backends._slurm_memory import Array, Memory

__all__ = ["find_lost", "look", "state_of"]


def find_lost(memory: Memory, elements: Sequence[Element]) -> None:
    """Find the arrays whose number is not known: the process that submitted them was killed, or someone did it by hand.

    What nobody knows by its name was never submitted.
    """
    lost = [array for array in memory.arrays if array.phase in ("submitting", "generated")]
    names = {element.name for element in elements}
    missing = [array for array in lost if array.phase == "submitting" and array.name not in names]
    if missing:
        since = min(array.submitted or 0.0 for array in missing)
        elements = [*elements, *accounted([array.name for array in missing], since)]
    for array in lost:
        found = [element for element in elements if element.name == array.name]
        taken = [element for element in found if element.state.state != "refused"]
        if taken:
            array.phase, array.job_id = "submitted", taken[-1].job_id
            array.submitted = taken[-1].state.submitted or array.submitted
        elif found:
            array.phase, array.message = "refused", found[-1].state.reason
        else:
            array.phase, array.submitted = "generated", None


def look(memory: Memory, elements: Sequence[Element]) -> None:
    """Remember what is now seen of each element."""
    known = {array.job_id: array for array in memory.arrays if array.phase == "submitted"}
    found = {
        f"{element.job_id}_{element.index}": element.state
        for element in elements
        if element.index is not None and element.job_id in known
    }
    gone = [
        array
        for array in known.values()
        if any(_open(memory, label) and label not in found for label in _labels(array))
    ]
    since = min((array.submitted or 0.0 for array in gone), default=0.0)
    for element in accounted([array.name for array in gone], since):
        found.setdefault(f"{element.job_id}_{element.index}", element.state)
    for label, state in found.items():
        if state.state == "pending" and state.reason:
            memory.waited[label] = state.reason
        memory.seen[label] = state
    for array in gone:
        for label in (label for label in _labels(array) if _open(memory, label) and label not in found):
            memory.seen[label] = dataclasses.replace(
                memory.seen.get(label, SchedulerState("unknown", submitted=array.submitted, label=label)),
                state="unknown",
                reason=f"SLURM no longer knows job {label}",
            )


def state_of(memory: Memory, array: Array, index: int, began: bool, fault: str, now: float) -> SchedulerState | None:
    """Return the state of one element; ``None`` where it was never submitted.

    Args:
        memory: What is remembered.
        array: The array.
        index: The element's index.
        began: Whether its job has begun to write a record.
        fault: Why SLURM could not be asked; empty where it could.
        now: The time.
    """
    if array.phase == "generated":
        return None
    if array.phase == "refused":
        return SchedulerState("refused", reason=array.message, submitted=array.submitted)
    if array.phase == "submitting":  # SLURM may have it, so that it must not be submitted again
        return SchedulerState("pending", reason=f"it may have been submitted, but {fault}", submitted=array.submitted)
    label = f"{array.job_id}_{index}"
    state = memory.seen.get(label, SchedulerState("pending", submitted=array.submitted, label=label))
    if state.state == "expired":
        waited = memory.waited.get(label)
        return dataclasses.replace(state, reason=f"it last waited for {waited}" if waited else "")
    past = array.submitted is not None and now > array.submitted + array.deadline_s
    if state.state == "unknown" and not began and past and not fault:
        waited = f", and last waited for {memory.waited[label]}" if label in memory.waited else ""
        return dataclasses.replace(
            state, state="expired", reason=f"SLURM no longer knows the job; it never began{waited}"
        )
    if fault and state.active:
        return dataclasses.replace(state, reason=f"as last seen; {fault}")
    return state


def _labels(array: Array) -> list[str]:
    return [f"{array.job_id}_{index}" for index in range(len(array.cells))]


def _open(memory: Memory, label: str) -> bool:
    """Whether the end of an element has not been seen yet."""
    state = memory.seen.get(label)
    return state is None or state.active or state.state == "unknown"
