"""What a recipe says of the training beyond its parts: transformations, schedules, workers, precision.

Each is imported when a recipe names it, so that one that does not costs nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from deep500.core.errors import RecipeError, near_miss
from deep500.core.event import Event
from deep500.core.texts import shown
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.recipe.recipe import Recipe, copy_value
from deep500.recipe.resolve import call_with_arguments, name_and_arguments, named_parameters
from deep500.training import catalogue
from deep500.training.optimizer import Optimizer
from deep500.training.sampler import Sampler, Transformation

__all__ = [
    "determinism",
    "find_transformation",
    "loss_scaling",
    "mixed_precision_network",
    "mixed_precision_optimizer",
    "schedule_events",
    "with_input_pipeline",
]


def find_transformation(key: str, value: Any) -> Transformation:
    """Return a transformation: a new one for a name, a class or a dict of name and arguments, else the given one.

    Args:
        key: The recipe's key, for messages.
        value: What its list holds.

    Raises:
        RecipeError: It is none.
        UnknownNameError: There is none of this name.
    """
    name, arguments = name_and_arguments(key, value)
    found = catalogue.TRANSFORMATIONS.get(name) if isinstance(name, str) else name
    if isinstance(found, type):
        found = call_with_arguments(found, key, (), ((), arguments))
    if not callable(found):
        raise RecipeError(f"{key!r} has {shown(value)}, which is not a transformation of minibatches.")
    made: Transformation = found
    return made


def schedule_events(recipe: Recipe, optimizer: Optimizer, sampler: Sampler, ranks: int = 1) -> list[Event]:
    """Return the events that change hyperparameters as the recipe's ``schedule`` says.

    Args:
        recipe: The recipe.
        optimizer: Whose hyperparameters they are.
        sampler: Serves the training set, whose length tells how many steps an epoch has.
        ranks: Number of ranks that train together.

    Raises:
        RecipeError: There is no such hyperparameter, or a schedule is none or takes no such arguments.
        UnknownNameError: There is no schedule of a name.
    """
    schedules = copy_value(recipe.get("schedule", {}), "'schedule'")
    if not schedules:
        return []
    from deep500.training.events.schedule import ScheduleEvent

    known = optimizer.hyperparameter_names
    events: list[Event] = []
    for hyperparameter, value in schedules.items():
        if hyperparameter not in known:
            raise RecipeError(
                f"'schedule' has the unknown key {hyperparameter!r}.{near_miss(hyperparameter, known)} Hyperparameters "
                f"of {type(optimizer).__name__}: {', '.join(known) or 'none'}."
            )
        name, arguments = name_and_arguments("schedule", value)
        per = arguments.pop("per", "step")
        if per not in ("step", "epoch"):
            raise RecipeError(f"'schedule' has per={shown(per)}; accepted are 'step' and 'epoch'.")
        made = catalogue.SCHEDULES.get(name) if isinstance(name, str) else name
        if isinstance(made, type):
            arguments = {**_totals(made, recipe, (sampler, ranks), per, arguments), **arguments}
            made = call_with_arguments(made, "schedule", (), ((), arguments))
        if not callable(made):
            raise RecipeError(f"'schedule' has {shown(value)} for {hyperparameter!r}, which is not a schedule.")
        events.append(ScheduleEvent(hyperparameter, made, per=per))
    return events


def with_input_pipeline(sampler: Sampler, recipe: Recipe) -> Sampler:
    """Return the sampler, behind the workers of the recipe's ``input_pipeline`` where it has one."""
    arguments = recipe.get("input_pipeline")
    if arguments is None:
        return sampler
    from deep500.training.input_pipeline import InputPipeline

    made = call_with_arguments(InputPipeline, "input_pipeline", (sampler,), ((), dict(arguments)))
    assert isinstance(made, Sampler)
    return made


def mixed_precision_network(network: Network, recipe: Recipe) -> Network:
    """Return the network in the recipe's ``precision``; its parameters stay float32."""
    precision = recipe.get("precision", "float32")
    if precision == "float32":
        return network
    from deep500.training.precision import apply_precision

    return apply_precision(network, precision)


def mixed_precision_optimizer(optimizer: Optimizer, recipe: Recipe) -> Optimizer:
    """Return the optimizer as the recipe's ``precision`` needs it: with scaled losses for float16."""
    precision = recipe.get("precision", "float32")
    if precision == "float32":
        return optimizer
    from deep500.training.precision import precise_optimizer

    return precise_optimizer(optimizer, precision)


def loss_scaling(optimizer: Optimizer) -> dict[str, Any] | None:
    """Return how a loss was scaled (factor, good steps since it changed, skipped steps); ``None`` where it was not."""
    scaling = getattr(optimizer, "scaling", None)
    state: dict[str, Any] | None = None if scaling is None else scaling.state()
    return state


def determinism(recipe: Recipe, executor: GraphExecutor, rank: int = 0) -> contextlib.AbstractContextManager[Any]:
    """Return in what a recipe is trained: the deterministic mode, which tells its switches, where it asks for it.

    Ranks draw from streams of their own; rank 0 from that of a single process.
    """
    if not recipe.get("deterministic", False):
        return contextlib.nullcontext()
    from deep500.core.random import random_stream
    from deep500.training.determinism import deterministic_mode

    seed = recipe["seed"]
    if rank:
        seed = int(random_stream(seed, "rank", rank).bit_generator.random_raw())
    mode: contextlib.AbstractContextManager[Any] = deterministic_mode(executor, seed)
    return mode


def _totals(
    kind: Any, recipe: Recipe, served: tuple[Sampler, int], per: str, given: Mapping[str, Any]
) -> dict[str, int]:
    """Return how long the training is, for a schedule that asks for it and was not told."""
    from deep500.training.budget import Budget

    budget = Budget.of(*(recipe.get(key) for key in ("epochs", "steps", "samples", "time_limit_s")))
    planned = {"total_steps": budget.steps_planned(*served), "total_epochs": budget.epochs_planned(*served)}
    planned["total"] = planned[f"total_{per}s"]
    asked = named_parameters(kind) or {}
    return {name: total for name, total in planned.items() if name in asked and name not in given and total}
