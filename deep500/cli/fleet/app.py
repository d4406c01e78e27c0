"""``deep500 fleet``: campaigns over machines, versions and test jobs."""

from __future__ import annotations

from deep500.cli.fleet.ci import ci_app
from deep500.cli.fleet.compat import compat_app
from deep500.cli.fleet.groups import new_group
from deep500.cli.fleet.read import READ_EXAMPLES, read_command
from deep500.cli.fleet.shard import shard_app
from deep500.cli.fleet.trace import trace_app

__all__ = ["fleet_app"]

FLEET_EXAMPLES = """\b
Examples:
  deep500 fleet compat plan matrix.yaml          what works here, in every combination
  deep500 fleet ci reduce history.tsv            which jobs tell nothing new
  deep500 fleet shard plan times.json --shards 3 which runner runs which tests
  deep500 fleet trace report trace/              when jobs succeed or fail
  deep500 fleet read results/ --output all.jsonl outcomes of any format as one table
"""

fleet_app = new_group("Learn which differences are real across machines, versions and test jobs.", FLEET_EXAMPLES)
fleet_app.command(name="read", epilog=READ_EXAMPLES)(read_command)
for name, part in (("compat", compat_app), ("ci", ci_app), ("shard", shard_app), ("trace", trace_app)):
    fleet_app.add_typer(part, name=name)
