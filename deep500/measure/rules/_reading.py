"""Reading a document of any origin into a view: what can be read is, what cannot is named as a problem."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, TypeVar

from deep500.core.errors import MeasurementError
from deep500.core.texts import shown
from deep500.measure.document_view import (
    AbsoluteView,
    ComparedView,
    DocumentKind,
    DocumentView,
    LaunchView,
    MetricView,
    ScoreView,
    SystemView,
    flag_of,
    items_of,
    mapping_of,
    number_of,
    short,
    text_of,
)
from deep500.measure.metric import Direction, MetricKind
from deep500.measure.results.document import SCHEMA_VERSION

__all__ = ["view_of"]

_Enumeration = TypeVar("_Enumeration", bound=enum.Enum)

_KINDS = "'measurement' (deep500 bench), 'comparison' (deep500 compare), and the results of recipes (deep500 run)"


def view_of(content: Any) -> DocumentView:
    """Read a document.

    Args:
        content: The document as ``json.loads`` returns it.

    Raises:
        MeasurementError: It is no object, of no known kind, or of a newer version.
    """
    if not isinstance(content, Mapping):
        raise MeasurementError(
            f"A result is an object with a kind; this document is {shown(content)}. Accepted are {_KINDS}."
        )
    kind = _kind(content)
    if kind is not DocumentKind.RECIPE:
        _check_version(content)
    if kind is DocumentKind.MEASUREMENT:
        return _measurement(content)
    if kind is DocumentKind.RECIPE:
        return _recipe(content)
    return _comparison(content)


def _kind(content: Mapping[str, Any]) -> DocumentKind:
    named = content.get("kind")
    if named is None and isinstance(content.get("recipe"), Mapping):
        return DocumentKind.RECIPE
    if named in ("measurement", "comparison"):
        return DocumentKind(named)
    found = "has no kind" if named is None else f"is of the kind {shown(named)}"
    raise MeasurementError(f"The document {found}; accepted are {_KINDS}.")


def _check_version(content: Mapping[str, Any]) -> None:
    version = number_of(content.get("schema_version"))
    if version is not None and version > SCHEMA_VERSION:
        raise MeasurementError(
            f"The document has schema_version {shown(content['schema_version'])}; this Deep500 knows up to "
            f"{SCHEMA_VERSION}. Use the Deep500 that wrote it, or a newer one."
        )


class _Problems:
    """Reads parts of the document, and remembers what is missing or of a wrong type."""

    def __init__(self) -> None:
        self.structure: list[str] = []
        self.samples: list[str] = []

    def note(self, where: str, value: Any, wanted: str, *, among_samples: bool = False) -> None:
        found = "is missing" if value is None else f"is {_named(value)}, not {wanted}"
        (self.samples if among_samples else self.structure).append(f"{where} {found}")

    def mapping(self, parent: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
        value = parent.get(key)
        if not isinstance(value, Mapping):
            self.note(f"{where}{key}", value, "an object")
        return mapping_of(value)

    def entries(self, parent: Mapping[str, Any], key: str, where: str, *, among_samples: bool = False) -> list[Any]:
        """Return the objects of a list, each with its place."""
        value = parent.get(key)
        if not isinstance(value, list):
            self.note(f"{where}{key}", value, "a list", among_samples=among_samples)
        found = []
        for number, item in enumerate(items_of(value)):
            place = f"{where}{key}[{number}]"
            if isinstance(item, Mapping):
                found.append((place, item))
            else:
                self.note(place, "null" if item is None else item, "an object", among_samples=among_samples)
        return found

    def text(self, parent: Mapping[str, Any], key: str, where: str) -> str:
        value = parent.get(key)
        if text_of(value) is None:
            self.note(f"{where}{key}", value, "a text")
        return text_of(value) or ""

    def choice(self, parent: Mapping[str, Any], key: str, where: str, of: type[_Enumeration]) -> _Enumeration | None:
        value = parent.get(key)
        for member in of:
            if isinstance(value, str) and value == member.value:
                return member
        self.note(f"{where}{key}", value, f"one of {', '.join(str(member.value) for member in of)}")
        return None


def _named(value: Any) -> str:
    kinds = ((bool, "true or false"), ((int, float), "a number"), (list, "a list"), (Mapping, "an object"))
    if isinstance(value, str):
        return f"the text {short(value)!r}"
    return next((name for kind, name in kinds if isinstance(value, kind)), shown(value))


def _measurement(content: Mapping[str, Any]) -> DocumentView:
    problems = _Problems()
    for key in ("deep500", "started", "ended"):
        problems.text(content, key, "")
    if flag_of(content.get("complete")) is None:
        problems.note("complete", content.get("complete"), "true or false")
    for key in ("design", "environment"):
        problems.mapping(content, key, "")
    processes = [entry for _, entry in problems.entries(content, "processes", "")]
    systems = tuple(
        _system(entry, place, processes, problems) for place, entry in problems.entries(content, "systems", "")
    )
    labels = [system.label for system in systems]
    if len(set(labels)) < len(labels):
        problems.structure.append("two systems have the same label")
    return DocumentView(
        DocumentKind.MEASUREMENT,
        content,
        systems=systems,
        problems=tuple(problems.structure),
        sample_problems=tuple(problems.samples),
    )


def _system(
    entry: Mapping[str, Any], place: str, processes: list[Mapping[str, Any]], problems: _Problems
) -> SystemView:
    where = f"{place}."
    label = problems.text(entry, "label", where) or place
    return SystemView(
        label=short(label),
        spec=problems.text(entry, "spec", where),
        identity=problems.mapping(entry, "identity", where),
        factors=problems.mapping(entry, "factors", where),
        work=problems.mapping(entry, "work", where),
        hashes=problems.mapping(entry, "hashes", where),
        metrics=tuple(
            _metric(metric, at, label, processes, problems) for at, metric in problems.entries(entry, "metrics", where)
        ),
        scores=tuple(_score(score, at, problems) for at, score in problems.entries(entry, "scores", where)),
        content=entry,
    )


def _metric(
    entry: Mapping[str, Any], place: str, label: str, processes: list[Mapping[str, Any]], problems: _Problems
) -> MetricView:
    where = f"{place}."
    name = problems.text(entry, "name", where) or place
    unit = entry.get("unit")
    if not isinstance(unit, str):
        problems.note(f"{where}unit", unit, "a text")
    return MetricView(
        name=f"{short(name)} of {short(label)}",
        metric=short(name),
        unit=short(unit) if isinstance(unit, str) else None,
        kind=problems.choice(entry, "kind", where, MetricKind),
        direction=problems.choice(entry, "direction", where, Direction),
        launches=tuple(
            _launch(launch, at, processes, problems)
            for at, launch in problems.entries(entry, "launches", where, among_samples=True)
        ),
        content=entry,
    )


def _launch(
    entry: Mapping[str, Any], place: str, processes: list[Mapping[str, Any]], problems: _Problems
) -> LaunchView:
    index = number_of(entry.get("process"))
    process = int(index) if index is not None and index.is_integer() and 0 <= index < len(processes) else None
    if process is None:
        wanted = f"the index of one of the {len(processes)} processes"
        problems.note(f"{place}.process", entry.get("process"), wanted, among_samples=True)
    values = entry.get("samples")
    if not isinstance(values, list) or not values:
        problems.note(f"{place}.samples", values, "a list with a sample or more", among_samples=True)
    numbers = [number_of(value) for value in items_of(values)]
    wrong = numbers.count(None)
    if wrong:
        problems.samples.append(f"{wrong} of the {len(numbers)} entries of {place}.samples are no finite numbers")
    return LaunchView(
        process=process,
        fresh=None if process is None else flag_of(processes[process].get("fresh")),
        samples=() if wrong else tuple(number for number in numbers if number is not None),
        calls_per_sample=number_of(entry.get("calls_per_sample")),
    )


def _score(entry: Mapping[str, Any], place: str, problems: _Problems) -> ScoreView:
    where = f"{place}."
    if number_of(entry.get("value")) is None:
        problems.note(f"{where}value", entry.get("value"), "a finite number")
    return ScoreView(
        name=short(problems.text(entry, "name", where) or place),
        value=number_of(entry.get("value")),
        unit=short(text_of(entry.get("unit")) or ""),
        kind=problems.choice(entry, "kind", where, MetricKind) or MetricKind.SCORE,
        acceptable=number_of(entry.get("acceptable")),
        held_out=flag_of(entry.get("held_out")),
    )


def _comparison(content: Mapping[str, Any]) -> DocumentView:
    problems = _Problems()
    for key in ("deep500", "created"):
        problems.text(content, key, "")
    for key in ("metric", "statistic"):
        problems.mapping(content, key, "")
    base = content.get("base")
    if not isinstance(base, Mapping):
        problems.note("base", base, "an object")
    sides = [("base", base)] if isinstance(base, Mapping) else []
    rows = problems.entries(content, "rows", "")
    sides += [(f"{place}.system", problems.mapping(row, "system", f"{place}.")) for place, row in rows]
    absolutes = [_absolute(entry, place, problems) for place, entry in sides]
    return DocumentView(
        DocumentKind.COMPARISON,
        content,
        systems=tuple(_compared_system(entry, place, problems) for place, entry in sides),
        base=absolutes[0] if isinstance(base, Mapping) else None,
        compared=tuple(
            _compared(row, absolute) for (_, row), absolute in zip(rows, absolutes[len(absolutes) - len(rows) :])
        ),
        problems=tuple(problems.structure),
    )


def _absolute(entry: Mapping[str, Any], place: str, problems: _Problems) -> AbsoluteView:
    label = problems.text(entry, "label", f"{place}.") or place
    absolute = problems.mapping(entry, "absolute", f"{place}.")
    values = [number_of(value) for value in items_of(absolute.get("launch_values"))]
    return AbsoluteView(
        system=short(label),
        estimate=number_of(absolute.get("estimate")),
        ends=_ends(absolute),
        basis=text_of(absolute.get("basis")) or "",
        launch_values=() if None in values else tuple(value for value in values if value is not None),
        samples=number_of(absolute.get("samples")),
        source=mapping_of(entry.get("source")),
        configuration_hash=text_of(entry.get("configuration_hash")),
    )


def _ends(entry: Mapping[str, Any]) -> tuple[float, float] | None:
    interval = mapping_of(entry.get("interval"))
    low, high = number_of(interval.get("low")), number_of(interval.get("high"))
    return None if low is None or high is None else (low, high)


def _compared_system(entry: Mapping[str, Any], place: str, problems: _Problems) -> SystemView:
    where = f"{place}."
    return SystemView(
        label=short(text_of(entry.get("label")) or place),
        spec=problems.text(entry, "spec", where),
        identity={},
        factors={},
        work={},
        hashes={"configuration": entry.get("configuration_hash")},
        metrics=(),
        scores=tuple(_score(score, at, problems) for at, score in problems.entries(entry, "scores", where)),
        content=entry,
    )


def _compared(row: Mapping[str, Any], absolute: AbsoluteView) -> ComparedView:
    ratio = mapping_of(row.get("ratio"))
    return ComparedView(
        absolute=absolute,
        ratio=number_of(ratio.get("estimate")),
        ends=_ends(ratio),
        p_value=number_of(row.get("p_value")),
        p_holm=number_of(row.get("p_holm")),
        verdict=text_of(row.get("verdict")),
        pairing=text_of(row.get("pairing")),
        content=row,
    )


def _recipe(content: Mapping[str, Any]) -> DocumentView:
    problems = _Problems()
    for key in ("fixed", "mutable", "framework", "seeds", "versions", "statistics"):
        problems.mapping(content, key, "")
    for key in ("configuration_hash", "device", "started"):
        problems.text(content, key, "")
    if flag_of(content.get("complete")) is None:
        problems.note("complete", content.get("complete"), "true or false")
    scores = tuple(_recipe_score(entry, place, problems) for place, entry in problems.entries(content, "metrics", ""))
    return DocumentView(DocumentKind.RECIPE, content, scores=scores, problems=tuple(problems.structure))


def _recipe_score(entry: Mapping[str, Any], place: str, problems: _Problems) -> ScoreView:
    """Read a metric of a recipe. Its kind and whether its data were held out follow from its unit and its name."""
    name = problems.text(entry, "name", f"{place}.") or place
    unit = text_of(entry.get("unit")) or ""
    return ScoreView(
        name=short(name),
        value=number_of(entry.get("value")),
        unit=short(unit),
        kind=_kind_of_unit(unit),
        acceptable=number_of(entry.get("acceptable")),
        held_out=_held_out_of_name(name),
    )


def _kind_of_unit(unit: str) -> MetricKind:
    if unit.endswith(("/s", "/min", "/h")):
        return MetricKind.RATE
    return MetricKind.COST if unit in ("s", "ms", "us", "ns", "min", "h", "B", "MiB", "GiB", "J") else MetricKind.SCORE


def _held_out_of_name(name: str) -> bool | None:
    lowered = name.lower()
    if any(word in lowered for word in ("test", "valid", "heldout", "held_out")):
        return True
    return False if "train" in lowered else None
