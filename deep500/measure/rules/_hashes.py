"""Hashes computed again from the parts of a document that they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deep500.measure.document_view import DocumentView, SystemView, mapping_of
from deep500.measure.results.document import content_hash

__all__ = ["configuration_problem", "hash_problems"]


def hash_problems(document: DocumentView) -> list[str]:
    """Return which hashes of a measurement are not those of the parts beside them."""
    statistic = document.part("design.statistic")
    problems = []
    for system in document.systems:
        checks = [("workload", system.hashes.get("workload"), dict(system.identity), "its identity")]
        problems += [f"{system.label}: {text}" for text in _problems(checks)]
        problems += [text] if (text := configuration_problem(system)) else []
        for metric in system.metrics:
            stated = mapping_of(metric.content.get("hashes"))
            definition = [metric.content.get(key) for key in ("name", "unit", "kind", "direction")]
            parts = [
                ("metric", stated.get("metric"), definition, "its definition"),
                ("statistic", stated.get("statistic"), statistic, "design.statistic"),
            ]
            problems += [f"{metric.name}: {text}" for text in _problems(parts)]
    return problems


def configuration_problem(system: SystemView) -> str:
    """Return why a system's configuration hash is not the one of its parts; an empty text when it is."""
    parts = [
        dict(system.identity),
        dict(system.factors),
        system.hashes.get("data"),
        system.hashes.get("initialisation"),
        dict(system.work),
    ]
    check = (
        "configuration",
        system.hashes.get("configuration"),
        parts,
        "identity, factors, data, initialisation, work",
    )
    return "; ".join(f"{system.label}: {text}" for text in _problems([check]))


def _problems(checks: Iterable[tuple[str, Any, Any, str]]) -> list[str]:
    found = []
    for name, stated, content, what in checks:
        if stated is None:
            found.append(f"no {name} hash is stated")
        elif _hash(content) != stated:
            found.append(f"the {name} hash is not that of {what}; one of them was changed after the measurement")
    return found


def _hash(content: Any) -> str | None:
    try:
        return content_hash(content)
    except (TypeError, ValueError, RecursionError):  # such as NaN, which no file of Deep500 holds
        return None
