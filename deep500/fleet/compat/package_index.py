"""What a package index offers, asked through pip, so that its own configuration and mirrors count."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from deep500.core.texts import one_line

__all__ = ["Offer", "PackageIndex"]

#: Longest time of one question.
_TIMEOUT_S = 120.0

#: What pip says of an index that it cannot ask. A page that is not there (404) is an answer.
_UNREACHABLE = re.compile(r"Retrying \(|Could not fetch URL (?!.*\b404\b)|Skipping page .* because")


@dataclass(frozen=True)
class Offer:
    """What is offered of a distribution for one version of Python.

    Attributes:
        versions: The versions, newest first.
        fault: Why there may be more; ``None`` when these are all.
    """

    versions: tuple[str, ...]
    fault: str | None = None


class PackageIndex:
    """Asks each question once."""

    def __init__(self, offline: bool = False) -> None:
        """Say whether to ask nothing at all."""
        self._offline = offline
        self._answers: dict[tuple[str, ...], Offer] = {}

    def offer(self, distribution: str, python: str, options: Sequence[str] = (), pre: bool = False) -> Offer:
        """Return what is offered.

        Args:
            distribution: Of what.
            python: For which version of Python, on this kind of machine.
            options: Pip's options, lines of a requirements file.
            pre: Whether versions before a release count.
        """
        if self._offline:
            return Offer((), "it was not asked (--offline)")
        words = [word for line in options for word in shlex.split(line)]
        words += ["--pre"] if pre and "--pre" not in words else []
        question = (distribution, python, *words)
        if question not in self._answers:
            self._answers[question] = _asked(distribution, python, words)
        return self._answers[question]


def _asked(distribution: str, python: str, words: Sequence[str]) -> Offer:
    command = [sys.executable, "-m", "pip", "index", "versions", "-v", "--retries", "1", "--timeout", "15"]
    command += ["--python-version", python, *words, distribution]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Offer((), f"pip did not answer within {_TIMEOUT_S:g} s")
    except OSError as error:
        return Offer((), f"pip cannot be started: {error.strerror}")
    said = f"{done.stdout}\n{done.stderr}".splitlines()
    listed = next((line.partition(":")[2] for line in said if line.startswith("Available versions:")), "")
    versions = tuple(version.strip() for version in listed.split(",") if version.strip())
    fault = next((line for line in said if _UNREACHABLE.search(line)), None)
    if fault is None and not versions and not any("No matching distribution" in line for line in said):
        fault = next((line for line in reversed(said) if line.strip()), f"pip ended with code {done.returncode}")
    return Offer(versions, None if fault is None else one_line(fault)[:300])
