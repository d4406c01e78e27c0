"""A recipe trained several times, each time from another seed."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import CheckpointError, RecipeError
from deep500.core.files import check_writable
from deep500.core.texts import shown_path
from deep500.recipe._ranks import RankSetup
from deep500.recipe.checkpoints import check_folders
from deep500.recipe.recipe import Recipe
from deep500.recipe.reporter import Reporter, SilentReporter
from deep500.recipe.result import RecipeResult, write_result
from deep500.training.checkpoints.loading import checkpoint_folders

__all__ = ["RULE", "execute_runs", "run_output"]

#: When several runs pass.
RULE = "every run passes"


def execute_runs(
    recipe: Recipe,
    output: str | PathLike[str] | None = None,
    reporter: Reporter | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: str | int | None = None,
    resume: str | PathLike[str] | None = None,
    *,
    setup: RankSetup | None = None,
) -> RecipeResult:
    """Run a recipe once for each of the seeds ``seed, seed + 1, ...``, as often as its key ``runs`` says.

    It passes when each run passes. Checkpoints of each are in a folder of their own, ``run-0`` and so on; runs that had
    ended are not trained again. Each run's own result is written beside that of all (:func:`run_output`). Several ranks
    (``setup``) run each of them together.

    Returns:
        The result of the first run, whose ``runs`` has seeds, verdicts, values and statistics of all.

    Raises:
        Deep500Error: As :func:`deep500.recipe.runner.execute_recipe`; or the seed is fixed.
    """
    from deep500.recipe.runner import execute_recipe

    is_first = setup is None or setup.ranks.is_first
    _check(recipe, output if is_first else None, checkpoint, resume)
    reporter = reporter or SilentReporter()
    results = []
    for number in range(recipe.get("runs", 1)):
        one = Recipe(
            {key: value for key, value in recipe.fixed.items() if key != "runs"},
            {**{k: v for k, v in recipe.mutable.items() if k != "runs"}, "seed": recipe["seed"] + number},
            recipe.metrics,
            name=recipe.name,
            path=recipe.path,
        )
        folders = {"checkpoint": _part(checkpoint, number), "resume": _part(resume, number)}
        if folders["resume"] is not None and not checkpoint_folders(folders["resume"]):  # it had not come so far
            folders = {"checkpoint": folders["checkpoint"] or folders["resume"], "resume": None}
        own = None if output is None else run_output(output, number)
        made = execute_recipe(
            one,
            output=own,
            reporter=reporter,
            checkpoint_every=checkpoint_every,
            rank_options=None if setup is None else setup.options,
            communicator=None if setup is None else setup.communicator,
            **folders,
        )
        results.append(made)
    first = results[0]
    first.runs = _summary(results)
    if setup is None or setup.ranks.is_first:  # now: ranks before this one may have been lost
        if output is not None:
            write_result(first, output)
        reporter.finished_runs(first)
    return first


def run_output(output: str | PathLike[str], number: int) -> Path:
    """Return the file of one run's own result: ``result.run-2.json`` beside ``result.json``."""
    path = Path(output)
    return path.with_name(f"{path.stem}.run-{number}{path.suffix}")


def _check(
    recipe: Recipe,
    output: str | PathLike[str] | None,
    checkpoint: str | PathLike[str] | None,
    resume: str | PathLike[str] | None,
) -> None:
    """Check, before anything runs, that there can be several runs, and that there is something to go on from."""
    if "seed" in recipe.fixed:
        raise RecipeError(f"'seed' is FIXED in the recipe {recipe.name!r}, so that it has one run only.")
    if output is not None:
        check_writable(output, "result")
    runs = int(recipe.get("runs", 1))
    if recipe["seed"] + runs > 2**64:
        raise RecipeError(
            f"The runs would have the seeds {recipe['seed']} to {recipe['seed'] + runs - 1}; accepted are seeds up to "
            f"2**64 - 1. Use a smaller seed."
        )
    check_folders(checkpoint, resume)
    is_same = checkpoint is not None and resume is not None and Path(checkpoint).resolve() == Path(resume).resolve()
    if (
        resume is not None
        and not is_same
        and not any(checkpoint_folders(folder) for folder in Path(resume).glob("run-*"))
    ):
        raise CheckpointError(
            f"There is nothing to go on from: {shown_path(resume)} holds no checkpoint of several runs (run-0 and so "
            f"on). Name the folder that their --checkpoint had."
        )


def _part(folder: str | PathLike[str] | None, number: int) -> Path | None:
    return None if folder is None else Path(folder) / f"run-{number}"


def _summary(results: list[RecipeResult]) -> dict[str, Any]:
    from deep500.training.validation.several_runs import run_statistics

    values: dict[str, list[float]] = {}
    for result in results:
        for metric in result.metrics:
            values.setdefault(metric.name, []).append(math.nan if metric.value is None else metric.value)
    return {
        "seeds": [result.seeds["recipe"] for result in results],
        "passed": [result.passed for result in results],
        "rule": RULE,
        "values": values,
        "statistics": run_statistics(values),
    }
