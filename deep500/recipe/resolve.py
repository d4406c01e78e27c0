"""From what a recipe names to the plug-ins themselves."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import onnx

from deep500.core.errors import Deep500Error, RecipeError, near_miss
from deep500.core.event import Event
from deep500.core.requirement import Requirement
from deep500.core.signals import signals_deferred
from deep500.core.texts import message_of, shown
from deep500.datasets.dataset import Dataset
from deep500.datasets.loading import DATASETS, load_dataset
from deep500.frameworks import FRAMEWORKS
from deep500.measure.metric import TestMetric
from deep500.networks.creation import MODELS, create_model
from deep500.networks.network import Network
from deep500.recipe.keys import KEYS
from deep500.training import catalogue
from deep500.training.optimizer import Optimizer
from deep500.training.optimizer_options import OptimizerOptions
from deep500.training.sampler import Sampler

__all__ = [
    "call_with_arguments",
    "find_dataset",
    "find_event",
    "find_executor",
    "find_metric",
    "find_model",
    "find_optimizer",
    "find_sampler",
    "framework_of",
    "load_framework",
    "name_and_arguments",
]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def load_framework(name: str) -> Any:
    """Return the adapter of a framework.

    Raises:
        UnknownNameError: There is none of this name.
        MissingDependencyError: The framework is not installed; the message names the extra that installs it.
    """
    with signals_deferred():
        adapter = FRAMEWORKS.get(name)
    requirement = getattr(adapter, "REQUIREMENT", None)
    if isinstance(requirement, Requirement):
        requirement.require(f"The framework {name!r}")
    return adapter


def framework_of(value: Any) -> str | None:
    """Return the framework whose adapter a name stands for or an object is defined in; ``None`` for all others."""
    if isinstance(value, str):
        return value
    module = str(getattr(value, "__module__", ""))
    for name, package in _adapter_packages().items():
        if module == package or module.startswith(f"{package}."):
            return name
    return None


@functools.cache
def _adapter_packages() -> dict[str, str]:
    """Return the packages of all adapters, those of other distributions included, without importing any."""
    points = importlib.metadata.entry_points(group=FRAMEWORKS.entry_point_group)
    return {
        **{p.name: p.module for p in points},
        **{n: f"{FRAMEWORKS.package}.{n}" for n in FRAMEWORKS if n not in points.names},
    }


def find_executor(value: Any) -> Callable[..., Any]:
    """Return what makes an executor from a network: a named framework's ``from_model``, or what the recipe gives."""
    adapter = load_framework(value) if isinstance(value, str) else None
    with signals_deferred():  # the framework itself is imported here
        found: Callable[..., Any] = value if adapter is None else adapter.from_model
    return found


def find_optimizer(value: Any) -> Callable[..., Any]:
    """Return an optimizer's class: that of a name, written once for all frameworks, or what the recipe gives.

    Raises:
        RecipeError: It is no optimizer.
    """
    found = catalogue.OPTIMIZERS.get(value) if isinstance(value, str) else value
    if not (isinstance(found, type) and issubclass(found, Optimizer)):
        raise RecipeError(f"'optimizer' is {_name(found)}, which is not an Optimizer (see: deep500 list optimizers).")
    _check_concrete("optimizer", found)
    return found


def find_sampler(key: str, value: Any) -> Callable[..., Any]:
    """Return a sampler's class.

    Raises:
        RecipeError: It is no sampler.
    """
    found = catalogue.SAMPLERS.get(value) if isinstance(value, str) else value
    if not (isinstance(found, type) and issubclass(found, Sampler)):
        raise RecipeError(f"{key!r} is {_name(found)}, which is not a Sampler (see: deep500 list samplers).")
    _check_concrete(key, found)
    return found


def _check_concrete(key: str, found: Any) -> None:
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise RecipeError(
            f"{key!r} is {_name(found)}, which implements no {lacking}; accepted is a subclass that does."
        )


def find_metric(name: str) -> TestMetric:
    """Return a new metric of a name.

    Raises:
        UnknownNameError: There is none.
    """
    metric = catalogue.find_metric(name)()
    if not isinstance(metric, TestMetric):
        raise RecipeError(f"The plug-in {name!r} is not a metric but {type(metric).__name__}.")
    return metric


def find_event(value: Any) -> Event:
    """Return an event: a new one for a name, a class, or either with its arguments, else the given one.

    Raises:
        RecipeError: It is no event, or its class needs other arguments.
    """
    name, arguments = name_and_arguments("events", value)
    found = catalogue.EVENTS.get(name) if isinstance(name, str) else name
    if isinstance(found, type) and issubclass(found, Event):
        found = call_with_arguments(found, "events", (), ((), arguments))
    elif arguments and isinstance(found, Event):
        raise RecipeError(f"'events' has the object {_name(found)} with arguments; they go with a name or a class.")
    if not isinstance(found, Event):
        raise RecipeError(f"'events' has {_name(found)}, which is not an event (see: deep500 list events).")
    return found


def name_and_arguments(key: str, value: Any) -> tuple[Any, dict[str, Any]]:
    """Return what a name, a class, an object, a pair or a dict ``dict(name=..., **arguments)`` stands for.

    Args:
        key: The recipe's key, for messages.
        value: What it holds.

    Raises:
        RecipeError: It is a dict without a name.
    """
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
        value = {"name": value[0], **value[1]}
    if not isinstance(value, Mapping):
        return value, {}
    arguments = dict(value)
    if not all(isinstance(name, str) for name in arguments) or "name" not in arguments:
        raise RecipeError(f"{key!r} has {shown(value)}; accepted is a dict with a name, such as dict(name=...).")
    return arguments.pop("name"), arguments


def find_dataset(value: Any, arguments: Arguments) -> Callable[[], tuple[Dataset, Dataset]]:
    """Return what gives the training set and the test set.

    Args:
        value: A data set's name, a pair of data sets, or a function that returns one.
        arguments: The recipe's arguments of the data set.

    Raises:
        UnknownNameError: There is no data set of this name.
        RecipeError: It is none of these, or takes no arguments.
    """
    if isinstance(value, str):
        DATASETS.get(value)
        return lambda: _checked_pair(call_with_arguments(load_dataset, "dataset", (value,), arguments))
    if callable(value):
        return lambda: _checked_pair(call_with_arguments(value, "dataset", (), arguments))
    pair = _checked_pair(value)
    _check_no_arguments("dataset", value, arguments)
    return lambda: pair


def _checked_pair(value: Any) -> tuple[Dataset, Dataset]:
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(part, Dataset) for part in value):
        return value[0], value[1]
    raise RecipeError(f"'dataset' gives {_name(value)}; it must give a pair of data sets (training set, test set).")


def _check_no_arguments(key: str, value: Any, arguments: Arguments) -> None:
    if any(arguments):
        raise RecipeError(
            f"{key!r} is {_name(value)}, which takes no arguments; remove '{key}_args' and '{key}_kwargs'."
        )


def find_model(value: Any, arguments: Arguments) -> Callable[[Dataset, int], Network]:
    """Return what makes the network for a data set and a seed.

    Args:
        value: A model's name, a path, a network, or a function that returns one of the last two.
        arguments: The recipe's arguments of the model.

    Raises:
        UnknownNameError: There is no model of this name.
        RecipeError: It is none of these, or takes no arguments.
    """
    args, kwargs = arguments
    if isinstance(value, str) and Path(value).suffix != ".onnx":
        MODELS.get(value)
        if args:
            raise RecipeError(f"The model {value!r} takes its arguments by name: 'model_kwargs', not 'model_args'.")
        if "name" in kwargs:
            raise RecipeError(f"The model {value!r} has no argument 'name'; its name is what 'model' gives.")
        return lambda dataset, seed: _create_model(value, dataset, {"seed": seed, **kwargs})
    if callable(value):
        return lambda dataset, seed: _own_network(call_with_arguments(value, "model", (), arguments))
    _check_model(value)
    _check_no_arguments("model", value, arguments)
    return lambda dataset, seed: _own_network(value)


def _check_model(value: Any) -> None:
    """Check, before anything else is said of it, that a value is a model or leads to a file."""
    if isinstance(value, (str, PathLike)):
        if not os.path.isfile(value):
            kind = "is a folder" if os.path.isdir(value) else "does not exist"
            raise RecipeError(f"'model' is the file {os.fspath(value)!r}, which {kind}.")
    elif not isinstance(value, (Network, onnx.ModelProto)):
        raise RecipeError(f"'model' is {_name(value)}, which is not a model; accepted is {KEYS['model'].accepted}.")


def _create_model(name: str, dataset: Dataset, kwargs: dict[str, Any]) -> Network:
    shape = dataset.sample_shape
    if "classes" not in kwargs:
        # A regression's outputs are as many as a label has numbers.
        outputs = dataset.descriptors[dataset.label_node].shape if dataset.label_node else None
        kwargs["classes"] = dataset.classes or (outputs[-1] if outputs and len(outputs) > 1 else 1)
    return create_model(name, **{"shape": shape, **kwargs})


def _own_network(value: Any) -> Network:
    """Return a network of which a run may change the graph: a copy of a given one."""
    return Network.load(value.to_proto() if isinstance(value, Network) else value)


def call_with_arguments(function: Callable[..., Any], key: str, leading: Sequence[Any], arguments: Arguments) -> Any:
    """Call what a recipe's key stands for with the arguments that the recipe has for it.

    Args:
        function: What is called.
        key: The recipe's key, for messages.
        leading: What the runner itself passes first.
        arguments: What ``<key>_args`` and ``<key>_kwargs`` hold.

    Raises:
        RecipeError: The function does not take these arguments.
    """
    args, kwargs = arguments
    accepted = named_parameters(function)
    if accepted is not None:
        own = [name for name, p in accepted.items() if p.kind is not p.VAR_KEYWORD][len(leading) :]
        takes_options = len(own) + len(leading) < len(accepted) and _is_optimizer(function)
        own += [name for name in OptimizerOptions.__annotations__ if takes_options and name not in own]
        unknown = next((name for name in kwargs if name not in own), "")
        try:
            inspect.signature(function).bind(*leading, *args, **kwargs)
            if takes_options and unknown:
                raise TypeError(f"got an unexpected keyword argument {unknown!r}")
        except TypeError as error:
            hint = near_miss(unknown, own) if unknown else ""
            raise RecipeError(
                f"The arguments for {key!r}, {_name(function)}, do not fit: {error}.{hint} "
                f"It takes: {', '.join(own) or 'none'}."
            ) from error
    try:
        return function(*leading, *args, **kwargs)
    except (TypeError, ValueError) as error:
        if isinstance(error, Deep500Error) or not (args or kwargs):
            raise
        raise RecipeError(
            f"The arguments for {key!r} are not accepted by {_name(function)}: {message_of(error)}"
        ) from error


def _is_optimizer(function: Any) -> bool:
    """Whether further arguments by name are the options that every optimizer takes."""
    return isinstance(function, type) and issubclass(function, Optimizer)


def named_parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    """Return a function's parameters by name, ``None`` when Python does not know them."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None


def _name(value: Any) -> str:
    if isinstance(value, type) or inspect.isroutine(value):
        return f"{value.__module__}.{value.__qualname__}"
    return shown(value)
