"""The keys of a recipe, and what each accepts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deep500.core.errors import InvalidInputError, RecipeError
from deep500.core.random import check_seed
from deep500.core.texts import shown
from deep500.networks.loss import Loss

__all__ = ["BUDGETS", "KEYS", "PRECISIONS", "Key", "argument_keys", "base_key", "check_value", "known_keys"]

#: The keys that say how long a training is; a recipe has exactly one of them.
BUDGETS = ("epochs", "steps", "samples", "time_limit_s")

#: What a recipe may compute in.
PRECISIONS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Key:
    """One key of a recipe.

    Attributes:
        meaning: What it is, in one line.
        accepted: What it may be, for messages.
        check: Returns the value in its canonical type; raises ``ValueError`` when it is not accepted, with what is
            where ``accepted`` is not enough.
        required: Whether every recipe must have it.
        takes_arguments: Whether ``<key>_args`` and ``<key>_kwargs`` exist.
    """

    meaning: str
    accepted: str
    check: Callable[[Any], Any]
    required: bool = False
    takes_arguments: bool = False


#: What a counter of every framework and of JSON's readers holds.
_LARGEST_COUNT = 2**63 - 1


def _count(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError
    if value > _LARGEST_COUNT:
        raise ValueError("a whole number from 1 to 2**63 - 1")
    return operator.index(value)


def _seed(value: Any) -> int:
    try:
        return check_seed(value)
    except InvalidInputError:
        raise ValueError from None


def _name_or_callable(value: Any) -> Any:
    if not (callable(value) or (isinstance(value, str) and value.strip())):
        raise ValueError
    return value


def _class_or_name(value: Any) -> Any:
    if not (isinstance(value, type) or (isinstance(value, str) and value.strip())):
        raise ValueError
    return value


def _loss(value: Any) -> Any:
    if not (isinstance(value, Loss) or (isinstance(value, str) and value.strip())):
        raise ValueError
    return value


def _something(value: Any) -> Any:
    """Accept what only the model's or data set's own code can judge, but nothing that is plainly a slip."""
    if value is None or isinstance(value, (bool, int, float, bytes)) or (isinstance(value, str) and not value.strip()):
        raise ValueError
    return value


def _sequence(value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise ValueError
    return list(value)


def _seconds(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError
    if not 0 < value < float("inf"):
        raise ValueError
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError
    return bool(value)


def _precision(value: Any) -> str:
    if not isinstance(value, str) or value not in PRECISIONS:
        raise ValueError
    return value


def _named(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError
    return dict(value)


#: Every key, in the order in which a recipe is built.
KEYS: dict[str, Key] = {
    "model": Key(
        "The network",
        "a model's name (see: deep500 list models), an .onnx file's path, a Network, or a function that returns one",
        _something,
        required=True,
        takes_arguments=True,
    ),
    "dataset": Key(
        "The data",
        "a data set's name (see: deep500 list datasets), a pair (training, test), or a function that returns one",
        _something,
        required=True,
        takes_arguments=True,
    ),
    "loss": Key(
        "What is made small, instead of the data set's own loss",
        "a loss's name (see: deep500 list losses) or a Loss",
        _loss,
    ),
    "executor": Key(
        "What runs the network",
        "a framework's name (see: deep500 list frameworks) or its from_model",
        _name_or_callable,
        required=True,
        takes_arguments=True,
    ),
    "optimizer": Key(
        "What trains it",
        "an optimizer's name (see: deep500 list optimizers) or its class",
        _class_or_name,
        required=True,
        takes_arguments=True,
    ),
    "distributed": Key(
        "What ranks exchange in each step, where there are several",
        "a scheme's name (see: deep500 list schemes; default 'allreduce'), its class, or a DistributedOptimizer's",
        _class_or_name,
        takes_arguments=True,
    ),
    "train_sampler": Key(
        "The order of the training samples",
        "a sampler's name (see: deep500 list samplers) or its class",
        _class_or_name,
        takes_arguments=True,
    ),
    "validation_sampler": Key(
        "The order of the test samples",
        "a sampler's name (see: deep500 list samplers) or its class",
        _class_or_name,
        takes_arguments=True,
    ),
    "train_transformations": Key(
        "What changes the training minibatches, such as augmentations",
        "a list of transformations, of their classes or names, or of dicts such as dict(name='flip', probability=0.5)",
        _sequence,
    ),
    "test_transformations": Key(
        "What changes the test minibatches",
        "a list of transformations, of their classes or names, or of dicts such as dict(name='normalise', mean=0.1)",
        _sequence,
    ),
    "input_pipeline": Key(
        "Workers that prepare the training minibatches ahead",
        "a dict of the arguments of InputPipeline, such as dict(workers=2, kind='process')",
        _named,
    ),
    "epochs": Key("Passes over the training samples", "a whole number from 1", _count),
    "steps": Key("Steps of the optimizer, instead of epochs", "a whole number from 1", _count),
    "samples": Key("Samples to train on, instead of epochs", "a whole number from 1", _count),
    "time_limit_s": Key("Seconds to train, instead of epochs", "a finite number above 0", _seconds),
    "evaluate_every_steps": Key("Steps between two tests within an epoch", "a whole number from 1", _count),
    "schedule": Key(
        "Hyperparameters that change during the training",
        "a dict of schedules by hyperparameter, such as {'learning_rate': dict(name='cosine', per='step')}",
        _named,
    ),
    "precision": Key("What is computed in", "'float32' (the default), 'bfloat16' or 'float16'", _precision),
    "deterministic": Key("Whether equal runs are to give equal bits", "True or False", _flag),
    "runs": Key("Trainings, with a seed each from the recipe's on", "a whole number from 1 (default 1)", _count),
    "batch_size": Key("Samples a minibatch, of all ranks together", "a whole number from 1", _count, required=True),
    "events": Key("Listeners of the training", "a list of events, their names, or pairs (name, arguments)", _sequence),
    "seed": Key(
        "Seed of the first weights and of the samplers", "a whole number from 0 to 2**64 - 1 (default 0)", _seed
    ),
}


def argument_keys(key: str) -> tuple[str, ...]:
    """Return the names of the keys that hold a key's arguments."""
    return (f"{key}_args", f"{key}_kwargs") if KEYS[key].takes_arguments else ()


def known_keys() -> list[str]:
    """Return every key that a recipe may have."""
    return [name for key in KEYS for name in (key, *argument_keys(key))]


def base_key(key: str) -> str:
    """Return the key whose arguments a key holds; for any other key, the key itself."""
    return next((base for base in KEYS if key in argument_keys(base)), key)


def check_value(part: str, key: str, value: Any) -> Any:
    """Return a value in its canonical type.

    Args:
        part: Where it stands, for the message: ``"FIXED"`` or ``"MUTABLE"``.
        key: A known key.
        value: What was given.

    Raises:
        RecipeError: The value is not accepted.
    """
    if key in KEYS:
        try:
            return KEYS[key].check(value)
        except ValueError as error:
            accepted = str(error) or KEYS[key].accepted
            raise RecipeError(f"{part}[{key!r}] is {shown(value)}; accepted is {accepted}.") from None
    if key.endswith("_kwargs"):
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise RecipeError(f"{part}[{key!r}] is {shown(value)}; accepted is a dict of arguments by name.")
        return dict(value)
    if not isinstance(value, (list, tuple)):
        hint = " A tuple of one value is written (value,)." if isinstance(value, (int, float)) else ""
        raise RecipeError(f"{part}[{key!r}] is {shown(value)}; accepted is a tuple of arguments.{hint}")
    return tuple(value)
