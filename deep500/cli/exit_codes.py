"""What the command's exit codes mean; :mod:`deep500.cli.main` tells it in words."""

from __future__ import annotations

__all__ = ["FAILED", "FAULT", "INTERRUPTED", "MISTAKE", "PASSED", "TERMINATED", "UNREAD"]

PASSED, FAILED, MISTAKE, FAULT, INTERRUPTED, UNREAD, TERMINATED = 0, 1, 2, 70, 130, 141, 143
