"""``deep500 fleet trace``: its verbs, each in a file of its own."""

from __future__ import annotations

from deep500.cli.fleet.groups import new_group

__all__ = ["trace_app"]

TRACE_EXAMPLES = """\b
Examples:
  deep500 fleet trace report trace/
"""

trace_app = new_group("Find out when the jobs of a cluster succeed or fail, and what goes with it.", TRACE_EXAMPLES)
