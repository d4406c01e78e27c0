"""``deep500 fleet compat``: its verbs, each in a file of its own."""

from __future__ import annotations

from deep500.cli.fleet.groups import new_group

__all__ = ["compat_app"]

COMPAT_EXAMPLES = """\b
Examples:
  deep500 fleet compat plan matrix.yaml
"""

compat_app = new_group(
    "Find out which frameworks, versions, devices and ranks work together on these machines.", COMPAT_EXAMPLES
)
