"""``deep500 fleet ci``: its verbs, each in a file of its own."""

from __future__ import annotations

from deep500.cli.fleet.ci_correlate import CORRELATE_EXAMPLES, correlate_command
from deep500.cli.fleet.ci_generate import GENERATE_EXAMPLES, generate_command
from deep500.cli.fleet.ci_reduce import REDUCE_EXAMPLES, reduce_command
from deep500.cli.fleet.groups import new_group

__all__ = ["ci_app"]

CI_EXAMPLES = """\b
Examples:
  deep500 fleet ci correlate history.tsv                which jobs pass and fail together
  deep500 fleet ci reduce history.tsv --budget 0.3      which of them are enough
  deep500 fleet ci generate history.jsonl               a made-up history to try both on
"""

ci_app = new_group("Find out which jobs of continuous integration tell nothing new.", CI_EXAMPLES)
ci_app.command(name="correlate", epilog=CORRELATE_EXAMPLES)(correlate_command)
ci_app.command(name="reduce", epilog=REDUCE_EXAMPLES)(reduce_command)
ci_app.command(name="generate", epilog=GENERATE_EXAMPLES)(generate_command)
