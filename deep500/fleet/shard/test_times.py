"""Reading recorded seconds of tests: PyTorch's statistics by build and configuration, and pytest-split's by test."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from deep500.core.errors import FleetError
from deep500.core.strict_json import parse_json
from deep500.core.texts import shown, shown_path
from deep500.fleet.input_report import InputReport, ProblemKind
from deep500.fleet.reader import head_of, text_of

__all__ = ["Recording", "is_distributed", "looks_like_test_times", "read_test_times"]


#: What may stand before the object: a mark of UTF-8, and blanks.
_BEFORE = b"\xef\xbb\xbf \t\r\n"


@dataclass(frozen=True)
class Recording:
    """The seconds of the tests of one configuration.

    Attributes:
        environment: The build; empty where the file knows of none.
        configuration: How its tests are run; empty where the file knows of none.
        seconds: Seconds by file, or by test, in the order of the file; ``None`` where they are no number from 0.
    """

    environment: str
    configuration: str
    seconds: Mapping[str, float | None]

    @property
    def name(self) -> str:
        """What it is called."""
        return " / ".join(part for part in (self.environment, self.configuration) if part) or "all"


def is_distributed(configuration: str) -> bool:
    """Whether the tests of a configuration run on several GPUs: its name contains ``distributed``."""
    return "distributed" in configuration


def looks_like_test_times(path: str | PathLike[str]) -> bool:
    """Whether a file looks like recorded seconds: an object of numbers, or of objects of objects of numbers."""
    given = Path(path)
    if not given.is_file() or not head_of(given).lstrip(_BEFORE).startswith((b"{", b"\xff\xfe", b"\xfe\xff")):
        return False
    try:
        content = parse_json(text_of(given, InputReport()))
    except ValueError:
        return False
    return isinstance(content, dict) and bool(content) and (_depth(content) in (1, 3))


def read_test_times(
    path: str | PathLike[str], report: InputReport, environment: str = "*", configuration: str = "*"
) -> list[Recording]:
    """Read recorded seconds.

    Args:
        path: A JSON file, compressed where its name ends with ``.gz``: build -> configuration -> file -> seconds, as
            PyTorch publishes them, or test -> seconds, as pytest-split keeps them.
        report: Counts what cannot be taken.
        environment: A pattern for the builds that are wanted.
        configuration: A pattern for the configurations that are wanted.

    Raises:
        FleetError: The file cannot be read, or nothing fits.
    """
    given = Path(path)
    try:
        content: Any = parse_json(text_of(given, report))
    except ValueError as error:
        raise FleetError(f"{shown_path(given)} is no JSON: {error}.") from error
    if not isinstance(content, dict) or not content:
        raise FleetError(f"{shown_path(given)} holds {shown(content)}; an object of seconds by test is needed.")
    source = str(given)
    if _depth(content) == 1:
        found = [Recording("", "", _seconds(content, source, report))]
    else:
        found = _nested(content, source, report)
    chosen = [
        recording
        for recording in found
        if fnmatch.fnmatchcase(recording.environment, environment)
        and fnmatch.fnmatchcase(recording.configuration, configuration)
        and recording.seconds
    ]
    report.rows[source] = sum(len(recording.seconds) for recording in chosen)
    report.formats[source] = "test times"
    if not chosen:
        names = ", ".join(shown(recording.name) for recording in found[:3])
        raise FleetError(
            f"No recording in {shown_path(given)} fits the build {shown(environment)} and the configuration "
            f"{shown(configuration)}; it has {len(found)}{f', such as {names}' if names else ''}."
        )
    return chosen


def _depth(content: Mapping[str, Any]) -> int:
    """Return how many objects stand around the first number; 0 where there is none."""
    for value in content.values():
        if isinstance(value, dict):
            below = _depth(value)
            if below:
                return below + 1
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            return 1
        else:
            return 0
    return 0


def _nested(content: Mapping[str, Any], source: str, report: InputReport) -> list[Recording]:
    found = []
    for environment, configurations in content.items():
        if not isinstance(configurations, dict):
            report.add(ProblemKind.MALFORMED, source, examples=[f"{environment}: {shown(configurations)}"])
            continue
        for configuration, times in configurations.items():
            if not isinstance(times, dict):
                report.add(ProblemKind.MALFORMED, source, examples=[f"{environment} / {configuration}: {shown(times)}"])
                continue
            found.append(Recording(environment, configuration, _seconds(times, source, report)))
    return found


def _seconds(times: Mapping[str, Any], source: str, report: InputReport) -> dict[str, float | None]:
    """Return the seconds; what is no number from 0 is counted, and its test stays with an unknown duration."""
    taken: dict[str, float | None] = {}
    for name, value in times.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            report.add(
                ProblemKind.MALFORMED, source, examples=[f"{name}: {shown(value)}"], effect="taken as unknown durations"
            )
            taken[name] = None
        else:
            taken[name] = float(value)
    return taken
