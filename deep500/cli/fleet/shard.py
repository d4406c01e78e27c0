"""``deep500 fleet shard``: its verbs, each in a file of its own."""

from __future__ import annotations

from deep500.cli.fleet.groups import new_group
from deep500.cli.fleet.shard_plan import PLAN_EXAMPLES, plan_command
from deep500.cli.fleet.shard_report import REPORT_EXAMPLES, report_command
from deep500.cli.fleet.shard_whatif import WHATIF_EXAMPLES, whatif_command

__all__ = ["shard_app"]

SHARD_EXAMPLES = """\b
Examples:
  deep500 fleet shard plan times.json --shards 3
  deep500 fleet shard whatif --example
  deep500 fleet shard report junit/ --max-gpus 2

\b
Tests say what they need with @pytest.mark.gpus(n); pytest --max-gpus N skips
what does not fit, and lists it as lost coverage.
"""

shard_app = new_group("Find out how many GPUs each test needs, and which runner should run it.", SHARD_EXAMPLES)
shard_app.command(name="plan", epilog=PLAN_EXAMPLES)(plan_command)
shard_app.command(name="whatif", epilog=WHATIF_EXAMPLES)(whatif_command)
shard_app.command(name="report", epilog=REPORT_EXAMPLES)(report_command)
