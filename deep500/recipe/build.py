"""Building what a recipe describes: data, network, executor, optimizer, samplers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deep500.core.errors import RecipeError
from deep500.core.event import Event
from deep500.datasets.dataset import Dataset
from deep500.measure.regions import region
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.network import Network
from deep500.recipe.recipe import Recipe, copy_value
from deep500.recipe.resolve import (
    call_with_arguments,
    find_dataset,
    find_event,
    find_executor,
    find_model,
    find_optimizer,
    find_sampler,
    framework_of,
    named_parameters,
)
from deep500.training.optimizer import Optimizer
from deep500.training.sampler import Sampler

__all__ = ["Build", "build_recipe"]

LOSS = "loss"
OUTPUT = "output"
DEFAULT_SAMPLERS = {"train_sampler": "shuffle", "validation_sampler": "ordered"}


@dataclass(frozen=True)
class Build:
    """What a recipe describes, ready to be trained.

    Attributes:
        executor: Runs the network, which has its loss.
        optimizer: Trains it.
        train_sampler: Gives the training set's minibatches.
        validation_sampler: Gives the test set's minibatches.
        output: Name of the network's output that is compared with the labels.
        events: Listeners that the recipe names.
        seeds: The recipe's seed, and those of the first weights and of both samplers (``None``: it takes none).
    """

    executor: GraphExecutor
    optimizer: Optimizer
    train_sampler: Sampler
    validation_sampler: Sampler
    output: str
    events: list[Event]
    seeds: dict[str, int | None]


def build_recipe(recipe: Recipe) -> Build:
    """Build what a recipe describes. Names are resolved first, so that a slip is found before data are loaded.

    The regions ``"imports"``, ``"data"`` and ``"build"`` (:mod:`deep500.measure.regions`) tell how long it takes.

    Raises:
        Deep500Error: Something that the recipe names does not exist, does not fit, or takes no such arguments.
    """
    with region("imports"):  # the framework's, for the most part
        load_data = find_dataset(recipe["dataset"], recipe.arguments("dataset"))
        make_model = find_model(recipe["model"], recipe.arguments("model"))
        make_executor = find_executor(recipe["executor"])
        make_optimizer = find_optimizer(recipe["optimizer"])
        samplers = {key: find_sampler(key, recipe.get(key, default)) for key, default in DEFAULT_SAMPLERS.items()}
        events = [find_event(event) for event in copy_value(recipe.get("events", []), "'events'")]
        _check_same_framework(framework_of(recipe["executor"]), make_optimizer)
    with region("data"):
        train_set, test_set = load_data()
    with region("build"):
        network = make_model(train_set, recipe["seed"])
        output = _append_loss(network, train_set)
        executor = call_with_arguments(make_executor, "executor", (network,), recipe.arguments("executor"))
        if not isinstance(executor, GraphExecutor):
            raise RecipeError(f"'executor' made a {type(executor).__name__}; it must make a GraphExecutor.")
        _check_same_framework(executor.framework, make_optimizer)
        optimizer = call_with_arguments(make_optimizer, "optimizer", (executor, LOSS), recipe.arguments("optimizer"))
        train_sampler = _make_sampler(recipe, "train_sampler", samplers["train_sampler"], train_set)
        validation_sampler = _make_sampler(recipe, "validation_sampler", samplers["validation_sampler"], test_set)
    is_own_network = not isinstance(recipe["model"], str) or recipe["model"].endswith(".onnx")
    seeds = {
        "recipe": recipe["seed"],
        "initialisation": None if is_own_network else recipe.arguments("model")[1].get("seed", recipe["seed"]),
        "train_sampler": getattr(train_sampler, "seed", None),
        "validation_sampler": getattr(validation_sampler, "seed", None),
    }
    return Build(executor, optimizer, train_sampler, validation_sampler, output, events, seeds)


def _check_same_framework(framework: str | None, optimizer: Any) -> None:
    home = framework_of(optimizer)
    if home is not None and framework is not None and home != framework:
        raise RecipeError(
            f"'optimizer' is {home}'s {optimizer.__name__}, but 'executor' runs {framework}. Use {framework}'s "
            f"{optimizer.__name__}, an optimizer by name (see: deep500 list optimizers), or --framework, which "
            f"changes both."
        )


def _append_loss(network: Network, dataset: Dataset) -> str:
    """Append the data set's loss, unless the network brings one; return the output that it compares."""
    if dataset.input_node not in network.inputs:
        raise RecipeError(
            f"The data set is for an input {dataset.input_node!r}, which the network does not have. Its inputs: "
            f"{', '.join(network.inputs)}. Name one of them: 'dataset_kwargs': dict(input_node=...)."
        )
    outputs = list(network.outputs)
    if OUTPUT not in outputs and len(outputs) != 1:
        raise RecipeError(
            f"The network has the outputs {', '.join(outputs) or 'none'}; accepted is one output, or one named "
            f"{OUTPUT!r}."
        )
    output = OUTPUT if OUTPUT in outputs else outputs[0]
    if LOSS not in network.losses:
        if dataset.label_node is None:
            raise RecipeError("The data set has no labels, and the network has no loss of its own to train it with.")
        network.append_loss(dataset.loss, prediction=output, label=dataset.label_node, name=LOSS)
    return output


def _make_sampler(recipe: Recipe, key: str, sampler: Any, dataset: Dataset) -> Sampler:
    args, kwargs = recipe.arguments(key)
    parameters = list(named_parameters(sampler) or ())
    is_given = "seed" in kwargs or "seed" in parameters[: 2 + len(args)]
    if "seed" in parameters and not is_given:
        kwargs["seed"] = recipe["seed"]
    made = call_with_arguments(sampler, key, (dataset, recipe["batch_size"]), (args, kwargs))
    assert isinstance(made, Sampler)  # find_sampler lets only sampler classes through
    return made
