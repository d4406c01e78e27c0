"""Adapters: one folder a framework, the same file names in each."""

from __future__ import annotations

from typing import Any

from deep500.core.errors import UnsupportedOperatorError
from deep500.core.registry import Registry
from deep500.core.requirement import Requirement

__all__ = ["FRAMEWORKS", "frameworks_offering", "installed_frameworks", "offered"]

#: The adapters. Each is a package with ``from_model``, the framework's optimizers, and ``REQUIREMENT``.
FRAMEWORKS = Registry("framework", "deep500.frameworks", whole_module=True)


def frameworks_offering(name: str) -> list[str]:
    """Return the frameworks, installed or not, whose adapter has something, such as ``"custom_op"``."""
    return [framework for framework in FRAMEWORKS.names() if name in dir(FRAMEWORKS.get(framework))]


def installed_frameworks(offering: str = "from_model") -> list[str]:
    """Return the frameworks that are installed, by name.

    Args:
        offering: What the adapter must have.
    """
    found = []
    for name in frameworks_offering(offering):
        requirement = getattr(FRAMEWORKS.get(name), "REQUIREMENT", None)
        if not isinstance(requirement, Requirement) or requirement.is_installed():
            found.append(name)
    return found


def offered(framework: str, name: str) -> Any:
    """Return something that an adapter has, such as ``"custom_op"``.

    Args:
        framework: Name of the framework.
        name: Name of the function or class.

    Raises:
        MissingDependencyError: The framework is not installed.
        UnknownNameError: There is no such framework.
        UnsupportedOperatorError: The adapter does not have it.
    """
    adapter = FRAMEWORKS.get(framework)
    if name not in dir(adapter) and not hasattr(adapter, name):
        others = ", ".join(installed_frameworks(name)) or "none"
        raise UnsupportedOperatorError(
            f"The adapter of {framework} has no {name}. Installed frameworks that have it: {others}."
        )
    return getattr(adapter, name)
