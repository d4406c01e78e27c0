"""Numbers that a document reports beside its samples: means, ratios and percentiles, found by the words of their keys.

A result of Deep500 keeps samples and reports none of these; documents of other origin, or edited by hand, do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deep500.measure.document_view import DocumentView, MetricView, items_of, mapping_of, number_of, short, text_of
from deep500.measure.metric import MetricKind

__all__ = ["Reported", "reported_means", "reported_quantiles", "reported_ratios", "reported_verdicts"]

_MEAN = frozenset({"mean", "means", "average", "averages", "avg", "amean", "hmean", "gmean", "geomean"})
_MEANS = {
    "harmonic": frozenset({"harmonic", "hmean"}),
    "geometric": frozenset({"geometric", "gmean", "geomean"}),
    "arithmetic": frozenset({"arithmetic", "amean"}),
}
_RATIO = frozenset({"ratio", "ratios", "speedup", "speedups", "slowdown", "slowdowns"})
_KINDS = tuple(kind.value for kind in MetricKind)
_INTERVAL = frozenset(
    {"interval", "ci", "ci95", "ci99", "confidence", "low", "lower", "high", "upper", "stderr", "sem"}
)

#: Parts that describe what was done, where a "mean" is no result, and the samples themselves.
_DESCRIPTIONS = frozenset(
    {
        "environment", "design", "processes", "identity", "factors", "work", "hashes", "launches", "fixed", "mutable",
        "seeds", "versions", "statistics", "framework", "recipe",
    }
)  # fmt: skip

#: Whole per cents, and what follows behind their point.
_PERCENTILES = (
    re.compile(r"p(?:erc(?:entile)?)?_?(\d{1,2})[._]?(\d{1,3})?(?:_[a-z]{1,2})?", re.IGNORECASE),
    re.compile(r"(\d{1,2})(?:[._](\d{1,3}))?(?:st|nd|rd|th)_?perc(?:entile)?", re.IGNORECASE),
    re.compile(r"q(?:uantile)?_?0[._](\d{1,2})(\d{1,3})?", re.IGNORECASE),
)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|\d+(?:\.\d+)?|[a-z]+\d+")


@dataclass(frozen=True)
class Reported:
    """One number that is reported, or an interval of it.

    Attributes:
        where: Its place in the document.
        key: Its key.
        words: The words of its key, in lower case.
        context: The words of all keys on the way to it, its own included.
        value: The number; ``None`` when it is no plain number, nor an object with an estimate.
        has_interval: Whether an interval stands in it or beside it.
        content: What stands there.
        metric: The metric whose entry it stands in; ``None`` for none.
        kind: What it was computed from, by the metric or the document; ``None`` when neither tells.
    """

    where: str
    key: str
    words: frozenset[str]
    context: frozenset[str]
    value: float | None
    has_interval: bool
    content: Any
    metric: MetricView | None
    kind: MetricKind | None

    @property
    def is_of_ratios(self) -> bool:
        """Whether it was computed from ratios."""
        return bool(self.context & _RATIO) or self.kind is MetricKind.RATIO

    @property
    def mean(self) -> str:
        """Which mean it says that it is: arithmetic, harmonic, geometric; empty when it does not say."""
        return next((name for name, words in _MEANS.items() if self.words & words), "")


def reported_means(document: DocumentView) -> list[Reported]:
    """Return the means that a document reports, and those that its design says it reports."""
    found = [entry for entry in _in_order(document) if entry.words & _MEAN]
    name = text_of(document.statistic.get("name")) or ""
    words = _words(name)
    if words & _MEAN:
        found += [
            Reported("the statistic", "name", words, words, None, True, name, metric, metric.kind)
            for metric in document.metrics
        ]
    return found


def reported_ratios(document: DocumentView) -> list[Reported]:
    """Return the ratios that a document reports; means of ratios are not among them."""
    return [entry for entry in _in_order(document) if entry.words & _RATIO and not entry.words & _MEAN]


def reported_quantiles(document: DocumentView) -> list[tuple[Reported, float]]:
    """Return the percentiles that a document reports, such as ``p99``, each with its quantile."""
    found = []
    for entry in _in_order(document):
        quantile = _quantile(entry.key)
        if quantile is not None:
            found.append((entry, quantile))
    return found


def reported_verdicts(document: DocumentView) -> list[tuple[str, str]]:
    """Return the places at which a document says faster or slower, as a whole value."""
    found = []
    stack: list[tuple[str, Any]] = [("", document.content)]
    while stack:
        where, value = stack.pop()
        entries = value.items() if isinstance(value, Mapping) else enumerate(items_of(value))
        for name, item in entries:
            place = f"{where}[{name}]" if isinstance(name, int) else f"{where}.{name}".lstrip(".")
            if isinstance(item, str) and item.strip().lower() in ("faster", "slower"):
                found.append((short(place), item.strip().lower()))
            elif isinstance(item, (Mapping, list)) and name not in _DESCRIPTIONS:
                stack.append((place, item))
    return found


def _quantile(key: str) -> float | None:
    """Return the quantile that a key names: p99, p99_9, p999, p95_s, percentile_95, 99th_percentile, quantile_0.9."""
    for pattern in _PERCENTILES:
        match = pattern.fullmatch(key)
        if match is not None and match[1] + (match[2] or "") != "100":
            quantile = float(f"0.{match[1]:0>2}{match[2] or ''}")
            return quantile if quantile > 0 else None
    return None


def _in_order(document: DocumentView) -> list[Reported]:
    return sorted(_reported(document), key=lambda entry: entry.where)


def _reported(document: DocumentView) -> Iterator[Reported]:
    """Go through all numbers of the document that stand outside of descriptions and samples."""
    metrics = {id(metric.content): metric for metric in document.metrics}
    named = document.part("metric.kind")  # a comparison is of one metric
    kind = MetricKind(named) if isinstance(named, str) and named in _KINDS else None
    stack: list[tuple[str, frozenset[str], Any, MetricView | None]] = [("", frozenset(), document.content, None)]
    while stack:
        where, context, value, metric = stack.pop()
        if isinstance(value, Mapping):
            metric = metrics.get(id(value), metric)
            beside = {name: _words(str(name)) for name in value}
            for name, item in value.items():
                if name in _DESCRIPTIONS:
                    continue
                place = f"{where}.{name}" if where else str(name)
                inside = context | beside[name]
                others = frozenset().union(*(words for other, words in beside.items() if other != name))
                if _is_number_like(item):
                    of = kind if metric is None else metric.kind
                    has_interval = bool((others | _keys(item)) & _INTERVAL)
                    yield Reported(
                        short(place), name, beside[name], inside, _value(item), has_interval, item, metric, of
                    )
                if isinstance(item, (Mapping, list)):
                    stack.append((place, inside, item, metric))
        elif isinstance(value, list):
            entries = enumerate(value)
            stack += [
                (f"{where}[{n}]", context, item, metric) for n, item in entries if isinstance(item, (Mapping, list))
            ]


def _is_number_like(item: Any) -> bool:
    """Whether something is a number, an object with one as its estimate, or a list that holds numbers."""
    return _value(item) is not None or any(number_of(entry) is not None for entry in items_of(item))


def _value(item: Any) -> float | None:
    if isinstance(item, Mapping):
        return next((number for key in ("estimate", "value") if (number := number_of(item.get(key))) is not None), None)
    return number_of(item)


def _keys(item: Any) -> frozenset[str]:
    return frozenset().union(*(_words(str(key)) for key in mapping_of(item)))


def _words(key: str) -> frozenset[str]:
    """Return the words of a key in snake_case or CamelCase, in lower case."""
    found = {word.lower() for word in _WORD.findall(key)}
    return frozenset(found | ({"speedup"} if {"speed", "up"} <= found else set()))
