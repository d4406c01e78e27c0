"""``deep500 fleet compat``: its verbs, each in a file of its own."""

from __future__ import annotations

from deep500.cli.fleet.compat_collect import COLLECT_EXAMPLES, collect_command
from deep500.cli.fleet.compat_diff import DIFF_EXAMPLES, diff_command
from deep500.cli.fleet.compat_plan import PLAN_EXAMPLES, plan_command
from deep500.cli.fleet.compat_run import RUN_EXAMPLES, run_command
from deep500.cli.fleet.groups import new_group

__all__ = ["compat_app"]

COMPAT_EXAMPLES = """\b
Examples:
  deep500 fleet compat plan matrix.yaml --campaign november
  deep500 fleet compat run november --on local
  deep500 fleet compat collect november --page november.html
  deep500 fleet compat diff august november
"""

compat_app = new_group(
    "Find out which frameworks, versions, devices and ranks work together on these machines.", COMPAT_EXAMPLES
)
compat_app.command(name="plan", epilog=PLAN_EXAMPLES)(plan_command)
compat_app.command(name="run", epilog=RUN_EXAMPLES)(run_command)
compat_app.command(name="collect", epilog=COLLECT_EXAMPLES)(collect_command)
compat_app.command(name="diff", epilog=DIFF_EXAMPLES)(diff_command)
