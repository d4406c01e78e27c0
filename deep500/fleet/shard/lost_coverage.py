"""What a run of tests lost for want of GPUs, and which tests declare other GPUs than they use."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from deep500.core.texts import counted
from deep500.fleet.shard.wording import duration

__all__ = ["PROPERTIES", "GpuTest", "LostCoverage", "TestPhase"]

#: The properties of a test, in pytest's reports and in JUnit's files: declared with the mark, used in truth and who saw
#: it, and, where the test did not run for that reason, needed and given.
PROPERTIES = ("gpus_declared", "gpus_used", "gpus_used_by", "gpus_needed", "gpus_given")


class TestPhase(Protocol):
    """What is needed of pytest's report of a phase of a test."""

    nodeid: str
    duration: float
    user_properties: list[tuple[str, object]]

    @property
    def when(self) -> str | None:
        """Which phase."""

    @property
    def outcome(self) -> str:
        """What came of it."""


@dataclass
class GpuTest:
    """A test that has to do with GPUs.

    Attributes:
        name: Its node id.
        declared: How many GPUs the mark says.
        used: How many it used.
        used_by: What saw that.
        may_be_more: Whether it may have used more.
        needed: How many it needs, where it did not run.
        given: How many there were, where it did not run.
        passed: Whether it ran to its end.
        seconds: How long it took.
    """

    name: str
    declared: int | None = None
    used: int | None = None
    used_by: str | None = None
    may_be_more: bool = False
    needed: int | None = None
    given: int | None = None
    passed: bool = False
    seconds: float = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether it did not run because GPUs lack."""
        return self.given is not None

    @property
    def is_over_declared(self) -> bool:
        """Whether it ran to its end with fewer GPUs than it declared."""
        return self.passed and not self.may_be_more and self.used is not None and self.used < (self.declared or 0)

    @property
    def is_under_declared(self) -> bool:
        """Whether it used more than it declared."""
        return self.used is not None and self.used > (self.declared or 0)


class LostCoverage:
    """Takes pytest's reports, from this process or from workers, and tells what was lost.

    Attributes:
        tests: Those that have to do with GPUs, by name.
        durations: Seconds that tests took at other times, by name.
        ran: Whether tests ran; else they were only collected.
        not_collected: What could not be collected: files or folders.
        stopped: What ended the session before its time; ``None`` where nothing did.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._names: set[str] = set()
        self.tests: dict[str, GpuTest] = {}
        self.durations: dict[str, float] = {}
        self.ran = True
        self.not_collected: list[str] = []
        self.stopped: str | None = None

    @property
    def incomplete(self) -> str | None:
        """Why more may be lost than is listed; ``None`` where all tests are known."""
        failed = [f"{', '.join(self.not_collected)} could not be collected"] if self.not_collected else []
        return "; ".join([*failed, *([self.stopped] if self.stopped else [])]) or None

    @property
    def total(self) -> int:
        """How many tests there were."""
        return len(self._names)

    def observe(self, report: TestPhase) -> None:
        """Take a report."""
        self._names.add(report.nodeid)
        given: dict[str, Any] = {pair[0]: pair[1] for pair in report.user_properties if pair[0] in PROPERTIES}
        if not given:
            return
        test = self.tests.setdefault(report.nodeid, GpuTest(report.nodeid))
        test.seconds += report.duration
        test.declared = given.get("gpus_declared")
        test.used = given.get("gpus_used")
        seen = given.get("gpus_used_by")
        test.used_by, test.may_be_more = seen, bool(seen and seen.endswith("or more"))
        test.needed, test.given = given.get("gpus_needed"), given.get("gpus_given")
        if report.when == "call":
            test.passed = report.outcome == "passed"

    def expect(self, name: str, declared: int | None, given: int) -> None:
        """Take a test that was only collected."""
        self._names.add(name)
        self.ran = False
        if declared is not None:
            lost = declared > given
            self.tests[name] = GpuTest(name, declared, needed=declared if lost else None, given=given if lost else None)

    @property
    def lost(self) -> list[GpuTest]:
        """The tests that did not run, those that need most first."""
        return sorted((t for t in self.tests.values() if t.is_lost), key=lambda t: (-(t.needed or 0), t.name))

    @property
    def over_declared(self) -> list[GpuTest]:
        """The tests that need fewer GPUs than they say."""
        return sorted((t for t in self.tests.values() if t.is_over_declared), key=lambda t: t.name)

    @property
    def under_declared(self) -> list[GpuTest]:
        """The tests that need more GPUs than they say."""
        return sorted((t for t in self.tests.values() if t.is_under_declared), key=lambda t: t.name)

    def measured(self) -> dict[str, float]:
        """Return how long tests took that ran now, by name."""
        return {test.name: round(test.seconds, 6) for test in self.tests.values() if test.passed}

    def to_dict(self, given: int, source: str) -> dict[str, Any]:
        """Return all of it as what JSON can hold.

        Args:
            given: How many GPUs there are.
            source: What says so.
        """
        lost = self.lost
        known = [self.durations[t.name] for t in lost if t.name in self.durations]
        is_unknown = self.incomplete is not None and not self._names
        return {
            "ran": self.ran and not is_unknown,
            "incomplete": self.incomplete,
            "tests": self.total,
            "gpus_given": given,
            "gpus_given_by": source,
            # Of tests that nobody knows it is not known either which are lost, which is not that none is.
            "lost": None if is_unknown else [self._entry(test) for test in lost],
            "lost_by_gpus": _by_number(t.needed for t in lost),
            "lost_duration_s": sum(known) if known else None,
            "lost_durations_known": len(known),
            "executed_by_gpus_used": _by_number(t.used for t in self.tests.values() if not t.is_lost),
            "over_declared": [_contradiction(t) for t in self.over_declared],
            "under_declared": [_contradiction(t) for t in self.under_declared],
        }

    def json(self, given: int, source: str) -> str:
        """Return all of it as JSON."""
        return json.dumps(self.to_dict(given, source), indent=2) + "\n"

    def lines(self, given: int, source: str) -> Iterator[str]:
        """Yield what a person should read; nothing where nothing is lost and no test contradicts its mark."""
        lost = self.lost
        if self.incomplete is not None:
            yield f"more may be lost than is known: {self.incomplete}"
        if lost:
            verb = "did not run" if self.ran else "would not run"
            are = f"{given} given by {source}"
            whole = f"{len(lost)} of {counted(self.total, 'test')}"
            yield f"{whole} {verb} because they need more GPUs than there are ({are})"
        for number in sorted({t.needed or 0 for t in lost}, reverse=True):
            tests = [t for t in lost if t.needed == number]
            gpus = counted(number, "GPU")
            yield f"needs {gpus}: {counted(len(tests), 'test')}, {self._duration(tests)}"
            yield from (f"  {t.name}{self._own_duration(t)}" for t in tests)
        for test in self.over_declared:
            yield f"over-declared: {test.name} declares {test.declared}, used {test.used} ({test.used_by})"
        for test in self.under_declared:
            says = "declares none" if test.declared is None else f"declares {test.declared}"
            yield f"under-declared: {test.name} {says}, used {test.used} ({test.used_by})"

    def _entry(self, test: GpuTest) -> dict[str, Any]:
        own = self.durations.get(test.name)
        return {"test": test.name, "gpus": test.needed, "given": test.given, "duration_s": own}

    def _duration(self, tests: list[GpuTest]) -> str:
        known = [self.durations[t.name] for t in tests if t.name in self.durations]
        if not known:
            return "durations unknown"
        unknown = len(tests) - len(known)
        return duration(sum(known)) + (f" without {unknown} of unknown duration" if unknown else "")

    def _own_duration(self, test: GpuTest) -> str:
        return f" ({duration(self.durations[test.name])})" if test.name in self.durations else ""


def _by_number(numbers: Iterable[int | None]) -> Mapping[str, int]:
    counted = Counter("unknown" if number is None else str(number) for number in numbers)
    return dict(sorted(counted.items()))


def _contradiction(test: GpuTest) -> dict[str, Any]:
    return {"test": test.name, "declared": test.declared, "used": test.used, "used_by": test.used_by}
