"""Deep500: write a network, an operator, an optimizer or a recipe once; run, validate and measure it everywhere.

``import deep500 as d5`` gives the public names. Each loads when it is first used, so that the import itself is cheap
and brings no framework.
"""

from __future__ import annotations

import importlib
from typing import Any

import lazy_loader

_load, _, _names = lazy_loader.attach_stub(__name__, __file__)

# The module of events under the name that recipes use; a stub can rename an attribute, a lazy loader cannot.
_ALIASES = {"training_events": "deep500.training.events"}

__all__ = sorted([*_names, *_ALIASES])


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _ALIASES:
        return _load(name)
    module = importlib.import_module(_ALIASES[name])
    globals()[name] = module
    return module


def __dir__() -> list[str]:
    """Return the public names."""
    return list(__all__)
