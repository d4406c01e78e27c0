"""``deep500 fleet trace``: its verbs, each in a file of its own."""

from __future__ import annotations

from deep500.cli.fleet.groups import new_group
from deep500.cli.fleet.trace_generate import GENERATE_EXAMPLES, trace_generate_command
from deep500.cli.fleet.trace_report import REPORT_EXAMPLES, trace_report_command

__all__ = ["trace_app"]

TRACE_EXAMPLES = """\b
Examples:
  deep500 fleet trace report trace/
  deep500 fleet trace generate made/ --jobs 20000
"""

trace_app = new_group("Find out when the jobs of a cluster succeed or fail, and what goes with it.", TRACE_EXAMPLES)
trace_app.command(name="report", epilog=REPORT_EXAMPLES)(trace_report_command)
trace_app.command(name="generate", epilog=GENERATE_EXAMPLES)(trace_generate_command)
