"""JUnit XML: what test runners of any language write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, ParseError

from deep500.core.errors import FleetError
from deep500.core.texts import message_of
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.libraries import DEFUSEDXML
from deep500.fleet.reader import Reader, head_text, opened
from deep500.fleet.readers._rows import Rows
from deep500.fleet.readers._values import number_of, seconds_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["JunitReader"]

_ROOT = re.compile(r"<testsuites?[\s/>]")
_GPUS_NEEDED = re.compile(r"needs (\d+) GPUs?\b")

#: Runs before the last one of a test that passed in the end, and runs after the first one of a test that never did.
_BEFORE = ("flakyFailure", "flakyError", "rerun")
_AFTER = ("rerunFailure", "rerunError")

#: Properties of a test that say how many GPUs it had; the first that is there counts: what ran, not what was declared.
_GPUS = ("gpus_used", "gpus", "gpus_declared")

_DEEPEST = 100


class JunitReader(Reader):
    """JUnit XML: an outcome for each run of a test.

    The key is ``class::name``. The group is the suite's name and timestamp, or the file where there is no timestamp.
    A test that was skipped is ``missing``, one that was skipped since it "needs N GPUs" ``no_match`` (label
    ``gpus_needed``); one that failed as it was expected to has passed. Every run of a test that was run again
    (``rerunFailure``, ``flakyFailure`` of Surefire) is an outcome, numbered by ``attempt``. The time is the label
    ``duration_s``: files do not tell when a test began. GPUs are the properties ``gpus_used``, ``gpus`` and
    ``gpus_declared`` of a test, the first of them that is there.
    """

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether it is XML and soon opens a ``testsuite`` or ``testsuites``."""
        text = head_text(head).lstrip()
        return text.startswith("<") and _ROOT.search(text) is not None

    def read(self, path: Path, report: InputReport) -> pl.DataFrame:
        """Return the tests; of a file that breaks off those before the break."""
        DEFUSEDXML.require("Reading JUnit XML")
        suites = _Suites(path, report)
        with opened(path) as file:
            for event, element in _events(file, suites):
                suites.begin(element) if event == "start" else suites.end(element)
        suites.close()
        return suites.rows.frame()


def _events(file: IO[bytes], suites: _Suites) -> Iterator[tuple[str, Element]]:
    """Yield what the parser meets; a fault of the document ends it and is counted."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    try:
        yield from iterparse(file, events=("start", "end"))
    except ParseError as error:
        suites.rows.fault(ProblemKind.MALFORMED, f"{message_of(error)}; what stands before was taken")
    except DefusedXmlException as error:
        raise FleetError(f"It defines entities, which no JUnit file needs: {message_of(error)}") from error
    except (LookupError, ValueError) as error:  # an encoding that is named and not known
        if isinstance(error, FleetError):
            raise
        raise FleetError(f"It is no XML that can be read: {message_of(error)}") from error


class _Suites:
    """The suites around what is being read, and the outcomes so far."""

    def __init__(self, path: Path, report: InputReport) -> None:
        self.rows = Rows(
            path, report, suite=str, file=str, duration_s=float, attempt=float, gpus_declared=float, gpus_used=float,
            gpus_needed=float,
        )  # fmt: skip
        self._path = path
        self._open: list[Element] = []
        self._suites: list[tuple[Element, list[int]]] = []
        self._runs: dict[tuple[str, str], int] = {}

    def begin(self, element: Element) -> None:
        """Go into an element."""
        if len(self._open) > _DEEPEST:
            raise FleetError(f"It is nested more than {_DEEPEST} elements deep, which no JUnit file is.")
        self._open.append(element)
        if element.tag in ("testsuite", "testsuites"):
            self._suites.append((element, [0]))

    def end(self, element: Element) -> None:
        """Come out of an element; what was read of it is forgotten, so that files of any size are read."""
        self._open.pop()
        if element.tag == "testcase":
            for _, count in self._suites:
                count[0] += 1
            self._take(element)
        elif element.tag in ("testsuite", "testsuites"):
            self._check_count(*self._suites.pop())
        elif any(parent.tag == "testcase" for parent in self._open):
            return  # belongs to a test that is not at its end
        if self._open:
            self._open[-1].remove(element)

    def close(self) -> None:
        """Take what was open where the document broke off."""
        for suite, count in reversed(self._suites):
            self._check_count(suite, count)

    def _check_count(self, suite: Element, count: list[int]) -> None:
        said = suite.get("tests", "")
        if suite.tag == "testsuite" and said.isdecimal() and len(said) < 12:
            for _ in range(min(int(said) - count[0], 100_000)):
                self.rows.fault(ProblemKind.INCOMPLETE, f"{self._suite()} says {said} tests and holds {count[0]}")

    def _suite(self) -> str:
        names = [suite.get("name") or "" for suite, _ in self._suites if suite.tag == "testsuite"]
        return "/".join(filter(None, names)) or "tests"

    def _group(self) -> str:
        stamps = [stamp for suite, _ in self._suites if (stamp := suite.get("timestamp"))]
        return f"{self._suite()} {stamps[-1]}" if stamps else str(self._path)

    def _take(self, test: Element) -> None:
        name, owner = test.get("name") or "", test.get("classname") or ""
        key = "::".join(filter(None, (owner, name)))
        status, cause, more = _status(test)
        properties = {item.get("name"): item.get("value") for parent in test.findall("properties") for item in parent}
        fields: dict[str, Any] = {
            "suite": self._suite(),
            "file": test.get("file"),
            "gpus": next((properties[name] for name in _GPUS if properties.get(name) is not None), None),
            "gpus_declared": properties.get("gpus_declared"),
            "gpus_used": properties.get("gpus_used"),
        }
        for run in test.iter():
            if run.tag in _BEFORE:
                self._add(key, "failed", _message(run), run, fields)
        own = {**fields, **more, "started": test.get("timestamp")}
        self._add(key, status, cause, test, own)
        for run in test.iter():
            if run.tag in _AFTER:
                self._add(key, "failed", _message(run), run, fields)

    def _add(self, key: str, status: str, cause: str | None, run: Element, fields: dict[str, Any]) -> None:
        group = self._group()
        attempt = self._runs[key, group] = self._runs.get((key, group), 0) + 1
        duration = (run.get("time") or "").replace(",", "") or None  # a separator of thousands, as Surefire writes it
        times = _times(fields.get("started"), number_of(duration), number_of(fields["gpus"]))
        values = {**fields, "cause": cause, "duration_s": duration, "attempt": attempt, **times}
        self.rows.add(key, group, status, key, **values)


def _times(started: object, duration: float | None, gpus: float | None) -> dict[str, float | None]:
    """Return what a duration says: the end where the beginning is known, and the cost."""
    begin = seconds_of(started)
    if duration is None or duration < 0:
        return {}
    return {"ended": None if begin is None else begin + duration, "cost": duration / 3600.0 * (gpus or 1.0)}


def _status(test: Element) -> tuple[str, str | None, dict[str, Any]]:
    """Return status, cause and further labels of a test's own run."""
    for tag in ("failure", "error"):
        found = test.find(tag)
        if found is not None:
            said = _message(found)
            return "failed", said if tag == "failure" else f"error: {said or 'no message'}", {}
    skipped = test.find("skipped")
    if skipped is None:
        return "passed", None, {}
    said = _message(skipped) or ""
    if skipped.get("type") == "pytest.xfail":
        return "passed", f"failed as expected: {said}".rstrip(": "), {}
    needs = _GPUS_NEEDED.match(said)
    if needs is not None:
        return "no_match", said, {"gpus_needed": needs.group(1)}
    return "missing", f"skipped: {said}".rstrip(": "), {}


def _message(element: Element) -> str | None:
    """Return the first line of what an element says."""
    said = element.get("message") or element.text or element.get("type") or ""
    return said.strip().split("\n", 1)[0][:500] or None
