"""The recipes that come with Deep500. Nothing heavy is imported here: the command line lists them."""

from __future__ import annotations

import importlib.util
import pkgutil
from pathlib import Path

__all__ = ["SHIPPED", "shipped_recipes"]

#: The package of recipes that comes with Deep500.
SHIPPED = "recipes"

#: Its modules that are no recipes.
_NO_RECIPES = ("recipe",)


def shipped_recipes() -> dict[str, Path]:
    """Return the files of the recipes that come with Deep500, by name."""
    spec = importlib.util.find_spec(SHIPPED)
    found: dict[str, Path] = {}
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for module in pkgutil.iter_modules([folder]):
            if not module.name.startswith("_") and not module.ispkg and module.name not in _NO_RECIPES:
                found.setdefault(module.name, Path(folder) / f"{module.name}.py")
    return dict(sorted(found.items()))
