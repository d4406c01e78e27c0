"""Adapters: one folder a framework, the same file names in each."""

from deep500.core.registry import Registry

__all__ = ["FRAMEWORKS"]

#: The adapters. Each is a package with ``from_model``, the framework's optimizers, and ``REQUIREMENT``.
FRAMEWORKS = Registry("framework", "deep500.frameworks", whole_module=True)
