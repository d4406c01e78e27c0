"""Result files: written whole or not at all, and read only when all that they say of themselves holds."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from deep500.core.errors import MeasurementError
from deep500.core.files import write_atomically
from deep500.core.strict_json import is_deep, parse_json
from deep500.core.texts import escaped, message_of, one_line, shown, shown_path
from deep500.measure.results.document import SCHEMA_VERSION, Measurement, MetricSamples, System
from deep500.measure.results.report import SCHEMA_VERSION as COMPARISON_VERSION
from deep500.measure.results.report import ComparisonReport, Source

__all__ = [
    "COMPARISON_SCHEMA_FILE",
    "MEASUREMENT_SCHEMA_FILE",
    "content_text",
    "measurement_from_content",
    "measurement_text",
    "read_comparison",
    "read_content",
    "read_measurement",
    "read_with_source",
    "write_comparison",
    "write_measurement",
]

#: JSON Schema of a measurement's file.
MEASUREMENT_SCHEMA_FILE = Path(__file__).with_name("measurement.schema.json")

#: JSON Schema of a comparison's file.
COMPARISON_SCHEMA_FILE = Path(__file__).with_name("comparison.schema.json")

#: Which schema, its version, and what makes such a file.
_KINDS = {
    "measurement": (MEASUREMENT_SCHEMA_FILE, SCHEMA_VERSION, "deep500 bench --output"),
    "comparison": (COMPARISON_SCHEMA_FILE, COMPARISON_VERSION, "deep500 compare --output"),
    "collection": (Path(__file__).with_name("collection.schema.json"), 1, "deep500 bench PROBLEM_SET --output"),
}


def read_measurement(path: str | PathLike[str]) -> Measurement:
    """Read a measurement, and check it in all that it says.

    Args:
        path: A file that :func:`write_measurement` wrote, here or elsewhere.

    Raises:
        MeasurementError: There is no such file, it is another document or of a newer version, it breaks its schema or
            contradicts itself, or a hash is not that of its content. The message says which, and where.
    """
    return read_with_source(path)[0]


def read_with_source(path: str | PathLike[str]) -> tuple[Measurement, Source]:
    """Read a measurement, and say of which bytes it is.

    Raises:
        MeasurementError: See :func:`read_measurement`.
    """
    content, data = read_content(path, "measurement")
    measurement = _checked(content, shown_path(path))
    return measurement, Source(fspath(path), hashlib.sha256(data).hexdigest())


def measurement_from_content(content: Mapping[str, Any], name: str) -> Measurement:
    """Return the measurement that a document holds, checked in all that it says.

    Args:
        content: The document, or the part of one that another schema describes.
        name: What messages call it.

    Raises:
        MeasurementError: It breaks its schema or contradicts itself, or a hash is not that of its content.
    """
    problem = _schema_problem(content, "measurement")
    if problem is not None:
        raise MeasurementError(f"{name} is no valid measurement: {problem}")
    return _checked(content, name)


def _checked(content: Mapping[str, Any], name: str) -> Measurement:
    measurement = Measurement.from_dict(content)
    for problem in (_contradiction(measurement), _wrong_hash(measurement, content)):
        if problem is not None:
            raise MeasurementError(f"{name} is refused: {problem}")
    return measurement


def write_measurement(measurement: Measurement, path: str | PathLike[str]) -> None:
    """Write a measurement as a JSON file; it appears whole or not at all, and replaces an older one.

    What cannot be read again is not written.

    Raises:
        MeasurementError: Samples are not finite, or the measurement contradicts itself or its schema.
        FileWriteError: The file cannot be written.
    """
    write_atomically(path, measurement_text(measurement, path), "measurement")


def measurement_text(measurement: Measurement, path: str | PathLike[str]) -> str:
    """Return the content of a measurement's file, in which nothing stands that cannot be read again.

    Args:
        measurement: The measurement.
        path: Where it is going to, for messages.

    Raises:
        MeasurementError: Samples are not finite, or the measurement contradicts itself or its schema.
    """
    problem = _unwritable(measurement)
    if problem is not None:
        raise MeasurementError(f"The measurement cannot be written to {shown_path(path)}: {problem}")
    return content_text(measurement.to_dict, "measurement", path)


def read_comparison(path: str | PathLike[str]) -> ComparisonReport:
    """Read a comparison. One without its base, or whose base has no absolute value, is refused.

    Raises:
        MeasurementError: There is no such file, it is another document or of a newer version, or breaks its schema.
    """
    return ComparisonReport.from_dict(read_content(path, "comparison")[0])


def write_comparison(report: ComparisonReport, path: str | PathLike[str]) -> None:
    """Write a comparison as a JSON file; it appears whole or not at all, and replaces an older one.

    Raises:
        MeasurementError: The report breaks its schema.
        FileWriteError: The file cannot be written.
    """
    write_atomically(path, content_text(report.to_dict, "comparison", path), "comparison")


def content_text(content_of: Callable[[], dict[str, Any]], kind: str, path: str | PathLike[str]) -> str:
    """Return a document as the text of a file, with a line for each of its keys.

    Args:
        content_of: Returns the document.
        kind: Which document it is.
        path: Where it is going to, for messages.

    Raises:
        MeasurementError: It breaks its schema, or cannot be said in JSON.
    """
    try:
        content = content_of()
        # A key a line: the encoder is far slower where it indents, and a sample a line is not to be read anyway.
        lines = [f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in content.items()]
        problem = "it is nested too deeply" if is_deep(content) else _schema_problem(content, kind)
    except (TypeError, ValueError, RecursionError) as error:  # a type that JSON lacks, in an identity for example
        raise MeasurementError(f"The {kind} cannot be written to {shown_path(path)}: {message_of(error)}") from error
    if problem is not None:
        raise MeasurementError(f"The {kind} cannot be written to {shown_path(path)}: {problem}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_content(path: str | PathLike[str], kind: str) -> tuple[dict[str, Any], bytes]:
    """Return a document that keeps its schema, and the bytes that it was read from.

    Args:
        path: The file.
        kind: Which document is needed.

    Raises:
        MeasurementError: There is no such file, it is another document or of a newer version, or breaks its schema.
    """
    name = shown_path(path)
    maker = _KINDS[kind][2]
    try:
        data = Path(path).read_bytes()
        text = data.decode("utf-8")
    except FileNotFoundError as error:
        raise MeasurementError(f"{name} does not exist. Give the path of a {kind} ({maker}).") from error
    except IsADirectoryError as error:
        raise MeasurementError(f"{name} is a folder. Give the path of a {kind} in it ({maker}).") from error
    except UnicodeDecodeError as error:
        raise MeasurementError(f"{name} is no text in UTF-8, so it is no {kind} ({maker}).") from error
    except (OSError, ValueError) as error:  # no permission, a name that no file can have
        raise MeasurementError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    content = _parsed(text, name, kind)
    problem = _wrong_kind(content, kind)
    if problem is not None:
        raise MeasurementError(f"{name} {problem}. A {kind} is needed ({maker}).")
    version = content.get("schema_version")
    known = _KINDS[kind][1]
    if isinstance(version, int) and not isinstance(version, bool) and version > known:
        raise MeasurementError(
            f"{name} has schema version {shown(version)}; this Deep500 knows versions up to {known}. Use the Deep500 "
            "that wrote it, or a newer one."
        )
    problem = _schema_problem(content, kind)
    if problem is not None:
        raise MeasurementError(f"{name} is no valid {kind}: {problem}")
    return content, data


def _parsed(text: str, name: str, kind: str) -> dict[str, Any]:
    if not text.strip():
        raise MeasurementError(f"{name} is empty. Give the path of a {kind} ({_KINDS[kind][2]}).")
    try:
        content = parse_json(text)
    except ValueError as error:
        raise MeasurementError(
            f"{name} is not valid JSON: {message_of(error)}. Give the path of a {kind} ({_KINDS[kind][2]})."
        ) from error
    if not isinstance(content, dict):
        raise MeasurementError(f"{name} holds {shown(content)} instead of an object, so it is no {kind}.")
    return content


def _wrong_kind(content: Mapping[str, Any], kind: str) -> str | None:
    """Return what a document is when it is not the one that is needed."""
    found = content.get("kind")
    if found == kind:
        return None
    if isinstance(found, str) and found in _KINDS:
        return f"is a {found} ({_KINDS[found][2]})"
    if found is not None:
        return f"is of the kind {shown(found)}, which Deep500 does not know"
    for keys, what in (
        ({"recipe", "fixed", "mutable"}, "is the result of a recipe (deep500 run)"),
        ({"sections", "isolation"}, "is an environment record (deep500 env --json)"),
        ({"benchmarks", "context"}, "looks like a file of Google Benchmark"),
        ({"benchmarks", "version"}, "looks like a file of pyperf"),
    ):
        if keys <= set(content):
            return what
    return "has no kind, so it is no result of Deep500"


def _schema_problem(content: Mapping[str, Any], kind: str) -> str | None:
    """Return where a document breaks its schema, and how."""
    from jsonschema.exceptions import best_match

    errors = list(_validator(kind).iter_errors(content))
    if not errors:
        return None
    error = best_match(errors)
    assert error is not None
    place = _place(error.absolute_path)
    message = error.message
    if len(message) > 200:  # it quotes the value
        rule = "additional properties" if error.validator == "additionalProperties" else error.validator
        message = f"{shown(error.instance)} breaks the rule {rule!r}: {shown(error.validator_value)}"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return one_line(f"{place}: {message}{more}" if place else f"{message}{more}")


@functools.cache
def _validator(kind: str) -> Any:
    """Return the validator of a schema; imported when the first file is read or written."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def items(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if rule == {"type": "number"} and isinstance(instance, list) and set(map(type, instance)) <= {int, float}:
            return  # what the loop below would find out for a hundred thousand samples, in a hundredth of the time
        yield from Draft202012Validator.VALIDATORS["items"](validator, rule, instance, schema)

    schema = json.loads(_KINDS[kind][0].read_text(encoding="utf-8"))
    return extend(Draft202012Validator, {"items": items})(schema)


def _place(path: Sequence[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return escaped(text).removeprefix(".")


def _unwritable(measurement: Measurement) -> str | None:
    for system, metric in _metrics(measurement):
        for number, launch in enumerate(metric.launches, 1):
            for what, samples in (("samples", launch.samples), ("warm-up samples", launch.warm_up)):
                unusable = sum(not math.isfinite(sample) for sample in samples)
                if unusable:
                    return (
                        f"{unusable} of {len(samples)} {what} of {escaped(metric.name)} of {escaped(system.label)} in "
                        f"launch {number} are NaN or infinite, which is no measurement. Measure again."
                    )
    return _contradiction(measurement)


def _metrics(measurement: Measurement) -> Iterator[tuple[System, MetricSamples]]:
    return ((system, metric) for system in measurement.systems for metric in system.metrics)


def _contradiction(measurement: Measurement) -> str | None:
    """Return in what a measurement contradicts itself, which a schema cannot see."""
    labels = [system.label for system in measurement.systems]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        return f"two systems have the label {shown(twice)}. Labels have to differ."
    count = len(measurement.processes)
    for system, metric in _metrics(measurement):
        where = f"{escaped(metric.name)} of {escaped(system.label)}"
        if [each.name for each in system.metrics].count(metric.name) > 1:
            return f"{escaped(system.label)} has two metrics of the name {escaped(metric.name)}. Names have to differ."
        used = [launch.process for launch in metric.launches]
        missing = [process for process in used if not 0 <= process < count]
        if missing:
            return f"a launch of {where} is of process {missing[0]}, and there are {count}, counted from 0."
        if len(set(used)) < len(used):
            return f"two launches of {where} are of one process; samples of one process are one launch."
        if len(used) > 1 and not all(measurement.processes[process].fresh for process in used):
            return f"{where} has {len(used)} launches, and not all are of fresh processes, which is what launches are."
    return None


def _wrong_hash(measurement: Measurement, content: Mapping[str, Any]) -> str | None:
    """Return which hash is not that of its content."""
    statistic = measurement.design.statistic.hash
    for system, entry in zip(measurement.systems, content["systems"], strict=True):
        label = escaped(system.label)
        pairs = [
            (f"workload hash of {label}", system.workload_hash, entry["hashes"]["workload"]),
            (f"configuration hash of {label}", system.configuration_hash, entry["hashes"]["configuration"]),
        ]
        for metric, part in zip(system.metrics, entry["metrics"], strict=True):
            where = f"{escaped(metric.name)} of {label}"
            pairs.append((f"metric hash of {where}", metric.hash, part["hashes"]["metric"]))
            pairs.append((f"statistic hash of {where}", statistic, part["hashes"]["statistic"]))
        for what, actual, stored in pairs:
            if actual != stored:
                return (
                    f"the {what} is {stored[:12]}…, and that of its content {actual[:12]}…: the file was changed after "
                    "it was written. Use the original, or measure again."
                )
    return None
