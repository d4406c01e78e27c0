"""``deep500 fleet shard``: its verbs, each in a file of its own."""

from __future__ import annotations

from deep500.cli.fleet.groups import new_group

__all__ = ["shard_app"]

SHARD_EXAMPLES = """\b
Examples:
  deep500 fleet shard plan times.json --shards 3
"""

shard_app = new_group("Find out how many GPUs each test needs, and which runner should run it.", SHARD_EXAMPLES)
