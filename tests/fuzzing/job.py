"""Damaging, running and counting."""

from __future__ import annotations

import collections
import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from tests.fuzzing.mutations import mutated
from tests.fuzzing.seeds import load_seeds
from tests.fuzzing.worker import serve

__all__ = ["FINDINGS", "Finding", "Summary", "run_job"]

#: How long one file may take, in seconds.
LIMIT_S = 10.0

#: Outcomes that are faults.
FINDINGS = ("crash", "hang", "error", "differs")


@dataclass(frozen=True)
class Finding:
    """What became of a damaged file."""

    seed: int
    source: str
    change: str
    framework: str
    outcome: str
    detail: str

    def __str__(self) -> str:
        """Return one line that says how to make it again."""
        return f"{self.seed} {self.source} {self.change} {self.framework}: {self.outcome}: {self.detail}"


class Summary:
    """Counts by outcome, and the faults."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.findings: list[Finding] = []

    def add(self, found: Finding) -> None:
        """Count an outcome."""
        self.counts[found.framework, found.outcome] += 1
        if found.outcome in FINDINGS:
            self.findings.append(found)


class _Worker:
    """A process that runs files, started anew when one ended it."""

    def __init__(self, framework: str) -> None:
        self._framework = framework
        self._process: Any = None

    def run(self, content: bytes) -> tuple[str, str]:
        if self._process is None:
            self._start()
        self._connection.send_bytes(content)
        phase = "load"
        while True:
            try:
                if not self._connection.poll(LIMIT_S):
                    self.stop()
                    return self._ended("hang", phase)
                kind, detail = self._connection.recv()
            except (EOFError, OSError):
                code = self.stop()
                return self._ended("crash", f"{phase}, exit code {code}")
            if kind != "phase":
                return kind, detail
            phase = detail

    def _ended(self, outcome: str, phase: str) -> tuple[str, str]:
        return ("ran", "the oracle ended") if phase.startswith("oracle") else (outcome, phase)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self._framework), daemon=True)
        self._process.start()
        theirs.close()
        if not self._connection.poll(120):
            raise RuntimeError(f"The worker of {self._framework} does not start.")
        self._connection.recv()

    def stop(self) -> int | None:
        if self._process is None:
            return None
        self._process.join(0.5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        code: int | None = self._process.exitcode
        self._connection.close()
        self._process = None
        return code


def run_job(
    seeds: Sequence[int], frameworks: Sequence[str] = (), every: int = 10, *, exports: bool = True
) -> Iterator[Finding]:
    """Damage files and run each under the reference, and some under other frameworks as well.

    Args:
        seeds: One seed for each file.
        frameworks: The other frameworks.
        every: Every how many files the other frameworks run one, in turn.
        exports: Whether exports of PyTorch are among the files.
    """
    files = sorted(load_seeds(exports=exports).items())
    workers = {name: _Worker(name) for name in ("reference", *frameworks)}
    try:
        for position, seed in enumerate(seeds):
            source, content = files[seed % len(files)]
            damaged, change = mutated(content, seed)
            chosen = ["reference"]
            if frameworks and position % every == 0:
                chosen.append(frameworks[position // every % len(frameworks)])
            for framework in chosen:
                outcome, detail = workers[framework].run(damaged or b"\0")
                yield Finding(seed, source, change, framework, outcome, detail)
    finally:
        for worker in workers.values():
            worker.stop()
