"""Modules that are already imported, for probes that import none."""

from __future__ import annotations

import sys
from types import ModuleType

from deep500.measure.environment.system import UnreadableError

__all__ = ["loaded"]


def loaded(name: str) -> ModuleType:
    """Return a module that this process has imported.

    Raises:
        UnreadableError: It has not; it is not imported for this.
    """
    module = sys.modules.get(name)
    if module is None:
        raise UnreadableError(f"{name} is not imported in this process, and is not imported for this record")
    return module
