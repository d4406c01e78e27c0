"""A recipe's checkpoints: where they go, what they are of, and what a run goes on from."""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import RecipeError
from deep500.core.stateful import State
from deep500.core.texts import shown, shown_path
from deep500.measure.clock import Stopwatch
from deep500.recipe.recipe import Recipe
from deep500.training.checkpoints.loading import Checkpoint, check_identity, checkpoint_folders, load_latest
from deep500.training.events.checkpoint import CheckpointEvent
from deep500.training.ranks import ALONE, Ranks
from deep500.training.statistics import Outcome
from deep500.training.training_event import RunnerEvent

__all__ = ["CheckpointPlan", "RunRecord", "check_folders", "parse_interval", "plan_checkpoints"]

_logger = logging.getLogger(__name__)

_INTERVAL = re.compile(r"\s*(\d{1,18})\s*(steps?|epochs?)?\s*")

#: How many checkpoints stay.
_KEEP = 3


@dataclass(frozen=True)
class CheckpointPlan:
    """What is done about checkpoints in one run.

    Attributes:
        event: Writes them; ``None`` where there are to be none.
        latest: What the run goes on from; ``None`` for one that begins.
    """

    event: CheckpointEvent | None
    latest: Checkpoint | None


class RunRecord(RunnerEvent):
    """What the result of a run that goes on from a checkpoint has to know of the processes before.

    Attributes:
        started: When the first of them started training.
        resumed: From which checkpoints it went on, and when.
        earlier_s: Seconds that the training took in processes before this one.
    """

    def __init__(self, started: str) -> None:
        """Begin a run."""
        self.started = started
        self.resumed: list[dict[str, Any]] = []
        self.earlier_s = 0.0
        self._watch = Stopwatch()

    def state(self) -> State:
        """Return a snapshot; see :class:`deep500.core.stateful.Stateful`."""
        return {
            "started": self.started,
            "resumed": [dict(entry) for entry in self.resumed],
            "elapsed_s": self.earlier_s + self._watch.elapsed_s(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot. It was read before the training began; see :meth:`go_on_from`."""

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Take over what the processes before have written down; a training that has ended goes on no further."""
        name = f"{type(self).__module__}.{type(self).__qualname__}:0"
        state = checkpoint.state.get("events", {}).get(name, {})
        self.started = str(state.get("started", self.started))
        self.earlier_s = float(state.get("elapsed_s", 0.0))
        self._watch.restart()
        self.resumed = list(state.get("resumed", []))
        if checkpoint.state["statistics"]["outcome"] in (Outcome.COMPLETED.value, Outcome.STOPPED.value):
            return
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        self.resumed.append({"checkpoint": checkpoint.folder.name, "step": checkpoint.step, "at": now})


def parse_interval(text: str | int | None) -> dict[str, int]:
    """Return the arguments of :class:`CheckpointEvent` for an interval such as ``"100steps"`` or ``"2epochs"``.

    A number alone is one of steps; nothing is every epoch.

    Raises:
        RecipeError: It is none.

    Example:
        >>> parse_interval("100 steps"), parse_interval(50), parse_interval("1epoch")
        ({'every_steps': 100}, {'every_steps': 50}, {'every_epochs': 1})
    """
    if text is None:
        return {"every_epochs": 1}
    found = _INTERVAL.fullmatch(str(text))
    if isinstance(text, bool) or found is None or int(found[1]) < 1:
        raise RecipeError(
            f"Checkpoints were asked for every {shown(text)}; accepted are a number of steps or epochs from 1, such as "
            f"100steps or 1epochs."
        )
    return {"every_epochs" if str(found[2]).startswith("epoch") else "every_steps": int(found[1])}


def check_folders(checkpoint: str | PathLike[str] | None, resume: str | PathLike[str] | None) -> None:
    """Check that folders which were given are paths: an empty text, such as an unset variable, is not the current one.

    Raises:
        RecipeError: One is not.
    """
    for option, given in (("--checkpoint", checkpoint), ("--resume", resume)):
        if given is not None and not str(given).strip():
            raise RecipeError(f"{option} was given as an empty text; accepted is the path of a folder.")


def plan_checkpoints(
    recipe: Recipe,
    checkpoint: str | PathLike[str] | None,
    every: str | int | None,
    resume: str | PathLike[str] | None,
    ranks: Ranks = ALONE,
) -> CheckpointPlan:
    """Return what is done about checkpoints, once all of it is known to work.

    Args:
        recipe: The recipe that is run.
        checkpoint: Where checkpoints are written to; by default where the run goes on from.
        every: How often; see :func:`parse_interval`.
        resume: Folder of the checkpoints to go on from. One that has none yet is accepted when it is ``checkpoint``
            too: then the run begins.
        ranks: Who trains; all of them call this.

    Raises:
        RecipeError: An interval without a folder, or a folder that holds checkpoints of a run that is not gone on with.
        CheckpointError: There is no whole checkpoint to go on from, or it is of another recipe.
    """
    if checkpoint is None and resume is None:
        if every is not None:
            raise RecipeError("An interval of checkpoints was given without a folder for them (--checkpoint DIR).")
        return CheckpointPlan(None, None)
    check_folders(checkpoint, resume)
    interval = parse_interval(every)
    folder = Path(checkpoint if checkpoint is not None else resume or "")
    is_same = resume is None or folder.resolve() == Path(resume).resolve()
    if checkpoint_folders(folder) and (resume is None or not is_same):
        raise RecipeError(
            f"{shown_path(folder)} holds checkpoints already. Go on with them (--resume {shown_path(folder)}), or name "
            f"another folder."
        )
    if (folder.exists() or folder.is_symlink()) and not folder.is_dir() and resume is None:
        raise RecipeError(f"{shown_path(folder)} is no folder, so that no checkpoint can be written to it.")
    latest = None
    if resume is not None and (checkpoint is None or not is_same or checkpoint_folders(folder)):
        latest = load_latest(resume, ranks)
        _check_same_recipe(latest, recipe)
    identity = {"configuration_hash": recipe.configuration_hash, **recipe.description}
    return CheckpointPlan(CheckpointEvent(folder, keep=_KEEP, identity=identity, **interval), latest)


def _check_same_recipe(checkpoint: Checkpoint, recipe: Recipe) -> None:
    """Check that a checkpoint is of this recipe with this configuration."""
    if checkpoint.identity.get("configuration_hash") == recipe.configuration_hash:
        return
    saved = {**checkpoint.identity.get("fixed", {}), **checkpoint.identity.get("mutable", {})}
    here = {**recipe.description["fixed"], **recipe.description["mutable"]}
    check_identity(saved, here)
    # The same definitions, of which one is fixed in one of both only.
    check_identity(checkpoint.identity, {"configuration_hash": recipe.configuration_hash, **recipe.description})
