"""What a recipe's experiment is, whichever framework runs it."""

from __future__ import annotations

from typing import Any

from deep500.recipe.describe import hash_description
from deep500.recipe.recipe import Recipe
from deep500.recipe.resolve import framework_of

__all__ = ["experiment_description", "experiment_hash"]

#: What says who runs it and where: an executor's positional arguments begin with its device.
_WHO_RUNS_IT = ("executor", "executor_args")


def experiment_description(recipe: Recipe) -> dict[str, Any]:
    """Return the description of a recipe without what says who runs it.

    The executor and its device are left out. A framework's own optimizer is described by its name alone, as another
    framework's optimizer of the same name takes its place with ``--framework``. Whether a key is fixed or mutable makes
    no difference. The seed belongs to the experiment.

    Returns:
        Descriptions by key, see :mod:`deep500.recipe.describe`.
    """
    described = {**recipe.description["fixed"], **recipe.description["mutable"]}
    for key in _WHO_RUNS_IT:
        described.pop(key, None)
    arguments = {name: value for name, value in described.pop("executor_kwargs", {}).items() if name != "device"}
    if arguments:
        described["executor_kwargs"] = arguments
    optimizer = recipe["optimizer"]
    if isinstance(optimizer, type) and framework_of(optimizer) is not None:
        described["optimizer"] = {"$optimizer": optimizer.__name__}
    return described


def experiment_hash(recipe: Recipe) -> str:
    """Return the SHA-256 of :func:`experiment_description`: equal for a recipe under every framework.

    Any other change of the configuration changes it, the seed's too.
    """
    return hash_description(experiment_description(recipe))
