"""Versions of what takes part in a run."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

from deep500._version import __version__

__all__ = ["versions_of_run"]


def versions_of_run(framework: str, framework_version: str) -> dict[str, str]:
    """Return the versions of Deep500, what it computes with, and other distributions whose plug-ins are loaded.

    Args:
        framework: Name of the framework.
        framework_version: Its version.
    """
    return {
        **_plugin_distributions(),
        "deep500": __version__,
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "onnx": importlib.metadata.version("onnx"),
        framework: framework_version,
    }


def _plugin_distributions() -> dict[str, str]:
    """Return the distributions with a plug-in that is imported; a plug-in is imported when it is first used."""
    points = importlib.metadata.entry_points()
    found = [
        point.dist
        for group in sorted(points.groups)
        if group.startswith("deep500.")
        for point in points.select(group=group)
        if point.module in sys.modules and point.dist is not None
    ]
    return {distribution.name: distribution.version for distribution in found}
