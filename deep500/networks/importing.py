"""Networks from a framework's own models: each adapter's ``model_import`` knows how its framework exports them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from deep500.core.errors import InvalidNetworkError, UnsupportedOperatorError
from deep500.core.requirement import Requirement

if TYPE_CHECKING:
    from deep500.networks.network import Network

__all__ = ["import_network", "renamed"]

#: Where the adapters are; they are found by name and loaded when a model is imported.
_ADAPTERS = "deep500.frameworks"


def import_network(framework: str, model: Any, *arguments: Any, **options: Any) -> Network:
    """Return what a framework's model computes as a network.

    Args:
        framework: Name of the adapter.
        model: The framework's model.
        *arguments: What the adapter's ``import_model`` takes besides.
        **options: Its options.

    Raises:
        InvalidNetworkError: The framework cannot express the model in ONNX.
        MissingDependencyError: The framework, or a package that converts its models, is not installed.
        UnsupportedOperatorError: The adapter cannot import models.
    """
    adapter = importlib.import_module(f"{_ADAPTERS}.{framework}")
    requirement = getattr(adapter, "REQUIREMENT", None)
    if isinstance(requirement, Requirement):
        requirement.require(f"Importing a model of {framework}")
    if "import_model" not in dir(adapter):
        raise UnsupportedOperatorError(f"The adapter of {framework} has no models that can be imported.")
    network: Network = adapter.import_model(model, *arguments, **options)
    return network


def renamed(found: list[str], names: dict[str, str] | None) -> dict[str, str]:
    """Return the new name of each input and output, the old one where no other is asked for.

    Args:
        found: The inputs and outputs, as the framework names them.
        names: The new names by the old ones.

    Raises:
        InvalidNetworkError: A name is none of them, or two would be the same.
    """
    given = dict(names or {})
    for name in given:
        if name not in found:
            raise InvalidNetworkError(
                f"names has {name!r}, which is no input or output of the model. There are: {', '.join(found)}."
            )
    chosen = {name: given.get(name, name) for name in found}
    if len(set(chosen.values())) < len(chosen):
        raise InvalidNetworkError(f"names gives one name to several inputs or outputs: {given}.")
    return chosen
