"""Building what a recipe describes: data, network, executor, optimizer, samplers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deep500.core.errors import RecipeError
from deep500.core.event import Event
from deep500.core.tensor_descriptor import TensorDescriptor
from deep500.datasets.dataset import Dataset
from deep500.distributed.communicators.local import LocalCommunicator
from deep500.distributed.samplers._rank_sampler import RankSampler
from deep500.measure.regions import region
from deep500.networks.graph_executor import GraphExecutor
from deep500.networks.loss import Loss, find_loss
from deep500.networks.network import Network
from deep500.recipe._rank_share import RankShare
from deep500.recipe._ranks import RankSetup, find_scheme
from deep500.recipe._training_parts import (
    find_transformation,
    mixed_precision_network,
    mixed_precision_optimizer,
    schedule_events,
    with_input_pipeline,
)
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
from deep500.training.sampler import Sampler, Transformation

__all__ = ["Build", "build_recipe"]

LOSS = "loss"
OUTPUT = "output"
DEFAULT_SAMPLERS = {"train_sampler": "shuffle", "validation_sampler": "ordered"}
TRANSFORMATIONS = {"train_sampler": "train_transformations", "validation_sampler": "test_transformations"}


@dataclass(frozen=True)
class Build:
    """What a recipe describes, ready to be trained.

    Attributes:
        executor: Runs the network, which has its loss.
        optimizer: Trains it.
        train_sampler: Gives the training set's minibatches.
        validation_sampler: Gives the test set's minibatches.
        output: Name of the network's output that is compared with the labels.
        events: Listeners that the recipe names, those of its schedules first.
        seeds: The recipe's seed, and those of the first weights and of both samplers (``None``: it takes none).
        initial_weights_hash: SHA-256 of the network's tensors before any framework has changed its form.
    """

    executor: GraphExecutor
    optimizer: Optimizer
    train_sampler: Sampler
    validation_sampler: Sampler
    output: str
    events: list[Event]
    seeds: dict[str, int | None]
    initial_weights_hash: str


def build_recipe(recipe: Recipe, setup: RankSetup | None = None) -> Build:
    """Build what a recipe describes. Names are resolved first, so that a slip is found before data are loaded.

    The regions ``"imports"``, ``"data"`` and ``"build"`` (:mod:`deep500.measure.regions`) tell how long it takes.

    Args:
        recipe: The recipe.
        setup: The ranks that build it together, each its part; ``None`` for a process that is no rank.

    Raises:
        Deep500Error: Something that the recipe names does not exist, does not fit, or takes no such arguments.
    """
    with region("imports"):  # the framework's, for the most part
        load_data = find_dataset(recipe["dataset"], recipe.arguments("dataset"))
        make_model = find_model(recipe["model"], recipe.arguments("model"))
        loss = None if recipe.get("loss") is None else find_loss(recipe["loss"])
        make_executor = find_executor(recipe["executor"])
        make_optimizer = find_optimizer(recipe["optimizer"])
        samplers = {key: find_sampler(key, recipe.get(key, default)) for key, default in DEFAULT_SAMPLERS.items()}
        transformations = {
            key: [find_transformation(name, value) for value in copy_value(recipe.get(name, []), repr(name))]
            for key, name in TRANSFORMATIONS.items()
        }
        events = [find_event(event) for event in copy_value(recipe.get("events", []), "'events'")]
        _check_same_framework(framework_of(recipe["executor"]), make_optimizer)
        if "distributed" in recipe:
            find_scheme(recipe["distributed"])
        if setup is not None:
            setup.check_precision(recipe)
            setup.check_sampler(samplers["train_sampler"])
    with region("data"):
        train_set, test_set = load_data()
        if setup is not None:
            setup.check_data(train_set, test_set)
    with region("build"):
        network = make_model(train_set, recipe["seed"])
        output = _append_loss(network, train_set, loss)
        _check_classes(network, output, train_set, test_set)
        network = mixed_precision_network(network, recipe)
        initial_weights_hash = network.weights_hash()  # without what an adapter adds for itself, such as constants
        executor = call_with_arguments(make_executor, "executor", (network,), recipe.arguments("executor"))
        if not isinstance(executor, GraphExecutor):
            raise RecipeError(f"'executor' made a {type(executor).__name__}; it must make a GraphExecutor.")
        _check_same_framework(executor.framework, make_optimizer)
        optimizer = call_with_arguments(make_optimizer, "optimizer", (executor, LOSS), recipe.arguments("optimizer"))
        optimizer = mixed_precision_optimizer(optimizer, recipe)
        if setup is not None:
            optimizer = setup.wrapped(optimizer, recipe)
        train_sampler, validation_sampler = (
            _make_sampler(recipe, key, samplers[key], dataset, transformations[key], setup)
            for key, dataset in (("train_sampler", train_set), ("validation_sampler", test_set))
        )
        size = 1 if setup is None else setup.size
        schedules = schedule_events(recipe, optimizer, train_sampler, size)
        seeds = _seeds(recipe, train_sampler, validation_sampler)
        train_sampler = with_input_pipeline(train_sampler, recipe)
        own = events if setup is None else setup.events_here(events, optimizer, train_sampler)
    parts = (executor, optimizer, train_sampler, validation_sampler)
    return Build(*parts, output, [*schedules, *own], seeds, initial_weights_hash)


def _seeds(recipe: Recipe, train_sampler: Sampler, validation_sampler: Sampler) -> dict[str, int | None]:
    """Return the seeds of a run; of a rank's sampler the one that all ranks share."""
    is_own_network = not isinstance(recipe["model"], str) or recipe["model"].endswith(".onnx")
    return {
        "recipe": recipe["seed"],
        "initialisation": None if is_own_network else recipe.arguments("model")[1].get("seed", recipe["seed"]),
        "train_sampler": getattr(train_sampler, "order_seed", getattr(train_sampler, "seed", None)),
        "validation_sampler": getattr(validation_sampler, "seed", None),
    }


def _check_same_framework(framework: str | None, optimizer: Any) -> None:
    home = framework_of(optimizer)
    if home is not None and framework is not None and home != framework:
        raise RecipeError(
            f"'optimizer' is {home}'s {optimizer.__name__}, but 'executor' runs {framework}. Use {framework}'s "
            f"{optimizer.__name__}, an optimizer by name (see: deep500 list optimizers), or --framework, which "
            f"changes both."
        )


def _append_loss(network: Network, dataset: Dataset, loss: Loss | None) -> str:
    """Append the loss, by default the data set's, unless the network has one; return the output that it compares."""
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
    if LOSS in network.losses:
        if loss is not None:
            raise RecipeError("'loss' names a loss, and the network brings one of its own. Leave one of them out.")
    else:
        if dataset.label_node is None:
            raise RecipeError("The data set has no labels, and the network has no loss of its own to train it with.")
        network.append_loss(loss or dataset.loss, prediction=output, label=dataset.label_node, name=LOSS)
    return output


def _check_classes(network: Network, output: str, *datasets: Dataset) -> None:
    """Check that each label has a score."""
    descriptor = network.outputs[output]
    shape = descriptor.shape if isinstance(descriptor, TensorDescriptor) else None
    scores = shape[1] if shape is not None and len(shape) > 1 else None
    for dataset in datasets:
        classes = dataset.classes if dataset.loss == "SoftmaxCrossEntropyLoss" else None
        if isinstance(scores, int) and classes is not None and classes > scores:
            raise RecipeError(
                f"The data set has {classes} classes, labels 0 to {classes - 1}, and the network's output {output!r} "
                f"has {scores} scores a sample: a label is out of range."
            )


def _make_sampler(
    recipe: Recipe,
    key: str,
    sampler: Any,
    dataset: Dataset,
    transformations: Sequence[Transformation],
    setup: RankSetup | None,
) -> Sampler:
    """Return a sampler as the recipe has it; of several ranks, that of this rank's part of the training set.

    A test is dealt out to ranks by the trainer, minibatch by minibatch, so that its sampler is that of one process.
    """
    args, kwargs = recipe.arguments(key)
    leading: tuple[Any, ...] = (dataset, recipe["batch_size"])
    is_of_rank = issubclass(sampler, RankSampler)
    if is_of_rank:
        communicator = LocalCommunicator() if setup is None else setup.communicator
        leading = (dataset, recipe["batch_size"] // communicator.size, communicator)
    parameters = list(named_parameters(sampler) or ())
    is_given = "seed" in kwargs or "seed" in parameters[: len(leading) + len(args)]
    if "seed" in parameters and not is_given:
        kwargs["seed"] = recipe["seed"]
    made: Sampler = call_with_arguments(sampler, key, leading, (args, kwargs))
    assert isinstance(made, Sampler)  # find_sampler lets only sampler classes through
    if setup is not None and setup.size > 1 and key == "train_sampler" and not is_of_rank:
        made = RankShare(made, setup.communicator)
    for transformation in transformations:
        made.add_transformation(transformation)
    return made
