"""A recipe: what is fixed, what may change, and which metrics decide."""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from deep500.core.errors import RecipeError, near_miss
from deep500.core.event import Event
from deep500.core.texts import message_of, shown
from deep500.measure.metric import Direction, TestMetric
from deep500.recipe.describe import describe, hash_description
from deep500.recipe.keys import BUDGETS, KEYS, argument_keys, check_value, known_keys
from deep500.recipe.resolve import find_metric

__all__ = ["DEFAULT_SEED", "Recipe"]

#: The seed of a recipe that names none.
DEFAULT_SEED = 0

#: How deeply containers may lie in each other; one that holds itself is deeper than any limit.
_DEEPEST = 64


class Recipe:
    """Fixed definitions + mutable definitions + acceptable metrics.

    A recipe is checked when it is made, and keeps copies: neither making nor running it changes what the caller passed.

    Attributes:
        name: Short name, for reports.
        path: Where it was read from, ``None`` when it was made in a program.
        fixed: The definitions that may not be changed, by key.
        mutable: The definitions that may be changed, by key; the seed is always in one of the two.
        metrics: Pairs of a metric and its acceptable value (``None``: reported, but decides nothing).

    Example:
        >>> recipe = Recipe(
        ...     {"model": "mlp", "dataset": "digits", "epochs": 1},
        ...     {"batch_size": 32, "executor": "reference", "optimizer": "momentum"},
        ...     [("test_accuracy", 90.0)],
        ... )
        >>> recipe["batch_size"], recipe.mutable["seed"]
        (32, 0)
    """

    def __init__(
        self,
        fixed: Mapping[str, Any],
        mutable: Mapping[str, Any],
        metrics: Sequence[tuple[TestMetric | str, float | None]],
        *,
        name: str = "recipe",
        path: str | None = None,
    ) -> None:
        """Check and copy the three parts.

        Args:
            fixed: The definitions that may not be changed.
            mutable: The definitions that may be changed.
            metrics: Pairs ``(metric, acceptable value)``.
            name: Short name, for reports.
            path: Where it was read from.

        Raises:
            RecipeError: A part is not what it should be, a key is unknown, missing or in both parts, or a value is not
                accepted.
        """
        self.name = name
        self.path = path
        self.fixed = _check_part("FIXED", fixed)
        self.mutable = _check_part("MUTABLE", mutable)
        _check_keys(self.fixed, self.mutable)
        self.metrics = _check_metrics(metrics)
        if "seed" not in self.fixed:
            self.mutable.setdefault("seed", DEFAULT_SEED)

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key, whichever part it is in."""
        return self.fixed[key] if key in self.fixed else self.mutable[key]

    def __contains__(self, key: object) -> bool:
        """Whether either part has a key."""
        return key in self.fixed or key in self.mutable

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, ``default`` when neither part has it."""
        return self.fixed.get(key, self.mutable.get(key, default))

    def arguments(self, key: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return copies of what ``<key>_args`` and ``<key>_kwargs`` hold."""
        positional, named = argument_keys(key)
        return copy_value(self.get(positional, ()), repr(positional)), copy_value(self.get(named, {}), repr(named))

    def replaced(self, **changes: Any) -> Recipe:
        """Return a recipe with other values of mutable keys.

        A budget (epochs, steps, samples, time_limit_s) takes the place of another mutable one.

        Raises:
            RecipeError: A key is fixed or unknown, or a value is not accepted.
        """
        for key in changes:
            if key in self.fixed:
                raise RecipeError(f"{key!r} is FIXED in the recipe {self.name!r} and cannot be changed.")
        is_budget_changed = any(key in BUDGETS for key in changes)
        kept = {key: value for key, value in self.mutable.items() if not (is_budget_changed and key in BUDGETS)}
        return Recipe(self.fixed, {**kept, **changes}, self.metrics, name=self.name, path=self.path)

    @property
    def budget(self) -> dict[str, Any]:
        """The one key that says how long the training is, and its value."""
        return {key: self[key] for key in BUDGETS if key in self}

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """What is fixed and what is mutable, in a form that JSON takes; see :mod:`deep500.recipe.describe`."""
        try:
            return {"fixed": describe(self.fixed), "mutable": describe(self.mutable)}
        except RecursionError as error:
            raise RecipeError("The recipe has an object that is nested too deeply to be described.") from error

    @property
    def configuration_hash(self) -> str:
        """SHA-256 of the description: equal in every process, changed by every change of the configuration."""
        return hash_description(self.description)


def _check_part(part: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise RecipeError(f"{part} is a {type(given).__name__}; accepted is a dict of definitions by key.")
    known = known_keys()
    checked = {}
    for key, value in given.items():
        if key not in known:
            hint = near_miss(key, known) if isinstance(key, str) else ""
            raise RecipeError(f"{part} has the unknown key {key!r}.{hint} Known keys: {', '.join(known)}.")
        checked[key] = copy_value(check_value(part, key, value), f"{part}[{key!r}]")
    return checked


def _check_keys(fixed: Mapping[str, Any], mutable: Mapping[str, Any]) -> None:
    both = [key for key in fixed if key in mutable]
    if both:
        verb = "is" if len(both) == 1 else "are"
        raise RecipeError(
            f"{', '.join(map(repr, both))} {verb} in FIXED and in MUTABLE; each key belongs to one of them."
        )
    missing = [key for key, entry in KEYS.items() if entry.required and key not in fixed and key not in mutable]
    if missing:
        first = KEYS[missing[0]]
        detail = f" {first.meaning}: {first.accepted}." if len(missing) == 1 else ""
        raise RecipeError(f"The recipe has no {', '.join(map(repr, missing))} in FIXED or MUTABLE.{detail}")
    _check_one_budget([key for key in BUDGETS if key in fixed or key in mutable])


def _check_one_budget(budgets: list[str]) -> None:
    if not budgets:
        raise RecipeError(
            f"The recipe has no 'epochs' in FIXED or MUTABLE, nor another budget; accepted is one of "
            f"{', '.join(BUDGETS)}."
        )
    if len(budgets) > 1:
        raise RecipeError(f"The recipe has the budgets {', '.join(map(repr, budgets))}; accepted is exactly one.")


def _check_metrics(metrics: Any) -> tuple[tuple[TestMetric, float | None], ...]:
    wanted = "accepted is a list of pairs (metric, acceptable value), such as [(d5.TestAccuracy(), 97.0)]"
    if not isinstance(metrics, (list, tuple)):
        raise RecipeError(f"METRICS is a {type(metrics).__name__}; {wanted}.")
    if not metrics:
        raise RecipeError(f"METRICS is empty, so nothing would decide; {wanted}.")
    checked = []
    for number, pair in enumerate(metrics):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise RecipeError(f"METRICS[{number}] is {type(pair).__name__}; {wanted}.")
        metric, acceptable = pair
        if isinstance(metric, str):
            metric = find_metric(metric)
        if isinstance(metric, type) and issubclass(metric, TestMetric):
            raise RecipeError(f"METRICS[{number}] has the class {metric.__name__}; write {metric.__name__}().")
        if not isinstance(metric, TestMetric):
            raise RecipeError(
                f"METRICS[{number}] has {shown(metric)}, which is not a metric (see: deep500 list metrics)."
            )
        if not isinstance(metric.direction, Direction) or not isinstance(metric.unit, str):
            raise RecipeError(
                f"METRICS[{number}], {type(metric).__name__}, has direction {shown(metric.direction)} and unit "
                f"{shown(metric.unit)}; accepted are Direction.HIGHER or Direction.LOWER, and a text."
            )
        checked.append((metric, None if acceptable is None else _finite(acceptable, number)))
    return tuple(checked)


def _finite(acceptable: Any, number: int) -> float:
    if not isinstance(acceptable, bool) and isinstance(acceptable, numbers.Real):
        with contextlib.suppress(OverflowError):  # a whole number that no float holds
            if math.isfinite(acceptable):
                return float(acceptable)
    raise RecipeError(
        f"METRICS[{number}] has the acceptable value {shown(acceptable)}; accepted is a finite number, or None for a "
        f"metric that is only reported."
    )


def copy_value(value: Any, where: str, depth: int = 0) -> Any:
    """Copy containers, events and random transformations, so that the caller's stay as they are; share the rest.

    Args:
        value: What the recipe holds.
        where: Where it stands, for messages.
        depth: How many containers it lies in.

    Raises:
        RecipeError: An event or transformation cannot be copied, or containers are nested too deeply.
    """
    if depth > _DEEPEST:
        raise RecipeError(f"{where} is nested deeper than {_DEEPEST} levels, or contains itself.")
    if type(value) is dict:
        return {key: copy_value(item, where, depth + 1) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(copy_value(item, where, depth + 1) for item in value)
    if isinstance(value, type) or not (isinstance(value, Event) or hasattr(value, "set_random_stream")):
        return value
    try:
        return copy.deepcopy(value)
    except Exception as error:  # a copy runs the event's own code, which may raise anything
        name = type(value).__name__
        raise RecipeError(
            f"{where} has a {name} that cannot be copied, so that a run would change it ({message_of(error)}). "
            f"Define __deepcopy__, or, for an event, give its class or registered name; each run then makes its own."
        ) from error
