"""Calling a scheduler's commands."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from deep500.core.errors import FleetError

__all__ = ["run_command"]

#: So long an answer is waited for.
_PATIENCE_S = 120


def run_command(
    command: list[str],
    absent: str,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    kept: tuple[int, ...] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a command of a scheduler and return what it said.

    Args:
        command: The command and its arguments; no shell sees them.
        absent: What to say and to do where there is no such command.
        folder: Where to run it.
        variables: Its environment; by default this process's.
        kept: Descriptors that it inherits, such as a lock that is to be held for as long as it runs.

    Raises:
        FleetError: There is no such command, or it does not answer in two minutes.
    """
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE_S,
            env=variables,
            pass_fds=kept,
            check=False,
        )
    except FileNotFoundError as error:
        raise FleetError(f"There is no {command[0]} here: {absent}") from error
    except subprocess.TimeoutExpired as error:
        raise FleetError(f"{command[0]} did not answer in {_PATIENCE_S} s; try again.") from error
