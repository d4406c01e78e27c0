"""Changing the mutable part of a recipe: from the command line's texts, or to another framework."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from deep500.core.device import parse_device
from deep500.core.errors import RecipeError, near_miss
from deep500.core.texts import one_line, shown
from deep500.recipe.keys import base_key, known_keys
from deep500.recipe.recipe import Recipe
from deep500.recipe.resolve import framework_of, load_framework

__all__ = ["override_recipe", "parse_assignment"]

#: How deep a dotted key may reach.
_DEEPEST = 32


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return key and value of a text such as ``"epochs=3"`` or ``"optimizer_kwargs.learning_rate=0.05"``.

    A value that is a Python literal is that literal; anything else is a text.

    Raises:
        RecipeError: There is no ``=`` or no key.

    Example:
        >>> parse_assignment("optimizer_args=(0.05, 0.9)")
        ('optimizer_args', (0.05, 0.9))
        >>> parse_assignment("optimizer=momentum")
        ('optimizer', 'momentum')
    """
    key, separator, value = text.partition("=")
    key = key.strip()
    if not separator or not key or not all(key.split(".")):
        raise RecipeError(f"{shown(text)} does not set anything; accepted is key=value, such as epochs=3.")
    try:
        return key, ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return key, value.strip()


def override_recipe(
    recipe: Recipe,
    *,
    changes: Mapping[str, Any] | Sequence[tuple[str, Any]] = (),
    framework: str | None = None,
    seed: int | None = None,
    device: Any = None,
) -> Recipe:
    """Return the recipe with changes to its mutable part; the given recipe stays as it is.

    Args:
        recipe: The recipe.
        changes: Values by key. A dotted key reaches into a dict or a tuple: ``"optimizer_kwargs.learning_rate"``,
            ``"optimizer_args.0"``.
        framework: Name of the framework that is to run it: its executor, and its optimizer of the same name where the
            recipe has an adapter's own.
        seed: The seed.
        device: Where it is to run, as :func:`deep500.core.device.parse_device` takes it.

    Raises:
        RecipeError: A change reaches a fixed part, or what it names does not exist.
        UnknownNameError: There is no such framework.
        MissingDependencyError: The framework is not installed.
    """
    for key, value in changes.items() if isinstance(changes, Mapping) else changes:
        recipe = _set(recipe, key, value, one_line(f"{key}={_as_typed(value)}"))
    if seed is not None:
        recipe = _set(recipe, "seed", seed, f"seed {seed}")
    if device is not None:
        parsed = parse_device(device)
        recipe = _set(recipe, "executor_kwargs.device", parsed, f"device {parsed}")
    return recipe if framework is None else _switch_framework(recipe, framework)


def _set(recipe: Recipe, dotted: str, value: Any, change: str) -> Recipe:
    key, *path = dotted.split(".")
    known = known_keys()
    if len(path) > _DEEPEST:
        raise RecipeError(f"The change of {key!r} reaches {len(path)} levels deep; accepted are up to {_DEEPEST}.")
    if key not in known:
        raise RecipeError(
            f"The change {change!r} has the unknown key {key!r}.{near_miss(key, known)} Known keys: {', '.join(known)}."
        )
    if key in recipe.fixed:
        raise RecipeError(f"{key!r} is FIXED in the recipe {recipe.name!r} and cannot be changed ({change}).")
    if key not in recipe.mutable and base_key(key) in recipe.fixed:
        raise RecipeError(
            f"{base_key(key)!r} is FIXED in the recipe {recipe.name!r}, which lists no {key!r} as MUTABLE, so its "
            f"arguments cannot be changed ({change})."
        )
    if path:
        empty: Any = {} if key.endswith("_kwargs") else ()
        value = _replaced(recipe.get(key, empty), path, value, key)
    return recipe.replaced(**{key: value})


def _replaced(container: Any, path: list[str], value: Any, where: str) -> Any:
    """Return a copy of nested dicts and sequences in which one entry is another."""
    name, *rest = path
    if isinstance(container, Mapping):
        old = container.get(name, {}) if rest else None
        return {**container, name: _replaced(old, rest, value, f"{where}.{name}") if rest else value}
    if isinstance(container, (list, tuple)) and _is_index(name) and int(name) < len(container):
        index = int(name)
        new = _replaced(container[index], rest, value, f"{where}.{name}") if rest else value
        return type(container)((*container[:index], new, *container[index + 1 :]))
    if isinstance(container, (list, tuple)):
        numbers = f"entries 0 to {len(container) - 1}" if container else "no entries"
        raise RecipeError(f"{where!r} has {numbers}, not {shown(name)}.")
    raise RecipeError(f"{where!r} is {shown(container)}; {shown(name)} cannot be set in it.")


def _is_index(name: str) -> bool:
    """Whether a part of a dotted key is a number that a sequence may have; Python refuses to read 5,000 digits."""
    return name.isascii() and name.isdigit() and len(name) < 10


def _as_typed(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)


def _switch_framework(recipe: Recipe, framework: str) -> Recipe:
    if "executor" in recipe.fixed:
        raise RecipeError(
            f"'executor' is FIXED in the recipe {recipe.name!r}, so it cannot run with framework {framework!r}."
        )
    adapter = load_framework(framework)
    changes: dict[str, Any] = {}
    if framework_of(recipe["executor"]) != framework:
        changes["executor"] = framework
    optimizer = recipe["optimizer"]
    home = framework_of(optimizer) if isinstance(optimizer, type) else None
    if isinstance(optimizer, type) and home is not None and home != framework:
        if "optimizer" in recipe.fixed:
            raise RecipeError(
                f"'optimizer' is FIXED in the recipe {recipe.name!r} as {home}'s {optimizer.__name__}, so it cannot "
                f"run with framework {framework!r}."
            )
        if not hasattr(adapter, optimizer.__name__):
            raise RecipeError(
                f"The framework {framework!r} has no optimizer {optimizer.__name__}, which the recipe {recipe.name!r} "
                f"uses from {home!r}. Set another: --set optimizer=NAME (see: deep500 list optimizers)."
            )
        changes["optimizer"] = getattr(adapter, optimizer.__name__)
    return recipe.replaced(**changes)
