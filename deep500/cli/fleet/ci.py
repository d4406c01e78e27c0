"""``deep500 fleet ci``: its verbs, each in a file of its own."""

from __future__ import annotations

from deep500.cli.fleet.groups import new_group

__all__ = ["ci_app"]

CI_EXAMPLES = """\b
Examples:
  deep500 fleet ci correlate history.tsv
"""

ci_app = new_group("Find out which jobs of continuous integration tell nothing new.", CI_EXAMPLES)
