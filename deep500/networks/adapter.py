"""The package of an adapter: its names load when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lazy_loader

from deep500.core.requirement import Requirement

__all__ = ["attach_adapter"]


def attach_adapter(
    requirement: Requirement, package: str, file: str, before_load: Callable[[], None] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of an adapter's package.

    The names of its ``.pyi`` file are imported when they are first used; using one while the framework is missing
    raises :class:`MissingDependencyError` with the extra to install.

    Args:
        requirement: The framework.
        package: The adapter's ``__name__``.
        file: The adapter's ``__file__``.
        before_load: Called before the first name is loaded, to start the framework.
    """
    load, directory, names = lazy_loader.attach_stub(package, file)

    def load_checked(name: str) -> Any:
        if name in names:
            requirement.require(package)
            if before_load is not None:
                before_load()
        return load(name)

    return load_checked, directory, names
