"""Measurements of many problems in one file, which is written anew after each of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from os import PathLike

from deep500._version import __version__
from deep500.core.errors import MeasurementError
from deep500.core.files import write_atomically
from deep500.core.texts import escaped, shown_path
from deep500.measure.results.document import Measurement
from deep500.measure.results.files import content_text, measurement_from_content, measurement_text, read_content

__all__ = ["Collection", "read_collection"]

#: The workloads of one measurement.
Workloads = tuple[str, ...]


class Collection:
    """Measurements of problems that are no one's alternatives, each with its own systems and processes.

    Attributes:
        title: What was measured, in a few words.
        planned: The workloads of each measurement that is planned, in order.
        measurements: The measurements so far, by their workloads.
        left_out: Why others could not be measured, by their workloads.
    """

    def __init__(self, title: str, planned: Iterable[Sequence[str]]) -> None:
        """Plan the measurements."""
        self.title = title
        self.planned: tuple[Workloads, ...] = tuple(map(tuple, planned))
        self.measurements: dict[Workloads, Measurement] = {}
        self.left_out: dict[Workloads, str] = {}
        # Encoded once: the file is written as often as there are measurements.
        self._texts: dict[Workloads, str] = {}

    def add(self, measurement: Measurement) -> None:
        """Add a measurement.

        Raises:
            MeasurementError: It was not planned, or cannot be written.
        """
        workloads = self._planned(measurement.design.workloads)
        self._texts[workloads] = measurement_text(measurement, self.title)
        self.measurements[workloads] = measurement
        self.left_out.pop(workloads, None)

    def leave_out(self, workloads: Sequence[str], reason: str) -> None:
        """Say why a measurement is missing.

        Raises:
            MeasurementError: It was not planned.
        """
        self.left_out[self._planned(workloads)] = reason

    def drop(self, workloads: Sequence[str]) -> None:
        """Forget a measurement, which will be taken anew."""
        key = self._planned(workloads)
        self.measurements.pop(key, None)
        self._texts.pop(key, None)

    def write(self, path: str | PathLike[str]) -> None:
        """Write all as a JSON file (``collection.schema.json``); it appears whole or not at all.

        Raises:
            FileWriteError: The file cannot be written.
        """
        content = {
            "schema_version": 1,
            "kind": "collection",
            "deep500": __version__,
            "title": self.title,
            "planned": [list(workloads) for workloads in self.planned],
            "left_out": [{"workloads": list(key), "reason": reason} for key, reason in self.left_out.items()],
            "measurements": [],
        }
        envelope = content_text(lambda: content, "collection", path)
        texts = ",\n".join(text.rstrip("\n") for text in self._texts.values())
        empty = f"{json.dumps('measurements')}: []\n}}\n"
        assert envelope.endswith(empty)
        filled = f"{json.dumps('measurements')}: [\n{texts}\n]\n}}\n" if texts else empty
        write_atomically(path, envelope.removesuffix(empty) + filled, "collection")

    def _planned(self, workloads: Sequence[str]) -> Workloads:
        key = tuple(workloads)
        if key not in self.planned:
            raise MeasurementError(
                f"{', '.join(map(escaped, key))} is not among the {len(self.planned)} measurements that were planned."
            )
        return key


def read_collection(path: str | PathLike[str]) -> Collection:
    """Read a collection, and check every measurement in all that it says.

    Raises:
        MeasurementError: There is no such file, it is another document or of a newer version, breaks its schema, or one
            of its measurements does, or contradicts itself.
    """
    content, _ = read_content(path, "collection")
    found = Collection(content["title"], content["planned"])
    for number, entry in enumerate(content["measurements"], 1):
        found.add(measurement_from_content(entry, f"{shown_path(path)}, measurement {number},"))
    for entry in content["left_out"]:
        found.leave_out(entry["workloads"], entry["reason"])
    return found
