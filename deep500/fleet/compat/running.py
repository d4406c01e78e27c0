"""Running the cells of a campaign that have no outcome yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from deep500.core.errors import FleetError
from deep500.core.texts import shown, shown_path
from deep500.fleet.compat.backend import SchedulerState, Tell, new_backend
from deep500.fleet.compat.campaign import Campaign, make_folder
from deep500.fleet.compat.cell import Cell
from deep500.fleet.compat.joining import join, read_record
from deep500.fleet.libraries import FILELOCK
from deep500.fleet.outcome import Outcome, check_status

__all__ = ["RunPlan", "outcomes_now", "plan_run", "run_campaign"]

#: What leaves a cell to be run again by itself: nothing came of it yet.
_NOT_FINAL = ("missing", "cancelled")


@dataclass(frozen=True)
class RunPlan:
    """What a run would do.

    Attributes:
        cells: What is started.
        done: Cells with an outcome that is final.
        active: Cells whose job waits or runs already.
    """

    cells: tuple[Cell, ...]
    done: tuple[Cell, ...]
    active: tuple[Cell, ...]


def outcomes_now(campaign: Campaign) -> tuple[dict[str, Outcome], dict[str, SchedulerState]]:
    """Return what has come of each cell until now, and what the backend says of each job.

    Raises:
        FleetError: What the backend remembers cannot be read.
    """
    states: Mapping[str, SchedulerState] = {}
    if campaign.backend is not None:
        states = new_backend(campaign.backend, campaign.options).states(campaign)
    found = {}
    for cell in campaign.cells:
        record = read_record(campaign.cell_folder(cell), cell.cell_id)
        found[cell.cell_id] = join(cell, campaign.name, record, states.get(cell.cell_id))
    return found, dict(states)


def plan_run(campaign: Campaign, rerun: Collection[str] = ()) -> RunPlan:
    """Return what a run would start: cells without a final outcome, and those whose status is to be run again.

    A cell whose job waits or runs is never started a second time.

    Raises:
        FleetError: A status is none.
    """
    again = {check_status(status) for status in rerun} | set(_NOT_FINAL)
    outcomes, states = outcomes_now(campaign)
    cells, done, active = [], [], []
    for cell in campaign.cells:
        state = states.get(cell.cell_id)
        if state is not None and state.active:
            active.append(cell)
        elif outcomes[cell.cell_id].status in again:
            cells.append(cell)
        else:
            done.append(cell)
    return RunPlan(tuple(cells), tuple(done), tuple(active))


def run_campaign(
    campaign: Campaign,
    backend: str,
    options: Mapping[str, str],
    *,
    rerun: Collection[str] = (),
    generate_only: bool = False,
    tell: Tell = lambda _: None,
) -> tuple[Campaign, RunPlan]:
    """Run the cells of a campaign that have no final outcome; return the campaign as it now stands, and what was begun.

    Args:
        campaign: The campaign, which has been written.
        backend: The name of the backend. A campaign stays with the one that it was first run by.
        options: Its options.
        rerun: Statuses whose cells are run again.
        generate_only: Whether to write the files and submit nothing.
        tell: Is told where it is.

    Raises:
        FleetError: It was run by another backend before, an option or status is not accepted, or another process
            runs it now.
    """
    if campaign.backend not in (None, backend):
        raise FleetError(
            f"The campaign was run by {campaign.backend!r}, which may still know of its jobs; go on with --on "
            f"{campaign.backend}, or plan another campaign for {shown(backend)}."
        )
    made = new_backend(backend, options)
    current = campaign.run_by(backend, options)
    with _alone(campaign):
        plan = plan_run(current, rerun)
        current.prepare(plan.cells)
        make_folder(current.scheduler_folder)
        current.write()
        made.generate(current, plan.cells)
        if not generate_only:
            made.submit(current, plan.cells, tell)
    return current, plan


@contextmanager
def _alone(campaign: Campaign) -> Iterator[None]:
    """Keep other processes from running the campaign; a process that is killed keeps none."""
    FILELOCK.require("Running a campaign")
    import filelock

    lock = filelock.FileLock(campaign.folder / ".run.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise FleetError(
            f"Another process runs the campaign in {shown_path(campaign.folder)}. Wait for it, or look at what has "
            "come back: deep500 fleet compat collect."
        ) from error
    try:
        yield
    finally:
        lock.release()
