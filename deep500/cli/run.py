"""``deep500 run``: train a recipe to its verdict, in this process or as several ranks."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deep500.cli.blame import recipe_error
from deep500.cli.exit_codes import FAILED, PASSED
from deep500.cli.launching import DEFAULT_TIMEOUT_S, launch_if_asked, run_here, told_once
from deep500.core.errors import Deep500Error, RecipeError
from deep500.core.signals import signals_deferred
from deep500.core.texts import shown_path

if TYPE_CHECKING:
    from deep500.distributed.rank_options import RankOptions

__all__ = ["RUN_EXAMPLES", "recipe_command"]

RUN_EXAMPLES = """\b
Examples:
  deep500 run digits_lenet
  deep500 run recipes/digits_lenet.py --framework tensorflow
  deep500 run my_recipe.py --set batch_size=64 --set optimizer_kwargs.learning_rate=0.05
  deep500 run my_recipe.py --device gpu:0 --seed 3 --output result.json
  deep500 run my_recipe.py --checkpoint run1 --checkpoint-every 100steps
  deep500 run my_recipe.py --resume run1
  deep500 run digits_lenet --ranks 2 --set distributed=local_sgd
  deep500 run my_recipe.py --ranks 4 --timeout 60 --rank-logs logs
  srun -n 8 deep500 run my_recipe.py

\b
On several ranks a recipe's batch_size is the minibatch of all together. Rank 0
writes what one process would. Whatever ends a rank before its time ends all of
them within seconds, with the reason, and leaves no process.

\b
Exit code:
  0 PASSED, 1 FAILED, 2 a mistake in the command or the recipe,
  70 a fault of Deep500, 130 interrupted (a result file is marked as incomplete)
"""


def recipe_command(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that comes with Deep500.")],
    framework: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run it with this framework instead of the recipe's.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a MUTABLE key; may be given several times."),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the first weights and the samplers.")] = None,
    device: Annotated[str | None, typer.Option(metavar="DEVICE", help="Where to run: cpu, gpu or gpu:N.")] = None,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Write the result to this JSON file.")] = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="DIR", help="Write checkpoints to this folder.")] = None,
    checkpoint_every: Annotated[
        str | None, typer.Option(metavar="N[steps|epochs]", help="How often; every epoch by default.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="DIR", help="Go on from the newest checkpoint in this folder.")
    ] = None,
    runs: Annotated[int | None, typer.Option(metavar="N", help="Train N times, from a seed each.")] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Equal runs give equal bits, where the framework can.")
    ] = False,
    ranks: Annotated[
        int | None, typer.Option(metavar="N", help="Start N processes that train together (needs MPI).")
    ] = None,
    communicator: Annotated[
        str | None, typer.Option(metavar="NAME", help="What carries the ranks' messages; by default what fits.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="A rank that does not answer for longer is an error; 0: never.")
    ] = DEFAULT_TIMEOUT_S,
    on_failure: Annotated[
        str, typer.Option(metavar="WHAT", help="Where a rank fails: abort all, or shrink to the others (Open MPI).")
    ] = "abort",
    rank_logs: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep what each rank writes, a file each, in this folder.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Write nothing but the verdict.")] = False,
) -> int:
    """Run a recipe and tell whether it PASSED."""
    with told_once():
        options = _rank_options(communicator, timeout, on_failure)
        given: Sequence[str] | None = context.find_root().obj
        launched = launch_if_asked(sys.argv[1:] if given is None else given, ranks, rank_logs, options, output)
    if launched is not None:
        return launched
    assignments = _assignments(runs, deterministic)
    changed = {"framework": framework, "seed": seed, "device": device}
    places = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "resume": resume}

    def run() -> int:
        passed = _run_recipe(recipe, changes or (), assignments, changed, output, quiet, rank_options=options, **places)
        return PASSED if passed else FAILED

    return run_here(run, rank_logs, options)


def _assignments(runs: int | None, deterministic: bool) -> list[tuple[str, Any]]:
    """Return the keys of the recipe that have options of their own, where these were given."""
    assignments: list[tuple[str, Any]] = [] if runs is None else [("runs", runs)]
    return [*assignments, ("deterministic", True)] if deterministic else assignments


def _rank_options(communicator: str | None, timeout: float, on_failure: str) -> RankOptions:
    with signals_deferred():  # libraries in C++ do not survive Ctrl-C while they are imported
        from deep500.distributed.rank_options import RankOptions, timeout_of_option

        return RankOptions(communicator, timeout_of_option(timeout), on_failure)


def _run_recipe(
    recipe: str,
    changes: Sequence[str],
    assignments: Sequence[tuple[str, Any]],
    changed: Mapping[str, Any],
    output: str | None,
    quiet: bool,
    **options: Any,
) -> bool:
    """Load a recipe, change it, run it, tell where the result is, and return whether it passed.

    Args:
        recipe: A file or a name.
        changes: Texts ``KEY=VALUE``.
        assignments: More changes, after them.
        changed: What replaces the recipe's framework, seed and device.
        output: Result file.
        quiet: Whether to write nothing but the verdict.
        **options: More arguments of ``execute_recipe``.

    Raises:
        Deep500Error: The recipe, or its own code, is wrong.
    """
    with signals_deferred():
        from deep500.cli._rank_reporter import RankReporter
        from deep500.recipe.loading import load_recipe
        from deep500.recipe.overrides import override_recipe, parse_assignment
        from deep500.recipe.runner import execute_recipe

    loaded = load_recipe(recipe)
    parsed = [parse_assignment(text) for text in changes]
    loaded = override_recipe(loaded, changes=[*parsed, *assignments], **changed)
    reporter = RankReporter(quiet=quiet)
    try:
        passed = execute_recipe(loaded, output=output, reporter=reporter, **options).passed
        if reporter.told_end and output is not None and not quiet:
            print(f"The result is in {shown_path(output)}")
        return passed
    except (Deep500Error, KeyboardInterrupt, BrokenPipeError):
        raise
    except BaseException as error:
        # The recipe's own code (an event, a gradient modifier) is the user's, not Deep500's.
        message = recipe_error(loaded.path, error)
        if message is None:
            raise
        raise RecipeError(message) from error
